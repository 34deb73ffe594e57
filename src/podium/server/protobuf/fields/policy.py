"""The numbers that the fields of policy/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
Eviction
  metadata=1:meta.ObjectMeta deleteOptions=2:meta.DeleteOptions!
PodDisruptionBudget
  metadata=1:meta.ObjectMeta spec=2:PodDisruptionBudgetSpec status=3:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec
  minAvailable=1:share! selector=2:meta.LabelSelector! maxUnavailable=3:share! unhealthyPodEvictionPolicy=4!
PodDisruptionBudgetStatus
  observedGeneration=1:long disruptedPods=2:{time} disruptionsAllowed=3:int! currentHealthy=4:int!
  desiredHealthy=5:int! expectedPods=6:int! conditions=7:[meta.Condition]
"""
