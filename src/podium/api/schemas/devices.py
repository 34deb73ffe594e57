"""Devices and the claims for them (resource.k8s.io/v1, and the DeviceTaintRule of v1beta2)."""

FIELDS = """
AllocatedDeviceStatus
  driver pool device shareID conditions:[Condition] data:any networkData:NetworkDeviceData
AllocationResult
  devices:DeviceAllocationResult nodeSelector:NodeSelector allocationTimestamp:time
CELDeviceSelector
  expression
CapacityRequestPolicy
  default:quantity validValues:[quantity] validRange:CapacityRequestPolicyRange
CapacityRequestPolicyRange
  min:quantity max:quantity step:quantity
CapacityRequirements
  requests:{quantity}
Counter
  value:quantity
CounterSet
  name counters:{Counter}
Device
  name attributes:{DeviceAttribute} capacity:{DeviceCapacity} consumesCounters:[DeviceCounterConsumption] nodeName
  nodeSelector:NodeSelector allNodes:bool taints:[DeviceTaint] bindsToNode:bool bindingConditions:[str]
  bindingFailureConditions:[str] allowMultipleAllocations:bool
  nodeAllocatableResourceMappings:{NodeAllocatableResourceMapping}
DeviceAllocationConfiguration
  source requests:[str] opaque:OpaqueDeviceConfiguration
DeviceAllocationResult
  results:[DeviceRequestAllocationResult] config:[DeviceAllocationConfiguration]
DeviceAttribute
  int:long bool:bool string version ints:[long] bools:[bool] strings:[str] versions:[str]
DeviceCapacity
  value:quantity requestPolicy:CapacityRequestPolicy
DeviceClaim
  requests:[DeviceRequest] constraints:[DeviceConstraint] config:[DeviceClaimConfiguration]
DeviceClaimConfiguration
  requests:[str] opaque:OpaqueDeviceConfiguration
DeviceClass
  apiVersion kind metadata:ObjectMeta spec:DeviceClassSpec
DeviceClassConfiguration
  opaque:OpaqueDeviceConfiguration
DeviceClassSpec
  selectors:[DeviceSelector] config:[DeviceClassConfiguration] extendedResourceName
DeviceConstraint
  requests:[str] matchAttribute distinctAttribute
DeviceCounterConsumption
  counterSet counters:{Counter}
DeviceRequest
  name exactly:ExactDeviceRequest firstAvailable:[DeviceSubRequest]
DeviceRequestAllocationResult
  request driver pool device adminAccess:bool tolerations:[DeviceToleration] bindingConditions:[str]
  bindingFailureConditions:[str] shareID consumedCapacity:{quantity}
DeviceSelector
  cel:CELDeviceSelector
DeviceSubRequest
  name deviceClassName selectors:[DeviceSelector] allocationMode count:long tolerations:[DeviceToleration]
  capacity:CapacityRequirements
DeviceTaint
  key value effect timeAdded:time
DeviceTaintRule
  apiVersion kind metadata:ObjectMeta spec:DeviceTaintRuleSpec status:DeviceTaintRuleStatus
DeviceTaintRuleSpec
  deviceSelector:DeviceTaintSelector taint:DeviceTaint
DeviceTaintRuleStatus
  conditions:[Condition]#type
DeviceTaintSelector
  driver pool device
DeviceToleration
  key operator value effect tolerationSeconds:long
ExactDeviceRequest
  deviceClassName selectors:[DeviceSelector] allocationMode count:long adminAccess:bool
  tolerations:[DeviceToleration] capacity:CapacityRequirements
NetworkDeviceData
  interfaceName ips:[str] hardwareAddress
NodeAllocatableResourceMapping
  capacityKey allocationMultiplier:quantity
OpaqueDeviceConfiguration
  driver parameters:any
ResourceClaim
  apiVersion kind metadata:ObjectMeta spec:ResourceClaimSpec^ status:ResourceClaimStatus
ResourceClaimConsumerReference
  apiGroup resource name uid
ResourceClaimSpec
  devices:DeviceClaim
ResourceClaimStatus
  allocation:AllocationResult reservedFor:[ResourceClaimConsumerReference]#uid devices:[AllocatedDeviceStatus]
ResourceClaimTemplate
  apiVersion kind metadata:ObjectMeta spec:ResourceClaimTemplateSpec^
ResourceClaimTemplateSpec
  metadata:ObjectMeta spec:ResourceClaimSpec
ResourcePool
  name generation:long resourceSliceCount:long
ResourceSlice
  apiVersion kind metadata:ObjectMeta spec:ResourceSliceSpec
ResourceSliceSpec
  driver^ pool:ResourcePool nodeName^ nodeSelector:NodeSelector allNodes:bool devices:[Device]
  perDeviceNodeSelection:bool sharedCounters:[CounterSet]
"""
