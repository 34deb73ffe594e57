"""What extends or guards the API server itself: definitions, webhooks, policies, flow control."""

FIELDS = """
APIService
  apiVersion kind metadata:ObjectMeta spec:APIServiceSpec status:APIServiceStatus
APIServiceCondition
  type status lastTransitionTime:time reason message
APIServiceServiceReference
  namespace name port:int
APIServiceSpec
  service:APIServiceServiceReference group version insecureSkipTLSVerify:bool caBundle groupPriorityMinimum:int
  versionPriority:int
APIServiceStatus
  conditions:[APIServiceCondition]#type
ApplyConfiguration
  expression
AuditAnnotation
  key valueExpression
CustomResourceColumnDefinition
  name type format description priority:int jsonPath
CustomResourceConversion
  strategy webhook:WebhookConversion
CustomResourceDefinition
  apiVersion kind metadata:ObjectMeta spec:CustomResourceDefinitionSpec status:CustomResourceDefinitionStatus
CustomResourceDefinitionCondition
  type status lastTransitionTime:time reason message observedGeneration:long
CustomResourceDefinitionNames
  plural singular shortNames:[str] kind listKind categories:[str]
CustomResourceDefinitionSpec
  group names:CustomResourceDefinitionNames scope versions:[CustomResourceDefinitionVersion]
  conversion:CustomResourceConversion preserveUnknownFields:bool
CustomResourceDefinitionStatus
  conditions:[CustomResourceDefinitionCondition]#type acceptedNames:CustomResourceDefinitionNames storedVersions:[str]
  observedGeneration:long
CustomResourceDefinitionVersion
  name served:bool storage:bool deprecated:bool deprecationWarning schema:CustomResourceValidation
  subresources:CustomResourceSubresources additionalPrinterColumns:[CustomResourceColumnDefinition]
  selectableFields:[SelectableField]
CustomResourceSubresourceScale
  specReplicasPath statusReplicasPath labelSelectorPath
CustomResourceSubresources
  status:any scale:CustomResourceSubresourceScale
CustomResourceValidation
  openAPIV3Schema:any
ExemptPriorityLevelConfiguration
  lendablePercent:int nominalConcurrencyShares:int
ExpressionWarning
  fieldRef warning
FlowDistinguisherMethod
  type
FlowSchema
  apiVersion kind metadata:ObjectMeta spec:FlowSchemaSpec status:FlowSchemaStatus
FlowSchemaCondition
  lastTransitionTime:time message reason status type
FlowSchemaSpec
  distinguisherMethod:FlowDistinguisherMethod matchingPrecedence:int
  priorityLevelConfiguration:PriorityLevelConfigurationReference rules:[PolicyRulesWithSubjects]
FlowSchemaStatus
  conditions:[FlowSchemaCondition]#type
FlowSchemaSubject
  group:GroupSubject kind serviceAccount:ServiceAccountSubject user:UserSubject
GroupSubject
  name
JSONPatch
  expression
LimitResponse
  queuing:QueuingConfiguration type
LimitedPriorityLevelConfiguration
  borrowingLimitPercent:int lendablePercent:int limitResponse:LimitResponse nominalConcurrencyShares:int
MatchCondition
  expression name
MatchResources
  excludeResourceRules:[NamedRuleWithOperations] matchPolicy namespaceSelector:LabelSelector
  objectSelector:LabelSelector resourceRules:[NamedRuleWithOperations]
MutatingAdmissionPolicy
  apiVersion kind metadata:ObjectMeta spec:MutatingAdmissionPolicySpec
MutatingAdmissionPolicyBinding
  apiVersion kind metadata:ObjectMeta spec:MutatingAdmissionPolicyBindingSpec
MutatingAdmissionPolicyBindingSpec
  matchResources:MatchResources paramRef:ParamRef policyName
MutatingAdmissionPolicySpec
  failurePolicy matchConditions:[MatchCondition]#name matchConstraints:MatchResources mutations:[Mutation]
  paramKind:ParamKind reinvocationPolicy variables:[Variable]
MutatingWebhook
  admissionReviewVersions:[str] clientConfig:WebhookClientConfig failurePolicy matchConditions:[MatchCondition]#name
  matchPolicy name namespaceSelector:LabelSelector objectSelector:LabelSelector reinvocationPolicy
  rules:[RuleWithOperations] sideEffects timeoutSeconds:int
MutatingWebhookConfiguration
  apiVersion kind metadata:ObjectMeta webhooks:[MutatingWebhook]#name
Mutation
  applyConfiguration:ApplyConfiguration jsonPatch:JSONPatch patchType
NamedRuleWithOperations
  apiGroups:[str] apiVersions:[str] operations:[str] resourceNames:[str] resources:[str] scope
NonResourcePolicyRule
  nonResourceURLs:[str]# verbs:[str]#
ParamKind
  apiVersion kind
ParamRef
  name namespace parameterNotFoundAction selector:LabelSelector
PolicyRulesWithSubjects
  nonResourceRules:[NonResourcePolicyRule] resourceRules:[ResourcePolicyRule] subjects:[FlowSchemaSubject]
PriorityLevelConfiguration
  apiVersion kind metadata:ObjectMeta spec:PriorityLevelConfigurationSpec status:PriorityLevelConfigurationStatus
PriorityLevelConfigurationCondition
  lastTransitionTime:time message reason status type
PriorityLevelConfigurationReference
  name
PriorityLevelConfigurationSpec
  exempt:ExemptPriorityLevelConfiguration limited:LimitedPriorityLevelConfiguration type
PriorityLevelConfigurationStatus
  conditions:[PriorityLevelConfigurationCondition]#type
QueuingConfiguration
  handSize:int queueLengthLimit:int queues:int
ResourcePolicyRule
  apiGroups:[str]# clusterScope:bool namespaces:[str]# resources:[str]# verbs:[str]#
RuleWithOperations
  apiGroups:[str] apiVersions:[str] operations:[str] resources:[str] scope
SelectableField
  jsonPath
ServiceAccountSubject
  name namespace
ServiceReference
  name namespace path port:int
TypeChecking
  expressionWarnings:[ExpressionWarning]
UserSubject
  name
ValidatingAdmissionPolicy
  apiVersion kind metadata:ObjectMeta spec:ValidatingAdmissionPolicySpec status:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBinding
  apiVersion kind metadata:ObjectMeta spec:ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec
  matchResources:MatchResources paramRef:ParamRef policyName validationActions:[str]#
ValidatingAdmissionPolicySpec
  auditAnnotations:[AuditAnnotation] failurePolicy matchConditions:[MatchCondition]#name
  matchConstraints:MatchResources paramKind:ParamKind validations:[Validation] variables:[Variable]#name
ValidatingAdmissionPolicyStatus
  conditions:[Condition]#type observedGeneration:long typeChecking:TypeChecking
ValidatingWebhook
  admissionReviewVersions:[str] clientConfig:WebhookClientConfig failurePolicy matchConditions:[MatchCondition]#name
  matchPolicy name namespaceSelector:LabelSelector objectSelector:LabelSelector rules:[RuleWithOperations] sideEffects
  timeoutSeconds:int
ValidatingWebhookConfiguration
  apiVersion kind metadata:ObjectMeta webhooks:[ValidatingWebhook]#name
Validation
  expression message messageExpression reason
Variable
  expression name
WebhookClientConfig
  caBundle service:ServiceReference url
WebhookConversion
  clientConfig:WebhookClientConfig conversionReviewVersions:[str]
"""
