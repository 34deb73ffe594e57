"""The numbers that the fields of node/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
Overhead
  podFixed=1:{quantity}
RuntimeClass
  metadata=1:meta.ObjectMeta handler=2! overhead=3:Overhead! scheduling=4:Scheduling!
Scheduling
  nodeSelector=1:{str} tolerations=2:[core.Toleration]
"""
