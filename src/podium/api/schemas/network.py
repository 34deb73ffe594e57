"""How traffic finds pods, and which may (discovery.k8s.io/v1, networking.k8s.io/v1, and Endpoints of core/v1)."""

FIELDS = """
Endpoint
  addresses:[str]# conditions:EndpointConditions deprecatedTopology:{str} hints:EndpointHints hostname nodeName
  targetRef:ObjectReference zone
EndpointAddress
  hostname ip nodeName targetRef:ObjectReference
EndpointConditions
  ready:bool serving:bool terminating:bool
EndpointHints
  forNodes:[ForNode] forZones:[ForZone]
EndpointPort
  appProtocol name port:int protocol
EndpointSlice
  apiVersion kind metadata:ObjectMeta addressType^ endpoints:[Endpoint] ports:[EndpointPort]
EndpointSubset
  addresses:[EndpointAddress] notReadyAddresses:[EndpointAddress] ports:[EndpointPort]
Endpoints
  apiVersion kind metadata:ObjectMeta subsets:[EndpointSubset]
ForNode
  name
ForZone
  name
HTTPIngressPath
  backend:IngressBackend path pathType
HTTPIngressRuleValue
  paths:[HTTPIngressPath]
IPAddress
  apiVersion kind metadata:ObjectMeta spec:IPAddressSpec
IPAddressSpec
  parentRef:ParentReference
IPBlock
  cidr except:[str]
Ingress
  apiVersion kind metadata:ObjectMeta spec:IngressSpec status:IngressStatus
IngressBackend
  resource:TypedLocalObjectReference service:IngressServiceBackend
IngressClass
  apiVersion kind metadata:ObjectMeta spec:IngressClassSpec
IngressClassParametersReference
  apiGroup kind name namespace scope
IngressClassSpec
  controller parameters:IngressClassParametersReference
IngressLoadBalancerIngress
  hostname ip ports:[IngressPortStatus]
IngressLoadBalancerStatus
  ingress:[IngressLoadBalancerIngress]
IngressPortStatus
  error port:int protocol
IngressRule
  host http:HTTPIngressRuleValue
IngressServiceBackend
  name port:ServiceBackendPort
IngressSpec
  defaultBackend:IngressBackend ingressClassName rules:[IngressRule] tls:[IngressTLS]
IngressStatus
  loadBalancer:IngressLoadBalancerStatus
IngressTLS
  hosts:[str] secretName
NetworkPolicy
  apiVersion kind metadata:ObjectMeta spec:NetworkPolicySpec
NetworkPolicyEgressRule
  ports:[NetworkPolicyPort] to:[NetworkPolicyPeer]
NetworkPolicyIngressRule
  from:[NetworkPolicyPeer] ports:[NetworkPolicyPort]
NetworkPolicyPeer
  ipBlock:IPBlock namespaceSelector:LabelSelector podSelector:LabelSelector
NetworkPolicyPort
  endPort:int port:share protocol
NetworkPolicySpec
  egress:[NetworkPolicyEgressRule] ingress:[NetworkPolicyIngressRule] podSelector:LabelSelector policyTypes:[str]
ParentReference
  group name namespace resource
ServiceBackendPort
  name number:int
ServiceCIDR
  apiVersion kind metadata:ObjectMeta spec:ServiceCIDRSpec status:ServiceCIDRStatus
ServiceCIDRSpec
  cidrs:[str]
ServiceCIDRStatus
  conditions:[Condition]#type
"""
