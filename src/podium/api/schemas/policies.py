"""Namespaces, what limits and protects pods, and Services (core/v1, policy/v1, scheduling.k8s.io/v1 and v1alpha2).

The `disruptionRate` of a budget's status is Podium's own.
"""

FIELDS = """
BasicSchedulingPolicy
ClientIPConfig
  timeoutSeconds:int
DisruptionRateStatus
  max atLeast available:int fullTime:time
GangSchedulingPolicy
  minCount:int
LimitRange
  apiVersion kind metadata:ObjectMeta spec:LimitRangeSpec
LimitRangeItem
  type max:{quantity} min:{quantity} default:{quantity} defaultRequest:{quantity} maxLimitRequestRatio:{quantity}
LimitRangeSpec
  limits:[LimitRangeItem]
LoadBalancerIngress
  ip hostname ipMode ports:[PortStatus]
LoadBalancerStatus
  ingress:[LoadBalancerIngress]
Namespace
  apiVersion kind metadata:ObjectMeta spec:NamespaceSpec status:NamespaceStatus
NamespaceCondition
  type status lastTransitionTime:time reason message
NamespaceSpec
  finalizers:[str]
NamespaceStatus
  phase conditions:[NamespaceCondition]#type
PodDisruptionBudget
  apiVersion kind metadata:ObjectMeta spec:PodDisruptionBudgetSpec status:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec
  minAvailable:share selector:LabelSelector! maxUnavailable:share unhealthyPodEvictionPolicy
PodDisruptionBudgetStatus
  observedGeneration:long disruptedPods:{time} disruptionsAllowed:int currentHealthy:int desiredHealthy:int
  expectedPods:int conditions:[Condition]#type disruptionRate:DisruptionRateStatus
PodGroup
  apiVersion kind metadata:ObjectMeta spec:PodGroupSpec status:PodGroupStatus
PodGroupResourceClaim
  name resourceClaimName resourceClaimTemplateName
PodGroupResourceClaimStatus
  name resourceClaimName
PodGroupSchedulingConstraints
  topology:[TopologyConstraint]
PodGroupSchedulingPolicy
  basic:BasicSchedulingPolicy gang:GangSchedulingPolicy
PodGroupSpec
  podGroupTemplateRef:PodGroupTemplateReference^ schedulingPolicy:PodGroupSchedulingPolicy^
  schedulingConstraints:PodGroupSchedulingConstraints^ resourceClaims:[PodGroupResourceClaim]^#name disruptionMode^
  priorityClassName^ priority:int^
PodGroupStatus
  conditions:[Condition]#type resourceClaimStatuses:[PodGroupResourceClaimStatus]#name
PodGroupTemplate
  name schedulingPolicy:PodGroupSchedulingPolicy schedulingConstraints:PodGroupSchedulingConstraints
  resourceClaims:[PodGroupResourceClaim]#name disruptionMode priorityClassName priority:int
PodGroupTemplateReference
  workload:WorkloadPodGroupTemplateReference
PortStatus
  port:int protocol error
PriorityClass
  apiVersion kind metadata:ObjectMeta value:int globalDefault:bool description preemptionPolicy
ResourceQuota
  apiVersion kind metadata:ObjectMeta spec:ResourceQuotaSpec status:ResourceQuotaStatus
ResourceQuotaSpec
  hard:{quantity} scopes:[str]^ scopeSelector:ScopeSelector
ResourceQuotaStatus
  hard:{quantity} used:{quantity}
ScopeSelector
  matchExpressions:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement
  scopeName operator values:[str]
Service
  apiVersion kind metadata:ObjectMeta spec:ServiceSpec status:ServiceStatus
ServiceAccount
  apiVersion kind metadata:ObjectMeta secrets:[ObjectReference]#name imagePullSecrets:[LocalObjectReference]
  automountServiceAccountToken:bool
ServicePort
  name protocol appProtocol port:int targetPort:share nodePort:int
ServiceSpec
  ports:[ServicePort]#port selector:{str} clusterIP clusterIPs:[str] type externalIPs:[str] sessionAffinity
  loadBalancerIP loadBalancerSourceRanges:[str] externalName externalTrafficPolicy healthCheckNodePort:int
  publishNotReadyAddresses:bool sessionAffinityConfig:SessionAffinityConfig ipFamilies:[str] ipFamilyPolicy
  allocateLoadBalancerNodePorts:bool loadBalancerClass internalTrafficPolicy trafficDistribution
ServiceStatus
  loadBalancer:LoadBalancerStatus conditions:[Condition]#type
SchedulerPluginsPodGroup
  apiVersion kind metadata:ObjectMeta spec:SchedulerPluginsPodGroupSpec status:any
SchedulerPluginsPodGroupSpec
  minMember:int minResources:{quantity} scheduleTimeoutSeconds:int
SessionAffinityConfig
  clientIP:ClientIPConfig
TopologyConstraint
  key
Workload
  apiVersion kind metadata:ObjectMeta spec:WorkloadSpec
WorkloadPodGroupTemplateReference
  workloadName podGroupTemplateName
WorkloadSpec
  controllerRef:TypedLocalObjectReference^ podGroupTemplates:[PodGroupTemplate]^#name
"""
