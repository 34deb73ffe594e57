"""The numbers that the fields of authentication/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
BoundObjectReference
  kind=1 apiVersion=2 name=3 uid=4
SelfSubjectReview
  metadata=1:meta.ObjectMeta status=2:SelfSubjectReviewStatus
SelfSubjectReviewStatus
  userInfo=1:UserInfo
TokenRequest
  metadata=1:meta.ObjectMeta spec=2:TokenRequestSpec! status=3:TokenRequestStatus
TokenRequestSpec
  audiences=1:[str] expirationSeconds=4:long! boundObjectRef=3:BoundObjectReference!
TokenRequestStatus
  token=1! expirationTimestamp=2:time!
TokenReview
  metadata=1:meta.ObjectMeta spec=2:TokenReviewSpec! status=3:TokenReviewStatus
TokenReviewSpec
  token=1 audiences=2:[str]
TokenReviewStatus
  authenticated=1:bool user=2:UserInfo audiences=4:[str] error=3
UserInfo
  username=1 uid=2 groups=3:[str] extra=4:{values}
"""
