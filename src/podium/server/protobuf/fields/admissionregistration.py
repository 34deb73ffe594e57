"""The numbers that the fields of admissionregistration/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
ApplyConfiguration
  expression=1
AuditAnnotation
  key=1! valueExpression=2!
ExpressionWarning
  fieldRef=2! warning=3!
JSONPatch
  expression=1
MatchCondition
  name=1! expression=2!
MatchResources
  namespaceSelector=1:meta.LabelSelector! objectSelector=2:meta.LabelSelector!
  resourceRules=3:[NamedRuleWithOperations] excludeResourceRules=4:[NamedRuleWithOperations] matchPolicy=7!
MutatingAdmissionPolicy
  metadata=1:meta.ObjectMeta spec=2:MutatingAdmissionPolicySpec
MutatingAdmissionPolicyBinding
  metadata=1:meta.ObjectMeta spec=2:MutatingAdmissionPolicyBindingSpec
MutatingAdmissionPolicyBindingSpec
  policyName=1 paramRef=2:ParamRef! matchResources=3:MatchResources!
MutatingAdmissionPolicySpec
  paramKind=1:ParamKind! matchConstraints=2:MatchResources! variables=3:[Variable] mutations=4:[Mutation]
  failurePolicy=5! matchConditions=6:[MatchCondition] reinvocationPolicy=7
MutatingWebhook
  name=1! clientConfig=2:WebhookClientConfig! rules=3:[RuleWithOperations] failurePolicy=4! matchPolicy=9!
  namespaceSelector=5:meta.LabelSelector! objectSelector=11:meta.LabelSelector! sideEffects=6! timeoutSeconds=7:int!
  admissionReviewVersions=8:[str] reinvocationPolicy=10! matchConditions=12:[MatchCondition]
MutatingWebhookConfiguration
  metadata=1:meta.ObjectMeta webhooks=2:[MutatingWebhook]
Mutation
  patchType=2! applyConfiguration=3:ApplyConfiguration! jsonPatch=4:JSONPatch!
NamedRuleWithOperations
  resourceNames=1:[str] =2:RuleWithOperations!
ParamKind
  apiVersion=1 kind=2
ParamRef
  name=1 namespace=2 selector=3:meta.LabelSelector! parameterNotFoundAction=4!
Rule
  apiGroups=1:[str] apiVersions=2:[str] resources=3:[str] scope=4!
RuleWithOperations
  operations=1:[str] =2:Rule!
ServiceReference
  namespace=1! name=2! path=3! port=4:int!
TypeChecking
  expressionWarnings=1:[ExpressionWarning]
ValidatingAdmissionPolicy
  metadata=1:meta.ObjectMeta spec=2:ValidatingAdmissionPolicySpec status=3:ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicyBinding
  metadata=1:meta.ObjectMeta spec=2:ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec
  policyName=1 paramRef=2:ParamRef! matchResources=3:MatchResources! validationActions=4:[str]
ValidatingAdmissionPolicySpec
  paramKind=1:ParamKind! matchConstraints=2:MatchResources! validations=3:[Validation] failurePolicy=4!
  auditAnnotations=5:[AuditAnnotation] matchConditions=6:[MatchCondition] variables=7:[Variable]
ValidatingAdmissionPolicyStatus
  observedGeneration=1:long typeChecking=2:TypeChecking! conditions=3:[meta.Condition]
ValidatingWebhook
  name=1! clientConfig=2:WebhookClientConfig! rules=3:[RuleWithOperations] failurePolicy=4! matchPolicy=9!
  namespaceSelector=5:meta.LabelSelector! objectSelector=10:meta.LabelSelector! sideEffects=6! timeoutSeconds=7:int!
  admissionReviewVersions=8:[str] matchConditions=11:[MatchCondition]
ValidatingWebhookConfiguration
  metadata=1:meta.ObjectMeta webhooks=2:[ValidatingWebhook]
Validation
  expression=1! message=2 reason=3! messageExpression=4
Variable
  name=1! expression=2!
WebhookClientConfig
  url=3! service=1:ServiceReference! caBundle=2:bytes
"""
