"""The types of the named API groups, in the notation of `podium.api.schemas.schema`."""

TYPES = """
[admissionregistration.k8s.io/v1]
ApplyConfiguration JSONPatch: expression
AuditAnnotation: key! valueExpression!
ExpressionWarning: fieldRef@2! warning!
MatchCondition: name! expression!
MatchResources~: namespaceSelector!:LabelSelector={} objectSelector!:LabelSelector={}
  resourceRules:[NamedRuleWithOperations] excludeResourceRules:[NamedRuleWithOperations] matchPolicy@7!=Equivalent
kind MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicyBinding: spec:*Spec
MutatingAdmissionPolicyBindingSpec: policyName paramRef!:ParamRef matchResources!:MatchResources
MutatingAdmissionPolicySpec: paramKind!:ParamKind matchConstraints!:MatchResources variables:[Variable]
  mutations:[Mutation] failurePolicy!=Fail matchConditions:[MatchCondition]#name reinvocationPolicy=Never
MutatingWebhook: name! clientConfig!:WebhookClientConfig rules:[RuleWithOperations] failurePolicy!=Fail
  matchPolicy@9!=Equivalent namespaceSelector@5!:LabelSelector={} objectSelector@11!:LabelSelector={} sideEffects@6!
  timeoutSeconds!:int=10 admissionReviewVersions:[str] reinvocationPolicy@10!=Never
  matchConditions@12:[MatchCondition]#name
kind MutatingWebhookConfiguration: webhooks:[MutatingWebhook]#name
Mutation: patchType@2! applyConfiguration!:ApplyConfiguration jsonPatch!:JSONPatch
NamedRuleWithOperations~: resourceNames:[str] !:RuleWithOperations
ParamKind~: apiVersion kind
ParamRef~: name namespace selector!:LabelSelector parameterNotFoundAction!=Deny
Rule: apiGroups:[str] apiVersions:[str] resources:[str] scope!=*
RuleWithOperations: operations:[str] !:Rule
ServiceReference: namespace! name! path! port!:int=443
TypeChecking: expressionWarnings:[ExpressionWarning]
kind ValidatingAdmissionPolicy: spec:ValidatingAdmissionPolicySpec status:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBindingSpec: policyName paramRef!:ParamRef matchResources!:MatchResources
  validationActions:[str]#
ValidatingAdmissionPolicySpec: paramKind!:ParamKind matchConstraints!:MatchResources validations:[Validation]
  failurePolicy!=Fail auditAnnotations:[AuditAnnotation] matchConditions:[MatchCondition]#name variables:[Variable]#name
ValidatingAdmissionPolicyStatus: observedGeneration:long typeChecking!:TypeChecking conditions:[Condition]#type
ValidatingWebhook: name! clientConfig!:WebhookClientConfig rules:[RuleWithOperations] failurePolicy!=Fail
  matchPolicy@9!=Equivalent namespaceSelector@5!:LabelSelector={} objectSelector@10!:LabelSelector={} sideEffects@6!
  timeoutSeconds!:int=10 admissionReviewVersions:[str] matchConditions@11:[MatchCondition]#name
kind ValidatingWebhookConfiguration: webhooks:[ValidatingWebhook]#name
Validation: expression! message reason! messageExpression
Variable~: name! expression!
WebhookClientConfig: url@3! service@1!:ServiceReference caBundle:bytes
[apiextensions.k8s.io/v1]
CustomResourceColumnDefinition: name! type! format description priority:int jsonPath!
CustomResourceConversion: strategy! webhook!:WebhookConversion
kind CustomResourceDefinition: spec!:CustomResourceDefinitionSpec status:CustomResourceDefinitionStatus
CustomResourceDefinitionCondition: type! status! lastTransitionTime:time reason message observedGeneration:long
CustomResourceDefinitionNames: plural! singular shortNames:[str] kind! listKind categories:[str]
CustomResourceDefinitionSpec: group! names@3!:CustomResourceDefinitionNames scope!
  versions@7:[CustomResourceDefinitionVersion] conversion@9!:CustomResourceConversion preserveUnknownFields:bool
CustomResourceDefinitionStatus: conditions:[CustomResourceDefinitionCondition]#type
  acceptedNames!:CustomResourceDefinitionNames storedVersions:[str] observedGeneration:long
CustomResourceDefinitionVersion: name! served!:bool storage!:bool deprecated@7:bool deprecationWarning!
  schema@4!:CustomResourceValidation subresources!:CustomResourceSubresources
  additionalPrinterColumns:[CustomResourceColumnDefinition] selectableFields@9:[SelectableField]
CustomResourceSubresourceScale: specReplicasPath! statusReplicasPath! labelSelectorPath!
CustomResourceSubresourceStatus:
CustomResourceSubresources: status!:any scale!:CustomResourceSubresourceScale
CustomResourceValidation: openAPIV3Schema!:any
ExternalDocumentation: description url
JSONSchemaProps~: id $schema $ref! description type format title default!:any maximum!:float exclusiveMaximum:bool
  minimum!:float exclusiveMinimum:bool maxLength!:long minLength!:long pattern maxItems!:long minItems!:long
  uniqueItems:bool multipleOf!:float enum:[any] maxProperties!:long minProperties!:long required:[str]
  items!:JSONSchemaOrList allOf:[JSONSchemaProps] oneOf:[JSONSchemaProps] anyOf:[JSONSchemaProps] not!:JSONSchemaProps
  properties:{JSONSchemaProps} additionalProperties!:JSONSchemaOrBool patternProperties:{JSONSchemaProps}
  additionalItems@33!:JSONSchemaOrBool definitions:{JSONSchemaProps} externalDocs!:ExternalDocumentation example!:any
  nullable:bool x-kubernetes-preserve-unknown-fields!:bool x-kubernetes-embedded-resource:bool
  x-kubernetes-int-or-string:bool x-kubernetes-list-map-keys:[str] x-kubernetes-list-type! x-kubernetes-map-type!
  x-kubernetes-validations:[ValidationRule]
SelectableField: jsonPath!
ValidationRule: rule! message messageExpression reason! fieldPath optionalOldSelf!:bool
WebhookConversion: clientConfig@2!:WebhookClientConfig conversionReviewVersions:[str]
[apiregistration.k8s.io/v1]
kind APIService: spec:APIServiceSpec status:APIServiceStatus
APIServiceCondition: type! status! lastTransitionTime:time reason message
APIServiceServiceReference: namespace name port!:int
APIServiceSpec: service!:APIServiceServiceReference group version insecureSkipTLSVerify:bool caBundle:bytes
  groupPriorityMinimum@7!:int versionPriority!:int
APIServiceStatus: conditions:[APIServiceCondition]#type
[apps/v1]
kind ControllerRevision: data:any revision!:long
kind DaemonSet Deployment ReplicaSet StatefulSet: spec:*Spec status:*Status
DaemonSetCondition ReplicaSetCondition StatefulSetCondition: type! status! lastTransitionTime:time reason message
DaemonSetSpec: selector!:LabelSelector^ template!:PodTemplateSpec updateStrategy:DaemonSetUpdateStrategy={}
  minReadySeconds:int revisionHistoryLimit@6!:int=10
DaemonSetStatus: currentNumberScheduled!:int numberMisscheduled!:int desiredNumberScheduled!:int numberReady!:int
  observedGeneration:long updatedNumberScheduled:int numberAvailable:int numberUnavailable:int collisionCount!:int
  conditions:[DaemonSetCondition]#type
DaemonSetUpdateStrategy: type=RollingUpdate rollingUpdate!:RollingUpdateDaemonSet
DeploymentCondition: type! status! lastUpdateTime@6:time lastTransitionTime:time reason@4 message
DeploymentSpec: replicas!:int=1 selector!:LabelSelector^ template!:PodTemplateSpec
  strategy:DeploymentStrategy%retainKeys={} minReadySeconds:int revisionHistoryLimit!:int=10 paused:bool
  progressDeadlineSeconds@9!:int=600
DeploymentStatus: observedGeneration:long replicas:int updatedReplicas:int readyReplicas@7:int availableReplicas@4:int
  unavailableReplicas:int terminatingReplicas@9!:int conditions@6:[DeploymentCondition]#type collisionCount@8!:int
DeploymentStrategy: type=RollingUpdate rollingUpdate!:RollingUpdateDeployment
ReplicaSetSpec: replicas!:int=1 minReadySeconds@4:int selector@2!:LabelSelector^ template:PodTemplateSpec
ReplicaSetStatus: replicas!:int fullyLabeledReplicas:int readyReplicas@4:int availableReplicas:int
  terminatingReplicas@7!:int observedGeneration@3:long conditions@6:[ReplicaSetCondition]#type
RollingUpdateDaemonSet: maxUnavailable!:intOrString=1 maxSurge!:intOrString=0
RollingUpdateDeployment: maxUnavailable!:intOrString=25% maxSurge!:intOrString=25%
RollingUpdateStatefulSetStrategy: partition!:int=0 maxUnavailable!:intOrString
StatefulSetOrdinals: start!:int
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted=Retain whenScaled=Retain
StatefulSetSpec: replicas!:int=1 selector!:LabelSelector^ template!:PodTemplateSpec
  volumeClaimTemplates:[PersistentVolumeClaim]^ serviceName!^ podManagementPolicy^=OrderedReady
  updateStrategy:StatefulSetUpdateStrategy={} revisionHistoryLimit!:int=10 minReadySeconds:int
  persistentVolumeClaimRetentionPolicy!:StatefulSetPersistentVolumeClaimRetentionPolicy={} ordinals!:StatefulSetOrdinals
StatefulSetStatus: observedGeneration:long replicas!:int readyReplicas:int currentReplicas:int updatedReplicas:int
  currentRevision updateRevision collisionCount@9!:int conditions:[StatefulSetCondition]#type availableReplicas!:int
StatefulSetUpdateStrategy: type=RollingUpdate rollingUpdate!:RollingUpdateStatefulSetStrategy
[authorization.k8s.io/v1]
FieldSelectorAttributes: rawSelector requirements:[FieldSelectorRequirement]
LabelSelectorAttributes: rawSelector requirements:[LabelSelectorRequirement]
kind LocalSubjectAccessReview SubjectAccessReview: spec!:SubjectAccessReviewSpec status:SubjectAccessReviewStatus
NonResourceAttributes: path verb
NonResourceRule: verbs:[str] nonResourceURLs:[str]
ResourceAttributes: namespace verb group version resource subresource name fieldSelector!:FieldSelectorAttributes
  labelSelector!:LabelSelectorAttributes
ResourceRule: verbs:[str] apiGroups:[str] resources:[str] resourceNames:[str]
kind SelfSubjectAccessReview: spec!:SelfSubjectAccessReviewSpec status:SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: resourceAttributes!:ResourceAttributes nonResourceAttributes!:NonResourceAttributes
kind SelfSubjectRulesReview: spec!:SelfSubjectRulesReviewSpec status:SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: namespace
SubjectAccessReviewSpec: resourceAttributes!:ResourceAttributes nonResourceAttributes!:NonResourceAttributes user
  groups:[str] extra:{[str]} uid
SubjectAccessReviewStatus: allowed!:bool denied@4:bool reason@2 evaluationError
SubjectRulesReviewStatus: resourceRules:[ResourceRule] nonResourceRules:[NonResourceRule] incomplete!:bool
  evaluationError
[autoscaling/v2]
ContainerResourceMetricSource: name! target!:MetricTarget container!
ContainerResourceMetricStatus: name! current!:MetricValueStatus container!
CrossVersionObjectReference~: kind! name! apiVersion
ExternalMetricSource PodsMetricSource: metric!:MetricIdentifier target!:MetricTarget
ExternalMetricStatus PodsMetricStatus: metric!:MetricIdentifier current!:MetricValueStatus
HPAScalingPolicy: type! value!:int periodSeconds!:int
HPAScalingRules: stabilizationWindowSeconds@3!:int selectPolicy@1! policies:[HPAScalingPolicy] tolerance@4!:quantity
kind HorizontalPodAutoscaler: spec:HorizontalPodAutoscalerSpec status:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerBehavior: scaleUp!:HPAScalingRules scaleDown!:HPAScalingRules
HorizontalPodAutoscalerCondition: type! status! lastTransitionTime:time reason message observedGeneration:long
HorizontalPodAutoscalerSpec: scaleTargetRef!:CrossVersionObjectReference minReplicas!:int=1 maxReplicas!:int
  metrics:[MetricSpec] behavior!:HorizontalPodAutoscalerBehavior
HorizontalPodAutoscalerStatus: observedGeneration!:long lastScaleTime!:time currentReplicas:int desiredReplicas!:int
  currentMetrics:[MetricStatus] conditions:[HorizontalPodAutoscalerCondition]#type
MetricIdentifier: name! selector!:LabelSelector
MetricSpec: type! object!:ObjectMetricSource pods!:PodsMetricSource resource!:ResourceMetricSource
  containerResource@7!:ContainerResourceMetricSource external@5!:ExternalMetricSource
MetricStatus: type! object!:ObjectMetricStatus pods!:PodsMetricStatus resource!:ResourceMetricStatus
  containerResource@7!:ContainerResourceMetricStatus external@5!:ExternalMetricStatus
MetricTarget: type! value!:quantity averageValue!:quantity averageUtilization!:int
MetricValueStatus: value!:quantity averageValue!:quantity averageUtilization!:int
ObjectMetricSource: describedObject!:CrossVersionObjectReference target!:MetricTarget metric!:MetricIdentifier
ObjectMetricStatus: metric!:MetricIdentifier current!:MetricValueStatus describedObject!:CrossVersionObjectReference
ResourceMetricSource: name! target!:MetricTarget
ResourceMetricStatus: name! current!:MetricValueStatus
[batch/v1]
kind CronJob Job: spec:*Spec status:*Status
CronJobSpec: schedule! timeZone@8! startingDeadlineSeconds@2!:long concurrencyPolicy=Allow suspend!:bool=false
  jobTemplate!:JobTemplateSpec successfulJobsHistoryLimit!:int=3 failedJobsHistoryLimit!:int=1
CronJobStatus: active:[ObjectReference] lastScheduleTime@4!:time lastSuccessfulTime!:time
JobCondition: type! status! lastProbeTime:time lastTransitionTime:time reason message
JobSpec: parallelism!:int completions!:int activeDeadlineSeconds!:long podFailurePolicy@11!:PodFailurePolicy^
  successPolicy@16!:SuccessPolicy^ backoffLimit@7!:int backoffLimitPerIndex@12!:int^ maxFailedIndexes!:int
  selector@4!:LabelSelector^ manualSelector!:bool template!:PodTemplateSpec ttlSecondsAfterFinished@8!:int
  completionMode!^ suspend!:bool podReplacementPolicy@14! managedBy!^
JobStatus: conditions:[JobCondition]#type##- startTime!:time completionTime!:time active:int succeeded:int failed:int
  terminating@11!:int completedIndexes@7 failedIndexes@10! uncountedTerminatedPods@8!:UncountedTerminatedPods ready!:int
JobTemplateSpec: metadata:ObjectMeta spec:JobSpec
PodFailurePolicy: rules:[PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement: containerName! operator! values:[int]##
PodFailurePolicyOnPodConditionsPattern: type! status!
PodFailurePolicyRule: action! onExitCodes!:PodFailurePolicyOnExitCodesRequirement
  onPodConditions:[PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy: rules:[SuccessPolicyRule]
SuccessPolicyRule: succeededIndexes! succeededCount!:int
UncountedTerminatedPods: succeeded:[str]## failed:[str]##
[certificates.k8s.io/v1]
kind CertificateSigningRequest: spec!:CertificateSigningRequestSpec status:CertificateSigningRequestStatus
CertificateSigningRequestCondition: type! status@6! reason@2 message lastUpdateTime:time lastTransitionTime:time
CertificateSigningRequestSpec: request!:bytes signerName@7! expirationSeconds!:int usages@5:[str] username@2 uid
  groups:[str] extra@6:{[str]}
CertificateSigningRequestStatus: conditions:[CertificateSigningRequestCondition]#type certificate:bytes
[coordination.k8s.io/v1]
kind Lease: spec:LeaseSpec
LeaseSpec: holderIdentity! leaseDurationSeconds!:int acquireTime!:microtime renewTime!:microtime leaseTransitions!:int
  strategy! preferredHolder!
[discovery.k8s.io/v1]
Endpoint: addresses:[str]# conditions:EndpointConditions hostname! targetRef!:ObjectReference deprecatedTopology:{str}
  nodeName! zone! hints!:EndpointHints
EndpointConditions: ready!:bool serving!:bool terminating!:bool
EndpointHints: forZones:[ForZone] forNodes:[ForNode]
EndpointPort~: name!= protocol!=TCP port!:int appProtocol!
kind EndpointSlice: addressType@4!^ endpoints@2:[Endpoint] ports:[EndpointPort]
ForNode ForZone: name!
[flowcontrol.apiserver.k8s.io/v1]
ExemptPriorityLevelConfiguration: lendablePercent@2!:int nominalConcurrencyShares@1!:int
FlowDistinguisherMethod: type!
kind FlowSchema PriorityLevelConfiguration: spec:*Spec status:*Status
FlowSchemaCondition PriorityLevelConfigurationCondition: lastTransitionTime@3:time message@5 reason@4 status@2 type@1
FlowSchemaSpec: distinguisherMethod@3!:FlowDistinguisherMethod matchingPrecedence@2!:int
  priorityLevelConfiguration@1!:PriorityLevelConfigurationReference rules@4:[PolicyRulesWithSubjects]
FlowSchemaStatus: conditions:[FlowSchemaCondition]#type
FlowSchemaSubject: group@3!:GroupSubject kind@1! serviceAccount@4!:ServiceAccountSubject user@2!:UserSubject
GroupSubject PriorityLevelConfigurationReference UserSubject: name!
LimitResponse: queuing@2!:QueuingConfiguration type@1!
LimitedPriorityLevelConfiguration: borrowingLimitPercent@4!:int lendablePercent@3!:int limitResponse@2:LimitResponse
  nominalConcurrencyShares@1!:int
NonResourcePolicyRule: nonResourceURLs@6:[str]# verbs@1:[str]#
PolicyRulesWithSubjects: nonResourceRules@3:[NonResourcePolicyRule] resourceRules@2:[ResourcePolicyRule]
  subjects@1:[FlowSchemaSubject]
PriorityLevelConfigurationSpec: exempt@3!:ExemptPriorityLevelConfiguration limited@2!:LimitedPriorityLevelConfiguration
  type@1!
PriorityLevelConfigurationStatus: conditions:[PriorityLevelConfigurationCondition]#type
QueuingConfiguration: handSize@2!:int queueLengthLimit!:int queues@1!:int
ResourcePolicyRule: apiGroups@2:[str]# clusterScope@4:bool namespaces:[str]# resources@3:[str]# verbs@1:[str]#
ServiceAccountSubject: name@2! namespace@1!
[networking.k8s.io/v1]
HTTPIngressPath: path pathType@3! backend@2!:IngressBackend
HTTPIngressRuleValue: paths:[HTTPIngressPath]
kind IPAddress IngressClass NetworkPolicy: spec:*Spec
IPAddressSpec: parentRef!:ParentReference^
IPBlock: cidr! except:[str]
kind Ingress ServiceCIDR: spec:*Spec status:*Status
IngressBackend: service@4!:IngressServiceBackend resource@3!:TypedLocalObjectReference
IngressClassParametersReference: apiGroup! kind! name! scope! namespace!
IngressClassSpec: controller^ parameters!:IngressClassParametersReference
IngressLoadBalancerIngress: ip hostname ports@4:[IngressPortStatus]
IngressLoadBalancerStatus: ingress:[IngressLoadBalancerIngress]
IngressPortStatus: port!:int protocol! error!
IngressRule: host !:IngressRuleValue
IngressRuleValue: http!:HTTPIngressRuleValue
IngressServiceBackend: name! port:ServiceBackendPort
IngressSpec: ingressClassName@4! defaultBackend@1!:IngressBackend tls:[IngressTLS] rules:[IngressRule]
IngressStatus: loadBalancer:IngressLoadBalancerStatus
IngressTLS: hosts:[str] secretName
NetworkPolicyEgressRule: ports:[NetworkPolicyPort] to:[NetworkPolicyPeer]
NetworkPolicyIngressRule: ports:[NetworkPolicyPort] from:[NetworkPolicyPeer]
NetworkPolicyPeer: podSelector!:LabelSelector namespaceSelector!:LabelSelector ipBlock!:IPBlock
NetworkPolicyPort: protocol!=TCP port!:intOrString endPort!:int
NetworkPolicySpec: podSelector!:LabelSelector ingress:[NetworkPolicyIngressRule] egress:[NetworkPolicyEgressRule]
  policyTypes:[str]
ParentReference: group resource namespace name
ServiceBackendPort~: name number:int
ServiceCIDRSpec: cidrs:[str]^
ServiceCIDRStatus: conditions:[Condition]#type
[node.k8s.io/v1]
Overhead: podFixed:{quantity}
kind RuntimeClass: handler!^ overhead!:Overhead scheduling!:Scheduling
Scheduling: nodeSelector:{str}~ tolerations:[Toleration]
[policy/v1]
DisruptionRateStatus: max@- atLeast@- available@-:int fullTime@-:time lastDisruptions@-:[str]
kind Eviction: deleteOptions!:DeleteOptions
kind PodDisruptionBudget: spec:PodDisruptionBudgetSpec status:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: minAvailable!:intOrString selector!:LabelSelector%replace maxUnavailable!:intOrString
  unhealthyPodEvictionPolicy!
PodDisruptionBudgetStatus: observedGeneration:long disruptedPods:{time} disruptionsAllowed!:int currentHealthy!:int
  desiredHealthy!:int expectedPods!:int conditions:[Condition]#type disruptionRate@-:DisruptionRateStatus
[rbac.authorization.k8s.io/v1]
AggregationRule: clusterRoleSelectors:[LabelSelector]
kind ClusterRole: rules:[PolicyRule] aggregationRule!:AggregationRule
kind ClusterRoleBinding RoleBinding: subjects:[Subject] roleRef!:RoleRef^
PolicyRule: verbs:[str] apiGroups:[str] resources:[str] resourceNames:[str] nonResourceURLs:[str]
kind Role: rules:[PolicyRule]
RoleRef~: apiGroup!=rbac.authorization.k8s.io kind! name!
Subject~: kind! apiGroup name! namespace
[resource.k8s.io/v1]
AllocatedDeviceStatus: driver! pool! device! shareID@7! conditions@4:[Condition]##type data!:any
  networkData!:NetworkDeviceData
AllocationResult: devices:DeviceAllocationResult nodeSelector@3!:NodeSelector allocationTimestamp@5!:time
CELDeviceSelector: expression!
CapacityRequestPolicy: default!:quantity validValues@3:[quantity] validRange!:CapacityRequestPolicyRange
CapacityRequestPolicyRange: min!:quantity max!:quantity step!:quantity
CapacityRequirements: requests:{quantity}
Counter: value!:quantity
CounterSet: name! counters:{Counter}
Device: name! attributes:{DeviceAttribute} capacity:{DeviceCapacity} consumesCounters:[DeviceCounterConsumption]
  nodeName! nodeSelector!:NodeSelector allNodes!:bool taints:[DeviceTaint] bindsToNode!:bool bindingConditions:[str]
  bindingFailureConditions:[str] allowMultipleAllocations!:bool
  nodeAllocatableResourceMappings:{NodeAllocatableResourceMapping}
DeviceAllocationConfiguration: source! requests:[str] !:DeviceConfiguration
DeviceAllocationResult: results:[DeviceRequestAllocationResult] config:[DeviceAllocationConfiguration]
DeviceAttribute: int@2!:long bool!:bool string! version! ints:[long] bools:[bool] strings:[str] versions:[str]
DeviceCapacity: value!:quantity requestPolicy!:CapacityRequestPolicy
DeviceClaim: requests:[DeviceRequest] constraints:[DeviceConstraint] config:[DeviceClaimConfiguration]
DeviceClaimConfiguration: requests:[str] !:DeviceConfiguration
kind DeviceClass ResourceSlice: spec!:*Spec
DeviceClassConfiguration: !:DeviceConfiguration
DeviceClassSpec: selectors:[DeviceSelector] config:[DeviceClassConfiguration] extendedResourceName@4!
DeviceConfiguration: opaque!:OpaqueDeviceConfiguration
DeviceConstraint: requests:[str] matchAttribute! distinctAttribute!
DeviceCounterConsumption: counterSet! counters:{Counter}
DeviceRequest: name! exactly!:ExactDeviceRequest firstAvailable:[DeviceSubRequest]
DeviceRequestAllocationResult: request! driver! pool! device! adminAccess!:bool tolerations:[DeviceToleration]
  bindingConditions:[str] bindingFailureConditions:[str] shareID! consumedCapacity:{quantity}
DeviceSelector: cel!:CELDeviceSelector
DeviceSubRequest: name! deviceClassName! selectors:[DeviceSelector] allocationMode count:long
  tolerations:[DeviceToleration] capacity!:CapacityRequirements
DeviceTaint: key! value effect! timeAdded!:time
DeviceToleration: key operator value effect tolerationSeconds!:long
ExactDeviceRequest: deviceClassName! selectors:[DeviceSelector] allocationMode count:long adminAccess!:bool
  tolerations:[DeviceToleration] capacity!:CapacityRequirements
NetworkDeviceData: interfaceName ips:[str] hardwareAddress
NodeAllocatableResourceMapping: capacityKey! allocationMultiplier!:quantity
OpaqueDeviceConfiguration: driver! parameters!:any
kind ResourceClaim: spec!:ResourceClaimSpec^ status:ResourceClaimStatus
ResourceClaimConsumerReference: apiGroup resource@3! name! uid!
ResourceClaimSpec: devices!:DeviceClaim
ResourceClaimStatus: allocation!:AllocationResult reservedFor:[ResourceClaimConsumerReference]#uid
  devices@4:[AllocatedDeviceStatus]##driver,device,pool,shareID
kind ResourceClaimTemplate: spec!:ResourceClaimTemplateSpec^
ResourceClaimTemplateSpec: metadata:ObjectMeta spec!:ResourceClaimSpec
ResourcePool: name! generation!:long resourceSliceCount!:long
ResourceSliceSpec: driver!^ pool!:ResourcePool nodeName!^ nodeSelector!:NodeSelector allNodes!:bool devices:[Device]
  perDeviceNodeSelection!:bool sharedCounters:[CounterSet]
[resource.k8s.io/v1beta2]
kind DeviceTaintRule: spec!:DeviceTaintRuleSpec status:DeviceTaintRuleStatus
DeviceTaintRuleSpec: deviceSelector!:DeviceTaintSelector taint:DeviceTaint
DeviceTaintRuleStatus: conditions:[Condition]#type
DeviceTaintSelector: driver@2! pool! device!
[scheduling.k8s.io/v1]
kind PriorityClass: value!:int globalDefault:bool description preemptionPolicy!^=PreemptLowerPriority
[scheduling.k8s.io/v1alpha2]
BasicSchedulingPolicy:
GangSchedulingPolicy: minCount!:int
kind PodGroup: spec:PodGroupSpec status:PodGroupStatus
PodGroupResourceClaim: name! resourceClaimName resourceClaimTemplateName
PodGroupResourceClaimStatus: name! resourceClaimName
PodGroupSchedulingConstraints: topology:[TopologyConstraint]
PodGroupSchedulingPolicy: basic!:BasicSchedulingPolicy gang!:GangSchedulingPolicy
PodGroupSpec: podGroupTemplateRef!:PodGroupTemplateReference^ schedulingPolicy:PodGroupSchedulingPolicy^
  schedulingConstraints!:PodGroupSchedulingConstraints^ resourceClaims:[PodGroupResourceClaim]^#name disruptionMode^
  priorityClassName^ priority!:int^
PodGroupStatus: conditions:[Condition]#type resourceClaimStatuses:[PodGroupResourceClaimStatus]#name
PodGroupTemplate: name! schedulingPolicy:PodGroupSchedulingPolicy schedulingConstraints!:PodGroupSchedulingConstraints
  resourceClaims:[PodGroupResourceClaim]#name disruptionMode priorityClassName priority!:int
PodGroupTemplateReference: workload!:WorkloadPodGroupTemplateReference
TopologyConstraint: key!
TypedLocalObjectReference~: apiGroup kind! name!
kind Workload: spec:WorkloadSpec
WorkloadPodGroupTemplateReference: workloadName! podGroupTemplateName!
WorkloadSpec: controllerRef!:TypedLocalObjectReference^ podGroupTemplates:[PodGroupTemplate]^#name
[scheduling.k8s.io/v1beta1]
AllDisruptionMode SingleDisruptionMode:
DisruptionMode: single!:SingleDisruptionMode all!:AllDisruptionMode
kind PodGroup: spec:PodGroupSpec status:PodGroupStatus
PodGroupSpec: parentCompositePodGroupName!^ workloadRef!:WorkloadReference^ schedulingPolicy:PodGroupSchedulingPolicy
  schedulingConstraints!:PodGroupSchedulingConstraints^ resourceClaims:[PodGroupResourceClaim]^#name
  disruptionMode!:DisruptionMode^ priorityClassName^ priority!:int^ preemptionPolicy!^
PodGroupTemplate: name! schedulingPolicy:PodGroupSchedulingPolicy schedulingConstraints!:PodGroupSchedulingConstraints
  resourceClaims:[PodGroupResourceClaim]#name disruptionMode!:DisruptionMode priorityClassName priority!:int
  preemptionPolicy!
kind Workload: spec:WorkloadSpec
WorkloadReference: workloadName! templateName!
WorkloadSpec: controllerRef!:TypedLocalObjectReference^ podGroupTemplates:[PodGroupTemplate]#name
[scheduling.x-k8s.io/v1alpha1]
kind SchedulerPluginsPodGroup: spec@-:SchedulerPluginsPodGroupSpec status@-:any
SchedulerPluginsPodGroupSpec: minMember@-:int minResources@-:{quantity} scheduleTimeoutSeconds@-:int
[storage.k8s.io/v1]
kind CSIDriver CSINode: spec!:*Spec
CSIDriverSpec: attachRequired!:bool^ podInfoOnMount!:bool volumeLifecycleModes:[str]^## storageCapacity!:bool
  fsGroupPolicy! tokenRequests:[TokenRequest] requiresRepublish!:bool seLinuxMount!:bool
  nodeAllocatableUpdatePeriodSeconds!:long serviceAccountTokenInSecrets!:bool preventPodSchedulingIfMissing!:bool
CSINodeDriver: name! nodeID! topologyKeys:[str] allocatable!:VolumeNodeResources
CSINodeSpec: drivers:[CSINodeDriver]#name
kind CSIStorageCapacity: nodeTopology!:LabelSelector^ storageClassName!^ capacity!:quantity maximumVolumeSize!:quantity
kind StorageClass: provisioner!^ parameters:{str}^ reclaimPolicy!^=Delete mountOptions:[str] allowVolumeExpansion!:bool
  volumeBindingMode!^=Immediate allowedTopologies:[TopologySelectorTerm]
TokenRequest: audience! expirationSeconds!:long
kind VolumeAttachment: spec!:VolumeAttachmentSpec status:VolumeAttachmentStatus
VolumeAttachmentSource: persistentVolumeName! inlineVolumeSpec!:PersistentVolumeSpec
VolumeAttachmentSpec: attacher!^ source!:VolumeAttachmentSource^ nodeName!^
VolumeAttachmentStatus: attached!:bool attachmentMetadata:{str} attachError!:VolumeError detachError!:VolumeError
kind VolumeAttributesClass: driverName!^ parameters:{str}^
VolumeError: time:time message errorCode!:int
VolumeNodeResources: count!:int
[autoscaling/v1]
kind HorizontalPodAutoscaler: spec:HorizontalPodAutoscalerSpec status:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec: scaleTargetRef!:CrossVersionObjectReference minReplicas!:int maxReplicas!:int
  targetCPUUtilizationPercentage!:int
HorizontalPodAutoscalerStatus: observedGeneration!:long lastScaleTime!:time currentReplicas!:int desiredReplicas!:int
  currentCPUUtilizationPercentage!:int
kind Scale: spec:ScaleSpec status:ScaleStatus
ScaleSpec: replicas:int
ScaleStatus: replicas!:int selector
[events.k8s.io/v1]
Event: apiVersion@- kind@- metadata!:ObjectMeta eventTime!:microtime^ series!:EventSeries reportingController^
  reportingInstance^ action^ reason^ regarding:ObjectReference^ related!:ObjectReference^ note^ type^
  deprecatedSource:EventSource^ deprecatedFirstTimestamp:time^ deprecatedLastTimestamp:time^ deprecatedCount:int^
EventSeries: count!:int lastObservedTime!:microtime
[authentication.k8s.io/v1]
BoundObjectReference: kind apiVersion name uid
kind SelfSubjectReview: status:SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo:UserInfo
kind TokenRequest TokenReview: spec!:*Spec status:*Status
TokenRequestSpec: audiences:[str] expirationSeconds@4!:long boundObjectRef@3!:BoundObjectReference
TokenRequestStatus: token! expirationTimestamp!:time
TokenReviewSpec: token audiences:[str]
TokenReviewStatus: authenticated:bool user:UserInfo audiences@4:[str] error@3
UserInfo: username uid groups:[str] extra:{[str]}
"""
