"""The numbers that the fields of meta/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
Condition
  type=1! status=2! observedGeneration=3:long lastTransitionTime=4:time! reason=5! message=6!
DeleteOptions
  gracePeriodSeconds=1:long! preconditions=2:Preconditions! orphanDependents=3:bool! propagationPolicy=4!
  dryRun=5:[str] ignoreStoreReadErrorWithClusterBreakingPotential=6:bool!
FieldSelectorRequirement
  key=1! operator=2! values=3:[str]
LabelSelector
  matchLabels=1:{str} matchExpressions=2:[LabelSelectorRequirement]
LabelSelectorRequirement
  key=1! operator=2! values=3:[str]
ListMeta
  selfLink=1 resourceVersion=2 continue=3 remainingItemCount=4:long! shardInfo=5:ShardInfo!
ManagedFieldsEntry
  manager=1 operation=2 apiVersion=3 time=4:time! fieldsType=6 fieldsV1=7:json! subresource=8
ObjectMeta
  name=1 generateName=2 namespace=3 selfLink=4 uid=5 resourceVersion=6 generation=7:long creationTimestamp=8:time
  deletionTimestamp=9:time! deletionGracePeriodSeconds=10:long! labels=11:{str} annotations=12:{str}
  ownerReferences=13:[OwnerReference] finalizers=14:[str] managedFields=17:[ManagedFieldsEntry]
OwnerReference
  apiVersion=5! kind=1! name=3! uid=4! controller=6:bool! blockOwnerDeletion=7:bool!
Preconditions
  uid=1! resourceVersion=2!
ShardInfo
  selector=1!
Status
  metadata=1:ListMeta status=2 message=3 reason=4 details=5:StatusDetails! code=6:int
StatusCause
  reason=1 message=2 field=3
StatusDetails
  name=1 group=2 kind=3 uid=6 causes=4:[StatusCause] retryAfterSeconds=5:int
"""
