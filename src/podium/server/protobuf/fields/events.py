"""The numbers that the fields of events/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
Event
  metadata=1:meta.ObjectMeta! eventTime=2:microtime! series=3:EventSeries! reportingController=4 reportingInstance=5
  action=6 reason=7 regarding=8:core.ObjectReference related=9:core.ObjectReference! note=10 type=11
  deprecatedSource=12:core.EventSource deprecatedFirstTimestamp=13:time deprecatedLastTimestamp=14:time
  deprecatedCount=15:int
EventSeries
  count=1:int! lastObservedTime=2:microtime!
"""
