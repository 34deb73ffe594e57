"""The types of the named API groups, in the notation of `podium.api.schemas.schema`."""

TYPES = """
[admissionregistration.k8s.io/v1]
ApplyConfiguration: expression@1
AuditAnnotation: key@1! valueExpression@2!
ExpressionWarning: fieldRef@2! warning@3!
JSONPatch: expression@1
MatchCondition: name@1! expression@2!
MatchResources~: namespaceSelector@1!:LabelSelector objectSelector@2!:LabelSelector
  resourceRules@3:[NamedRuleWithOperations] excludeResourceRules@4:[NamedRuleWithOperations] matchPolicy@7!
kind MutatingAdmissionPolicy MutatingAdmissionPolicyBinding ValidatingAdmissionPolicyBinding: spec@2:*Spec
MutatingAdmissionPolicyBindingSpec: policyName@1 paramRef@2!:ParamRef matchResources@3!:MatchResources
MutatingAdmissionPolicySpec: paramKind@1!:ParamKind matchConstraints@2!:MatchResources variables@3:[Variable]
  mutations@4:[Mutation] failurePolicy@5! matchConditions@6:[MatchCondition]#name reinvocationPolicy@7
MutatingWebhook: name@1! clientConfig@2!:WebhookClientConfig rules@3:[RuleWithOperations] failurePolicy@4!
  matchPolicy@9! namespaceSelector@5!:LabelSelector objectSelector@11!:LabelSelector sideEffects@6!
  timeoutSeconds@7!:int admissionReviewVersions@8:[str] reinvocationPolicy@10! matchConditions@12:[MatchCondition]#name
kind MutatingWebhookConfiguration: webhooks@2:[MutatingWebhook]#name
Mutation: patchType@2! applyConfiguration@3!:ApplyConfiguration jsonPatch@4!:JSONPatch
NamedRuleWithOperations~: resourceNames@1:[str] @2!:RuleWithOperations
ParamKind~: apiVersion@1 kind@2
ParamRef~: name@1 namespace@2 selector@3!:LabelSelector parameterNotFoundAction@4!
Rule: apiGroups@1:[str] apiVersions@2:[str] resources@3:[str] scope@4!
RuleWithOperations: operations@1:[str] @2!:Rule
ServiceReference: namespace@1! name@2! path@3! port@4!:int
TypeChecking: expressionWarnings@1:[ExpressionWarning]
kind ValidatingAdmissionPolicy: spec@2:ValidatingAdmissionPolicySpec status@3:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBindingSpec: policyName@1 paramRef@2!:ParamRef matchResources@3!:MatchResources
  validationActions@4:[str]#
ValidatingAdmissionPolicySpec: paramKind@1!:ParamKind matchConstraints@2!:MatchResources validations@3:[Validation]
  failurePolicy@4! auditAnnotations@5:[AuditAnnotation] matchConditions@6:[MatchCondition]#name
  variables@7:[Variable]#name
ValidatingAdmissionPolicyStatus: observedGeneration@1:long typeChecking@2!:TypeChecking conditions@3:[Condition]#type
ValidatingWebhook: name@1! clientConfig@2!:WebhookClientConfig rules@3:[RuleWithOperations] failurePolicy@4!
  matchPolicy@9! namespaceSelector@5!:LabelSelector objectSelector@10!:LabelSelector sideEffects@6!
  timeoutSeconds@7!:int admissionReviewVersions@8:[str] matchConditions@11:[MatchCondition]#name
kind ValidatingWebhookConfiguration: webhooks@2:[ValidatingWebhook]#name
Validation: expression@1! message@2 reason@3! messageExpression@4
Variable~: name@1! expression@2!
WebhookClientConfig: url@3! service@1!:ServiceReference caBundle@2:bytes
[apiextensions.k8s.io/v1]
CustomResourceColumnDefinition: name@1! type@2! format@3 description@4 priority@5:int jsonPath@6!
CustomResourceConversion: strategy@1! webhook@2!:WebhookConversion
kind CustomResourceDefinition: spec@2!:CustomResourceDefinitionSpec status@3:CustomResourceDefinitionStatus
CustomResourceDefinitionCondition: type@1! status@2! lastTransitionTime@3:time reason@4 message@5
  observedGeneration@6:long
CustomResourceDefinitionNames: plural@1! singular@2 shortNames@3:[str] kind@4! listKind@5 categories@6:[str]
CustomResourceDefinitionSpec: group@1! names@3!:CustomResourceDefinitionNames scope@4!
  versions@7:[CustomResourceDefinitionVersion] conversion@9!:CustomResourceConversion preserveUnknownFields@10:bool
CustomResourceDefinitionStatus: conditions@1:[CustomResourceDefinitionCondition]#type
  acceptedNames@2!:CustomResourceDefinitionNames storedVersions@3:[str] observedGeneration@4:long
CustomResourceDefinitionVersion: name@1! served@2!:bool storage@3!:bool deprecated@7:bool deprecationWarning@8!
  schema@4!:CustomResourceValidation subresources@5!:CustomResourceSubresources
  additionalPrinterColumns@6:[CustomResourceColumnDefinition] selectableFields@9:[SelectableField]
CustomResourceSubresourceScale: specReplicasPath@1! statusReplicasPath@2! labelSelectorPath@3!
CustomResourceSubresourceStatus:
CustomResourceSubresources: status@1!:any scale@2!:CustomResourceSubresourceScale
CustomResourceValidation: openAPIV3Schema@1!:any
ExternalDocumentation: description@1 url@2
JSONSchemaProps~: id@1 $schema@2 $ref@3! description@4 type@5 format@6 title@7 default@8!:any maximum@9!:float
  exclusiveMaximum@10:bool minimum@11!:float exclusiveMinimum@12:bool maxLength@13!:long minLength@14!:long pattern@15
  maxItems@16!:long minItems@17!:long uniqueItems@18:bool multipleOf@19!:float enum@20:[any] maxProperties@21!:long
  minProperties@22!:long required@23:[str] items@24!:JSONSchemaOrList allOf@25:[JSONSchemaProps]
  oneOf@26:[JSONSchemaProps] anyOf@27:[JSONSchemaProps] not@28!:JSONSchemaProps properties@29:{JSONSchemaProps}
  additionalProperties@30!:JSONSchemaOrBool patternProperties@31:{JSONSchemaProps}
  additionalItems@33!:JSONSchemaOrBool definitions@34:{JSONSchemaProps} externalDocs@35!:ExternalDocumentation
  example@36!:any nullable@37:bool x-kubernetes-preserve-unknown-fields@38!:bool
  x-kubernetes-embedded-resource@39:bool x-kubernetes-int-or-string@40:bool x-kubernetes-list-map-keys@41:[str]
  x-kubernetes-list-type@42! x-kubernetes-map-type@43! x-kubernetes-validations@44:[ValidationRule]
SelectableField: jsonPath@1!
ValidationRule: rule@1! message@2 messageExpression@3 reason@4! fieldPath@5 optionalOldSelf@6!:bool
WebhookConversion: clientConfig@2!:WebhookClientConfig conversionReviewVersions@3:[str]
[apiregistration.k8s.io/v1]
kind APIService: spec@2:APIServiceSpec status@3:APIServiceStatus
APIServiceCondition: type@1! status@2! lastTransitionTime@3:time reason@4 message@5
APIServiceServiceReference: namespace@1 name@2 port@3!:int
APIServiceSpec: service@1!:APIServiceServiceReference group@2 version@3 insecureSkipTLSVerify@4:bool caBundle@5:bytes
  groupPriorityMinimum@7!:int versionPriority@8!:int
APIServiceStatus: conditions@1:[APIServiceCondition]#type
[apps/v1]
kind ControllerRevision: data@2:any revision@3!:long
kind DaemonSet Deployment ReplicaSet StatefulSet: spec@2:*Spec status@3:*Status
DaemonSetCondition ReplicaSetCondition StatefulSetCondition: type@1! status@2! lastTransitionTime@3:time reason@4
  message@5
DaemonSetSpec: selector@1!:LabelSelector^ template@2!:PodTemplateSpec updateStrategy@3:DaemonSetUpdateStrategy={}
  minReadySeconds@4:int revisionHistoryLimit@6!:int=10
DaemonSetStatus: currentNumberScheduled@1!:int numberMisscheduled@2!:int desiredNumberScheduled@3!:int
  numberReady@4!:int observedGeneration@5:long updatedNumberScheduled@6:int numberAvailable@7:int
  numberUnavailable@8:int collisionCount@9!:int conditions@10:[DaemonSetCondition]#type
DaemonSetUpdateStrategy: type@1=RollingUpdate rollingUpdate@2!:RollingUpdateDaemonSet
DeploymentCondition: type@1! status@2! lastUpdateTime@6:time lastTransitionTime@7:time reason@4 message@5
DeploymentSpec: replicas@1!:int=1 selector@2!:LabelSelector^ template@3!:PodTemplateSpec
  strategy@4:DeploymentStrategy%retainKeys={} minReadySeconds@5:int revisionHistoryLimit@6!:int=10 paused@7:bool
  progressDeadlineSeconds@9!:int=600
DeploymentStatus: observedGeneration@1:long replicas@2:int updatedReplicas@3:int readyReplicas@7:int
  availableReplicas@4:int unavailableReplicas@5:int terminatingReplicas@9!:int conditions@6:[DeploymentCondition]#type
  collisionCount@8!:int
DeploymentStrategy: type@1=RollingUpdate rollingUpdate@2!:RollingUpdateDeployment
ReplicaSetSpec: replicas@1!:int=1 minReadySeconds@4:int selector@2!:LabelSelector^ template@3:PodTemplateSpec
ReplicaSetStatus: replicas@1!:int fullyLabeledReplicas@2:int readyReplicas@4:int availableReplicas@5:int
  terminatingReplicas@7!:int observedGeneration@3:long conditions@6:[ReplicaSetCondition]#type
RollingUpdateDaemonSet: maxUnavailable@1!:intOrString=1 maxSurge@2!:intOrString=0
RollingUpdateDeployment: maxUnavailable@1!:intOrString=25% maxSurge@2!:intOrString=25%
RollingUpdateStatefulSetStrategy: partition@1!:int=0 maxUnavailable@2!:intOrString
StatefulSetOrdinals: start@1!:int
StatefulSetPersistentVolumeClaimRetentionPolicy: whenDeleted@1=Retain whenScaled@2=Retain
StatefulSetSpec: replicas@1!:int=1 selector@2!:LabelSelector^ template@3!:PodTemplateSpec
  volumeClaimTemplates@4:[PersistentVolumeClaim]^ serviceName@5!^ podManagementPolicy@6^=OrderedReady
  updateStrategy@7:StatefulSetUpdateStrategy={} revisionHistoryLimit@8!:int=10 minReadySeconds@9:int
  persistentVolumeClaimRetentionPolicy@10!:StatefulSetPersistentVolumeClaimRetentionPolicy={}
  ordinals@11!:StatefulSetOrdinals
StatefulSetStatus: observedGeneration@1:long replicas@2!:int readyReplicas@3:int currentReplicas@4:int
  updatedReplicas@5:int currentRevision@6 updateRevision@7 collisionCount@9!:int
  conditions@10:[StatefulSetCondition]#type availableReplicas@11!:int
StatefulSetUpdateStrategy: type@1=RollingUpdate rollingUpdate@2!:RollingUpdateStatefulSetStrategy
[authorization.k8s.io/v1]
FieldSelectorAttributes: rawSelector@1 requirements@2:[FieldSelectorRequirement]
LabelSelectorAttributes: rawSelector@1 requirements@2:[LabelSelectorRequirement]
kind LocalSubjectAccessReview: spec@2!:SubjectAccessReviewSpec status@3:SubjectAccessReviewStatus
NonResourceAttributes: path@1 verb@2
NonResourceRule: verbs@1:[str] nonResourceURLs@2:[str]
ResourceAttributes: namespace@1 verb@2 group@3 version@4 resource@5 subresource@6 name@7
  fieldSelector@8!:FieldSelectorAttributes labelSelector@9!:LabelSelectorAttributes
ResourceRule: verbs@1:[str] apiGroups@2:[str] resources@3:[str] resourceNames@4:[str]
kind SelfSubjectAccessReview: spec@2!:SelfSubjectAccessReviewSpec status@3:SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec: resourceAttributes@1!:ResourceAttributes nonResourceAttributes@2!:NonResourceAttributes
kind SelfSubjectRulesReview: spec@2!:SelfSubjectRulesReviewSpec status@3:SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec: namespace@1
kind SubjectAccessReview: spec@2!:SubjectAccessReviewSpec status@3:SubjectAccessReviewStatus
SubjectAccessReviewSpec: resourceAttributes@1!:ResourceAttributes nonResourceAttributes@2!:NonResourceAttributes user@3
  groups@4:[str] extra@5:{[str]} uid@6
SubjectAccessReviewStatus: allowed@1!:bool denied@4:bool reason@2 evaluationError@3
SubjectRulesReviewStatus: resourceRules@1:[ResourceRule] nonResourceRules@2:[NonResourceRule] incomplete@3!:bool
  evaluationError@4
[autoscaling/v2]
ContainerResourceMetricSource: name@1! target@2!:MetricTarget container@3!
ContainerResourceMetricStatus: name@1! current@2!:MetricValueStatus container@3!
CrossVersionObjectReference~: kind@1! name@2! apiVersion@3
ExternalMetricSource PodsMetricSource: metric@1!:MetricIdentifier target@2!:MetricTarget
ExternalMetricStatus PodsMetricStatus: metric@1!:MetricIdentifier current@2!:MetricValueStatus
HPAScalingPolicy: type@1! value@2!:int periodSeconds@3!:int
HPAScalingRules: stabilizationWindowSeconds@3!:int selectPolicy@1! policies@2:[HPAScalingPolicy] tolerance@4!:quantity
kind HorizontalPodAutoscaler: spec@2:HorizontalPodAutoscalerSpec status@3:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerBehavior: scaleUp@1!:HPAScalingRules scaleDown@2!:HPAScalingRules
HorizontalPodAutoscalerCondition: type@1! status@2! lastTransitionTime@3:time reason@4 message@5
  observedGeneration@6:long
HorizontalPodAutoscalerSpec: scaleTargetRef@1!:CrossVersionObjectReference minReplicas@2!:int=1 maxReplicas@3!:int
  metrics@4:[MetricSpec] behavior@5!:HorizontalPodAutoscalerBehavior
HorizontalPodAutoscalerStatus: observedGeneration@1!:long lastScaleTime@2!:time currentReplicas@3:int
  desiredReplicas@4!:int currentMetrics@5:[MetricStatus] conditions@6:[HorizontalPodAutoscalerCondition]#type
MetricIdentifier: name@1! selector@2!:LabelSelector
MetricSpec: type@1! object@2!:ObjectMetricSource pods@3!:PodsMetricSource resource@4!:ResourceMetricSource
  containerResource@7!:ContainerResourceMetricSource external@5!:ExternalMetricSource
MetricStatus: type@1! object@2!:ObjectMetricStatus pods@3!:PodsMetricStatus resource@4!:ResourceMetricStatus
  containerResource@7!:ContainerResourceMetricStatus external@5!:ExternalMetricStatus
MetricTarget: type@1! value@2!:quantity averageValue@3!:quantity averageUtilization@4!:int
MetricValueStatus: value@1!:quantity averageValue@2!:quantity averageUtilization@3!:int
ObjectMetricSource: describedObject@1!:CrossVersionObjectReference target@2!:MetricTarget metric@3!:MetricIdentifier
ObjectMetricStatus: metric@1!:MetricIdentifier current@2!:MetricValueStatus
  describedObject@3!:CrossVersionObjectReference
ResourceMetricSource: name@1! target@2!:MetricTarget
ResourceMetricStatus: name@1! current@2!:MetricValueStatus
[batch/v1]
kind CronJob Job: spec@2:*Spec status@3:*Status
CronJobSpec: schedule@1! timeZone@8! startingDeadlineSeconds@2!:long concurrencyPolicy@3=Allow suspend@4!:bool=false
  jobTemplate@5!:JobTemplateSpec successfulJobsHistoryLimit@6!:int=3 failedJobsHistoryLimit@7!:int=1
CronJobStatus: active@1:[ObjectReference] lastScheduleTime@4!:time lastSuccessfulTime@5!:time
JobCondition: type@1! status@2! lastProbeTime@3:time lastTransitionTime@4:time reason@5 message@6
JobSpec: parallelism@1!:int completions@2!:int activeDeadlineSeconds@3!:long podFailurePolicy@11!:PodFailurePolicy
  successPolicy@16!:SuccessPolicy backoffLimit@7!:int backoffLimitPerIndex@12!:int maxFailedIndexes@13!:int
  selector@4!:LabelSelector^ manualSelector@5!:bool template@6!:PodTemplateSpec ttlSecondsAfterFinished@8!:int
  completionMode@9!^ suspend@10!:bool podReplacementPolicy@14! managedBy@15!
JobStatus: conditions@1:[JobCondition]#type##- startTime@2!:time completionTime@3!:time active@4:int succeeded@5:int
  failed@6:int terminating@11!:int completedIndexes@7 failedIndexes@10!
  uncountedTerminatedPods@8!:UncountedTerminatedPods ready@9!:int
JobTemplateSpec: metadata@1:ObjectMeta spec@2:JobSpec
PodFailurePolicy: rules@1:[PodFailurePolicyRule]
PodFailurePolicyOnExitCodesRequirement: containerName@1! operator@2! values@3:[int]##
PodFailurePolicyOnPodConditionsPattern: type@1! status@2!
PodFailurePolicyRule: action@1! onExitCodes@2!:PodFailurePolicyOnExitCodesRequirement
  onPodConditions@3:[PodFailurePolicyOnPodConditionsPattern]
SuccessPolicy: rules@1:[SuccessPolicyRule]
SuccessPolicyRule: succeededIndexes@1! succeededCount@2!:int
UncountedTerminatedPods: succeeded@1:[str]## failed@2:[str]##
[certificates.k8s.io/v1]
kind CertificateSigningRequest: spec@2!:CertificateSigningRequestSpec status@3:CertificateSigningRequestStatus
CertificateSigningRequestCondition: type@1! status@6! reason@2 message@3 lastUpdateTime@4:time lastTransitionTime@5:time
CertificateSigningRequestSpec: request@1!:bytes signerName@7! expirationSeconds@8!:int usages@5:[str] username@2 uid@3
  groups@4:[str] extra@6:{[str]}
CertificateSigningRequestStatus: conditions@1:[CertificateSigningRequestCondition]#type certificate@2:bytes
[coordination.k8s.io/v1]
kind Lease: spec@2:LeaseSpec
LeaseSpec: holderIdentity@1! leaseDurationSeconds@2!:int acquireTime@3!:microtime renewTime@4!:microtime
  leaseTransitions@5!:int strategy@6! preferredHolder@7!
[discovery.k8s.io/v1]
Endpoint: addresses@1:[str]# conditions@2:EndpointConditions hostname@3! targetRef@4!:ObjectReference
  deprecatedTopology@5:{str} nodeName@6! zone@7! hints@8!:EndpointHints
EndpointConditions: ready@1!:bool serving@2!:bool terminating@3!:bool
EndpointHints: forZones@1:[ForZone] forNodes@2:[ForNode]
EndpointPort~: name@1!= protocol@2!=TCP port@3!:int appProtocol@4!
kind EndpointSlice: addressType@4!^ endpoints@2:[Endpoint] ports@3:[EndpointPort]
ForNode ForZone: name@1!
[flowcontrol.apiserver.k8s.io/v1]
ExemptPriorityLevelConfiguration: lendablePercent@2!:int nominalConcurrencyShares@1!:int
FlowDistinguisherMethod: type@1!
kind FlowSchema PriorityLevelConfiguration: spec@2:*Spec status@3:*Status
FlowSchemaCondition PriorityLevelConfigurationCondition: lastTransitionTime@3:time message@5 reason@4 status@2 type@1
FlowSchemaSpec: distinguisherMethod@3!:FlowDistinguisherMethod matchingPrecedence@2!:int
  priorityLevelConfiguration@1!:PriorityLevelConfigurationReference rules@4:[PolicyRulesWithSubjects]
FlowSchemaStatus: conditions@1:[FlowSchemaCondition]#type
FlowSchemaSubject: group@3!:GroupSubject kind@1! serviceAccount@4!:ServiceAccountSubject user@2!:UserSubject
GroupSubject: name@1!
LimitResponse: queuing@2!:QueuingConfiguration type@1!
LimitedPriorityLevelConfiguration: borrowingLimitPercent@4!:int lendablePercent@3!:int limitResponse@2:LimitResponse
  nominalConcurrencyShares@1!:int
NonResourcePolicyRule: nonResourceURLs@6:[str]# verbs@1:[str]#
PolicyRulesWithSubjects: nonResourceRules@3:[NonResourcePolicyRule] resourceRules@2:[ResourcePolicyRule]
  subjects@1:[FlowSchemaSubject]
PriorityLevelConfigurationReference UserSubject: name@1!
PriorityLevelConfigurationSpec: exempt@3!:ExemptPriorityLevelConfiguration limited@2!:LimitedPriorityLevelConfiguration
  type@1!
PriorityLevelConfigurationStatus: conditions@1:[PriorityLevelConfigurationCondition]#type
QueuingConfiguration: handSize@2!:int queueLengthLimit@3!:int queues@1!:int
ResourcePolicyRule: apiGroups@2:[str]# clusterScope@4:bool namespaces@5:[str]# resources@3:[str]# verbs@1:[str]#
ServiceAccountSubject: name@2! namespace@1!
[networking.k8s.io/v1]
HTTPIngressPath: path@1 pathType@3! backend@2!:IngressBackend
HTTPIngressRuleValue: paths@1:[HTTPIngressPath]
kind IPAddress IngressClass NetworkPolicy: spec@2:*Spec
IPAddressSpec: parentRef@1!:ParentReference
IPBlock: cidr@1! except@2:[str]
kind Ingress ServiceCIDR: spec@2:*Spec status@3:*Status
IngressBackend: service@4!:IngressServiceBackend resource@3!:TypedLocalObjectReference
IngressClassParametersReference: apiGroup@1! kind@2! name@3! scope@4! namespace@5!
IngressClassSpec: controller@1 parameters@2!:IngressClassParametersReference
IngressLoadBalancerIngress: ip@1 hostname@2 ports@4:[IngressPortStatus]
IngressLoadBalancerStatus: ingress@1:[IngressLoadBalancerIngress]
IngressPortStatus: port@1!:int protocol@2! error@3!
IngressRule: host@1 @2!:IngressRuleValue
IngressRuleValue: http@1!:HTTPIngressRuleValue
IngressServiceBackend: name@1! port@2:ServiceBackendPort
IngressSpec: ingressClassName@4! defaultBackend@1!:IngressBackend tls@2:[IngressTLS] rules@3:[IngressRule]
IngressStatus: loadBalancer@1:IngressLoadBalancerStatus
IngressTLS: hosts@1:[str] secretName@2
NetworkPolicyEgressRule: ports@1:[NetworkPolicyPort] to@2:[NetworkPolicyPeer]
NetworkPolicyIngressRule: ports@1:[NetworkPolicyPort] from@2:[NetworkPolicyPeer]
NetworkPolicyPeer: podSelector@1!:LabelSelector namespaceSelector@2!:LabelSelector ipBlock@3!:IPBlock
NetworkPolicyPort: protocol@1!=TCP port@2!:intOrString endPort@3!:int
NetworkPolicySpec: podSelector@1!:LabelSelector ingress@2:[NetworkPolicyIngressRule] egress@3:[NetworkPolicyEgressRule]
  policyTypes@4:[str]
ParentReference: group@1 resource@2 namespace@3 name@4
ServiceBackendPort~: name@1 number@2:int
ServiceCIDRSpec: cidrs@1:[str]
ServiceCIDRStatus: conditions@1:[Condition]#type
[node.k8s.io/v1]
Overhead: podFixed@1:{quantity}
kind RuntimeClass: handler@2! overhead@3!:Overhead scheduling@4!:Scheduling
Scheduling: nodeSelector@1:{str}~ tolerations@2:[Toleration]
[policy/v1]
DisruptionRateStatus: max atLeast available:int fullTime:time lastDisruptions:[str]
kind Eviction: deleteOptions@2!:DeleteOptions
kind PodDisruptionBudget: spec@2:PodDisruptionBudgetSpec status@3:PodDisruptionBudgetStatus
PodDisruptionBudgetSpec: minAvailable@1!:intOrString selector@2!:LabelSelector%replace maxUnavailable@3!:intOrString
  unhealthyPodEvictionPolicy@4!
PodDisruptionBudgetStatus: observedGeneration@1:long disruptedPods@2:{time} disruptionsAllowed@3!:int
  currentHealthy@4!:int desiredHealthy@5!:int expectedPods@6!:int conditions@7:[Condition]#type
  disruptionRate:DisruptionRateStatus
[rbac.authorization.k8s.io/v1]
AggregationRule: clusterRoleSelectors@1:[LabelSelector]
kind ClusterRole: rules@2:[PolicyRule] aggregationRule@3!:AggregationRule
kind ClusterRoleBinding RoleBinding: subjects@2:[Subject] roleRef@3!:RoleRef^
PolicyRule: verbs@1:[str] apiGroups@2:[str] resources@3:[str] resourceNames@4:[str] nonResourceURLs@5:[str]
kind Role: rules@2:[PolicyRule]
RoleRef~: apiGroup@1!=rbac.authorization.k8s.io kind@2! name@3!
Subject~: kind@1! apiGroup@2 name@3! namespace@4
[resource.k8s.io/v1]
AllocatedDeviceStatus: driver@1! pool@2! device@3! shareID@7! conditions@4:[Condition]##type data@5!:any
  networkData@6!:NetworkDeviceData
AllocationResult: devices@1:DeviceAllocationResult nodeSelector@3!:NodeSelector allocationTimestamp@5!:time
CELDeviceSelector: expression@1!
CapacityRequestPolicy: default@1!:quantity validValues@3:[quantity] validRange@4!:CapacityRequestPolicyRange
CapacityRequestPolicyRange: min@1!:quantity max@2!:quantity step@3!:quantity
CapacityRequirements: requests@1:{quantity}
Counter: value@1!:quantity
CounterSet: name@1! counters@2:{Counter}
Device: name@1! attributes@2:{DeviceAttribute} capacity@3:{DeviceCapacity} consumesCounters@4:[DeviceCounterConsumption]
  nodeName@5! nodeSelector@6!:NodeSelector allNodes@7!:bool taints@8:[DeviceTaint] bindsToNode@9!:bool
  bindingConditions@10:[str] bindingFailureConditions@11:[str] allowMultipleAllocations@12!:bool
  nodeAllocatableResourceMappings@13:{NodeAllocatableResourceMapping}
DeviceAllocationConfiguration: source@1! requests@2:[str] @3!:DeviceConfiguration
DeviceAllocationResult: results@1:[DeviceRequestAllocationResult] config@2:[DeviceAllocationConfiguration]
DeviceAttribute: int@2!:long bool@3!:bool string@4! version@5! ints@6:[long] bools@7:[bool] strings@8:[str]
  versions@9:[str]
DeviceCapacity: value@1!:quantity requestPolicy@2!:CapacityRequestPolicy
DeviceClaim: requests@1:[DeviceRequest] constraints@2:[DeviceConstraint] config@3:[DeviceClaimConfiguration]
DeviceClaimConfiguration: requests@1:[str] @2!:DeviceConfiguration
kind DeviceClass ResourceSlice: spec@2!:*Spec
DeviceClassConfiguration: @1!:DeviceConfiguration
DeviceClassSpec: selectors@1:[DeviceSelector] config@2:[DeviceClassConfiguration] extendedResourceName@4!
DeviceConfiguration: opaque@1!:OpaqueDeviceConfiguration
DeviceConstraint: requests@1:[str] matchAttribute@2! distinctAttribute@3!
DeviceCounterConsumption: counterSet@1! counters@2:{Counter}
DeviceRequest: name@1! exactly@2!:ExactDeviceRequest firstAvailable@3:[DeviceSubRequest]
DeviceRequestAllocationResult: request@1! driver@2! pool@3! device@4! adminAccess@5!:bool
  tolerations@6:[DeviceToleration] bindingConditions@7:[str] bindingFailureConditions@8:[str] shareID@9!
  consumedCapacity@10:{quantity}
DeviceSelector: cel@1!:CELDeviceSelector
DeviceSubRequest: name@1! deviceClassName@2! selectors@3:[DeviceSelector] allocationMode@4 count@5:long
  tolerations@6:[DeviceToleration] capacity@7!:CapacityRequirements
DeviceTaint: key@1! value@2 effect@3! timeAdded@4!:time
DeviceToleration: key@1 operator@2 value@3 effect@4 tolerationSeconds@5!:long
ExactDeviceRequest: deviceClassName@1! selectors@2:[DeviceSelector] allocationMode@3 count@4:long adminAccess@5!:bool
  tolerations@6:[DeviceToleration] capacity@7!:CapacityRequirements
NetworkDeviceData: interfaceName@1 ips@2:[str] hardwareAddress@3
NodeAllocatableResourceMapping: capacityKey@1! allocationMultiplier@2!:quantity
OpaqueDeviceConfiguration: driver@1! parameters@2!:any
kind ResourceClaim: spec@2!:ResourceClaimSpec^ status@3:ResourceClaimStatus
ResourceClaimConsumerReference: apiGroup@1 resource@3! name@4! uid@5!
ResourceClaimSpec: devices@1!:DeviceClaim
ResourceClaimStatus: allocation@1!:AllocationResult reservedFor@2:[ResourceClaimConsumerReference]#uid
  devices@4:[AllocatedDeviceStatus]##driver,device,pool,shareID
kind ResourceClaimTemplate: spec@2!:ResourceClaimTemplateSpec^
ResourceClaimTemplateSpec: metadata@1:ObjectMeta spec@2!:ResourceClaimSpec
ResourcePool: name@1! generation@2!:long resourceSliceCount@3!:long
ResourceSliceSpec: driver@1!^ pool@2!:ResourcePool nodeName@3!^ nodeSelector@4!:NodeSelector allNodes@5!:bool
  devices@6:[Device] perDeviceNodeSelection@7!:bool sharedCounters@8:[CounterSet]
[resource.k8s.io/v1beta2]
kind DeviceTaintRule: spec@2!:DeviceTaintRuleSpec status@3:DeviceTaintRuleStatus
DeviceTaintRuleSpec: deviceSelector@1!:DeviceTaintSelector taint@2:DeviceTaint
DeviceTaintRuleStatus: conditions@1:[Condition]#type
DeviceTaintSelector: driver@2! pool@3! device@4!
[scheduling.k8s.io/v1]
kind PriorityClass: value@2!:int globalDefault@3:bool description@4 preemptionPolicy@5!=PreemptLowerPriority
[scheduling.k8s.io/v1alpha2]
BasicSchedulingPolicy:
GangSchedulingPolicy: minCount@1!:int
kind PodGroup: spec@2:PodGroupSpec status@3:PodGroupStatus
PodGroupResourceClaim: name@1! resourceClaimName@2 resourceClaimTemplateName@3
PodGroupResourceClaimStatus: name@1! resourceClaimName@2
PodGroupSchedulingConstraints: topology@1:[TopologyConstraint]
PodGroupSchedulingPolicy: basic@1!:BasicSchedulingPolicy gang@2!:GangSchedulingPolicy
PodGroupSpec: podGroupTemplateRef@1!:PodGroupTemplateReference^ schedulingPolicy@2:PodGroupSchedulingPolicy^
  schedulingConstraints@3!:PodGroupSchedulingConstraints^ resourceClaims@4:[PodGroupResourceClaim]^#name
  disruptionMode@5^ priorityClassName@6^ priority@7!:int^
PodGroupStatus: conditions@1:[Condition]#type resourceClaimStatuses@2:[PodGroupResourceClaimStatus]#name
PodGroupTemplate: name@1! schedulingPolicy@2:PodGroupSchedulingPolicy
  schedulingConstraints@3!:PodGroupSchedulingConstraints resourceClaims@4:[PodGroupResourceClaim]#name disruptionMode@5
  priorityClassName@6 priority@7!:int
PodGroupTemplateReference: workload@1!:WorkloadPodGroupTemplateReference
TopologyConstraint: key@1!
TypedLocalObjectReference~: apiGroup@1 kind@2! name@3!
kind Workload: spec@2:WorkloadSpec
WorkloadPodGroupTemplateReference: workloadName@1! podGroupTemplateName@2!
WorkloadSpec: controllerRef@1!:TypedLocalObjectReference^ podGroupTemplates@2:[PodGroupTemplate]^#name
[scheduling.k8s.io/v1beta1]
AllDisruptionMode SingleDisruptionMode:
DisruptionMode: single@1!:SingleDisruptionMode all@2!:AllDisruptionMode
kind PodGroup: spec@2:PodGroupSpec status@3:PodGroupStatus
PodGroupSpec: parentCompositePodGroupName@1!^ workloadRef@2!:WorkloadReference^
  schedulingPolicy@3:PodGroupSchedulingPolicy schedulingConstraints@4!:PodGroupSchedulingConstraints^
  resourceClaims@5:[PodGroupResourceClaim]^#name disruptionMode@6!:DisruptionMode^ priorityClassName@7^ priority@8!:int^
  preemptionPolicy@9!^
PodGroupTemplate: name@1! schedulingPolicy@2:PodGroupSchedulingPolicy
  schedulingConstraints@3!:PodGroupSchedulingConstraints resourceClaims@4:[PodGroupResourceClaim]#name
  disruptionMode@5!:DisruptionMode priorityClassName@6 priority@7!:int preemptionPolicy@8!
kind Workload: spec@2:WorkloadSpec
WorkloadReference: workloadName@1! templateName@2!
WorkloadSpec: controllerRef@1!:TypedLocalObjectReference^ podGroupTemplates@2:[PodGroupTemplate]#name
[scheduling.x-k8s.io/v1alpha1]
kind SchedulerPluginsPodGroup: spec:SchedulerPluginsPodGroupSpec status:any
SchedulerPluginsPodGroupSpec: minMember:int minResources:{quantity} scheduleTimeoutSeconds:int
[storage.k8s.io/v1]
kind CSIDriver CSINode: spec@2!:*Spec
CSIDriverSpec: attachRequired@1!:bool podInfoOnMount@2!:bool volumeLifecycleModes@3:[str]## storageCapacity@4!:bool
  fsGroupPolicy@5! tokenRequests@6:[TokenRequest] requiresRepublish@7!:bool seLinuxMount@8!:bool
  nodeAllocatableUpdatePeriodSeconds@9!:long serviceAccountTokenInSecrets@10!:bool
  preventPodSchedulingIfMissing@11!:bool
CSINodeDriver: name@1! nodeID@2! topologyKeys@3:[str] allocatable@4!:VolumeNodeResources
CSINodeSpec: drivers@1:[CSINodeDriver]#name
kind CSIStorageCapacity: nodeTopology@2!:LabelSelector storageClassName@3! capacity@4!:quantity
  maximumVolumeSize@5!:quantity
kind StorageClass: provisioner@2!^ parameters@3:{str}^ reclaimPolicy@4!^=Delete mountOptions@5:[str]
  allowVolumeExpansion@6!:bool volumeBindingMode@7!^=Immediate allowedTopologies@8:[TopologySelectorTerm]
TokenRequest: audience@1! expirationSeconds@2!:long
kind VolumeAttachment: spec@2!:VolumeAttachmentSpec status@3:VolumeAttachmentStatus
VolumeAttachmentSource: persistentVolumeName@1! inlineVolumeSpec@2!:PersistentVolumeSpec
VolumeAttachmentSpec: attacher@1! source@2!:VolumeAttachmentSource nodeName@3!
VolumeAttachmentStatus: attached@1!:bool attachmentMetadata@2:{str} attachError@3!:VolumeError
  detachError@4!:VolumeError
kind VolumeAttributesClass: driverName@2!^ parameters@3:{str}^
VolumeError: time@1:time message@2 errorCode@3!:int
VolumeNodeResources: count@1!:int
[autoscaling/v1]
kind HorizontalPodAutoscaler: spec@2:HorizontalPodAutoscalerSpec status@3:HorizontalPodAutoscalerStatus
HorizontalPodAutoscalerSpec: scaleTargetRef@1!:CrossVersionObjectReference minReplicas@2!:int maxReplicas@3!:int
  targetCPUUtilizationPercentage@4!:int
HorizontalPodAutoscalerStatus: observedGeneration@1!:long lastScaleTime@2!:time currentReplicas@3!:int
  desiredReplicas@4!:int currentCPUUtilizationPercentage@5!:int
kind Scale: spec@2:ScaleSpec status@3:ScaleStatus
ScaleSpec: replicas@1:int
ScaleStatus: replicas@1!:int selector@2
[events.k8s.io/v1]
Event: apiVersion kind metadata@1!:ObjectMeta eventTime@2!:microtime series@3!:EventSeries reportingController@4
  reportingInstance@5 action@6 reason@7 regarding@8:ObjectReference related@9!:ObjectReference note@10 type@11
  deprecatedSource@12:EventSource deprecatedFirstTimestamp@13:time deprecatedLastTimestamp@14:time
  deprecatedCount@15:int
EventSeries: count@1!:int lastObservedTime@2!:microtime
[authentication.k8s.io/v1]
BoundObjectReference: kind@1 apiVersion@2 name@3 uid@4
kind SelfSubjectReview: status@2:SelfSubjectReviewStatus
SelfSubjectReviewStatus: userInfo@1:UserInfo
kind TokenRequest TokenReview: spec@2!:*Spec status@3:*Status
TokenRequestSpec: audiences@1:[str] expirationSeconds@4!:long boundObjectRef@3!:BoundObjectReference
TokenRequestStatus: token@1! expirationTimestamp@2!:time
TokenReviewSpec: token@1 audiences@2:[str]
TokenReviewStatus: authenticated@1:bool user@2:UserInfo audiences@4:[str] error@3
UserInfo: username@1 uid@2 groups@3:[str] extra@4:{[str]}
"""
