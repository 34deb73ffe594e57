"""The types of core/v1 and meta/v1, in the notation of `podium.api.schemas.schema`."""

TYPES = """
[meta/v1]
Condition: type@1! status@2! observedGeneration@3:long lastTransitionTime@4!:time reason@5! message@6!
DeleteOptions: gracePeriodSeconds@1!:long preconditions@2!:Preconditions orphanDependents@3!:bool propagationPolicy@4!
  dryRun@5:[str] ignoreStoreReadErrorWithClusterBreakingPotential@6!:bool
FieldSelectorRequirement LabelSelectorRequirement: key@1! operator@2! values@3:[str]
LabelSelector~: matchLabels@1:{str} matchExpressions@2:[LabelSelectorRequirement]
ListMeta: selfLink@1 resourceVersion@2 continue@3 remainingItemCount@4!:long shardInfo@5!:ShardInfo
FieldsEntry: manager@1 operation@2 apiVersion@3 time@4!:time fieldsType@6 fieldsV1@7!:any subresource@8
ObjectMeta: name@1 generateName@2 namespace@3 selfLink@4 uid@5 resourceVersion@6 generation@7:long
  creationTimestamp@8:time deletionTimestamp@9!:time deletionGracePeriodSeconds@10!:long labels@11:{str}
  annotations@12:{str} ownerReferences@13:[OwnerReference]#uid finalizers@14:[str]#
  managedFields@17:[FieldsEntry]
OwnerReference~: apiVersion@5! kind@1! name@3! uid@4! controller@6!:bool blockOwnerDeletion@7!:bool
kind PartialObject:
Preconditions: uid@1! resourceVersion@2!
ShardInfo: selector@1!
Status: metadata@1:ListMeta status@2 message@3 reason@4 details@5!:StatusDetails code@6:int
StatusCause: reason@1 message@2 field@3
StatusDetails: name@1 group@2 kind@3 uid@6 causes@4:[StatusCause] retryAfterSeconds@5:int
[v1]
AWSElasticBlockStoreVolumeSource: volumeID@1! fsType@2 partition@3:int readOnly@4:bool
Affinity: nodeAffinity@1!:NodeAffinity podAffinity@2!:PodAffinity podAntiAffinity@3!:PodAntiAffinity
AppArmorProfile SeccompProfile: type@1! localhostProfile@2!
AttachedVolume: name@1! devicePath@2!
AzureDiskVolumeSource: diskName@1! diskURI@2! cachingMode@3! fsType@4! readOnly@5!:bool kind@6!
AzureFilePersistentVolumeSource: secretName@1! shareName@2! readOnly@3:bool secretNamespace@4!
AzureFileVolumeSource: secretName@1! shareName@2! readOnly@3:bool
kind Binding: target@2!:ObjectReference
CSIPersistentVolumeSource: driver@1! volumeHandle@2! readOnly@3:bool fsType@4 volumeAttributes@5:{str}
  controllerPublishSecretRef@6!:SecretReference nodeStageSecretRef@7!:SecretReference
  nodePublishSecretRef@8!:SecretReference controllerExpandSecretRef@9!:SecretReference
  nodeExpandSecretRef@10!:SecretReference
CSIVolumeSource: driver@1! readOnly@2!:bool fsType@3! volumeAttributes@4:{str}
  nodePublishSecretRef@5!:LocalObjectReference
Capabilities: add@1:[str] drop@2:[str]
CephFSPersistentVolumeSource: monitors@1:[str] path@2 user@3 secretFile@4 secretRef@5!:SecretReference readOnly@6:bool
CephFSVolumeSource: monitors@1:[str] path@2 user@3 secretFile@4 secretRef@5!:LocalObjectReference readOnly@6:bool
CinderPersistentVolumeSource: volumeID@1! fsType@2 readOnly@3:bool secretRef@4!:SecretReference
CinderVolumeSource: volumeID@1! fsType@2 readOnly@3:bool secretRef@4!:LocalObjectReference
ClientIPConfig: timeoutSeconds@1!:int
ClusterTrustBundleProjection: name@1! signerName@2! labelSelector@3!:LabelSelector optional@5!:bool path@4!
ComponentCondition: type@1! status@2! message@3 error@4
kind ComponentStatus: conditions@2:[ComponentCondition]
kind ConfigMap: immutable@4!:bool data@2:{str} binaryData@3:{bytes}
ConfigMapEnvSource SecretEnvSource: @1!:LocalObjectReference optional@2!:bool
ConfigMapKeySelector SecretKeySelector~: @1!:LocalObjectReference key@2! optional@3!:bool
ConfigMapNodeConfigSource: namespace@1! name@2! uid@3 resourceVersion@4 kubeletConfigKey@5!
ConfigMapProjection SecretProjection: @1!:LocalObjectReference items@2:[KeyToPath] optional@4!:bool
ConfigMapVolumeSource: @1!:LocalObjectReference items@2:[KeyToPath] defaultMode@3!:int=420 optional@4!:bool
Container: name@1! image@2 command@3:[str] args@4:[str] workingDir@5
  ports@6:[ContainerPort]#containerPort##containerPort,protocol envFrom@19:[EnvFromSource] env@7:[EnvVar]#name
  resources@8:ResourceRequirements={} resizePolicy@23:[ContainerResizePolicy] restartPolicy@24!
  restartPolicyRules@25:[ContainerRestartRule] volumeMounts@9:[VolumeMount]#mountPath
  volumeDevices@21:[VolumeDevice]#devicePath livenessProbe@10!:Probe readinessProbe@11!:Probe startupProbe@22!:Probe
  lifecycle@12!:Lifecycle terminationMessagePath@13=/dev/termination-log terminationMessagePolicy@20=File
  imagePullPolicy@14 securityContext@15!:SecurityContext stdin@16:bool stdinOnce@17:bool tty@18:bool
ContainerExtendedResourceRequest: containerName@1! resourceName@2! requestName@3!
ContainerImage: names@1:[str] sizeBytes@2:long
ContainerPort: name@1 hostPort@2:int containerPort@3!:int protocol@4=TCP hostIP@5
ContainerResizePolicy: resourceName@1! restartPolicy@2!
ContainerResourceClaim: name@1! request@2
ContainerRestartRule: action@1 exitCodes@2!:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes: operator@1 values@2:[int]##
ContainerState: waiting@1!:ContainerStateWaiting running@2!:ContainerStateRunning terminated@3!:ContainerStateTerminated
ContainerStateRunning: startedAt@1:time
ContainerStateTerminated: exitCode@1!:int signal@2:int reason@3 message@4 startedAt@5:time finishedAt@6:time
  containerID@7
ContainerStateWaiting: reason@1 message@2
ContainerStatus: name@1! state@2:ContainerState lastState@3:ContainerState ready@4!:bool restartCount@5!:int image@6!
  imageID@7! containerID@8 started@9!:bool allocatedResources@10:{quantity} resources@11!:ResourceRequirements
  volumeMounts@12:[VolumeMountStatus]#mountPath user@13!:ContainerUser allocatedResourcesStatus@14:[ResourceStatus]#name
  stopSignal@15!
ContainerUser: linux@1!:LinuxContainerUser
DaemonEndpoint: Port@1!:int
DownwardAPIProjection: items@1:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile: path@1! fieldRef@2!:ObjectFieldSelector resourceFieldRef@3!:ResourceFieldSelector mode@4!:int
DownwardAPIVolumeSource: items@1:[DownwardAPIVolumeFile] defaultMode@2!:int=420
EmptyDirVolumeSource: medium@1 sizeLimit@2!:quantity
EndpointAddress~: ip@1! hostname@3 nodeName@4! targetRef@2!:ObjectReference
EndpointPort~: name@1 port@2!:int protocol@3 appProtocol@4!
EndpointSubset: addresses@1:[EndpointAddress] notReadyAddresses@2:[EndpointAddress] ports@3:[EndpointPort]
kind Endpoints: subsets@2:[EndpointSubset]
EnvFromSource: prefix@1 configMapRef@2!:ConfigMapEnvSource secretRef@3!:SecretEnvSource
EnvVar: name@1! value@2 valueFrom@3!:EnvVarSource
EnvVarSource: fieldRef@1!:ObjectFieldSelector resourceFieldRef@2!:ResourceFieldSelector
  configMapKeyRef@3!:ConfigMapKeySelector secretKeyRef@4!:SecretKeySelector fileKeyRef@5!:FileKeySelector
EphemeralContainer: @1!:Container targetContainerName@2
EphemeralVolumeSource: volumeClaimTemplate@1!:PersistentVolumeClaimTemplate
Event: apiVersion kind metadata@1!:ObjectMeta involvedObject@2!:ObjectReference reason@3 message@4 source@5:EventSource
  firstTimestamp@6:time lastTimestamp@7:time count@8:int type@9 eventTime@10:microtime series@11!:EventSeries action@12
  related@13!:ObjectReference reportingComponent@14! reportingInstance@15!
EventSeries: count@1:int lastObservedTime@2:microtime
EventSource: component@1 host@2
ExecAction: command@1:[str]
FCVolumeSource: targetWWNs@1:[str] lun@2!:int fsType@3 readOnly@4:bool wwids@5:[str]
FileKeySelector~: volumeName@1! path@2! key@3! optional@4!:bool
FlexPersistentVolumeSource: driver@1! fsType@2 secretRef@3!:SecretReference readOnly@4:bool options@5:{str}
FlexVolumeSource: driver@1! fsType@2 secretRef@3!:LocalObjectReference readOnly@4:bool options@5:{str}
FlockerVolumeSource: datasetName@1 datasetUUID@2
GCEPersistentDiskVolumeSource: pdName@1! fsType@2 partition@3:int readOnly@4:bool
GRPCAction: port@1!:int service@2!
GitRepoVolumeSource: repository@1! revision@2 directory@3
GlusterfsPersistentVolumeSource: endpoints@1! path@2! readOnly@3:bool endpointsNamespace@4!
GlusterfsVolumeSource: endpoints@1! path@2! readOnly@3:bool
HTTPGetAction: path@1=/ port@2!:intOrString host@3 scheme@4=HTTP httpHeaders@5:[HTTPHeader]
HTTPHeader: name@1! value@2!
HostAlias: ip@1! hostnames@2:[str]
HostIP PodIP: ip@1!
HostPathVolumeSource: path@1! type@2!=
ISCSIPersistentVolumeSource: targetPortal@1! iqn@2! lun@3!:int iscsiInterface@4 fsType@5 readOnly@6:bool portals@7:[str]
  chapAuthDiscovery@8:bool chapAuthSession@11:bool secretRef@10!:SecretReference initiatorName@12!
ISCSIVolumeSource: targetPortal@1! iqn@2! lun@3!:int iscsiInterface@4 fsType@5 readOnly@6:bool portals@7:[str]
  chapAuthDiscovery@8:bool chapAuthSession@11:bool secretRef@10!:LocalObjectReference initiatorName@12!
ImageVolumeSource: reference@1 pullPolicy@2
ImageVolumeStatus: imageRef@1
KeyToPath: key@1! path@2! mode@3!:int
Lifecycle: postStart@1!:LifecycleHandler preStop@2!:LifecycleHandler stopSignal@3!
LifecycleHandler: exec@1!:ExecAction httpGet@2!:HTTPGetAction tcpSocket@3!:TCPSocketAction sleep@4!:SleepAction
kind LimitRange: spec@2:LimitRangeSpec
LimitRangeItem: type@1! max@2:{quantity} min@3:{quantity} default@4:{quantity} defaultRequest@5:{quantity}
  maxLimitRequestRatio@6:{quantity}
LimitRangeSpec: limits@1:[LimitRangeItem]
LinuxContainerUser: uid@1!:long gid@2!:long supplementalGroups@3:[long]
LoadBalancerIngress: ip@1 hostname@2 ipMode@3! ports@4:[PortStatus]
LoadBalancerStatus: ingress@1:[LoadBalancerIngress]
LocalObjectReference~: name@1
LocalVolumeSource: path@1! fsType@2!
ModifyVolumeStatus: targetVolumeAttributesClassName@1 status@2!
NFSVolumeSource: server@1! path@2! readOnly@3:bool
kind Namespace Node PersistentVolume PersistentVolumeClaim Pod ReplicationController ResourceQuota Service: spec@2:*Spec
  status@3:*Status
NamespaceCondition: type@1! status@2! lastTransitionTime@4:time reason@5 message@6
NamespaceSpec: finalizers@1:[str]
NamespaceStatus: phase@1 conditions@2:[NamespaceCondition]#type
NodeAddress: type@1! address@2!
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution@1!:NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution@2:[PreferredSchedulingTerm]
NodeAllocatableResourceClaimStatus: resourceClaimName@1! containers@2:[str]## resources@3:{quantity}
NodeCondition: type@1! status@2! lastHeartbeatTime@3:time lastTransitionTime@4:time reason@5 message@6
NodeConfigSource: configMap@2!:ConfigMapNodeConfigSource
NodeConfigStatus: assigned@1!:NodeConfigSource active@2!:NodeConfigSource lastKnownGood@3!:NodeConfigSource error@4
NodeDaemonEndpoints: kubeletEndpoint@1:DaemonEndpoint
NodeFeatures: supplementalGroupsPolicy@1!:bool
NodeRuntimeHandler: name@1! features@2!:NodeRuntimeHandlerFeatures
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts@1!:bool userNamespaces@2!:bool
NodeSelector~: nodeSelectorTerms@1:[NodeSelectorTerm]
NodeSelectorRequirement: key@1! operator@2! values@3:[str]
NodeSelectorTerm~: matchExpressions@1:[NodeSelectorRequirement] matchFields@2:[NodeSelectorRequirement]
NodePodPreemptionPolicy: disableResizePreemption@1:[str]#
NodeSpec: podCIDR@1 podCIDRs@7:[str]# providerID@3 unschedulable@4:bool taints@5:[Taint]
  configSource@6!:NodeConfigSource externalID@2 podPreemptionPolicy@8!:NodePodPreemptionPolicy
NodeStatus: capacity@1:{quantity} allocatable@2:{quantity} phase@3 conditions@4:[NodeCondition]#type
  addresses@5:[NodeAddress]#type daemonEndpoints@6:NodeDaemonEndpoints nodeInfo@7:NodeSystemInfo
  images@8:[ContainerImage] volumesInUse@9:[str] volumesAttached@10:[AttachedVolume] config@11!:NodeConfigStatus
  runtimeHandlers@12:[NodeRuntimeHandler] features@13!:NodeFeatures declaredFeatures@14:[str]
NodeSwapStatus: capacity@1!:long
NodeSystemInfo: machineID@1! systemUUID@2! bootID@3! kernelVersion@4! osImage@5! containerRuntimeVersion@6!
  kubeletVersion@7! kubeProxyVersion@8! operatingSystem@9! architecture@10! swap@11!:NodeSwapStatus
ObjectFieldSelector~: apiVersion@1=v1 fieldPath@2!
ObjectReference~: kind@1 namespace@2 name@3 uid@4 apiVersion@5 resourceVersion@6 fieldPath@7
PersistentVolumeClaimCondition: type@1! status@2! lastProbeTime@3:time lastTransitionTime@4:time reason@5 message@6
PersistentVolumeClaimSpec: accessModes@1:[str] selector@4!:LabelSelector resources@2:VolumeResourceRequirements
  volumeName@3 storageClassName@5! volumeMode@6!=Filesystem dataSource@7!:TypedLocalObjectReference
  dataSourceRef@8!:TypedObjectReference volumeAttributesClassName@9!
PersistentVolumeClaimStatus: phase@1 accessModes@2:[str] capacity@3:{quantity}
  conditions@4:[PersistentVolumeClaimCondition]#type allocatedResources@5:{quantity} allocatedResourceStatuses@7:{str}
  currentVolumeAttributesClassName@8! modifyVolumeStatus@9!:ModifyVolumeStatus
PersistentVolumeClaimTemplate: metadata@1:ObjectMeta spec@2!:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName@1! readOnly@2:bool
PersistentVolumeSource: gcePersistentDisk@1!:GCEPersistentDiskVolumeSource
  awsElasticBlockStore@2!:AWSElasticBlockStoreVolumeSource hostPath@3!:HostPathVolumeSource
  glusterfs@4!:GlusterfsPersistentVolumeSource nfs@5!:NFSVolumeSource rbd@6!:RBDPersistentVolumeSource
  iscsi@7!:ISCSIPersistentVolumeSource cinder@8!:CinderPersistentVolumeSource cephfs@9!:CephFSPersistentVolumeSource
  fc@10!:FCVolumeSource flocker@11!:FlockerVolumeSource flexVolume@12!:FlexPersistentVolumeSource
  azureFile@13!:AzureFilePersistentVolumeSource vsphereVolume@14!:VsphereVirtualDiskVolumeSource
  quobyte@15!:QuobyteVolumeSource azureDisk@16!:AzureDiskVolumeSource
  photonPersistentDisk@17!:PhotonPersistentDiskVolumeSource portworxVolume@18!:PortworxVolumeSource
  scaleIO@19!:ScaleIOPersistentVolumeSource local@20!:LocalVolumeSource storageos@21!:StorageOSPersistentVolumeSource
  csi@22!:CSIPersistentVolumeSource
PersistentVolumeSpec: capacity@1:{quantity} @2!:PersistentVolumeSource accessModes@3:[str] claimRef@4!:ObjectReference+
  persistentVolumeReclaimPolicy@5=Retain storageClassName@6 mountOptions@7:[str] volumeMode@8!=Filesystem
  nodeAffinity@9!:VolumeNodeAffinity volumeAttributesClassName@10!
PersistentVolumeStatus: phase@1 message@2 reason@3 lastPhaseTransitionTime@4!:time
PhotonPersistentDiskVolumeSource: pdID@1! fsType@2
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution@1:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution@2:[WeightedPodAffinityTerm]
PodAffinityTerm: labelSelector@1!:LabelSelector namespaces@2:[str] topologyKey@3! namespaceSelector@4!:LabelSelector
  matchLabelKeys@5:[str] mismatchLabelKeys@6:[str]
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution@1:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution@2:[WeightedPodAffinityTerm]
PodCertificateProjection: signerName@1 keyType@2 maxExpirationSeconds@3!:int credentialBundlePath@4 keyPath@5
  certificateChainPath@6 userAnnotations@7:{str}
PodCondition: type@1! observedGeneration@7:long status@2! lastProbeTime@3:time lastTransitionTime@4:time reason@5
  message@6
PodDNSConfig: nameservers@1:[str] searches@2:[str] options@3:[PodDNSConfigOption]
PodDNSConfigOption: name@1 value@2!
PodExtendedResourceClaimStatus: requestMappings@1:[ContainerExtendedResourceRequest] resourceClaimName@2!
PodOS: name@1!
PodReadinessGate: conditionType@1!
PodResourceClaim: name@1! resourceClaimName@3! resourceClaimTemplateName@4!
PodResourceClaimStatus: name@1! resourceClaimName@2!
PodSchedulingGate: name@1!
PodSchedulingGroup: podGroupName@1!
PodSecurityContext: seLinuxOptions@1!:SELinuxOptions windowsOptions@8!:WindowsSecurityContextOptions runAsUser@2!:long
  runAsGroup@6!:long runAsNonRoot@3!:bool supplementalGroups@4:[long] supplementalGroupsPolicy@12! fsGroup@5!:long
  sysctls@7:[Sysctl] fsGroupChangePolicy@9! seccompProfile@10!:SeccompProfile appArmorProfile@11!:AppArmorProfile
  seLinuxChangePolicy@13!
PodSpec: volumes@1:[Volume]%retainKeys#name initContainers@20:[Container]#name containers@2:[Container]#name
  ephemeralContainers@34:[EphemeralContainer]#name restartPolicy@3=Always terminationGracePeriodSeconds@4!:long=30
  activeDeadlineSeconds@5!:long dnsPolicy@6=ClusterFirst nodeSelector@7:{str}~ serviceAccountName@8 serviceAccount@9
  automountServiceAccountToken@21!:bool nodeName@10 hostNetwork@11:bool hostPID@12:bool hostIPC@13:bool
  shareProcessNamespace@27!:bool securityContext@14!:PodSecurityContext={}
  imagePullSecrets@15:[LocalObjectReference]#name hostname@16 subdomain@17 affinity@18!:Affinity
  schedulerName@19=default-scheduler tolerations@22:[Toleration] hostAliases@23:[HostAlias]#ip priorityClassName@24
  priority@25!:int dnsConfig@26!:PodDNSConfig readinessGates@28:[PodReadinessGate] runtimeClassName@29!
  enableServiceLinks@30!:bool preemptionPolicy@31! overhead@32:{quantity}
  topologySpreadConstraints@33:[TopologySpreadConstraint]#topologyKey##topologyKey,whenUnsatisfiable
  setHostnameAsFQDN@35!:bool os@36!:PodOS hostUsers@37!:bool schedulingGates@38:[PodSchedulingGate]#name
  resourceClaims@39:[PodResourceClaim]#name resources@40!:ResourceRequirements hostnameOverride@41!
  schedulingGroup@43!:PodSchedulingGroup
PodStatus: observedGeneration@17:long phase@1 conditions@2:[PodCondition]#type message@3 reason@4 nominatedNodeName@11
  hostIP@5 hostIPs@16:[HostIP]#ip##- podIP@6 podIPs@12:[PodIP]#ip startTime@7!:time
  initContainerStatuses@10:[ContainerStatus] containerStatuses@8:[ContainerStatus] qosClass@9
  ephemeralContainerStatuses@13:[ContainerStatus] resize@14 resourceClaimStatuses@15:[PodResourceClaimStatus]#name
  extendedResourceClaimStatus@18!:PodExtendedResourceClaimStatus allocatedResources@19:{quantity}
  resources@20!:ResourceRequirements
  nodeAllocatableResourceClaimStatuses@21:[NodeAllocatableResourceClaimStatus]##resourceClaimName
kind PodTemplate: template@2:PodTemplateSpec
PodTemplateSpec: metadata@1:ObjectMeta spec@2:PodSpec
PortStatus: port@1!:int protocol@2! error@3!
PortworxVolumeSource: volumeID@1! fsType@2 readOnly@3:bool
PreferredSchedulingTerm: weight@1!:int preference@2!:NodeSelectorTerm
Probe: @1!:ProbeHandler initialDelaySeconds@2:int timeoutSeconds@3:int=1 periodSeconds@4:int=10 successThreshold@5:int=1
  failureThreshold@6:int=3 terminationGracePeriodSeconds@7!:long
ProbeHandler: exec@1!:ExecAction httpGet@2!:HTTPGetAction tcpSocket@3!:TCPSocketAction grpc@4!:GRPCAction
ProjectedVolumeSource: sources@1:[VolumeProjection] defaultMode@2!:int=420
QuobyteVolumeSource: registry@1! volume@2! readOnly@3:bool user@4 group@5 tenant@6
RBDPersistentVolumeSource: monitors@1:[str] image@2! fsType@3 pool@4 user@5 keyring@6 secretRef@7!:SecretReference
  readOnly@8:bool
RBDVolumeSource: monitors@1:[str] image@2! fsType@3 pool@4 user@5 keyring@6 secretRef@7!:LocalObjectReference
  readOnly@8:bool
kind RangeAllocation: range@2! data@3!:bytes
ReplicationControllerCondition: type@1! status@2! lastTransitionTime@3:time reason@4 message@5
ReplicationControllerSpec: replicas@1!:int=1 minReadySeconds@4:int selector@2:{str}~ template@3!:PodTemplateSpec
ReplicationControllerStatus: replicas@1!:int fullyLabeledReplicas@2:int readyReplicas@4:int availableReplicas@5:int
  observedGeneration@3:long conditions@6:[ReplicationControllerCondition]#type
ResourceFieldSelector~: containerName@1 resource@2! divisor@3:quantity
ResourceHealth: resourceID@1! health@2 message@6!
ResourceQuotaSpec: hard@1:{quantity} scopes@2:[str]^ scopeSelector@3!:ScopeSelector
ResourceQuotaStatus: hard@1:{quantity} used@2:{quantity}
ResourceRequirements: limits@1:{quantity} requests@2:{quantity} claims@3:[ContainerResourceClaim]##name
ResourceStatus: name@1! resources@2:[ResourceHealth]##resourceID
SELinuxOptions: user@1 role@2 type@3 level@4
ScaleIOPersistentVolumeSource: gateway@1! system@2! secretRef@3!:SecretReference sslEnabled@4:bool protectionDomain@5
  storagePool@6 storageMode@7 volumeName@8 fsType@9 readOnly@10:bool
ScaleIOVolumeSource: gateway@1! system@2! secretRef@3!:LocalObjectReference sslEnabled@4:bool protectionDomain@5
  storagePool@6 storageMode@7 volumeName@8 fsType@9 readOnly@10:bool
ScopeSelector~: matchExpressions@1:[ScopedResourceSelectorRequirement]
ScopedResourceSelectorRequirement: scopeName@1! operator@2! values@3:[str]
kind Secret: immutable@5!:bool data@2:{bytes} stringData@4:{str} type@3^=Opaque
SecretReference~: name@1 namespace@2
SecretVolumeSource: secretName@1 items@2:[KeyToPath] defaultMode@3!:int=420 optional@4!:bool
SecurityContext: capabilities@1!:Capabilities privileged@2!:bool seLinuxOptions@3!:SELinuxOptions
  windowsOptions@10!:WindowsSecurityContextOptions runAsUser@4!:long runAsGroup@8!:long runAsNonRoot@5!:bool
  readOnlyRootFilesystem@6!:bool allowPrivilegeEscalation@7!:bool procMount@9! seccompProfile@11!:SeccompProfile
  appArmorProfile@12!:AppArmorProfile
kind ServiceAccount: secrets@2:[ObjectReference]#name imagePullSecrets@3:[LocalObjectReference]
  automountServiceAccountToken@4!:bool
ServiceAccountTokenProjection: audience@1 expirationSeconds@2!:long=3600 path@3!
ServicePort: name@1 protocol@2=TCP appProtocol@6! port@3!:int targetPort@4:intOrString nodePort@5:int
ServiceSpec: ports@1:[ServicePort]#port##port,protocol selector@2:{str}~ clusterIP@3 clusterIPs@18:[str]
  type@4=ClusterIP externalIPs@5:[str] sessionAffinity@7=None loadBalancerIP@8 loadBalancerSourceRanges@9:[str]
  externalName@10 externalTrafficPolicy@11 healthCheckNodePort@12:int publishNotReadyAddresses@13:bool
  sessionAffinityConfig@14!:SessionAffinityConfig ipFamilies@19:[str] ipFamilyPolicy@17!
  allocateLoadBalancerNodePorts@20!:bool loadBalancerClass@21! internalTrafficPolicy@22! trafficDistribution@23!
ServiceStatus: loadBalancer@1:LoadBalancerStatus conditions@2:[Condition]#type
SessionAffinityConfig: clientIP@1!:ClientIPConfig
SleepAction: seconds@1!:long
StorageOSPersistentVolumeSource: volumeName@1 volumeNamespace@2 fsType@3 readOnly@4:bool secretRef@5!:ObjectReference
StorageOSVolumeSource: volumeName@1 volumeNamespace@2 fsType@3 readOnly@4:bool secretRef@5!:LocalObjectReference
Sysctl: name@1! value@2!
TCPSocketAction: port@1!:intOrString host@2
Taint: key@1! value@2 effect@3! timeAdded@4!:time
Toleration: key@1 operator@2 value@3 effect@4 tolerationSeconds@5!:long
TopologySelectorLabelRequirement: key@1! values@2:[str]
TopologySelectorTerm~: matchLabelExpressions@1:[TopologySelectorLabelRequirement]
TopologySpreadConstraint: maxSkew@1!:int topologyKey@2! whenUnsatisfiable@3! labelSelector@4!:LabelSelector
  minDomains@5!:int nodeAffinityPolicy@6! nodeTaintsPolicy@7! matchLabelKeys@8:[str]
TypedLocalObjectReference~: apiGroup@1! kind@2! name@3!
TypedObjectReference: apiGroup@1! kind@2! name@3! namespace@4!
Volume: name@1! @2!:VolumeSource
VolumeDevice: name@1! devicePath@2!
VolumeMount: name@1! readOnly@2:bool recursiveReadOnly@7! mountPath@3! subPath@4 mountPropagation@5! subPathExpr@6
VolumeMountStatus: name@1! mountPath@2! readOnly@3:bool recursiveReadOnly@4! volumeStatus@5!:VolumeStatus
VolumeNodeAffinity: required@1!:NodeSelector
VolumeProjection: secret@1!:SecretProjection downwardAPI@2!:DownwardAPIProjection configMap@3!:ConfigMapProjection
  serviceAccountToken@4!:ServiceAccountTokenProjection clusterTrustBundle@5!:ClusterTrustBundleProjection
  podCertificate@6!:PodCertificateProjection
VolumeResourceRequirements: limits@1:{quantity} requests@2:{quantity}
VolumeSource: hostPath@1!:HostPathVolumeSource emptyDir@2!:EmptyDirVolumeSource
  gcePersistentDisk@3!:GCEPersistentDiskVolumeSource awsElasticBlockStore@4!:AWSElasticBlockStoreVolumeSource
  gitRepo@5!:GitRepoVolumeSource secret@6!:SecretVolumeSource nfs@7!:NFSVolumeSource iscsi@8!:ISCSIVolumeSource
  glusterfs@9!:GlusterfsVolumeSource persistentVolumeClaim@10!:PersistentVolumeClaimVolumeSource rbd@11!:RBDVolumeSource
  flexVolume@12!:FlexVolumeSource cinder@13!:CinderVolumeSource cephfs@14!:CephFSVolumeSource
  flocker@15!:FlockerVolumeSource downwardAPI@16!:DownwardAPIVolumeSource fc@17!:FCVolumeSource
  azureFile@18!:AzureFileVolumeSource configMap@19!:ConfigMapVolumeSource
  vsphereVolume@20!:VsphereVirtualDiskVolumeSource quobyte@21!:QuobyteVolumeSource azureDisk@22!:AzureDiskVolumeSource
  photonPersistentDisk@23!:PhotonPersistentDiskVolumeSource projected@26!:ProjectedVolumeSource
  portworxVolume@24!:PortworxVolumeSource scaleIO@25!:ScaleIOVolumeSource storageos@27!:StorageOSVolumeSource
  csi@28!:CSIVolumeSource ephemeral@29!:EphemeralVolumeSource image@30!:ImageVolumeSource
VolumeStatus: image@1!:ImageVolumeStatus
VsphereVirtualDiskVolumeSource: volumePath@1! fsType@2 storagePolicyName@3 storagePolicyID@4
WeightedPodAffinityTerm: weight@1!:int podAffinityTerm@2!:PodAffinityTerm
WindowsSecurityContextOptions: gmsaCredentialSpecName@1! gmsaCredentialSpec@2! runAsUserName@3! hostProcess@4!:bool
"""
