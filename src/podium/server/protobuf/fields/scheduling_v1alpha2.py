"""The numbers that the fields of scheduling/v1alpha2 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
BasicSchedulingPolicy
GangSchedulingPolicy
  minCount=1:int!
PodGroup
  metadata=1:meta.ObjectMeta spec=2:PodGroupSpec status=3:PodGroupStatus
PodGroupResourceClaim
  name=1! resourceClaimName=2 resourceClaimTemplateName=3
PodGroupResourceClaimStatus
  name=1! resourceClaimName=2
PodGroupSchedulingConstraints
  topology=1:[TopologyConstraint]
PodGroupSchedulingPolicy
  basic=1:BasicSchedulingPolicy! gang=2:GangSchedulingPolicy!
PodGroupSpec
  podGroupTemplateRef=1:PodGroupTemplateReference! schedulingPolicy=2:PodGroupSchedulingPolicy
  schedulingConstraints=3:PodGroupSchedulingConstraints! resourceClaims=4:[PodGroupResourceClaim] disruptionMode=5
  priorityClassName=6 priority=7:int!
PodGroupStatus
  conditions=1:[meta.Condition] resourceClaimStatuses=2:[PodGroupResourceClaimStatus]
PodGroupTemplate
  name=1! schedulingPolicy=2:PodGroupSchedulingPolicy schedulingConstraints=3:PodGroupSchedulingConstraints!
  resourceClaims=4:[PodGroupResourceClaim] disruptionMode=5 priorityClassName=6 priority=7:int!
PodGroupTemplateReference
  workload=1:WorkloadPodGroupTemplateReference!
TopologyConstraint
  key=1!
TypedLocalObjectReference
  apiGroup=1 kind=2! name=3!
Workload
  metadata=1:meta.ObjectMeta spec=2:WorkloadSpec
WorkloadPodGroupTemplateReference
  workloadName=1! podGroupTemplateName=2!
WorkloadSpec
  controllerRef=1:TypedLocalObjectReference! podGroupTemplates=2:[PodGroupTemplate]
"""
