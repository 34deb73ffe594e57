"""The numbers that the fields of core/v1 have in protobuf (its generated.proto, v1.36)."""

FIELDS = """
AWSElasticBlockStoreVolumeSource
  volumeID=1! fsType=2 partition=3:int readOnly=4:bool
Affinity
  nodeAffinity=1:NodeAffinity! podAffinity=2:PodAffinity! podAntiAffinity=3:PodAntiAffinity!
AppArmorProfile
  type=1! localhostProfile=2!
AttachedVolume
  name=1! devicePath=2!
AzureDiskVolumeSource
  diskName=1! diskURI=2! cachingMode=3! fsType=4! readOnly=5:bool! kind=6!
AzureFilePersistentVolumeSource
  secretName=1! shareName=2! readOnly=3:bool secretNamespace=4!
AzureFileVolumeSource
  secretName=1! shareName=2! readOnly=3:bool
Binding
  metadata=1:meta.ObjectMeta target=2:ObjectReference!
CSIPersistentVolumeSource
  driver=1! volumeHandle=2! readOnly=3:bool fsType=4 volumeAttributes=5:{str}
  controllerPublishSecretRef=6:SecretReference! nodeStageSecretRef=7:SecretReference!
  nodePublishSecretRef=8:SecretReference! controllerExpandSecretRef=9:SecretReference!
  nodeExpandSecretRef=10:SecretReference!
CSIVolumeSource
  driver=1! readOnly=2:bool! fsType=3! volumeAttributes=4:{str} nodePublishSecretRef=5:LocalObjectReference!
Capabilities
  add=1:[str] drop=2:[str]
CephFSPersistentVolumeSource
  monitors=1:[str] path=2 user=3 secretFile=4 secretRef=5:SecretReference! readOnly=6:bool
CephFSVolumeSource
  monitors=1:[str] path=2 user=3 secretFile=4 secretRef=5:LocalObjectReference! readOnly=6:bool
CinderPersistentVolumeSource
  volumeID=1! fsType=2 readOnly=3:bool secretRef=4:SecretReference!
CinderVolumeSource
  volumeID=1! fsType=2 readOnly=3:bool secretRef=4:LocalObjectReference!
ClientIPConfig
  timeoutSeconds=1:int!
ClusterTrustBundleProjection
  name=1! signerName=2! labelSelector=3:meta.LabelSelector! optional=5:bool! path=4!
ComponentCondition
  type=1! status=2! message=3 error=4
ComponentStatus
  metadata=1:meta.ObjectMeta conditions=2:[ComponentCondition]
ConfigMap
  metadata=1:meta.ObjectMeta immutable=4:bool! data=2:{str} binaryData=3:{bytes}
ConfigMapEnvSource
  =1:LocalObjectReference! optional=2:bool!
ConfigMapKeySelector
  =1:LocalObjectReference! key=2! optional=3:bool!
ConfigMapNodeConfigSource
  namespace=1! name=2! uid=3 resourceVersion=4 kubeletConfigKey=5!
ConfigMapProjection
  =1:LocalObjectReference! items=2:[KeyToPath] optional=4:bool!
ConfigMapVolumeSource
  =1:LocalObjectReference! items=2:[KeyToPath] defaultMode=3:int! optional=4:bool!
Container
  name=1! image=2 command=3:[str] args=4:[str] workingDir=5 ports=6:[ContainerPort] envFrom=19:[EnvFromSource]
  env=7:[EnvVar] resources=8:ResourceRequirements resizePolicy=23:[ContainerResizePolicy] restartPolicy=24!
  restartPolicyRules=25:[ContainerRestartRule] volumeMounts=9:[VolumeMount] volumeDevices=21:[VolumeDevice]
  livenessProbe=10:Probe! readinessProbe=11:Probe! startupProbe=22:Probe! lifecycle=12:Lifecycle!
  terminationMessagePath=13 terminationMessagePolicy=20 imagePullPolicy=14 securityContext=15:SecurityContext!
  stdin=16:bool stdinOnce=17:bool tty=18:bool
ContainerExtendedResourceRequest
  containerName=1! resourceName=2! requestName=3!
ContainerImage
  names=1:[str] sizeBytes=2:long
ContainerPort
  name=1 hostPort=2:int containerPort=3:int! protocol=4 hostIP=5
ContainerResizePolicy
  resourceName=1! restartPolicy=2!
ContainerRestartRule
  action=1 exitCodes=2:ContainerRestartRuleOnExitCodes!
ContainerRestartRuleOnExitCodes
  operator=1 values=2:[int]
ContainerState
  waiting=1:ContainerStateWaiting! running=2:ContainerStateRunning! terminated=3:ContainerStateTerminated!
ContainerStateRunning
  startedAt=1:time
ContainerStateTerminated
  exitCode=1:int! signal=2:int reason=3 message=4 startedAt=5:time finishedAt=6:time containerID=7
ContainerStateWaiting
  reason=1 message=2
ContainerStatus
  name=1! state=2:ContainerState lastState=3:ContainerState ready=4:bool! restartCount=5:int! image=6! imageID=7!
  containerID=8 started=9:bool! allocatedResources=10:{quantity} resources=11:ResourceRequirements!
  volumeMounts=12:[VolumeMountStatus] user=13:ContainerUser! allocatedResourcesStatus=14:[ResourceStatus]
  stopSignal=15!
ContainerUser
  linux=1:LinuxContainerUser!
DaemonEndpoint
  Port=1:int!
DownwardAPIProjection
  items=1:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile
  path=1! fieldRef=2:ObjectFieldSelector! resourceFieldRef=3:ResourceFieldSelector! mode=4:int!
DownwardAPIVolumeSource
  items=1:[DownwardAPIVolumeFile] defaultMode=2:int!
EmptyDirVolumeSource
  medium=1 sizeLimit=2:quantity!
EndpointAddress
  ip=1! hostname=3 nodeName=4! targetRef=2:ObjectReference!
EndpointPort
  name=1 port=2:int! protocol=3 appProtocol=4!
EndpointSubset
  addresses=1:[EndpointAddress] notReadyAddresses=2:[EndpointAddress] ports=3:[EndpointPort]
Endpoints
  metadata=1:meta.ObjectMeta subsets=2:[EndpointSubset]
EnvFromSource
  prefix=1 configMapRef=2:ConfigMapEnvSource! secretRef=3:SecretEnvSource!
EnvVar
  name=1! value=2 valueFrom=3:EnvVarSource!
EnvVarSource
  fieldRef=1:ObjectFieldSelector! resourceFieldRef=2:ResourceFieldSelector! configMapKeyRef=3:ConfigMapKeySelector!
  secretKeyRef=4:SecretKeySelector! fileKeyRef=5:FileKeySelector!
EphemeralContainer
  =1:EphemeralContainerCommon! targetContainerName=2
EphemeralContainerCommon
  name=1! image=2 command=3:[str] args=4:[str] workingDir=5 ports=6:[ContainerPort] envFrom=19:[EnvFromSource]
  env=7:[EnvVar] resources=8:ResourceRequirements resizePolicy=23:[ContainerResizePolicy] restartPolicy=24!
  restartPolicyRules=25:[ContainerRestartRule] volumeMounts=9:[VolumeMount] volumeDevices=21:[VolumeDevice]
  livenessProbe=10:Probe! readinessProbe=11:Probe! startupProbe=22:Probe! lifecycle=12:Lifecycle!
  terminationMessagePath=13 terminationMessagePolicy=20 imagePullPolicy=14 securityContext=15:SecurityContext!
  stdin=16:bool stdinOnce=17:bool tty=18:bool
EphemeralVolumeSource
  volumeClaimTemplate=1:PersistentVolumeClaimTemplate!
Event
  metadata=1:meta.ObjectMeta! involvedObject=2:ObjectReference! reason=3 message=4 source=5:EventSource
  firstTimestamp=6:time lastTimestamp=7:time count=8:int type=9 eventTime=10:microtime series=11:EventSeries!
  action=12 related=13:ObjectReference! reportingComponent=14! reportingInstance=15!
EventSeries
  count=1:int lastObservedTime=2:microtime
EventSource
  component=1 host=2
ExecAction
  command=1:[str]
FCVolumeSource
  targetWWNs=1:[str] lun=2:int! fsType=3 readOnly=4:bool wwids=5:[str]
FileKeySelector
  volumeName=1! path=2! key=3! optional=4:bool!
FlexPersistentVolumeSource
  driver=1! fsType=2 secretRef=3:SecretReference! readOnly=4:bool options=5:{str}
FlexVolumeSource
  driver=1! fsType=2 secretRef=3:LocalObjectReference! readOnly=4:bool options=5:{str}
FlockerVolumeSource
  datasetName=1 datasetUUID=2
GCEPersistentDiskVolumeSource
  pdName=1! fsType=2 partition=3:int readOnly=4:bool
GRPCAction
  port=1:int! service=2!
GitRepoVolumeSource
  repository=1! revision=2 directory=3
GlusterfsPersistentVolumeSource
  endpoints=1! path=2! readOnly=3:bool endpointsNamespace=4!
GlusterfsVolumeSource
  endpoints=1! path=2! readOnly=3:bool
HTTPGetAction
  path=1 port=2:share! host=3 scheme=4 httpHeaders=5:[HTTPHeader]
HTTPHeader
  name=1! value=2!
HostAlias
  ip=1! hostnames=2:[str]
HostIP
  ip=1!
HostPathVolumeSource
  path=1! type=2!
ISCSIPersistentVolumeSource
  targetPortal=1! iqn=2! lun=3:int! iscsiInterface=4 fsType=5 readOnly=6:bool portals=7:[str]
  chapAuthDiscovery=8:bool chapAuthSession=11:bool secretRef=10:SecretReference! initiatorName=12!
ISCSIVolumeSource
  targetPortal=1! iqn=2! lun=3:int! iscsiInterface=4 fsType=5 readOnly=6:bool portals=7:[str]
  chapAuthDiscovery=8:bool chapAuthSession=11:bool secretRef=10:LocalObjectReference! initiatorName=12!
ImageVolumeSource
  reference=1 pullPolicy=2
ImageVolumeStatus
  imageRef=1
KeyToPath
  key=1! path=2! mode=3:int!
Lifecycle
  postStart=1:LifecycleHandler! preStop=2:LifecycleHandler! stopSignal=3!
LifecycleHandler
  exec=1:ExecAction! httpGet=2:HTTPGetAction! tcpSocket=3:TCPSocketAction! sleep=4:SleepAction!
LimitRange
  metadata=1:meta.ObjectMeta spec=2:LimitRangeSpec
LimitRangeItem
  type=1! max=2:{quantity} min=3:{quantity} default=4:{quantity} defaultRequest=5:{quantity}
  maxLimitRequestRatio=6:{quantity}
LimitRangeSpec
  limits=1:[LimitRangeItem]
LinuxContainerUser
  uid=1:long! gid=2:long! supplementalGroups=3:[long]
LoadBalancerIngress
  ip=1 hostname=2 ipMode=3! ports=4:[PortStatus]
LoadBalancerStatus
  ingress=1:[LoadBalancerIngress]
LocalObjectReference
  name=1
LocalVolumeSource
  path=1! fsType=2!
ModifyVolumeStatus
  targetVolumeAttributesClassName=1 status=2!
NFSVolumeSource
  server=1! path=2! readOnly=3:bool
Namespace
  metadata=1:meta.ObjectMeta spec=2:NamespaceSpec status=3:NamespaceStatus
NamespaceCondition
  type=1! status=2! lastTransitionTime=4:time reason=5 message=6
NamespaceSpec
  finalizers=1:[str]
NamespaceStatus
  phase=1 conditions=2:[NamespaceCondition]
Node
  metadata=1:meta.ObjectMeta spec=2:NodeSpec status=3:NodeStatus
NodeAddress
  type=1! address=2!
NodeAffinity
  requiredDuringSchedulingIgnoredDuringExecution=1:NodeSelector!
  preferredDuringSchedulingIgnoredDuringExecution=2:[PreferredSchedulingTerm]
NodeAllocatableResourceClaimStatus
  resourceClaimName=1! containers=2:[str] resources=3:{quantity}
NodeCondition
  type=1! status=2! lastHeartbeatTime=3:time lastTransitionTime=4:time reason=5 message=6
NodeConfigSource
  configMap=2:ConfigMapNodeConfigSource!
NodeConfigStatus
  assigned=1:NodeConfigSource! active=2:NodeConfigSource! lastKnownGood=3:NodeConfigSource! error=4
NodeDaemonEndpoints
  kubeletEndpoint=1:DaemonEndpoint
NodeFeatures
  supplementalGroupsPolicy=1:bool!
NodeRuntimeHandler
  name=1! features=2:NodeRuntimeHandlerFeatures!
NodeRuntimeHandlerFeatures
  recursiveReadOnlyMounts=1:bool! userNamespaces=2:bool!
NodeSelector
  nodeSelectorTerms=1:[NodeSelectorTerm]
NodeSelectorRequirement
  key=1! operator=2! values=3:[str]
NodeSelectorTerm
  matchExpressions=1:[NodeSelectorRequirement] matchFields=2:[NodeSelectorRequirement]
NodeSpec
  podCIDR=1 podCIDRs=7:[str] providerID=3 unschedulable=4:bool taints=5:[Taint] configSource=6:NodeConfigSource!
  externalID=2
NodeStatus
  capacity=1:{quantity} allocatable=2:{quantity} phase=3 conditions=4:[NodeCondition] addresses=5:[NodeAddress]
  daemonEndpoints=6:NodeDaemonEndpoints nodeInfo=7:NodeSystemInfo images=8:[ContainerImage] volumesInUse=9:[str]
  volumesAttached=10:[AttachedVolume] config=11:NodeConfigStatus! runtimeHandlers=12:[NodeRuntimeHandler]
  features=13:NodeFeatures! declaredFeatures=14:[str]
NodeSwapStatus
  capacity=1:long!
NodeSystemInfo
  machineID=1! systemUUID=2! bootID=3! kernelVersion=4! osImage=5! containerRuntimeVersion=6! kubeletVersion=7!
  kubeProxyVersion=8! operatingSystem=9! architecture=10! swap=11:NodeSwapStatus!
ObjectFieldSelector
  apiVersion=1 fieldPath=2!
ObjectReference
  kind=1 namespace=2 name=3 uid=4 apiVersion=5 resourceVersion=6 fieldPath=7
PersistentVolume
  metadata=1:meta.ObjectMeta spec=2:PersistentVolumeSpec status=3:PersistentVolumeStatus
PersistentVolumeClaim
  metadata=1:meta.ObjectMeta spec=2:PersistentVolumeClaimSpec status=3:PersistentVolumeClaimStatus
PersistentVolumeClaimCondition
  type=1! status=2! lastProbeTime=3:time lastTransitionTime=4:time reason=5 message=6
PersistentVolumeClaimSpec
  accessModes=1:[str] selector=4:meta.LabelSelector! resources=2:VolumeResourceRequirements volumeName=3
  storageClassName=5! volumeMode=6! dataSource=7:TypedLocalObjectReference! dataSourceRef=8:TypedObjectReference!
  volumeAttributesClassName=9!
PersistentVolumeClaimStatus
  phase=1 accessModes=2:[str] capacity=3:{quantity} conditions=4:[PersistentVolumeClaimCondition]
  allocatedResources=5:{quantity} allocatedResourceStatuses=7:{str} currentVolumeAttributesClassName=8!
  modifyVolumeStatus=9:ModifyVolumeStatus!
PersistentVolumeClaimTemplate
  metadata=1:meta.ObjectMeta spec=2:PersistentVolumeClaimSpec!
PersistentVolumeClaimVolumeSource
  claimName=1! readOnly=2:bool
PersistentVolumeSource
  gcePersistentDisk=1:GCEPersistentDiskVolumeSource! awsElasticBlockStore=2:AWSElasticBlockStoreVolumeSource!
  hostPath=3:HostPathVolumeSource! glusterfs=4:GlusterfsPersistentVolumeSource! nfs=5:NFSVolumeSource!
  rbd=6:RBDPersistentVolumeSource! iscsi=7:ISCSIPersistentVolumeSource! cinder=8:CinderPersistentVolumeSource!
  cephfs=9:CephFSPersistentVolumeSource! fc=10:FCVolumeSource! flocker=11:FlockerVolumeSource!
  flexVolume=12:FlexPersistentVolumeSource! azureFile=13:AzureFilePersistentVolumeSource!
  vsphereVolume=14:VsphereVirtualDiskVolumeSource! quobyte=15:QuobyteVolumeSource!
  azureDisk=16:AzureDiskVolumeSource! photonPersistentDisk=17:PhotonPersistentDiskVolumeSource!
  portworxVolume=18:PortworxVolumeSource! scaleIO=19:ScaleIOPersistentVolumeSource! local=20:LocalVolumeSource!
  storageos=21:StorageOSPersistentVolumeSource! csi=22:CSIPersistentVolumeSource!
PersistentVolumeSpec
  capacity=1:{quantity} =2:PersistentVolumeSource! accessModes=3:[str] claimRef=4:ObjectReference!
  persistentVolumeReclaimPolicy=5 storageClassName=6 mountOptions=7:[str] volumeMode=8!
  nodeAffinity=9:VolumeNodeAffinity! volumeAttributesClassName=10!
PersistentVolumeStatus
  phase=1 message=2 reason=3 lastPhaseTransitionTime=4:time!
PhotonPersistentDiskVolumeSource
  pdID=1! fsType=2
Pod
  metadata=1:meta.ObjectMeta spec=2:PodSpec status=3:PodStatus
PodAffinity
  requiredDuringSchedulingIgnoredDuringExecution=1:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution=2:[WeightedPodAffinityTerm]
PodAffinityTerm
  labelSelector=1:meta.LabelSelector! namespaces=2:[str] topologyKey=3! namespaceSelector=4:meta.LabelSelector!
  matchLabelKeys=5:[str] mismatchLabelKeys=6:[str]
PodAntiAffinity
  requiredDuringSchedulingIgnoredDuringExecution=1:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution=2:[WeightedPodAffinityTerm]
PodCertificateProjection
  signerName=1 keyType=2 maxExpirationSeconds=3:int! credentialBundlePath=4 keyPath=5 certificateChainPath=6
  userAnnotations=7:{str}
PodCondition
  type=1! observedGeneration=7:long status=2! lastProbeTime=3:time lastTransitionTime=4:time reason=5 message=6
PodDNSConfig
  nameservers=1:[str] searches=2:[str] options=3:[PodDNSConfigOption]
PodDNSConfigOption
  name=1 value=2!
PodExtendedResourceClaimStatus
  requestMappings=1:[ContainerExtendedResourceRequest] resourceClaimName=2!
PodIP
  ip=1!
PodOS
  name=1!
PodReadinessGate
  conditionType=1!
PodResourceClaim
  name=1! resourceClaimName=3! resourceClaimTemplateName=4!
PodResourceClaimStatus
  name=1! resourceClaimName=2!
PodSchedulingGate
  name=1!
PodSchedulingGroup
  podGroupName=1!
PodSecurityContext
  seLinuxOptions=1:SELinuxOptions! windowsOptions=8:WindowsSecurityContextOptions! runAsUser=2:long!
  runAsGroup=6:long! runAsNonRoot=3:bool! supplementalGroups=4:[long] supplementalGroupsPolicy=12! fsGroup=5:long!
  sysctls=7:[Sysctl] fsGroupChangePolicy=9! seccompProfile=10:SeccompProfile! appArmorProfile=11:AppArmorProfile!
  seLinuxChangePolicy=13!
PodSpec
  volumes=1:[Volume] initContainers=20:[Container] containers=2:[Container]
  ephemeralContainers=34:[EphemeralContainer] restartPolicy=3 terminationGracePeriodSeconds=4:long!
  activeDeadlineSeconds=5:long! dnsPolicy=6 nodeSelector=7:{str} serviceAccountName=8 serviceAccount=9
  automountServiceAccountToken=21:bool! nodeName=10 hostNetwork=11:bool hostPID=12:bool hostIPC=13:bool
  shareProcessNamespace=27:bool! securityContext=14:PodSecurityContext! imagePullSecrets=15:[LocalObjectReference]
  hostname=16 subdomain=17 affinity=18:Affinity! schedulerName=19 tolerations=22:[Toleration]
  hostAliases=23:[HostAlias] priorityClassName=24 priority=25:int! dnsConfig=26:PodDNSConfig!
  readinessGates=28:[PodReadinessGate] runtimeClassName=29! enableServiceLinks=30:bool! preemptionPolicy=31!
  overhead=32:{quantity} topologySpreadConstraints=33:[TopologySpreadConstraint] setHostnameAsFQDN=35:bool!
  os=36:PodOS! hostUsers=37:bool! schedulingGates=38:[PodSchedulingGate] resourceClaims=39:[PodResourceClaim]
  resources=40:ResourceRequirements! hostnameOverride=41! schedulingGroup=43:PodSchedulingGroup!
PodStatus
  observedGeneration=17:long phase=1 conditions=2:[PodCondition] message=3 reason=4 nominatedNodeName=11 hostIP=5
  hostIPs=16:[HostIP] podIP=6 podIPs=12:[PodIP] startTime=7:time! initContainerStatuses=10:[ContainerStatus]
  containerStatuses=8:[ContainerStatus] qosClass=9 ephemeralContainerStatuses=13:[ContainerStatus] resize=14
  resourceClaimStatuses=15:[PodResourceClaimStatus] extendedResourceClaimStatus=18:PodExtendedResourceClaimStatus!
  allocatedResources=19:{quantity} resources=20:ResourceRequirements!
  nodeAllocatableResourceClaimStatuses=21:[NodeAllocatableResourceClaimStatus]
PodTemplate
  metadata=1:meta.ObjectMeta template=2:PodTemplateSpec
PodTemplateSpec
  metadata=1:meta.ObjectMeta spec=2:PodSpec
PortStatus
  port=1:int! protocol=2! error=3!
PortworxVolumeSource
  volumeID=1! fsType=2 readOnly=3:bool
PreferredSchedulingTerm
  weight=1:int! preference=2:NodeSelectorTerm!
Probe
  =1:ProbeHandler! initialDelaySeconds=2:int timeoutSeconds=3:int periodSeconds=4:int successThreshold=5:int
  failureThreshold=6:int terminationGracePeriodSeconds=7:long!
ProbeHandler
  exec=1:ExecAction! httpGet=2:HTTPGetAction! tcpSocket=3:TCPSocketAction! grpc=4:GRPCAction!
ProjectedVolumeSource
  sources=1:[VolumeProjection] defaultMode=2:int!
QuobyteVolumeSource
  registry=1! volume=2! readOnly=3:bool user=4 group=5 tenant=6
RBDPersistentVolumeSource
  monitors=1:[str] image=2! fsType=3 pool=4 user=5 keyring=6 secretRef=7:SecretReference! readOnly=8:bool
RBDVolumeSource
  monitors=1:[str] image=2! fsType=3 pool=4 user=5 keyring=6 secretRef=7:LocalObjectReference! readOnly=8:bool
RangeAllocation
  metadata=1:meta.ObjectMeta range=2! data=3:bytes!
ReplicationController
  metadata=1:meta.ObjectMeta spec=2:ReplicationControllerSpec status=3:ReplicationControllerStatus
ReplicationControllerCondition
  type=1! status=2! lastTransitionTime=3:time reason=4 message=5
ReplicationControllerSpec
  replicas=1:int! minReadySeconds=4:int selector=2:{str} template=3:PodTemplateSpec!
ReplicationControllerStatus
  replicas=1:int! fullyLabeledReplicas=2:int readyReplicas=4:int availableReplicas=5:int observedGeneration=3:long
  conditions=6:[ReplicationControllerCondition]
ResourceClaim
  name=1! request=2
ResourceFieldSelector
  containerName=1 resource=2! divisor=3:quantity
ResourceHealth
  resourceID=1! health=2 message=6!
ResourceQuota
  metadata=1:meta.ObjectMeta spec=2:ResourceQuotaSpec status=3:ResourceQuotaStatus
ResourceQuotaSpec
  hard=1:{quantity} scopes=2:[str] scopeSelector=3:ScopeSelector!
ResourceQuotaStatus
  hard=1:{quantity} used=2:{quantity}
ResourceRequirements
  limits=1:{quantity} requests=2:{quantity} claims=3:[ResourceClaim]
ResourceStatus
  name=1! resources=2:[ResourceHealth]
SELinuxOptions
  user=1 role=2 type=3 level=4
ScaleIOPersistentVolumeSource
  gateway=1! system=2! secretRef=3:SecretReference! sslEnabled=4:bool protectionDomain=5 storagePool=6 storageMode=7
  volumeName=8 fsType=9 readOnly=10:bool
ScaleIOVolumeSource
  gateway=1! system=2! secretRef=3:LocalObjectReference! sslEnabled=4:bool protectionDomain=5 storagePool=6
  storageMode=7 volumeName=8 fsType=9 readOnly=10:bool
ScopeSelector
  matchExpressions=1:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement
  scopeName=1! operator=2! values=3:[str]
SeccompProfile
  type=1! localhostProfile=2!
Secret
  metadata=1:meta.ObjectMeta immutable=5:bool! data=2:{bytes} stringData=4:{str} type=3
SecretEnvSource
  =1:LocalObjectReference! optional=2:bool!
SecretKeySelector
  =1:LocalObjectReference! key=2! optional=3:bool!
SecretProjection
  =1:LocalObjectReference! items=2:[KeyToPath] optional=4:bool!
SecretReference
  name=1 namespace=2
SecretVolumeSource
  secretName=1 items=2:[KeyToPath] defaultMode=3:int! optional=4:bool!
SecurityContext
  capabilities=1:Capabilities! privileged=2:bool! seLinuxOptions=3:SELinuxOptions!
  windowsOptions=10:WindowsSecurityContextOptions! runAsUser=4:long! runAsGroup=8:long! runAsNonRoot=5:bool!
  readOnlyRootFilesystem=6:bool! allowPrivilegeEscalation=7:bool! procMount=9! seccompProfile=11:SeccompProfile!
  appArmorProfile=12:AppArmorProfile!
Service
  metadata=1:meta.ObjectMeta spec=2:ServiceSpec status=3:ServiceStatus
ServiceAccount
  metadata=1:meta.ObjectMeta secrets=2:[ObjectReference] imagePullSecrets=3:[LocalObjectReference]
  automountServiceAccountToken=4:bool!
ServiceAccountTokenProjection
  audience=1 expirationSeconds=2:long! path=3!
ServicePort
  name=1 protocol=2 appProtocol=6! port=3:int! targetPort=4:share nodePort=5:int
ServiceSpec
  ports=1:[ServicePort] selector=2:{str} clusterIP=3 clusterIPs=18:[str] type=4 externalIPs=5:[str]
  sessionAffinity=7 loadBalancerIP=8 loadBalancerSourceRanges=9:[str] externalName=10 externalTrafficPolicy=11
  healthCheckNodePort=12:int publishNotReadyAddresses=13:bool sessionAffinityConfig=14:SessionAffinityConfig!
  ipFamilies=19:[str] ipFamilyPolicy=17! allocateLoadBalancerNodePorts=20:bool! loadBalancerClass=21!
  internalTrafficPolicy=22! trafficDistribution=23!
ServiceStatus
  loadBalancer=1:LoadBalancerStatus conditions=2:[meta.Condition]
SessionAffinityConfig
  clientIP=1:ClientIPConfig!
SleepAction
  seconds=1:long!
StorageOSPersistentVolumeSource
  volumeName=1 volumeNamespace=2 fsType=3 readOnly=4:bool secretRef=5:ObjectReference!
StorageOSVolumeSource
  volumeName=1 volumeNamespace=2 fsType=3 readOnly=4:bool secretRef=5:LocalObjectReference!
Sysctl
  name=1! value=2!
TCPSocketAction
  port=1:share! host=2
Taint
  key=1! value=2 effect=3! timeAdded=4:time!
Toleration
  key=1 operator=2 value=3 effect=4 tolerationSeconds=5:long!
TopologySelectorLabelRequirement
  key=1! values=2:[str]
TopologySelectorTerm
  matchLabelExpressions=1:[TopologySelectorLabelRequirement]
TopologySpreadConstraint
  maxSkew=1:int! topologyKey=2! whenUnsatisfiable=3! labelSelector=4:meta.LabelSelector! minDomains=5:int!
  nodeAffinityPolicy=6! nodeTaintsPolicy=7! matchLabelKeys=8:[str]
TypedLocalObjectReference
  apiGroup=1! kind=2! name=3!
TypedObjectReference
  apiGroup=1! kind=2! name=3! namespace=4!
Volume
  name=1! =2:VolumeSource!
VolumeDevice
  name=1! devicePath=2!
VolumeMount
  name=1! readOnly=2:bool recursiveReadOnly=7! mountPath=3! subPath=4 mountPropagation=5! subPathExpr=6
VolumeMountStatus
  name=1! mountPath=2! readOnly=3:bool recursiveReadOnly=4! volumeStatus=5:VolumeStatus!
VolumeNodeAffinity
  required=1:NodeSelector!
VolumeProjection
  secret=1:SecretProjection! downwardAPI=2:DownwardAPIProjection! configMap=3:ConfigMapProjection!
  serviceAccountToken=4:ServiceAccountTokenProjection! clusterTrustBundle=5:ClusterTrustBundleProjection!
  podCertificate=6:PodCertificateProjection!
VolumeResourceRequirements
  limits=1:{quantity} requests=2:{quantity}
VolumeSource
  hostPath=1:HostPathVolumeSource! emptyDir=2:EmptyDirVolumeSource!
  gcePersistentDisk=3:GCEPersistentDiskVolumeSource! awsElasticBlockStore=4:AWSElasticBlockStoreVolumeSource!
  gitRepo=5:GitRepoVolumeSource! secret=6:SecretVolumeSource! nfs=7:NFSVolumeSource! iscsi=8:ISCSIVolumeSource!
  glusterfs=9:GlusterfsVolumeSource! persistentVolumeClaim=10:PersistentVolumeClaimVolumeSource!
  rbd=11:RBDVolumeSource! flexVolume=12:FlexVolumeSource! cinder=13:CinderVolumeSource!
  cephfs=14:CephFSVolumeSource! flocker=15:FlockerVolumeSource! downwardAPI=16:DownwardAPIVolumeSource!
  fc=17:FCVolumeSource! azureFile=18:AzureFileVolumeSource! configMap=19:ConfigMapVolumeSource!
  vsphereVolume=20:VsphereVirtualDiskVolumeSource! quobyte=21:QuobyteVolumeSource!
  azureDisk=22:AzureDiskVolumeSource! photonPersistentDisk=23:PhotonPersistentDiskVolumeSource!
  projected=26:ProjectedVolumeSource! portworxVolume=24:PortworxVolumeSource! scaleIO=25:ScaleIOVolumeSource!
  storageos=27:StorageOSVolumeSource! csi=28:CSIVolumeSource! ephemeral=29:EphemeralVolumeSource!
  image=30:ImageVolumeSource!
VolumeStatus
  image=1:ImageVolumeStatus!
VsphereVirtualDiskVolumeSource
  volumePath=1! fsType=2 storagePolicyName=3 storagePolicyID=4
WeightedPodAffinityTerm
  weight=1:int! podAffinityTerm=2:PodAffinityTerm!
WindowsSecurityContextOptions
  gmsaCredentialSpecName=1! gmsaCredentialSpec=2! runAsUserName=3! hostProcess=4:bool!
"""
