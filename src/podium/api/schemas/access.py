"""Who is whom, and who may do what (rbac.authorization.k8s.io/v1, certificates.k8s.io/v1)."""

FIELDS = """
AggregationRule
  clusterRoleSelectors:[LabelSelector]
CertificateSigningRequest
  apiVersion kind metadata:ObjectMeta spec:CertificateSigningRequestSpec status:CertificateSigningRequestStatus
CertificateSigningRequestCondition
  lastTransitionTime:time lastUpdateTime:time message reason status type
CertificateSigningRequestSpec
  expirationSeconds:int extra:{[str]} groups:[str] request signerName uid usages:[str] username
CertificateSigningRequestStatus
  certificate conditions:[CertificateSigningRequestCondition]#type
ClusterRole
  apiVersion kind metadata:ObjectMeta aggregationRule:AggregationRule rules:[PolicyRule]
ClusterRoleBinding
  apiVersion kind metadata:ObjectMeta roleRef:RoleRef^ subjects:[Subject]
PolicyRule
  apiGroups:[str] nonResourceURLs:[str] resourceNames:[str] resources:[str] verbs:[str]
Role
  apiVersion kind metadata:ObjectMeta rules:[PolicyRule]
RoleBinding
  apiVersion kind metadata:ObjectMeta roleRef:RoleRef^ subjects:[Subject]
RoleRef
  apiGroup kind name
Subject
  apiGroup kind name namespace
"""
