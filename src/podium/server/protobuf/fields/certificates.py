"""The numbers that the fields of certificates/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
CertificateSigningRequest
  metadata=1:meta.ObjectMeta spec=2:CertificateSigningRequestSpec! status=3:CertificateSigningRequestStatus
CertificateSigningRequestCondition
  type=1! status=6! reason=2 message=3 lastUpdateTime=4:time lastTransitionTime=5:time
CertificateSigningRequestSpec
  request=1:bytes! signerName=7! expirationSeconds=8:int! usages=5:[str] username=2 uid=3 groups=4:[str]
  extra=6:{values}
CertificateSigningRequestStatus
  conditions=1:[CertificateSigningRequestCondition] certificate=2:bytes
"""
