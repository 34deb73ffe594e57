"""Feature gates of Kubernetes 1.31 to 1.37: their stage and default in each minor version.

Sources: pkg/features/kube_features.go and the gates of k8s.io/apiserver, client-go and component-base that its binaries
register. For 1.37 the gates of the scheduler are those of kube-scheduler/pkg/features; the others follow its changelog.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import NamedTuple

MINORS = range(31, 38)
"""The minor versions of the columns."""


class Gate(StrEnum):
    """The gates that Podium evaluates. Others may be set, and have no effect."""

    ASYNC_PREEMPTION = "SchedulerAsyncPreemption"
    CLEARED_NOMINATION = "ClearingNominatedNodeNameAfterBinding"
    DRA = "DynamicResourceAllocation"
    DRA_EXTENDED_RESOURCES = "DRAExtendedResource"
    GANGS = "GangScheduling"
    GROUP_VICTIMS = "WorkloadAwarePreemption"
    IN_PLACE_RESIZE = "InPlacePodVerticalScaling"
    IN_PLACE_RESIZE_OF_PODS = "InPlacePodLevelResourcesVerticalScaling"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    POD_LEVEL_RESOURCES = "PodLevelResources"
    NON_PREEMPTING_PRIORITY = "NonPreemptingPriority"
    """Podium's own in these versions: off, every pod preempts, and can be preempted, by priority alone."""
    NOMINATION_FOR_EXPECTATION = "NominatedNodeNameForExpectation"
    POP_FROM_BACKOFF = "SchedulerPopFromBackoffQ"
    QUEUEING_HINTS = "SchedulerQueueingHints"
    MUTABLE_JOB_DIRECTIVES = "MutableSchedulingDirectivesForSuspendedJobs"
    MUTABLE_JOB_RESOURCES = "MutablePodResourcesForSuspendedJobs"
    MAX_UNAVAILABLE_STATEFUL = "MaxUnavailableStatefulSet"
    SPREAD_KEYS_MERGED = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
    STORAGE_SCORED = "StorageCapacityScoring"
    TERMINATING_REPLICAS = "DeploymentReplicaSetTerminatingReplicas"
    TOPOLOGY_LABELS = "PodTopologyLabelsAdmission"
    VOLUME_LIMIT_SCALING = "VolumeLimitScaling"


class Stage(NamedTuple):
    """A gate in one version: its stage, its default, and whether it is locked to that."""

    name: str
    default: bool
    locked: bool


ABSENT = "-"
"""The letter for a version that does not know the gate."""

STAGES = {
    "a": Stage("alpha", False, False),
    "A": Stage("alpha", True, False),
    "b": Stage("beta", False, False),
    "B": Stage("beta", True, False),
    "g": Stage("GA", True, False),
    "G": Stage("GA", True, True),
    "d": Stage("deprecated", False, False),
    "D": Stage("deprecated", True, False),
    "x": Stage("deprecated", False, True),
    "X": Stage("deprecated", True, True),
}
"""The stages by letter: capital if the gate is on by default; a `g` may still be turned off."""

PATCHES = {
    ("SchedulerAsyncAPICalls", 34): (("B", 2),),
    ("SchedulerAsyncAPICalls", 35): (("B", 1),),
}
"""Letters of earlier patch levels: each holds below a patch level, and the table's letter from the last one on."""

SUCCESSORS = {"GangScheduling": (37, "GenericWorkload"), "WorkloadAwarePreemption": (37, "GenericWorkload")}
"""The gates that took over others, with the first minor version in which they decide about the features of both."""

DEPENDENCIES_SINCE = 35
"""The first minor version that refuses a gate whose dependencies are off."""

_TABLE = """
                                                       31      33      35      37
APIListChunking                                      G G - - - - -
APIResponseCompression                               B B B B B B B
APIServerIdentity                                    B B B B B B B
APIServerTracing                                     B B B G G G G
APIServingWithRoutine                                a a a a a a a
AdmissionWebhookMatchConditions                      G G - - - - -
AggregatedDiscoveryEndpoint                          G G - - - - -
AggregatedDiscoveryRemoveBetaType                    - - D D X X X
AllowDNSOnlyNodeCSR                                  d d d d d d d
AllowInsecureKubeletCertificateSigningRequests       d d d d d d d
AllowOverwriteTerminationGracePeriodSeconds          - d d d x x x
AllowParsingUserUIDFromCertAuth                      - - B B B B B
AllowServiceExternalIPs                              - - - - - g g
AllowServiceLBStatusOnNonLB                          d x x x - - -
AllowUnsafeMalformedObjectDeletion                   - a a a a a a
AnonymousAuthConfigurableEndpoints                   a B B G G G G
AnyVolumeDataSource                                  B B G G G G -
AppArmor                                             G G - - - - -
AppArmorFields                                       G G - - - - -
AtomicFIFO                                           - - - - - B B
AuthorizeNodeWithSelectors                           a B B G G G G
AuthorizePodWebsocketUpgradeCreatePermission         - - - - B B B
AuthorizeWithSelectors                               a B B G G G G
BtreeWatchCache                                      - B G G G G G
CBORServingAndStorage                                - a a a a a a
CPUManager                                           G G - - - - -
CPUManagerPolicyAlphaOptions                         a a a a a a a
CPUManagerPolicyBetaOptions                          B B B B B B B
CPUManagerPolicyOptions                              B B G G G G G
CRDObservedGenerationTracking                        - - - - b B B
CRDValidationRatcheting                              B B G G G G G
CRIListStreaming                                     - - - - - a a
CSIMigrationPortworx                                 B B G G G - -
CSIServiceAccountTokenSecrets                        - - - - B G G
CSIVolumeHealth                                      a a a a a a a
ChangeContainerStatusOnKubeletRestart                - - - - - d d
ClearingNominatedNodeNameAfterBinding                - - - a B B B
ClientsAllowCARotation                               - - - - - B B
ClientsAllowCBOR                                     - a a a a a a
ClientsAllowTLSCacheGC                               - - - - - B B
ClientsPreferCBOR                                    - a a a a a a
CloudControllerManagerWatchBasedRoutesReconciliation - - - - a a a
CloudControllerManagerWebhook                        a a a a a a a
CloudDualStackNodeIPs                                G - - - - - -
ClusterTrustBundle                                   a a b b b b b
ClusterTrustBundleProjection                         a a b b b b b
ComponentFlagz                                       - a a a a B B
ComponentSLIs                                        B G G G - - -
ComponentStatusz                                     - a a a a B B
CompositePodGroup                                    - - - - - - a
ConcurrentWatchObjectDecode                          b b b b b b b
ConsistentListFromCache                              B B B G G G G
ConsistentListFromCacheSkipTimeoutFallback           - - - - - - a
ConstrainedImpersonation                             - - - - a B B
ContainerCheckpoint                                  B B B B B B B
ContainerRestartRules                                - - - a B B B
ContainerStopSignals                                 - - a a a a a
ContextualLogging                                    b b B B B B B
ControllerManagerReleaseLeaderElectionLockOnExit     - - - - - a a
CoordinatedLeaderElection                            a a b b b b b
CronJobsScheduledAnnotation                          B G G G - - -
CrossNamespaceVolumeDataSource                       a a a a a a a
CustomCPUCFSQuotaPeriod                              a a a a a g g
CustomResourceFieldSelectors                         B G G G G G G
DRAAdminAccess                                       - a a B B G G
DRAConsumableCapacity                                - - - a a B B
DRAControlPlaneController                            a - - - - - -
DRADerivedAttributes                                 - - - - - - a
DRADeviceBindingConditions                           - - - a a B B
DRADeviceCompatibilityGroups                         - - - - - - a
DRADeviceTaintRules                                  - - - - a b g
DRADeviceTaints                                      - - a a a B g
DRAExtendedResource                                  - - - a a B G
DRAFractionalCapacityRange                           - - - - - - b
DRAListTypeAttributes                                - - - - - a a
DRANodeAllocatableResources                          - - - - - a a
DRAOptionalNodeOperations                            - - - - - - a
DRAPartitionableDevices                              - - a a a B B
DRAPrioritizedList                                   - - a B B g G
DRAResourceClaimDeviceStatus                         - a B B B B G
DRAResourceClaimGranularStatusAuthorization          - - - - - B B
DRAResourcePoolStatus                                - - - - - a a
DRASchedulerFilterTimeout                            - - - B B B B
DRAWorkloadResourceClaims                            - - - - - a b
DeclarativeValidation                                - - B B B G G
DeclarativeValidationBeta                            - - - - - B B
DeclarativeValidationTakeover                        - - b b b d x
DeploymentReplicaSetTerminatingReplicas              - - a a B B B
DetectCacheInconsistency                             - - - B B B B
DevicePluginCDIDevices                               G G G - - - -
DisableAllocatorDualWrite                            a a b g G G G
DisableCPUQuotaWithExclusiveCPUs                     - - B B B D D
DisableCloudProviders                                G G - - - - -
DisableKubeletCloudCredentialProviders               G G - - - - -
DisableNodeKubeProxyVersion                          d d D D D X X
DynamicResourceAllocation                            a b b g G G G
EfficientWatchResumption                             G G - - - - -
ElasticIndexedJob                                    G G G - - - -
EnvFiles                                             - - - a B B B
EtcdRangeStream                                      - - - - - - B
EventedPLEG                                          a a a a a a a
ExecProbeTimeout                                     g g g g G G G
ExtendWebSocketsToKubelet                            - - - - - B B
ExternalServiceAccountTokenSigner                    - a a B B G G
GangScheduling                                       - - - - a a -
GenericWorkload                                      - - - - a a b
GitRepoVolumeDriver                                  - - d d d x x
GracefulNodeShutdown                                 B B B B B B B
GracefulNodeShutdownBasedOnPodPriority               B B B B B B B
HPAConfigurableTolerance                             - - a a B B B
HPAContainerMetrics                                  G - - - - - -
HPAScaleToZero                                       a a a a a a a
HonorPVReclaimPolicy                                 B B G G G - -
HostnameOverride                                     - - - a B B B
ImageMaximumGCAge                                    B B B B G G G
ImageVolume                                          a a b b B G G
ImageVolumeWithDigest                                - - - - - a a
InOrderInformers                                     - - B B B G G
InOrderInformersBatchProcess                         - - - - B B B
InPlacePodLevelResourcesVerticalScaling              - - - - a B B
InPlacePodVerticalScaling                            a a B B G G G
InPlacePodVerticalScalingAllocatedStatus             - a d d d - -
InPlacePodVerticalScalingExclusiveCPUs               - a a a a a a
InPlacePodVerticalScalingExclusiveMemory             - - - a a a a
InPlacePodVerticalScalingInitContainers              - - - - - B B
InPlacePodVerticalScalingSchedulerPreemption         - - - - - - a
InTreePluginPortworxUnregister                       a a a a a - -
InformerResourceVersion                              a a a a g g g
InterPodAffinityHostnameFastPath                     - - - - - - a
JobBackoffLimitPerIndex                              B B G G G G G
JobManagedBy                                         a B B B G G G
JobPodFailurePolicy                                  G G - - - - -
JobPodReplacementPolicy                              B B B G G G G
JobSuccessPolicy                                     B B G G G G G
KMSv1                                                d d d d d d d
KMSv2                                                G - - - - - -
KMSv2KDF                                             G - - - - - -
KubeProxyDrainingTerminatingNodes                    G G - - - - -
KubeProxyIPVS                                        - - - - - - B
KubeletCgroupDriverFromCRI                           B B B G G G G
KubeletCrashLoopBackOffMax                           - a a a B B B
KubeletEnsureSecretPulledImages                      - - a a B B B
KubeletFineGrainedAuthz                              - a B B B G G
KubeletInUserNamespace                               a a a a a a a
KubeletPSI                                           - - a B B G G
KubeletPodResourcesDynamicResources                  a a a B B G G
KubeletPodResourcesGet                               a a a B B G G
KubeletPodResourcesListUseActivePods                 - - - D D D D
KubeletRegistrationGetOnExistsOnly                   - d d d d d d
KubeletSeparateDiskGC                                B B B B B B B
KubeletServiceAccountTokenForCredentialProviders     - - a B B B B
KubeletTracing                                       B B B G G G G
LegacyServiceAccountTokenCleanUp                     G - - - - - -
LegacySidecarContainers                              - - d - - - -
ListFromCacheSnapshot                                - - a B B B B
LoadBalancerIPMode                                   B G G G - - -
LocalStorageCapacityIsolationFSQuotaMonitoring       b b b b b b b
LogarithmicScaleDown                                 G G G G G G G
LoggingAlphaOptions                                  a a a a a a a
LoggingBetaOptions                                   B B B B B B B
ManifestBasedAdmissionControlConfig                  - - - - - a a
MatchLabelKeysInPodAffinity                          B B G G G G G
MatchLabelKeysInPodTopologySpread                    B B B B B B B
MatchLabelKeysInPodTopologySpreadSelectorMerge       - - - B B B B
MaxUnavailableStatefulSet                            a a a a b b B
MemoryManager                                        B G G G G - -
MemoryQoS                                            a a a a a a a
MinDomainsInPodTopologySpread                        G - - - - - -
MultiCIDRServiceAllocator                            b b g G G G G
MutableCSINodeAllocatableCount                       - - a b B G G
MutablePVNodeAffinity                                - - - - a a a
MutablePodResourcesForSuspendedJobs                  - - - - a B B
MutableSchedulingDirectivesForSuspendedJobs          - - - - a B B
MutatingAdmissionPolicy                              a a a b b g g
NFTablesProxyMode                                    B B G G G G G
NativeHistograms                                     - - - - - a a
NewVolumeManagerReconstruction                       G - - - - - -
NodeDeclaredFeatures                                 - - - - a B G
NodeInclusionPolicyInPodTopologySpread               B B G G G G G
NodeLogQuery                                         B B B B B G G
NodeOutOfServiceVolumeDetach                         G - - - - - -
NodeSwap                                             B B B G G G G
NominatedNodeNameForExpectation                      - - - a B B B
OpenAPIEnums                                         B B B B B B B
OpportunisticBatching                                - - - - B B B
OrderedNamespaceDeletion                             b b B G G G G
PDBUnhealthyPodEvictionPolicy                        G G - - - - -
PLEGOnDemandRelist                                   - - - - - B B
PersistentVolumeClaimUnusedSinceTime                 - - - - - a a
PersistentVolumeLastPhaseTransitionTime              G G - - - - -
PodAndContainerStatsFromCRI                          a a a a a a a
PodCertificateRequest                                - - - a b b b
PodDeletionCost                                      B B B B B B B
PodDisruptionConditions                              G G G - - - -
PodGroupPreemptionPolicy                             - - - - - - a
PodHostIPs                                           G - - - - - -
PodIndexLabel                                        B G G G - - -
PodLevelResourceManagers                             - - - - - a a
PodLevelResources                                    - a a B B B B
PodLifecycleSleepAction                              B B B G G G G
PodLifecycleSleepActionAllowZero                     - a B G G G G
PodLogsQuerySplitStreams                             - a a a a a a
PodObservedGenerationTracking                        - - a B G G G
PodReadyToStartContainersCondition                   B B B B B B B
PodSchedulingReadiness                               G G G G G G G
PodTopologyLabelsAdmission                           - - a a B B B
PodsAPI                                              - - - - - a a
PortForwardWebsockets                                B B B B B B B
PreferSameTrafficDistribution                        - - a B G G G
PreventStaticPodAPIReferences                        - - - B B B B
ProbeHostPodSecurityStandards                        - - - G - - -
ProcMountType                                        b b B B B G G
QOSReserved                                          a a a a a a a
RecoverVolumeExpansionFailure                        a B B G G G G
RecursiveReadOnlyMounts                              B B G G G G G
ReduceDefaultCrashLoopBackOffDecay                   - - a a a a a
RelaxedDNSSearchValidation                           - a B G G G G
RelaxedEnvironmentVariableValidation                 a B B G G G G
RelaxedServiceNameValidation                         - - - a a B B
ReloadKubeletServerCertificateFile                   B B B B B B B
RemainingItemCount                                   G G - - - - -
RemoteRequestHeaderUID                               - a B B B B B
ResilientWatchCacheInitialization                    b B B G G G G
ResourceHealthStatus                                 a a a a a B B
ResourceHealthStatusMessage                          - - - - - B B
RestartAllContainersOnContainerExits                 - - - - a B B
RetryGenerateName                                    B G G G G G G
RotateKubeletServerCertificate                       B B B B B B B
RuntimeClassInImageCriApi                            a a a a a a a
SELinuxChangePolicy                                  - a B B B G G
SELinuxMount                                         a a b b b b b
SELinuxMountReadWriteOncePod                         B B B B B G G
SchedulerAsyncAPICalls                               - - - b b b b
SchedulerAsyncPreemption                             - a B B B B B
SchedulerPopFromBackoffQ                             - - B B B B B
SchedulerPreQueueingHints                            - - - - - - a
SchedulerQueueingHints                               b B B G G G -
SeparateCacheWatchRPC                                B B d d d x x
SeparateTaintEvictionController                      B B B G G G G
ServerSideApply                                      G - - - - - -
ServerSideFieldValidation                            G - - - - - -
ServiceAccountNodeAudienceRestriction                - b B B B B B
ServiceAccountTokenJTI                               B G G G G G G
ServiceAccountTokenNodeBinding                       B B G G G G G
ServiceAccountTokenNodeBindingValidation             B G G G G G G
ServiceAccountTokenPodNodeInfo                       B G G G G G G
ServiceCIDRStatusFieldWiping                         - - - - - D D
ServiceTrafficDistribution                           B B G G G - -
ShardedListAndWatch                                  - - - - - a a
SidecarContainers                                    B B G G G G G
SizeBasedListCostEstimate                            - - - B B B B
SizeMemoryBackedVolumes                              B G G G - - -
StableLoadBalancerNodeSet                            G - - - - - -
StaleControllerConsistencyDaemonSet                  - - - - - B B
StaleControllerConsistencyJob                        - - - - - B B
StaleControllerConsistencyReplicaSet                 - - - - - B B
StaleControllerConsistencyStatefulSet                - - - - - B B
StatefulSetAutoDeletePVC                             B G G G - - -
StatefulSetSemanticRevisionComparison                - - - B B B B
StatefulSetStartOrdinal                              G G G - - - -
StorageCapacityScoring                               - - a a a a B
StorageNamespaceIndex                                B B D D D D D
StorageVersionAPI                                    a a a a a a a
StorageVersionHash                                   B B B B B B B
StorageVersionMigrator                               a a a a b b b
StreamingCollectionEncodingToJSON                    b b B G G G G
StreamingCollectionEncodingToProtobuf                b b B G G G G
StrictCostEnforcementForVAP                          b G G G - - -
StrictCostEnforcementForWebhooks                     b G G G - - -
StrictIPCIDRValidation                               - - a a a B B
StructuredAuthenticationConfiguration                B B B G G G G
StructuredAuthenticationConfigurationEgressSelector  - - - B B B B
StructuredAuthenticationConfigurationJWKSMetrics     - - - - B B B
StructuredAuthorizationConfiguration                 B G G G G - -
SupplementalGroupsPolicy                             a a B B G G G
TaintTolerationComparisonOperators                   - - - - a a a
TokenRequestServiceAccountUIDValidation              - - - B B B B
TopologyAwareHints                                   B B G G G - -
TopologyAwareWorkloadScheduling                      - - - - - a a
TopologyManagerPolicyAlphaOptions                    a a a a a a a
TopologyManagerPolicyBetaOptions                     B B B B B B B
TopologyManagerPolicyOptions                         B g g g g G G
TranslateStreamCloseWebsocketRequests                B B B B B B B
UnauthenticatedHTTP2DOSMitigation                    B B B B B B B
UnknownVersionInteroperabilityProxy                  a a a a a B B
UnlockWhileProcessingFIFO                            - - - - - B B
UserNamespacesHostNetworkSupport                     - - - - a a a
UserNamespacesPodSecurityStandards                   a a a a - - -
UserNamespacesSupport                                b b B B B G G
ValidatingAdmissionPolicy                            G - - - - - -
VolumeAttributesClass                                b b b g g G G
VolumeCapacityPriority                               a a - - - - -
VolumeLimitScaling                                   - - - - a a B
WatchBookmark                                        G G - - - - -
WatchCacheInitializationPostStartHook                b b b b b B G
WatchFromStorageWithoutResourceVersion               b b x x x - -
WatchList                                            a B b B B B B
WatchListClient                                      b b b b B B B
WinDSR                                               a a B G G G G
WinOverlay                                           B B B G G G G
WindowsCPUAndMemoryAffinity                          - a a a a a a
WindowsGracefulNodeShutdown                          - a a B B B B
WindowsHostNetwork                                   A A d d d d d
WorkloadAwarePreemption                              - - - - - a -
WorkloadWithJob                                      - - - - - a a
ZeroLimitedNominalConcurrencyShares                  G - - - - - -
NonPreemptingPriority                                B B B B B B B
"""

_DEPENDENCIES = """
AuthorizeNodeWithSelectors AuthorizeWithSelectors
ClusterTrustBundleProjection ClusterTrustBundle
DRAAdminAccess DynamicResourceAllocation
DRAConsumableCapacity DynamicResourceAllocation
DRADeviceBindingConditions DynamicResourceAllocation DRAResourceClaimDeviceStatus
DRADeviceTaintRules DRADeviceTaints
DRADeviceTaints DynamicResourceAllocation
DRAExtendedResource DynamicResourceAllocation
DRAListTypeAttributes DynamicResourceAllocation
DRANodeAllocatableResources DynamicResourceAllocation
DRAPartitionableDevices DynamicResourceAllocation
DRAPrioritizedList DynamicResourceAllocation
DRAResourceClaimGranularStatusAuthorization DynamicResourceAllocation DRAResourceClaimDeviceStatus
DRAResourcePoolStatus DynamicResourceAllocation
DRASchedulerFilterTimeout DynamicResourceAllocation
DRAWorkloadResourceClaims DynamicResourceAllocation GenericWorkload
DeclarativeValidationBeta DeclarativeValidation
DeclarativeValidationTakeover DeclarativeValidation
DisableAllocatorDualWrite MultiCIDRServiceAllocator
ExtendWebSocketsToKubelet NodeDeclaredFeatures
GangScheduling GenericWorkload
GracefulNodeShutdownBasedOnPodPriority GracefulNodeShutdown
ImageVolumeWithDigest ImageVolume
InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures
InPlacePodVerticalScalingAllocatedStatus InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScaling
InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScaling MemoryManager
InPlacePodVerticalScalingInitContainers InPlacePodVerticalScaling NodeDeclaredFeatures
MatchLabelKeysInPodTopologySpreadSelectorMerge MatchLabelKeysInPodTopologySpread
PodCertificateRequest AuthorizeNodeWithSelectors
PodLevelResourceManagers PodLevelResources
PodLifecycleSleepActionAllowZero PodLifecycleSleepAction
ProcMountType UserNamespacesSupport
ResourceHealthStatus DynamicResourceAllocation
ResourceHealthStatusMessage ResourceHealthStatus
RestartAllContainersOnContainerExits ContainerRestartRules NodeDeclaredFeatures
ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
StaleControllerConsistencyDaemonSet AtomicFIFO
StaleControllerConsistencyJob AtomicFIFO
StaleControllerConsistencyReplicaSet AtomicFIFO
StaleControllerConsistencyStatefulSet AtomicFIFO
StorageVersionAPI APIServerIdentity
StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfiguration
StructuredAuthenticationConfigurationJWKSMetrics StructuredAuthenticationConfiguration
TopologyAwareWorkloadScheduling GenericWorkload
UnknownVersionInteroperabilityProxy APIServerIdentity
UserNamespacesHostNetworkSupport UserNamespacesSupport
WindowsCPUAndMemoryAffinity MemoryManager
WindowsGracefulNodeShutdown GracefulNodeShutdown
WorkloadAwarePreemption GangScheduling
WorkloadWithJob GenericWorkload
"""


@cache
def letters() -> dict[str, str]:
    """Return the letters of each gate, one for each minor version."""
    rows = (line.split() for line in _TABLE.strip().splitlines()[1:])
    return {name: "".join(cells) for name, *cells in rows}


@cache
def stages(minor: int, patch: int) -> dict[str, Stage]:
    """Return the gates that a version knows."""
    column = MINORS.index(minor)
    found = {name: cells[column] for name, cells in letters().items()}
    for (name, of_minor), earlier in PATCHES.items():
        if of_minor == minor:
            found[name] = next((letter for letter, below in earlier if patch < below), found[name])
    return {name: STAGES[letter] for name, letter in found.items() if letter != ABSENT}


@cache
def dependencies() -> dict[str, tuple[str, ...]]:
    """Return the gates that each gate needs."""
    rows = (line.split() for line in _DEPENDENCIES.strip().splitlines())
    return {name: tuple(needed) for name, *needed in rows}
