"""The numbers that the fields of storage/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
CSIDriver
  metadata=1:meta.ObjectMeta spec=2:CSIDriverSpec!
CSIDriverSpec
  attachRequired=1:bool! podInfoOnMount=2:bool! volumeLifecycleModes=3:[str] storageCapacity=4:bool!
  fsGroupPolicy=5! tokenRequests=6:[TokenRequest] requiresRepublish=7:bool! seLinuxMount=8:bool!
  nodeAllocatableUpdatePeriodSeconds=9:long! serviceAccountTokenInSecrets=10:bool!
  preventPodSchedulingIfMissing=11:bool!
CSINode
  metadata=1:meta.ObjectMeta spec=2:CSINodeSpec!
CSINodeDriver
  name=1! nodeID=2! topologyKeys=3:[str] allocatable=4:VolumeNodeResources!
CSINodeSpec
  drivers=1:[CSINodeDriver]
CSIStorageCapacity
  metadata=1:meta.ObjectMeta nodeTopology=2:meta.LabelSelector! storageClassName=3! capacity=4:quantity!
  maximumVolumeSize=5:quantity!
StorageClass
  metadata=1:meta.ObjectMeta provisioner=2! parameters=3:{str} reclaimPolicy=4! mountOptions=5:[str]
  allowVolumeExpansion=6:bool! volumeBindingMode=7! allowedTopologies=8:[core.TopologySelectorTerm]
TokenRequest
  audience=1! expirationSeconds=2:long!
VolumeAttachment
  metadata=1:meta.ObjectMeta spec=2:VolumeAttachmentSpec! status=3:VolumeAttachmentStatus
VolumeAttachmentSource
  persistentVolumeName=1! inlineVolumeSpec=2:core.PersistentVolumeSpec!
VolumeAttachmentSpec
  attacher=1! source=2:VolumeAttachmentSource! nodeName=3!
VolumeAttachmentStatus
  attached=1:bool! attachmentMetadata=2:{str} attachError=3:VolumeError! detachError=4:VolumeError!
VolumeAttributesClass
  metadata=1:meta.ObjectMeta driverName=2! parameters=3:{str}
VolumeError
  time=1:time message=2 errorCode=3:int!
VolumeNodeResources
  count=1:int!
"""
