"""Nodes (core/v1), and the RuntimeClasses of what runs on them (node.k8s.io/v1)."""

FIELDS = """
AttachedVolume
  name devicePath
ConfigMapNodeConfigSource
  namespace name uid resourceVersion kubeletConfigKey
ContainerImage
  names:[str] sizeBytes:long
DaemonEndpoint
  Port:int
Node
  apiVersion kind metadata:ObjectMeta spec:NodeSpec status:NodeStatus
NodeAddress
  type address
NodeCondition
  type status lastHeartbeatTime:time lastTransitionTime:time reason message
NodeConfigSource
  configMap:ConfigMapNodeConfigSource
NodeConfigStatus
  assigned:NodeConfigSource active:NodeConfigSource lastKnownGood:NodeConfigSource error
NodeDaemonEndpoints
  kubeletEndpoint:DaemonEndpoint
NodeFeatures
  supplementalGroupsPolicy:bool
NodeRuntimeHandler
  name features:NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures
  recursiveReadOnlyMounts:bool userNamespaces:bool
NodeSpec
  podCIDR podCIDRs:[str]# providerID unschedulable:bool taints:[Taint] configSource:NodeConfigSource externalID
NodeStatus
  capacity:{quantity} allocatable:{quantity} phase conditions:[NodeCondition]#type addresses:[NodeAddress]#type
  daemonEndpoints:NodeDaemonEndpoints nodeInfo:NodeSystemInfo images:[ContainerImage] volumesInUse:[str]
  volumesAttached:[AttachedVolume] config:NodeConfigStatus runtimeHandlers:[NodeRuntimeHandler]
  features:NodeFeatures declaredFeatures:[str]
NodeSwapStatus
  capacity:long
NodeSystemInfo
  machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion kubeProxyVersion
  operatingSystem architecture swap:NodeSwapStatus
Overhead
  podFixed:{quantity}
RuntimeClass
  apiVersion kind metadata:ObjectMeta handler overhead:Overhead scheduling:Scheduling
Scheduling
  nodeSelector:{str} tolerations:[Toleration]
Taint
  key value effect timeAdded:time
"""
