"""The numbers that the fields of autoscaling/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
CrossVersionObjectReference
  kind=1! name=2! apiVersion=3
HorizontalPodAutoscaler
  metadata=1:meta.ObjectMeta spec=2:HorizontalPodAutoscalerSpec status=3:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec
  scaleTargetRef=1:CrossVersionObjectReference! minReplicas=2:int! maxReplicas=3:int!
  targetCPUUtilizationPercentage=4:int!
HorizontalPodAutoscalerStatus
  observedGeneration=1:long! lastScaleTime=2:time! currentReplicas=3:int! desiredReplicas=4:int!
  currentCPUUtilizationPercentage=5:int!
Scale
  metadata=1:meta.ObjectMeta spec=2:ScaleSpec status=3:ScaleStatus
ScaleSpec
  replicas=1:int
ScaleStatus
  replicas=1:int! selector=2
"""
