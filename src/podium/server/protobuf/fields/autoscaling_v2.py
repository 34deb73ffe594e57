"""The numbers that the fields of autoscaling/v2 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
ContainerResourceMetricSource
  name=1! target=2:MetricTarget! container=3!
ContainerResourceMetricStatus
  name=1! current=2:MetricValueStatus! container=3!
CrossVersionObjectReference
  kind=1! name=2! apiVersion=3
ExternalMetricSource
  metric=1:MetricIdentifier! target=2:MetricTarget!
ExternalMetricStatus
  metric=1:MetricIdentifier! current=2:MetricValueStatus!
HPAScalingPolicy
  type=1! value=2:int! periodSeconds=3:int!
HPAScalingRules
  stabilizationWindowSeconds=3:int! selectPolicy=1! policies=2:[HPAScalingPolicy] tolerance=4:quantity!
HorizontalPodAutoscaler
  metadata=1:meta.ObjectMeta spec=2:HorizontalPodAutoscalerSpec status=3:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerBehavior
  scaleUp=1:HPAScalingRules! scaleDown=2:HPAScalingRules!
HorizontalPodAutoscalerCondition
  type=1! status=2! lastTransitionTime=3:time reason=4 message=5
HorizontalPodAutoscalerSpec
  scaleTargetRef=1:CrossVersionObjectReference! minReplicas=2:int! maxReplicas=3:int! metrics=4:[MetricSpec]
  behavior=5:HorizontalPodAutoscalerBehavior!
HorizontalPodAutoscalerStatus
  observedGeneration=1:long! lastScaleTime=2:time! currentReplicas=3:int desiredReplicas=4:int!
  currentMetrics=5:[MetricStatus] conditions=6:[HorizontalPodAutoscalerCondition]
MetricIdentifier
  name=1! selector=2:meta.LabelSelector!
MetricSpec
  type=1! object=2:ObjectMetricSource! pods=3:PodsMetricSource! resource=4:ResourceMetricSource!
  containerResource=7:ContainerResourceMetricSource! external=5:ExternalMetricSource!
MetricStatus
  type=1! object=2:ObjectMetricStatus! pods=3:PodsMetricStatus! resource=4:ResourceMetricStatus!
  containerResource=7:ContainerResourceMetricStatus! external=5:ExternalMetricStatus!
MetricTarget
  type=1! value=2:quantity! averageValue=3:quantity! averageUtilization=4:int!
MetricValueStatus
  value=1:quantity! averageValue=2:quantity! averageUtilization=3:int!
ObjectMetricSource
  describedObject=1:CrossVersionObjectReference! target=2:MetricTarget! metric=3:MetricIdentifier!
ObjectMetricStatus
  metric=1:MetricIdentifier! current=2:MetricValueStatus! describedObject=3:CrossVersionObjectReference!
PodsMetricSource
  metric=1:MetricIdentifier! target=2:MetricTarget!
PodsMetricStatus
  metric=1:MetricIdentifier! current=2:MetricValueStatus!
ResourceMetricSource
  name=1! target=2:MetricTarget!
ResourceMetricStatus
  name=1! current=2:MetricValueStatus!
"""
