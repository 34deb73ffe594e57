"""The numbers that the fields of rbac/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
AggregationRule
  clusterRoleSelectors=1:[meta.LabelSelector]
ClusterRole
  metadata=1:meta.ObjectMeta rules=2:[PolicyRule] aggregationRule=3:AggregationRule!
ClusterRoleBinding
  metadata=1:meta.ObjectMeta subjects=2:[Subject] roleRef=3:RoleRef!
PolicyRule
  verbs=1:[str] apiGroups=2:[str] resources=3:[str] resourceNames=4:[str] nonResourceURLs=5:[str]
Role
  metadata=1:meta.ObjectMeta rules=2:[PolicyRule]
RoleBinding
  metadata=1:meta.ObjectMeta subjects=2:[Subject] roleRef=3:RoleRef!
RoleRef
  apiGroup=1! kind=2! name=3!
Subject
  kind=1! apiGroup=2 name=3! namespace=4
"""
