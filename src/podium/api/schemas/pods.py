"""Pods: what they are made of, and what is observed of them (core/v1)."""

FIELDS = """
Affinity
  nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAntiAffinity
AppArmorProfile
  type localhostProfile
Capabilities
  add:[str] drop:[str]
ConfigMapEnvSource
  name optional:bool
ConfigMapKeySelector
  name key optional:bool
Container
  name image command:[str] args:[str] workingDir ports:[ContainerPort]#containerPort envFrom:[EnvFromSource]
  env:[EnvVar]#name resources:ResourceRequirements resizePolicy:[ContainerResizePolicy] restartPolicy
  restartPolicyRules:[ContainerRestartRule] volumeMounts:[VolumeMount]#mountPath
  volumeDevices:[VolumeDevice]#devicePath livenessProbe:Probe readinessProbe:Probe startupProbe:Probe
  lifecycle:Lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy
  securityContext:SecurityContext stdin:bool stdinOnce:bool tty:bool
ContainerExtendedResourceRequest
  containerName resourceName requestName
ContainerPort
  name hostPort:int containerPort:int protocol hostIP
ContainerResizePolicy
  resourceName restartPolicy
ContainerResourceClaim
  name request
ContainerRestartRule
  action exitCodes:ContainerRestartRuleOnExitCodes
ContainerRestartRuleOnExitCodes
  operator values:[int]
ContainerState
  waiting:ContainerStateWaiting running:ContainerStateRunning terminated:ContainerStateTerminated
ContainerStateRunning
  startedAt:time
ContainerStateTerminated
  exitCode:int signal:int reason message startedAt:time finishedAt:time containerID
ContainerStateWaiting
  reason message
ContainerStatus
  name state:ContainerState lastState:ContainerState ready:bool restartCount:int image imageID containerID
  started:bool allocatedResources:{quantity} resources:ResourceRequirements
  volumeMounts:[VolumeMountStatus]#mountPath user:ContainerUser allocatedResourcesStatus:[ResourceStatus]#name
  stopSignal
ContainerUser
  linux:LinuxContainerUser
EnvFromSource
  prefix configMapRef:ConfigMapEnvSource secretRef:SecretEnvSource
EnvVar
  name value valueFrom:EnvVarSource
EnvVarSource
  fieldRef:ObjectFieldSelector resourceFieldRef:ResourceFieldSelector configMapKeyRef:ConfigMapKeySelector
  secretKeyRef:SecretKeySelector fileKeyRef:FileKeySelector
EphemeralContainer
  name image command:[str] args:[str] workingDir ports:[ContainerPort]#containerPort envFrom:[EnvFromSource]
  env:[EnvVar]#name resources:ResourceRequirements resizePolicy:[ContainerResizePolicy] restartPolicy
  restartPolicyRules:[ContainerRestartRule] volumeMounts:[VolumeMount]#mountPath
  volumeDevices:[VolumeDevice]#devicePath livenessProbe:Probe readinessProbe:Probe startupProbe:Probe
  lifecycle:Lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy
  securityContext:SecurityContext stdin:bool stdinOnce:bool tty:bool targetContainerName
ExecAction
  command:[str]
FileKeySelector
  volumeName path key optional:bool
GRPCAction
  port:int service
HTTPGetAction
  path port:share host scheme httpHeaders:[HTTPHeader]
HTTPHeader
  name value
HostAlias
  ip hostnames:[str]
HostIP
  ip
ImageVolumeStatus
  imageRef
Lifecycle
  postStart:LifecycleHandler preStop:LifecycleHandler stopSignal
LifecycleHandler
  exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction sleep:SleepAction
LinuxContainerUser
  uid:long gid:long supplementalGroups:[long]
LocalObjectReference
  name
NodeAffinity
  requiredDuringSchedulingIgnoredDuringExecution:NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution:[PreferredSchedulingTerm]
NodeAllocatableResourceClaimStatus
  resourceClaimName containers:[str] resources:{quantity}
NodeSelector
  nodeSelectorTerms:[NodeSelectorTerm]
NodeSelectorRequirement
  key operator values:[str]
NodeSelectorTerm
  matchExpressions:[NodeSelectorRequirement] matchFields:[NodeSelectorRequirement]
Pod
  apiVersion kind metadata:ObjectMeta spec:PodSpec status:PodStatus
PodAffinity
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
PodAffinityTerm
  labelSelector:LabelSelector namespaces:[str] topologyKey namespaceSelector:LabelSelector matchLabelKeys:[str]
  mismatchLabelKeys:[str]
PodAntiAffinity
  requiredDuringSchedulingIgnoredDuringExecution:[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution:[WeightedPodAffinityTerm]
PodCondition
  type observedGeneration:long status lastProbeTime:time lastTransitionTime:time reason message
PodDNSConfig
  nameservers:[str] searches:[str] options:[PodDNSConfigOption]
PodDNSConfigOption
  name value
PodExtendedResourceClaimStatus
  requestMappings:[ContainerExtendedResourceRequest] resourceClaimName
PodIP
  ip
PodOS
  name
PodReadinessGate
  conditionType
PodResourceClaim
  name resourceClaimName resourceClaimTemplateName
PodResourceClaimStatus
  name resourceClaimName
PodSchedulingGate
  name
PodSchedulingGroup
  podGroupName
PodSecurityContext
  seLinuxOptions:SELinuxOptions windowsOptions:WindowsSecurityContextOptions runAsUser:long runAsGroup:long
  runAsNonRoot:bool supplementalGroups:[long] supplementalGroupsPolicy fsGroup:long sysctls:[Sysctl]
  fsGroupChangePolicy seccompProfile:SeccompProfile appArmorProfile:AppArmorProfile seLinuxChangePolicy
PodSpec
  volumes:[Volume]#name initContainers:[Container]#name containers:[Container]#name
  ephemeralContainers:[EphemeralContainer]#name restartPolicy terminationGracePeriodSeconds:long=30
  activeDeadlineSeconds:long dnsPolicy nodeSelector:{str} serviceAccountName serviceAccount
  automountServiceAccountToken:bool nodeName hostNetwork:bool hostPID:bool hostIPC:bool shareProcessNamespace:bool
  securityContext:PodSecurityContext imagePullSecrets:[LocalObjectReference]#name hostname subdomain affinity:Affinity
  schedulerName=default-scheduler tolerations:[Toleration] hostAliases:[HostAlias]#ip priorityClassName priority:int
  dnsConfig:PodDNSConfig readinessGates:[PodReadinessGate] runtimeClassName enableServiceLinks:bool preemptionPolicy
  overhead:{quantity} topologySpreadConstraints:[TopologySpreadConstraint]#topologyKey setHostnameAsFQDN:bool os:PodOS
  hostUsers:bool schedulingGates:[PodSchedulingGate]#name resourceClaims:[PodResourceClaim]#name
  resources:ResourceRequirements hostnameOverride schedulingGroup:PodSchedulingGroup
PodStatus
  observedGeneration:long phase conditions:[PodCondition]#type message reason nominatedNodeName hostIP
  hostIPs:[HostIP]#ip podIP podIPs:[PodIP]#ip startTime:time initContainerStatuses:[ContainerStatus]
  containerStatuses:[ContainerStatus] qosClass ephemeralContainerStatuses:[ContainerStatus] resize
  resourceClaimStatuses:[PodResourceClaimStatus]#name extendedResourceClaimStatus:PodExtendedResourceClaimStatus
  allocatedResources:{quantity} resources:ResourceRequirements
  nodeAllocatableResourceClaimStatuses:[NodeAllocatableResourceClaimStatus]
PreferredSchedulingTerm
  weight:int preference:NodeSelectorTerm
Probe
  exec:ExecAction httpGet:HTTPGetAction tcpSocket:TCPSocketAction grpc:GRPCAction initialDelaySeconds:int
  timeoutSeconds:int periodSeconds:int successThreshold:int failureThreshold:int terminationGracePeriodSeconds:long
ResourceHealth
  resourceID health message
ResourceRequirements
  limits:{quantity} requests:{quantity} claims:[ContainerResourceClaim]
ResourceStatus
  name resources:[ResourceHealth]
SELinuxOptions
  user role type level
SeccompProfile
  type localhostProfile
SecretEnvSource
  name optional:bool
SecretKeySelector
  name key optional:bool
SecurityContext
  capabilities:Capabilities privileged:bool seLinuxOptions:SELinuxOptions
  windowsOptions:WindowsSecurityContextOptions runAsUser:long runAsGroup:long runAsNonRoot:bool
  readOnlyRootFilesystem:bool allowPrivilegeEscalation:bool procMount seccompProfile:SeccompProfile
  appArmorProfile:AppArmorProfile
SleepAction
  seconds:long
Sysctl
  name value
TCPSocketAction
  port:share host
Toleration
  key operator value effect tolerationSeconds:long
TopologySpreadConstraint
  maxSkew:int topologyKey whenUnsatisfiable labelSelector:LabelSelector minDomains:int nodeAffinityPolicy
  nodeTaintsPolicy matchLabelKeys:[str]
VolumeDevice
  name devicePath
VolumeMount
  name readOnly:bool recursiveReadOnly mountPath subPath mountPropagation subPathExpr
VolumeMountStatus
  name mountPath readOnly:bool recursiveReadOnly volumeStatus:VolumeStatus
VolumeStatus
  image:ImageVolumeStatus
WeightedPodAffinityTerm
  weight:int podAffinityTerm:PodAffinityTerm
WindowsSecurityContextOptions
  gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess:bool
"""
