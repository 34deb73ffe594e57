"""The types of core/v1 and meta/v1, in the notation of `podium.api.schemas.schema`."""

TYPES = """
[meta/v1]
Condition: type! status! observedGeneration:long lastTransitionTime!:time reason! message!
DeleteOptions: gracePeriodSeconds!:long preconditions!:Preconditions orphanDependents!:bool propagationPolicy!
  dryRun:[str] ignoreStoreReadErrorWithClusterBreakingPotential!:bool
FieldSelectorRequirement LabelSelectorRequirement: key! operator! values:[str]
LabelSelector~: matchLabels:{str} matchExpressions:[LabelSelectorRequirement]
ListMeta: selfLink resourceVersion continue remainingItemCount!:long shardInfo!:ShardInfo
FieldsEntry: manager operation apiVersion time!:time fieldsType@6 fieldsV1!:any subresource
ObjectMeta: name generateName namespace selfLink uid resourceVersion generation:long creationTimestamp:time
  deletionTimestamp!:time deletionGracePeriodSeconds!:long labels:{str} annotations:{str}
  ownerReferences:[OwnerReference]#uid finalizers:[str]# managedFields@17:[FieldsEntry]
OwnerReference~: apiVersion@5! kind@1! name@3! uid! controller@6!:bool blockOwnerDeletion!:bool
kind PartialObject:
Preconditions: uid! resourceVersion!
ShardInfo: selector!
Status: metadata:ListMeta status message reason details!:StatusDetails code:int
StatusCause: reason message field
StatusDetails: name group kind uid@6 causes@4:[StatusCause] retryAfterSeconds:int
[v1]
AWSElasticBlockStoreVolumeSource: volumeID! fsType partition:int readOnly:bool
Affinity: nodeAffinity!:NodeAffinity podAffinity!:PodAffinity podAntiAffinity!:PodAntiAffinity
AppArmorProfile SeccompProfile: type! localhostProfile!
AttachedVolume VolumeDevice: name! devicePath!
AzureDiskVolumeSource: diskName! diskURI! cachingMode!=ReadWrite fsType!=ext4 readOnly!:bool=false kind!=Shared
AzureFilePersistentVolumeSource: secretName! shareName! readOnly:bool secretNamespace!
AzureFileVolumeSource: secretName! shareName! readOnly:bool
kind Binding: target!:ObjectReference
CSIPersistentVolumeSource: driver! volumeHandle! readOnly:bool fsType volumeAttributes:{str}
  controllerPublishSecretRef!:SecretReference nodeStageSecretRef!:SecretReference nodePublishSecretRef!:SecretReference
  controllerExpandSecretRef!:SecretReference nodeExpandSecretRef!:SecretReference
CSIVolumeSource: driver! readOnly!:bool fsType! volumeAttributes:{str} nodePublishSecretRef!:LocalObjectReference
Capabilities: add:[str] drop:[str]
CephFSPersistentVolumeSource: monitors:[str] path user secretFile secretRef!:SecretReference readOnly:bool
CephFSVolumeSource: monitors:[str] path user secretFile secretRef!:LocalObjectReference readOnly:bool
CinderPersistentVolumeSource: volumeID! fsType readOnly:bool secretRef!:SecretReference
CinderVolumeSource: volumeID! fsType readOnly:bool secretRef!:LocalObjectReference
ClientIPConfig: timeoutSeconds!:int
ClusterTrustBundleProjection: name! signerName! labelSelector!:LabelSelector optional@5!:bool path@4!
ComponentCondition: type! status! message error
kind ComponentStatus: conditions:[ComponentCondition]
kind ConfigMap: immutable@4!:bool data@2:{str} binaryData:{bytes}
ConfigMapEnvSource SecretEnvSource: !:LocalObjectReference optional!:bool
ConfigMapKeySelector SecretKeySelector~: !:LocalObjectReference key! optional!:bool
ConfigMapNodeConfigSource: namespace! name! uid resourceVersion kubeletConfigKey!
ConfigMapProjection SecretProjection: !:LocalObjectReference items:[KeyToPath] optional@4!:bool
ConfigMapVolumeSource: !:LocalObjectReference items:[KeyToPath] defaultMode!:int=420 optional!:bool
Container: name! image command:[str] args:[str] workingDir ports:[ContainerPort]#containerPort##containerPort,protocol
  envFrom@19:[EnvFromSource] env@7:[EnvVar]#name resources:ResourceRequirements={}
  resizePolicy@23:[ContainerResizePolicy] restartPolicy! restartPolicyRules:[ContainerRestartRule]
  volumeMounts@9:[VolumeMount]#mountPath volumeDevices@21:[VolumeDevice]#devicePath livenessProbe@10!:Probe
  readinessProbe!:Probe startupProbe@22!:Probe lifecycle@12!:Lifecycle terminationMessagePath=/dev/termination-log
  terminationMessagePolicy@20=File imagePullPolicy@14 securityContext!:SecurityContext stdin:bool stdinOnce:bool
  tty:bool
ContainerExtendedResourceRequest: containerName! resourceName! requestName!
ContainerImage: names:[str] sizeBytes:long
ContainerPort: name hostPort:int containerPort!:int protocol=TCP hostIP
ContainerResizePolicy: resourceName! restartPolicy!
ContainerResourceClaim: name! request
ContainerRestartRule: action exitCodes!:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator values:[int]##
ContainerState: waiting!:ContainerStateWaiting running!:ContainerStateRunning terminated!:ContainerStateTerminated
ContainerStateRunning: startedAt:time
ContainerStateTerminated: exitCode!:int signal:int reason message startedAt:time finishedAt:time containerID
ContainerStateWaiting: reason message
ContainerStatus: name! state:ContainerState lastState:ContainerState ready!:bool restartCount!:int image! imageID!
  containerID started!:bool allocatedResources:{quantity} resources!:ResourceRequirements
  volumeMounts:[VolumeMountStatus]#mountPath user!:ContainerUser allocatedResourcesStatus:[ResourceStatus]#name
  stopSignal!
ContainerUser: linux!:LinuxContainerUser
DaemonEndpoint: Port!:int
DownwardAPIProjection: items:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile: path! fieldRef!:ObjectFieldSelector resourceFieldRef!:ResourceFieldSelector mode!:int
DownwardAPIVolumeSource: items:[DownwardAPIVolumeFile] defaultMode!:int=420
EmptyDirVolumeSource: medium sizeLimit!:quantity
EndpointAddress~: ip! hostname@3 nodeName! targetRef@2!:ObjectReference
EndpointPort~: name port!:int protocol appProtocol!
EndpointSubset: addresses:[EndpointAddress] notReadyAddresses:[EndpointAddress] ports:[EndpointPort]
kind Endpoints: subsets:[EndpointSubset]
EnvFromSource: prefix configMapRef!:ConfigMapEnvSource secretRef!:SecretEnvSource
EnvVar: name! value valueFrom!:EnvVarSource
EnvVarSource: fieldRef!:ObjectFieldSelector resourceFieldRef!:ResourceFieldSelector
  configMapKeyRef!:ConfigMapKeySelector secretKeyRef!:SecretKeySelector fileKeyRef!:FileKeySelector
EphemeralContainer: !:Container targetContainerName
EphemeralVolumeSource: volumeClaimTemplate!:PersistentVolumeClaimTemplate
Event: apiVersion@- kind@- metadata!:ObjectMeta involvedObject!:ObjectReference reason message source:EventSource
  firstTimestamp:time lastTimestamp:time count:int type eventTime:microtime series!:EventSeries action
  related!:ObjectReference reportingComponent! reportingInstance!
EventSeries: count:int lastObservedTime:microtime
EventSource: component host
ExecAction: command:[str]
FCVolumeSource: targetWWNs:[str] lun!:int fsType readOnly:bool wwids:[str]
FileKeySelector~: volumeName! path! key! optional!:bool=false
FlexPersistentVolumeSource: driver! fsType secretRef!:SecretReference readOnly:bool options:{str}
FlexVolumeSource: driver! fsType secretRef!:LocalObjectReference readOnly:bool options:{str}
FlockerVolumeSource: datasetName datasetUUID
GCEPersistentDiskVolumeSource: pdName! fsType partition:int readOnly:bool
GRPCAction: port!:int service!
GitRepoVolumeSource: repository! revision directory
GlusterfsPersistentVolumeSource: endpoints! path! readOnly:bool endpointsNamespace!
GlusterfsVolumeSource: endpoints! path! readOnly:bool
HTTPGetAction: path=/ port!:intOrString host scheme=HTTP httpHeaders:[HTTPHeader]
HTTPHeader Sysctl: name! value!
HostAlias: ip! hostnames:[str]
HostIP PodIP: ip!
HostPathVolumeSource: path! type!=
ISCSIPersistentVolumeSource: targetPortal! iqn! lun!:int iscsiInterface=default fsType readOnly:bool portals:[str]
  chapAuthDiscovery:bool chapAuthSession@11:bool secretRef@10!:SecretReference initiatorName@12!
ISCSIVolumeSource: targetPortal! iqn! lun!:int iscsiInterface=default fsType readOnly:bool portals:[str]
  chapAuthDiscovery:bool chapAuthSession@11:bool secretRef@10!:LocalObjectReference initiatorName@12!
ImageVolumeSource: reference pullPolicy
ImageVolumeStatus: imageRef
KeyToPath: key! path! mode!:int
Lifecycle: postStart!:LifecycleHandler preStop!:LifecycleHandler stopSignal!
LifecycleHandler: exec!:ExecAction httpGet!:HTTPGetAction tcpSocket!:TCPSocketAction sleep!:SleepAction
kind LimitRange: spec:LimitRangeSpec
LimitRangeItem: type! max:{quantity} min:{quantity} default:{quantity} defaultRequest:{quantity}
  maxLimitRequestRatio:{quantity}
LimitRangeSpec: limits:[LimitRangeItem]
LinuxContainerUser: uid!:long gid!:long supplementalGroups:[long]
LoadBalancerIngress: ip hostname ipMode! ports:[PortStatus]
LoadBalancerStatus: ingress:[LoadBalancerIngress]
LocalObjectReference~: name
LocalVolumeSource: path! fsType!
ModifyVolumeStatus: targetVolumeAttributesClassName status!
NFSVolumeSource: server! path! readOnly:bool
kind Namespace Node PersistentVolume PersistentVolumeClaim Pod ReplicationController ResourceQuota Service: spec:*Spec
  status:*Status
NamespaceCondition: type! status! lastTransitionTime@4:time reason message
NamespaceSpec: finalizers:[str]
NamespaceStatus: phase=Active conditions:[NamespaceCondition]#type
NodeAddress: type! address!
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution!:NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
NodeAllocatableResourceClaimStatus: resourceClaimName! containers:[str]## resources:{quantity}
NodeCondition: type! status! lastHeartbeatTime:time lastTransitionTime:time reason message
NodeConfigSource: configMap@2!:ConfigMapNodeConfigSource
NodeConfigStatus: assigned!:NodeConfigSource active!:NodeConfigSource lastKnownGood!:NodeConfigSource error
NodeDaemonEndpoints: kubeletEndpoint:DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy!:bool
NodeRuntimeHandler: name! features!:NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts!:bool userNamespaces!:bool
NodeSelector~: nodeSelectorTerms:[NodeSelectorTerm]
NodeSelectorRequirement: key! operator! values:[str]
NodeSelectorTerm~: matchExpressions:[NodeSelectorRequirement] matchFields:[NodeSelectorRequirement]
NodePodPreemptionPolicy: disableResizePreemption:[str]#
NodeSpec: podCIDR podCIDRs@7:[str]# providerID@3 unschedulable:bool taints:[Taint] configSource!:NodeConfigSource
  externalID@2 podPreemptionPolicy@8!:NodePodPreemptionPolicy
NodeStatus: capacity:{quantity} allocatable:{quantity} phase conditions:[NodeCondition]#type
  addresses:[NodeAddress]#type daemonEndpoints:NodeDaemonEndpoints nodeInfo:NodeSystemInfo images:[ContainerImage]
  volumesInUse:[str] volumesAttached:[AttachedVolume] config!:NodeConfigStatus runtimeHandlers:[NodeRuntimeHandler]
  features!:NodeFeatures declaredFeatures:[str]
NodeSwapStatus: capacity!:long
NodeSystemInfo: machineID! systemUUID! bootID! kernelVersion! osImage! containerRuntimeVersion! kubeletVersion!
  kubeProxyVersion! operatingSystem! architecture! swap!:NodeSwapStatus
ObjectFieldSelector~: apiVersion=v1 fieldPath!
ObjectReference~: kind namespace name uid apiVersion resourceVersion fieldPath
PersistentVolumeClaimCondition: type! status! lastProbeTime:time lastTransitionTime:time reason message
PersistentVolumeClaimSpec: accessModes:[str] selector@4!:LabelSelector resources@2:VolumeResourceRequirements volumeName
  storageClassName@5! volumeMode!=Filesystem dataSource!:TypedLocalObjectReference dataSourceRef!:TypedObjectReference
  volumeAttributesClassName!
PersistentVolumeClaimStatus: phase accessModes:[str] capacity:{quantity}
  conditions:[PersistentVolumeClaimCondition]#type allocatedResources:{quantity} allocatedResourceStatuses@7:{str}
  currentVolumeAttributesClassName! modifyVolumeStatus!:ModifyVolumeStatus
PersistentVolumeClaimTemplate: metadata:ObjectMeta spec!:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName! readOnly:bool
PersistentVolumeSource: gcePersistentDisk!:GCEPersistentDiskVolumeSource
  awsElasticBlockStore!:AWSElasticBlockStoreVolumeSource hostPath!:HostPathVolumeSource
  glusterfs!:GlusterfsPersistentVolumeSource nfs!:NFSVolumeSource rbd!:RBDPersistentVolumeSource
  iscsi!:ISCSIPersistentVolumeSource cinder!:CinderPersistentVolumeSource cephfs!:CephFSPersistentVolumeSource
  fc!:FCVolumeSource flocker!:FlockerVolumeSource flexVolume!:FlexPersistentVolumeSource
  azureFile!:AzureFilePersistentVolumeSource vsphereVolume!:VsphereVirtualDiskVolumeSource quobyte!:QuobyteVolumeSource
  azureDisk!:AzureDiskVolumeSource photonPersistentDisk!:PhotonPersistentDiskVolumeSource
  portworxVolume!:PortworxVolumeSource scaleIO!:ScaleIOPersistentVolumeSource local!:LocalVolumeSource
  storageos!:StorageOSPersistentVolumeSource csi!:CSIPersistentVolumeSource
PersistentVolumeSpec: capacity:{quantity} !:PersistentVolumeSource accessModes:[str] claimRef!:ObjectReference+
  persistentVolumeReclaimPolicy=Retain storageClassName mountOptions:[str] volumeMode!^=Filesystem
  nodeAffinity!:VolumeNodeAffinity volumeAttributesClassName!
PersistentVolumeStatus: phase message reason lastPhaseTransitionTime!:time
PhotonPersistentDiskVolumeSource: pdID! fsType
PodAffinity PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
PodAffinityTerm: labelSelector!:LabelSelector namespaces:[str] topologyKey! namespaceSelector!:LabelSelector
  matchLabelKeys:[str] mismatchLabelKeys:[str]
PodCertificateProjection: signerName keyType maxExpirationSeconds!:int credentialBundlePath keyPath certificateChainPath
  userAnnotations:{str}
PodCondition: type! observedGeneration@7:long status@2! lastProbeTime:time lastTransitionTime:time reason message
PodDNSConfig: nameservers:[str] searches:[str] options:[PodDNSConfigOption]
PodDNSConfigOption: name value!
PodExtendedResourceClaimStatus: requestMappings:[ContainerExtendedResourceRequest] resourceClaimName!
PodOS PodSchedulingGate: name!
PodReadinessGate: conditionType!
PodResourceClaim: name! resourceClaimName@3! resourceClaimTemplateName!
PodResourceClaimStatus: name! resourceClaimName!
PodSchedulingGroup: podGroupName!
PodSecurityContext: seLinuxOptions!:SELinuxOptions windowsOptions@8!:WindowsSecurityContextOptions runAsUser@2!:long
  runAsGroup@6!:long runAsNonRoot@3!:bool supplementalGroups:[long] supplementalGroupsPolicy@12! fsGroup@5!:long
  sysctls@7:[Sysctl] fsGroupChangePolicy@9! seccompProfile!:SeccompProfile appArmorProfile!:AppArmorProfile
  seLinuxChangePolicy@13!
PodSpec: volumes:[Volume]%retainKeys#name initContainers@20:[Container]#name containers@2:[Container]#name
  ephemeralContainers@34:[EphemeralContainer]#name restartPolicy@3=Always terminationGracePeriodSeconds!:long=30
  activeDeadlineSeconds!:long dnsPolicy=ClusterFirst nodeSelector:{str}~ serviceAccountName serviceAccount
  automountServiceAccountToken@21!:bool nodeName@10 hostNetwork:bool hostPID:bool hostIPC:bool
  shareProcessNamespace@27!:bool securityContext@14!:PodSecurityContext={} imagePullSecrets:[LocalObjectReference]#name
  hostname subdomain affinity!:Affinity schedulerName=default-scheduler tolerations@22:[Toleration]
  hostAliases:[HostAlias]#ip priorityClassName priority!:int dnsConfig!:PodDNSConfig
  readinessGates@28:[PodReadinessGate] runtimeClassName! enableServiceLinks!:bool preemptionPolicy! overhead:{quantity}
  topologySpreadConstraints:[TopologySpreadConstraint]#topologyKey##topologyKey,whenUnsatisfiable
  setHostnameAsFQDN@35!:bool os!:PodOS hostUsers!:bool schedulingGates:[PodSchedulingGate]#name
  resourceClaims:[PodResourceClaim]#name resources!:ResourceRequirements hostnameOverride!
  schedulingGroup@43!:PodSchedulingGroup
PodStatus: observedGeneration@17:long phase@1 conditions:[PodCondition]#type message reason nominatedNodeName@11
  hostIP@5 hostIPs@16:[HostIP]#ip##- podIP@6 podIPs@12:[PodIP]#ip startTime@7!:time
  initContainerStatuses@10:[ContainerStatus] containerStatuses@8:[ContainerStatus] qosClass
  ephemeralContainerStatuses@13:[ContainerStatus] resize resourceClaimStatuses:[PodResourceClaimStatus]#name
  extendedResourceClaimStatus@18!:PodExtendedResourceClaimStatus allocatedResources:{quantity}
  resources!:ResourceRequirements
  nodeAllocatableResourceClaimStatuses:[NodeAllocatableResourceClaimStatus]##resourceClaimName
kind PodTemplate: template:PodTemplateSpec
PodTemplateSpec: metadata:ObjectMeta spec:PodSpec
PortStatus: port!:int protocol! error!
PortworxVolumeSource: volumeID! fsType readOnly:bool
PreferredSchedulingTerm: weight!:int preference!:NodeSelectorTerm
Probe: !:ProbeHandler initialDelaySeconds:int timeoutSeconds:int=1 periodSeconds:int=10 successThreshold:int=1
  failureThreshold:int=3 terminationGracePeriodSeconds!:long
ProbeHandler: exec!:ExecAction httpGet!:HTTPGetAction tcpSocket!:TCPSocketAction grpc!:GRPCAction
ProjectedVolumeSource: sources:[VolumeProjection] defaultMode!:int=420
QuobyteVolumeSource: registry! volume! readOnly:bool user group tenant
RBDPersistentVolumeSource: monitors:[str] image! fsType pool=rbd user=admin keyring=/etc/ceph/keyring
  secretRef!:SecretReference readOnly:bool
RBDVolumeSource: monitors:[str] image! fsType pool=rbd user=admin keyring=/etc/ceph/keyring
  secretRef!:LocalObjectReference readOnly:bool
kind RangeAllocation: range! data!:bytes
ReplicationControllerCondition: type! status! lastTransitionTime:time reason message
ReplicationControllerSpec: replicas!:int=1 minReadySeconds@4:int selector@2:{str}~ template!:PodTemplateSpec
ReplicationControllerStatus: replicas!:int fullyLabeledReplicas:int readyReplicas@4:int availableReplicas:int
  observedGeneration@3:long conditions@6:[ReplicationControllerCondition]#type
ResourceFieldSelector~: containerName resource! divisor:quantity
ResourceHealth: resourceID! health message@6!
ResourceQuotaSpec: hard:{quantity} scopes:[str]^ scopeSelector!:ScopeSelector
ResourceQuotaStatus: hard:{quantity} used:{quantity}
ResourceRequirements: limits:{quantity} requests:{quantity} claims:[ContainerResourceClaim]##name
ResourceStatus: name! resources:[ResourceHealth]##resourceID
SELinuxOptions: user role type level
ScaleIOPersistentVolumeSource: gateway! system! secretRef!:SecretReference sslEnabled:bool protectionDomain storagePool
  storageMode=ThinProvisioned volumeName fsType=xfs readOnly:bool
ScaleIOVolumeSource: gateway! system! secretRef!:LocalObjectReference sslEnabled:bool protectionDomain storagePool
  storageMode=ThinProvisioned volumeName fsType=xfs readOnly:bool
ScopeSelector~: matchExpressions:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: scopeName! operator! values:[str]
kind Secret: immutable@5!:bool data@2:{bytes} stringData@4:{str} type@3^=Opaque
SecretReference~: name namespace
SecretVolumeSource: secretName items:[KeyToPath] defaultMode!:int=420 optional!:bool
SecurityContext: capabilities!:Capabilities privileged!:bool seLinuxOptions!:SELinuxOptions
  windowsOptions@10!:WindowsSecurityContextOptions runAsUser@4!:long runAsGroup@8!:long runAsNonRoot@5!:bool
  readOnlyRootFilesystem!:bool allowPrivilegeEscalation!:bool procMount@9! seccompProfile@11!:SeccompProfile
  appArmorProfile!:AppArmorProfile
kind ServiceAccount: secrets:[ObjectReference]#name imagePullSecrets:[LocalObjectReference]
  automountServiceAccountToken!:bool
ServiceAccountTokenProjection: audience expirationSeconds!:long=3600 path!
ServicePort: name protocol=TCP appProtocol@6! port@3!:int targetPort:intOrString nodePort:int
ServiceSpec: ports:[ServicePort]#port##port,protocol selector:{str}~ clusterIP clusterIPs@18:[str] type@4=ClusterIP
  externalIPs:[str] sessionAffinity@7=None loadBalancerIP loadBalancerSourceRanges:[str] externalName
  externalTrafficPolicy healthCheckNodePort:int publishNotReadyAddresses:bool
  sessionAffinityConfig!:SessionAffinityConfig ipFamilies@19:[str] ipFamilyPolicy@17!
  allocateLoadBalancerNodePorts@20!:bool loadBalancerClass! internalTrafficPolicy! trafficDistribution!
ServiceStatus: loadBalancer:LoadBalancerStatus conditions:[Condition]#type
SessionAffinityConfig: clientIP!:ClientIPConfig
SleepAction: seconds!:long
StorageOSPersistentVolumeSource: volumeName volumeNamespace fsType readOnly:bool secretRef!:ObjectReference
StorageOSVolumeSource: volumeName volumeNamespace fsType readOnly:bool secretRef!:LocalObjectReference
TCPSocketAction: port!:intOrString host
Taint: key! value effect! timeAdded!:time
Toleration: key operator value effect tolerationSeconds!:long
TopologySelectorLabelRequirement: key! values:[str]
TopologySelectorTerm~: matchLabelExpressions:[TopologySelectorLabelRequirement]
TopologySpreadConstraint: maxSkew!:int topologyKey! whenUnsatisfiable! labelSelector!:LabelSelector minDomains!:int
  nodeAffinityPolicy! nodeTaintsPolicy! matchLabelKeys:[str]
TypedLocalObjectReference~: apiGroup! kind! name!
TypedObjectReference: apiGroup! kind! name! namespace!
Volume: name! !:VolumeSource
VolumeMount: name! readOnly:bool recursiveReadOnly@7! mountPath@3! subPath mountPropagation! subPathExpr
VolumeMountStatus: name! mountPath! readOnly:bool recursiveReadOnly! volumeStatus!:VolumeStatus
VolumeNodeAffinity: required!:NodeSelector
VolumeProjection: secret!:SecretProjection downwardAPI!:DownwardAPIProjection configMap!:ConfigMapProjection
  serviceAccountToken!:ServiceAccountTokenProjection clusterTrustBundle!:ClusterTrustBundleProjection
  podCertificate!:PodCertificateProjection
VolumeResourceRequirements: limits:{quantity} requests:{quantity}
VolumeSource: hostPath!:HostPathVolumeSource emptyDir!:EmptyDirVolumeSource
  gcePersistentDisk!:GCEPersistentDiskVolumeSource awsElasticBlockStore!:AWSElasticBlockStoreVolumeSource
  gitRepo!:GitRepoVolumeSource secret!:SecretVolumeSource nfs!:NFSVolumeSource iscsi!:ISCSIVolumeSource
  glusterfs!:GlusterfsVolumeSource persistentVolumeClaim!:PersistentVolumeClaimVolumeSource rbd!:RBDVolumeSource
  flexVolume!:FlexVolumeSource cinder!:CinderVolumeSource cephfs!:CephFSVolumeSource flocker!:FlockerVolumeSource
  downwardAPI!:DownwardAPIVolumeSource fc!:FCVolumeSource azureFile!:AzureFileVolumeSource
  configMap!:ConfigMapVolumeSource vsphereVolume!:VsphereVirtualDiskVolumeSource quobyte!:QuobyteVolumeSource
  azureDisk!:AzureDiskVolumeSource photonPersistentDisk!:PhotonPersistentDiskVolumeSource
  projected@26!:ProjectedVolumeSource portworxVolume@24!:PortworxVolumeSource scaleIO!:ScaleIOVolumeSource
  storageos@27!:StorageOSVolumeSource csi!:CSIVolumeSource ephemeral!:EphemeralVolumeSource image!:ImageVolumeSource
VolumeStatus: image!:ImageVolumeStatus
VsphereVirtualDiskVolumeSource: volumePath! fsType storagePolicyName storagePolicyID
WeightedPodAffinityTerm: weight!:int podAffinityTerm!:PodAffinityTerm
WindowsSecurityContextOptions: gmsaCredentialSpecName! gmsaCredentialSpec! runAsUserName! hostProcess!:bool
"""
