"""The numbers that the fields of coordination/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
Lease
  metadata=1:meta.ObjectMeta spec=2:LeaseSpec
LeaseSpec
  holderIdentity=1! leaseDurationSeconds=2:int! acquireTime=3:microtime! renewTime=4:microtime!
  leaseTransitions=5:int! strategy=6! preferredHolder=7!
"""
