"""Volumes: those that pods name, PersistentVolumes and the claims for them (core/v1)."""

FIELDS = """
AWSElasticBlockStoreVolumeSource
  volumeID fsType partition:int readOnly:bool
AzureDiskVolumeSource
  diskName diskURI cachingMode fsType readOnly:bool kind
AzureFilePersistentVolumeSource
  secretName shareName readOnly:bool secretNamespace
AzureFileVolumeSource
  secretName shareName readOnly:bool
CSIPersistentVolumeSource
  driver volumeHandle readOnly:bool fsType volumeAttributes:{str} controllerPublishSecretRef:SecretReference
  nodeStageSecretRef:SecretReference nodePublishSecretRef:SecretReference controllerExpandSecretRef:SecretReference
  nodeExpandSecretRef:SecretReference
CSIVolumeSource
  driver readOnly:bool fsType volumeAttributes:{str} nodePublishSecretRef:LocalObjectReference
CephFSPersistentVolumeSource
  monitors:[str] path user secretFile secretRef:SecretReference readOnly:bool
CephFSVolumeSource
  monitors:[str] path user secretFile secretRef:LocalObjectReference readOnly:bool
CinderPersistentVolumeSource
  volumeID fsType readOnly:bool secretRef:SecretReference
CinderVolumeSource
  volumeID fsType readOnly:bool secretRef:LocalObjectReference
ClusterTrustBundleProjection
  name signerName labelSelector:LabelSelector optional:bool path
ConfigMapProjection
  name items:[KeyToPath] optional:bool
ConfigMapVolumeSource
  name items:[KeyToPath] defaultMode:int optional:bool
DownwardAPIProjection
  items:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile
  path fieldRef:ObjectFieldSelector resourceFieldRef:ResourceFieldSelector mode:int
DownwardAPIVolumeSource
  items:[DownwardAPIVolumeFile] defaultMode:int
EmptyDirVolumeSource
  medium sizeLimit:quantity
EphemeralVolumeSource
  volumeClaimTemplate:PersistentVolumeClaimTemplate
FCVolumeSource
  targetWWNs:[str] lun:int fsType readOnly:bool wwids:[str]
FlexPersistentVolumeSource
  driver fsType secretRef:SecretReference readOnly:bool options:{str}
FlexVolumeSource
  driver fsType secretRef:LocalObjectReference readOnly:bool options:{str}
FlockerVolumeSource
  datasetName datasetUUID
GCEPersistentDiskVolumeSource
  pdName fsType partition:int readOnly:bool
GitRepoVolumeSource
  repository revision directory
GlusterfsPersistentVolumeSource
  endpoints path readOnly:bool endpointsNamespace
GlusterfsVolumeSource
  endpoints path readOnly:bool
HostPathVolumeSource
  path type
ISCSIPersistentVolumeSource
  targetPortal iqn lun:int iscsiInterface fsType readOnly:bool portals:[str] chapAuthDiscovery:bool
  chapAuthSession:bool secretRef:SecretReference initiatorName
ISCSIVolumeSource
  targetPortal iqn lun:int iscsiInterface fsType readOnly:bool portals:[str] chapAuthDiscovery:bool
  chapAuthSession:bool secretRef:LocalObjectReference initiatorName
ImageVolumeSource
  reference pullPolicy
KeyToPath
  key path mode:int
LocalVolumeSource
  path fsType
ModifyVolumeStatus
  targetVolumeAttributesClassName status
NFSVolumeSource
  server path readOnly:bool
ObjectFieldSelector
  apiVersion fieldPath
PersistentVolume
  apiVersion kind metadata:ObjectMeta spec:PersistentVolumeSpec status:PersistentVolumeStatus
PersistentVolumeClaim
  apiVersion kind metadata:ObjectMeta spec:PersistentVolumeClaimSpec status:PersistentVolumeClaimStatus
PersistentVolumeClaimCondition
  type status lastProbeTime:time lastTransitionTime:time reason message
PersistentVolumeClaimSpec
  accessModes:[str] selector:LabelSelector resources:VolumeResourceRequirements volumeName storageClassName
  volumeMode dataSource:TypedLocalObjectReference dataSourceRef:TypedObjectReference volumeAttributesClassName
PersistentVolumeClaimStatus
  phase accessModes:[str] capacity:{quantity} conditions:[PersistentVolumeClaimCondition]#type
  allocatedResources:{quantity} allocatedResourceStatuses:{str} currentVolumeAttributesClassName
  modifyVolumeStatus:ModifyVolumeStatus
PersistentVolumeClaimTemplate
  metadata:ObjectMeta spec:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource
  claimName readOnly:bool
PersistentVolumeSpec
  capacity:{quantity} gcePersistentDisk:GCEPersistentDiskVolumeSource
  awsElasticBlockStore:AWSElasticBlockStoreVolumeSource hostPath:HostPathVolumeSource
  glusterfs:GlusterfsPersistentVolumeSource nfs:NFSVolumeSource rbd:RBDPersistentVolumeSource
  iscsi:ISCSIPersistentVolumeSource cinder:CinderPersistentVolumeSource cephfs:CephFSPersistentVolumeSource
  fc:FCVolumeSource flocker:FlockerVolumeSource flexVolume:FlexPersistentVolumeSource
  azureFile:AzureFilePersistentVolumeSource vsphereVolume:VsphereVirtualDiskVolumeSource quobyte:QuobyteVolumeSource
  azureDisk:AzureDiskVolumeSource photonPersistentDisk:PhotonPersistentDiskVolumeSource
  portworxVolume:PortworxVolumeSource scaleIO:ScaleIOPersistentVolumeSource local:LocalVolumeSource
  storageos:StorageOSPersistentVolumeSource csi:CSIPersistentVolumeSource accessModes:[str] claimRef:ObjectReference
  persistentVolumeReclaimPolicy storageClassName mountOptions:[str] volumeMode nodeAffinity:VolumeNodeAffinity
  volumeAttributesClassName
PersistentVolumeStatus
  phase message reason lastPhaseTransitionTime:time
PhotonPersistentDiskVolumeSource
  pdID fsType
PodCertificateProjection
  signerName keyType maxExpirationSeconds:int credentialBundlePath keyPath certificateChainPath
  userAnnotations:{str}
PortworxVolumeSource
  volumeID fsType readOnly:bool
ProjectedVolumeSource
  sources:[VolumeProjection] defaultMode:int
QuobyteVolumeSource
  registry volume readOnly:bool user group tenant
RBDPersistentVolumeSource
  monitors:[str] image fsType pool user keyring secretRef:SecretReference readOnly:bool
RBDVolumeSource
  monitors:[str] image fsType pool user keyring secretRef:LocalObjectReference readOnly:bool
ResourceFieldSelector
  containerName resource divisor:quantity
ScaleIOPersistentVolumeSource
  gateway system secretRef:SecretReference sslEnabled:bool protectionDomain storagePool storageMode volumeName
  fsType readOnly:bool
ScaleIOVolumeSource
  gateway system secretRef:LocalObjectReference sslEnabled:bool protectionDomain storagePool storageMode volumeName
  fsType readOnly:bool
SecretProjection
  name items:[KeyToPath] optional:bool
SecretReference
  name namespace
SecretVolumeSource
  secretName items:[KeyToPath] defaultMode:int optional:bool
ServiceAccountTokenProjection
  audience expirationSeconds:long path
StorageOSPersistentVolumeSource
  volumeName volumeNamespace fsType readOnly:bool secretRef:ObjectReference
StorageOSVolumeSource
  volumeName volumeNamespace fsType readOnly:bool secretRef:LocalObjectReference
TypedLocalObjectReference
  apiGroup kind name
TypedObjectReference
  apiGroup kind name namespace
Volume
  name hostPath:HostPathVolumeSource emptyDir:EmptyDirVolumeSource gcePersistentDisk:GCEPersistentDiskVolumeSource
  awsElasticBlockStore:AWSElasticBlockStoreVolumeSource gitRepo:GitRepoVolumeSource secret:SecretVolumeSource
  nfs:NFSVolumeSource iscsi:ISCSIVolumeSource glusterfs:GlusterfsVolumeSource
  persistentVolumeClaim:PersistentVolumeClaimVolumeSource rbd:RBDVolumeSource flexVolume:FlexVolumeSource
  cinder:CinderVolumeSource cephfs:CephFSVolumeSource flocker:FlockerVolumeSource
  downwardAPI:DownwardAPIVolumeSource fc:FCVolumeSource azureFile:AzureFileVolumeSource
  configMap:ConfigMapVolumeSource vsphereVolume:VsphereVirtualDiskVolumeSource quobyte:QuobyteVolumeSource
  azureDisk:AzureDiskVolumeSource photonPersistentDisk:PhotonPersistentDiskVolumeSource
  projected:ProjectedVolumeSource portworxVolume:PortworxVolumeSource scaleIO:ScaleIOVolumeSource
  storageos:StorageOSVolumeSource csi:CSIVolumeSource ephemeral:EphemeralVolumeSource image:ImageVolumeSource
VolumeNodeAffinity
  required:NodeSelector
VolumeProjection
  secret:SecretProjection downwardAPI:DownwardAPIProjection configMap:ConfigMapProjection
  serviceAccountToken:ServiceAccountTokenProjection clusterTrustBundle:ClusterTrustBundleProjection
  podCertificate:PodCertificateProjection
VolumeResourceRequirements
  limits:{quantity} requests:{quantity}
VsphereVirtualDiskVolumeSource
  volumePath fsType storagePolicyName storagePolicyID
"""
