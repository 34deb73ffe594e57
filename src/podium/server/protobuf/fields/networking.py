"""The numbers that the fields of networking/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
HTTPIngressPath
  path=1 pathType=3! backend=2:IngressBackend!
HTTPIngressRuleValue
  paths=1:[HTTPIngressPath]
IPAddress
  metadata=1:meta.ObjectMeta spec=2:IPAddressSpec
IPAddressSpec
  parentRef=1:ParentReference!
IPBlock
  cidr=1! except=2:[str]
Ingress
  metadata=1:meta.ObjectMeta spec=2:IngressSpec status=3:IngressStatus
IngressBackend
  service=4:IngressServiceBackend! resource=3:core.TypedLocalObjectReference!
IngressClass
  metadata=1:meta.ObjectMeta spec=2:IngressClassSpec
IngressClassParametersReference
  apiGroup=1! kind=2! name=3! scope=4! namespace=5!
IngressClassSpec
  controller=1 parameters=2:IngressClassParametersReference!
IngressLoadBalancerIngress
  ip=1 hostname=2 ports=4:[IngressPortStatus]
IngressLoadBalancerStatus
  ingress=1:[IngressLoadBalancerIngress]
IngressPortStatus
  port=1:int! protocol=2! error=3!
IngressRule
  host=1 =2:IngressRuleValue!
IngressRuleValue
  http=1:HTTPIngressRuleValue!
IngressServiceBackend
  name=1! port=2:ServiceBackendPort
IngressSpec
  ingressClassName=4! defaultBackend=1:IngressBackend! tls=2:[IngressTLS] rules=3:[IngressRule]
IngressStatus
  loadBalancer=1:IngressLoadBalancerStatus
IngressTLS
  hosts=1:[str] secretName=2
NetworkPolicy
  metadata=1:meta.ObjectMeta spec=2:NetworkPolicySpec
NetworkPolicyEgressRule
  ports=1:[NetworkPolicyPort] to=2:[NetworkPolicyPeer]
NetworkPolicyIngressRule
  ports=1:[NetworkPolicyPort] from=2:[NetworkPolicyPeer]
NetworkPolicyPeer
  podSelector=1:meta.LabelSelector! namespaceSelector=2:meta.LabelSelector! ipBlock=3:IPBlock!
NetworkPolicyPort
  protocol=1! port=2:share! endPort=3:int!
NetworkPolicySpec
  podSelector=1:meta.LabelSelector! ingress=2:[NetworkPolicyIngressRule] egress=3:[NetworkPolicyEgressRule]
  policyTypes=4:[str]
ParentReference
  group=1 resource=2 namespace=3 name=4
ServiceBackendPort
  name=1 number=2:int
ServiceCIDR
  metadata=1:meta.ObjectMeta spec=2:ServiceCIDRSpec status=3:ServiceCIDRStatus
ServiceCIDRSpec
  cidrs=1:[str]
ServiceCIDRStatus
  conditions=1:[meta.Condition]
"""
