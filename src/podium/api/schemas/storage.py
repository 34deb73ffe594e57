"""Storage classes and drivers (storage.k8s.io/v1)."""

FIELDS = """
CSIDriver
  apiVersion kind metadata:ObjectMeta spec:CSIDriverSpec
CSIDriverSpec
  attachRequired:bool podInfoOnMount:bool volumeLifecycleModes:[str] storageCapacity:bool fsGroupPolicy
  tokenRequests:[TokenRequest] requiresRepublish:bool seLinuxMount:bool nodeAllocatableUpdatePeriodSeconds:long
  serviceAccountTokenInSecrets:bool preventPodSchedulingIfMissing:bool
CSINode
  apiVersion kind metadata:ObjectMeta spec:CSINodeSpec
CSINodeDriver
  name nodeID topologyKeys:[str] allocatable:VolumeNodeResources
CSINodeSpec
  drivers:[CSINodeDriver]#name
CSIStorageCapacity
  apiVersion kind metadata:ObjectMeta nodeTopology:LabelSelector storageClassName capacity:quantity
  maximumVolumeSize:quantity
StorageClass
  apiVersion kind metadata:ObjectMeta parameters:{str}^ provisioner^ reclaimPolicy^ mountOptions:[str]
  allowVolumeExpansion:bool volumeBindingMode^ allowedTopologies:[TopologySelectorTerm]
TokenRequest
  audience expirationSeconds:long
TopologySelectorLabelRequirement
  key values:[str]
TopologySelectorTerm
  matchLabelExpressions:[TopologySelectorLabelRequirement]
VolumeAttachment
  apiVersion kind metadata:ObjectMeta spec:VolumeAttachmentSpec status:VolumeAttachmentStatus
VolumeAttachmentSource
  persistentVolumeName inlineVolumeSpec:PersistentVolumeSpec
VolumeAttachmentSpec
  attacher source:VolumeAttachmentSource nodeName
VolumeAttachmentStatus
  attached:bool attachmentMetadata:{str} attachError:VolumeError detachError:VolumeError
VolumeError
  time:time message errorCode:int
VolumeNodeResources
  count:int
"""
