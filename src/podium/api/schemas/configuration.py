"""What programs are told, and what they tell: configuration, leases, events, autoscaling, attached volumes."""

FIELDS = """
ConfigMap
  apiVersion kind metadata:ObjectMeta binaryData:{bytes} data:{str} immutable:bool
ContainerResourceMetricSource
  container name target:MetricTarget
ContainerResourceMetricStatus
  container current:MetricValueStatus name
CrossVersionObjectReference
  apiVersion kind name
Event
  apiVersion kind metadata:ObjectMeta action count:int eventTime:time firstTimestamp:time
  involvedObject:ObjectReference lastTimestamp:time message reason related:ObjectReference reportingComponent
  reportingInstance series:EventSeries source:EventSource type
EventSeries
  count:int lastObservedTime:time
EventSource
  component host
ExternalMetricSource
  metric:MetricIdentifier target:MetricTarget
ExternalMetricStatus
  current:MetricValueStatus metric:MetricIdentifier
HPAScalingPolicy
  periodSeconds:int type value:int
HPAScalingRules
  policies:[HPAScalingPolicy] selectPolicy stabilizationWindowSeconds:int tolerance:quantity
HorizontalPodAutoscaler
  apiVersion kind metadata:ObjectMeta spec:HorizontalPodAutoscalerSpec status:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerBehavior
  scaleDown:HPAScalingRules scaleUp:HPAScalingRules
HorizontalPodAutoscalerCondition
  lastTransitionTime:time message observedGeneration:long reason status type
HorizontalPodAutoscalerSpec
  behavior:HorizontalPodAutoscalerBehavior maxReplicas:int metrics:[MetricSpec] minReplicas:int
  scaleTargetRef:CrossVersionObjectReference
HorizontalPodAutoscalerStatus
  conditions:[HorizontalPodAutoscalerCondition]#type currentMetrics:[MetricStatus] currentReplicas:int
  desiredReplicas:int lastScaleTime:time observedGeneration:long
Lease
  apiVersion kind metadata:ObjectMeta spec:LeaseSpec
LeaseSpec
  acquireTime:time holderIdentity leaseDurationSeconds:int leaseTransitions:int preferredHolder renewTime:time
  strategy
MetricIdentifier
  name selector:LabelSelector
MetricSpec
  containerResource:ContainerResourceMetricSource external:ExternalMetricSource object:ObjectMetricSource
  pods:PodsMetricSource resource:ResourceMetricSource type
MetricStatus
  containerResource:ContainerResourceMetricStatus external:ExternalMetricStatus object:ObjectMetricStatus
  pods:PodsMetricStatus resource:ResourceMetricStatus type
MetricTarget
  averageUtilization:int averageValue:quantity type value:quantity
MetricValueStatus
  averageUtilization:int averageValue:quantity value:quantity
ObjectMetricSource
  describedObject:CrossVersionObjectReference metric:MetricIdentifier target:MetricTarget
ObjectMetricStatus
  current:MetricValueStatus describedObject:CrossVersionObjectReference metric:MetricIdentifier
PodTemplate
  apiVersion kind metadata:ObjectMeta template:PodTemplateSpec
PodsMetricSource
  metric:MetricIdentifier target:MetricTarget
PodsMetricStatus
  current:MetricValueStatus metric:MetricIdentifier
ResourceMetricSource
  name target:MetricTarget
ResourceMetricStatus
  current:MetricValueStatus name
Secret
  apiVersion kind metadata:ObjectMeta data:{bytes} immutable:bool stringData:{str} type^
VolumeAttributesClass
  apiVersion kind metadata:ObjectMeta driverName^ parameters:{str}^
"""
