"""The numbers that the fields of resource/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
AllocatedDeviceStatus
  driver=1! pool=2! device=3! shareID=7! conditions=4:[meta.Condition] data=5:json! networkData=6:NetworkDeviceData!
AllocationResult
  devices=1:DeviceAllocationResult nodeSelector=3:core.NodeSelector! allocationTimestamp=5:time!
CELDeviceSelector
  expression=1!
CapacityRequestPolicy
  default=1:quantity! validValues=3:[quantity] validRange=4:CapacityRequestPolicyRange!
CapacityRequestPolicyRange
  min=1:quantity! max=2:quantity! step=3:quantity!
CapacityRequirements
  requests=1:{quantity}
Counter
  value=1:quantity!
CounterSet
  name=1! counters=2:{Counter}
Device
  name=1! attributes=2:{DeviceAttribute} capacity=3:{DeviceCapacity} consumesCounters=4:[DeviceCounterConsumption]
  nodeName=5! nodeSelector=6:core.NodeSelector! allNodes=7:bool! taints=8:[DeviceTaint] bindsToNode=9:bool!
  bindingConditions=10:[str] bindingFailureConditions=11:[str] allowMultipleAllocations=12:bool!
  nodeAllocatableResourceMappings=13:{NodeAllocatableResourceMapping}
DeviceAllocationConfiguration
  source=1! requests=2:[str] =3:DeviceConfiguration!
DeviceAllocationResult
  results=1:[DeviceRequestAllocationResult] config=2:[DeviceAllocationConfiguration]
DeviceAttribute
  int=2:long! bool=3:bool! string=4! version=5! ints=6:[long] bools=7:[bool] strings=8:[str] versions=9:[str]
DeviceCapacity
  value=1:quantity! requestPolicy=2:CapacityRequestPolicy!
DeviceClaim
  requests=1:[DeviceRequest] constraints=2:[DeviceConstraint] config=3:[DeviceClaimConfiguration]
DeviceClaimConfiguration
  requests=1:[str] =2:DeviceConfiguration!
DeviceClass
  metadata=1:meta.ObjectMeta spec=2:DeviceClassSpec!
DeviceClassConfiguration
  =1:DeviceConfiguration!
DeviceClassSpec
  selectors=1:[DeviceSelector] config=2:[DeviceClassConfiguration] extendedResourceName=4!
DeviceConfiguration
  opaque=1:OpaqueDeviceConfiguration!
DeviceConstraint
  requests=1:[str] matchAttribute=2! distinctAttribute=3!
DeviceCounterConsumption
  counterSet=1! counters=2:{Counter}
DeviceRequest
  name=1! exactly=2:ExactDeviceRequest! firstAvailable=3:[DeviceSubRequest]
DeviceRequestAllocationResult
  request=1! driver=2! pool=3! device=4! adminAccess=5:bool! tolerations=6:[DeviceToleration]
  bindingConditions=7:[str] bindingFailureConditions=8:[str] shareID=9! consumedCapacity=10:{quantity}
DeviceSelector
  cel=1:CELDeviceSelector!
DeviceSubRequest
  name=1! deviceClassName=2! selectors=3:[DeviceSelector] allocationMode=4 count=5:long
  tolerations=6:[DeviceToleration] capacity=7:CapacityRequirements!
DeviceTaint
  key=1! value=2 effect=3! timeAdded=4:time!
DeviceToleration
  key=1 operator=2 value=3 effect=4 tolerationSeconds=5:long!
ExactDeviceRequest
  deviceClassName=1! selectors=2:[DeviceSelector] allocationMode=3 count=4:long adminAccess=5:bool!
  tolerations=6:[DeviceToleration] capacity=7:CapacityRequirements!
NetworkDeviceData
  interfaceName=1 ips=2:[str] hardwareAddress=3
NodeAllocatableResourceMapping
  capacityKey=1! allocationMultiplier=2:quantity!
OpaqueDeviceConfiguration
  driver=1! parameters=2:json!
ResourceClaim
  metadata=1:meta.ObjectMeta spec=2:ResourceClaimSpec! status=3:ResourceClaimStatus
ResourceClaimConsumerReference
  apiGroup=1 resource=3! name=4! uid=5!
ResourceClaimSpec
  devices=1:DeviceClaim!
ResourceClaimStatus
  allocation=1:AllocationResult! reservedFor=2:[ResourceClaimConsumerReference] devices=4:[AllocatedDeviceStatus]
ResourceClaimTemplate
  metadata=1:meta.ObjectMeta spec=2:ResourceClaimTemplateSpec!
ResourceClaimTemplateSpec
  metadata=1:meta.ObjectMeta spec=2:ResourceClaimSpec!
ResourcePool
  name=1! generation=2:long! resourceSliceCount=3:long!
ResourceSlice
  metadata=1:meta.ObjectMeta spec=2:ResourceSliceSpec!
ResourceSliceSpec
  driver=1! pool=2:ResourcePool! nodeName=3! nodeSelector=4:core.NodeSelector! allNodes=5:bool! devices=6:[Device]
  perDeviceNodeSelection=7:bool! sharedCounters=8:[CounterSet]
"""
