"""The numbers that the fields of authorization/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
FieldSelectorAttributes
  rawSelector=1 requirements=2:[meta.FieldSelectorRequirement]
LabelSelectorAttributes
  rawSelector=1 requirements=2:[meta.LabelSelectorRequirement]
LocalSubjectAccessReview
  metadata=1:meta.ObjectMeta spec=2:SubjectAccessReviewSpec! status=3:SubjectAccessReviewStatus
NonResourceAttributes
  path=1 verb=2
NonResourceRule
  verbs=1:[str] nonResourceURLs=2:[str]
ResourceAttributes
  namespace=1 verb=2 group=3 version=4 resource=5 subresource=6 name=7 fieldSelector=8:FieldSelectorAttributes!
  labelSelector=9:LabelSelectorAttributes!
ResourceRule
  verbs=1:[str] apiGroups=2:[str] resources=3:[str] resourceNames=4:[str]
SelfSubjectAccessReview
  metadata=1:meta.ObjectMeta spec=2:SelfSubjectAccessReviewSpec! status=3:SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec
  resourceAttributes=1:ResourceAttributes! nonResourceAttributes=2:NonResourceAttributes!
SelfSubjectRulesReview
  metadata=1:meta.ObjectMeta spec=2:SelfSubjectRulesReviewSpec! status=3:SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec
  namespace=1
SubjectAccessReview
  metadata=1:meta.ObjectMeta spec=2:SubjectAccessReviewSpec! status=3:SubjectAccessReviewStatus
SubjectAccessReviewSpec
  resourceAttributes=1:ResourceAttributes! nonResourceAttributes=2:NonResourceAttributes! user=3 groups=4:[str]
  extra=5:{values} uid=6
SubjectAccessReviewStatus
  allowed=1:bool! denied=4:bool reason=2 evaluationError=3
SubjectRulesReviewStatus
  resourceRules=1:[ResourceRule] nonResourceRules=2:[NonResourceRule] incomplete=3:bool! evaluationError=4
"""
