"""The numbers that the fields of discovery/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
Endpoint
  addresses=1:[str] conditions=2:EndpointConditions hostname=3! targetRef=4:core.ObjectReference!
  deprecatedTopology=5:{str} nodeName=6! zone=7! hints=8:EndpointHints!
EndpointConditions
  ready=1:bool! serving=2:bool! terminating=3:bool!
EndpointHints
  forZones=1:[ForZone] forNodes=2:[ForNode]
EndpointPort
  name=1! protocol=2! port=3:int! appProtocol=4!
EndpointSlice
  metadata=1:meta.ObjectMeta addressType=4! endpoints=2:[Endpoint] ports=3:[EndpointPort]
ForNode
  name=1!
ForZone
  name=1!
"""
