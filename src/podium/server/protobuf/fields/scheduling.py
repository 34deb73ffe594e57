"""The numbers that the fields of scheduling/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
PriorityClass
  metadata=1:meta.ObjectMeta value=2:int! globalDefault=3:bool description=4 preemptionPolicy=5!
"""
