"""Feature gates of Kubernetes 1.31 to 1.37: their stage and default in each minor version.

Sources: pkg/features/kube_features.go and the gates of k8s.io/apiserver, client-go and component-base that its binaries
register. For 1.37 the gates of the scheduler are those of kube-scheduler/pkg/features; the others follow its changelog.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import NamedTuple

MINORS = range(31, 38)
"""The minor versions of the table."""


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
    OBSERVED_GENERATION = "PodObservedGenerationTracking"
    POD_LEVEL_RESOURCES = "PodLevelResources"
    NON_PREEMPTING_PRIORITY = "NonPreemptingPriority"
    """Podium's own in these versions: off, every pod preempts, and can be preempted, by priority alone."""
    NOMINATION_FOR_EXPECTATION = "NominatedNodeNameForExpectation"
    RESIZES_PREEMPT = "InPlacePodVerticalScalingSchedulerPreemption"
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

PATCHES = {("SchedulerAsyncAPICalls", 34): (("B", 2),), ("SchedulerAsyncAPICalls", 35): (("B", 1),)}
"""Letters of earlier patch levels: each holds below a patch level, and the table's letter from the last one on."""

SUCCESSORS = {"GangScheduling": (37, "GenericWorkload"), "WorkloadAwarePreemption": (37, "GenericWorkload")}
"""The gates that took over others, with the first minor version in which they decide about the features of both."""

DEPENDENCIES_SINCE = 35
"""The first minor version that refuses a gate whose dependencies are off."""

# The gates by their letters in the minor versions from 1.31 on.
_TABLE = """
AAddddd: WindowsHostNetwork
BBBBBBB: APIResponseCompression APIServerIdentity CPUManagerPolicyBetaOptions ContainerCheckpoint GracefulNodeShutdown
  GracefulNodeShutdownBasedOnPodPriority KubeletSeparateDiskGC LoggingBetaOptions MatchLabelKeysInPodTopologySpread
  OpenAPIEnums PodDeletionCost PodReadyToStartContainersCondition PortForwardWebsockets
  ReloadKubeletServerCertificateFile RotateKubeletServerCertificate StorageVersionHash TopologyManagerPolicyBetaOptions
  TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation NonPreemptingPriority
BBBBBGG: NodeLogQuery SELinuxMountReadWriteOncePod
BBBBGGG: ImageMaximumGCAge
BBBGGGG: APIServerTracing ConsistentListFromCache JobPodReplacementPolicy KubeletCgroupDriverFromCRI KubeletTracing
  NodeSwap PodLifecycleSleepAction SeparateTaintEvictionController StructuredAuthenticationConfiguration WinOverlay
BBDDDDD: StorageNamespaceIndex
BBGGG--: CSIMigrationPortworx HonorPVReclaimPolicy ServiceTrafficDistribution TopologyAwareHints
BBGGGG-: AnyVolumeDataSource
BBGGGGG: CPUManagerPolicyOptions CRDValidationRatcheting JobBackoffLimitPerIndex JobSuccessPolicy
  MatchLabelKeysInPodAffinity NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread RecursiveReadOnlyMounts
  ServiceAccountTokenNodeBinding SidecarContainers
BBdddxx: SeparateCacheWatchRPC
BGGG---: ComponentSLIs CronJobsScheduledAnnotation LoadBalancerIPMode PodIndexLabel SizeMemoryBackedVolumes
  StatefulSetAutoDeletePVC
BGGGG--: MemoryManager StructuredAuthorizationConfiguration
BGGGGGG: CustomResourceFieldSelectors RetryGenerateName ServiceAccountTokenJTI ServiceAccountTokenNodeBindingValidation
  ServiceAccountTokenPodNodeInfo
BggggGG: TopologyManagerPolicyOptions
G------: CloudDualStackNodeIPs HPAContainerMetrics KMSv2 KMSv2KDF LegacyServiceAccountTokenCleanUp
  MinDomainsInPodTopologySpread NewVolumeManagerReconstruction NodeOutOfServiceVolumeDetach PodHostIPs ServerSideApply
  ServerSideFieldValidation StableLoadBalancerNodeSet ValidatingAdmissionPolicy ZeroLimitedNominalConcurrencyShares
GG-----: APIListChunking AdmissionWebhookMatchConditions AggregatedDiscoveryEndpoint AppArmor AppArmorFields CPUManager
  DisableCloudProviders DisableKubeletCloudCredentialProviders EfficientWatchResumption JobPodFailurePolicy
  KubeProxyDrainingTerminatingNodes PDBUnhealthyPodEvictionPolicy PersistentVolumeLastPhaseTransitionTime
  RemainingItemCount WatchBookmark
GGG----: DevicePluginCDIDevices ElasticIndexedJob PodDisruptionConditions StatefulSetStartOrdinal
GGGGGGG: LogarithmicScaleDown PodSchedulingReadiness
a------: DRAControlPlaneController
aBBBGGG: JobManagedBy
aBBGGGG: AnonymousAuthConfigurableEndpoints AuthorizeNodeWithSelectors AuthorizeWithSelectors
  RecoverVolumeExpansionFailure RelaxedEnvironmentVariableValidation
aBbBBBB: WatchList
aa-----: VolumeCapacityPriority
aaBBGGG: InPlacePodVerticalScaling SupplementalGroupsPolicy
aaBGGGG: WinDSR
aaaBBGG: KubeletPodResourcesDynamicResources KubeletPodResourcesGet
aaaa---: UserNamespacesPodSecurityStandards
aaaaa--: InTreePluginPortworxUnregister
aaaaaBB: ResourceHealthStatus UnknownVersionInteroperabilityProxy
aaaaaaa: APIServingWithRoutine CPUManagerPolicyAlphaOptions CSIVolumeHealth CloudControllerManagerWebhook
  CrossNamespaceVolumeDataSource EventedPLEG HPAScaleToZero KubeletInUserNamespace LoggingAlphaOptions MemoryQoS
  PodAndContainerStatsFromCRI QOSReserved RuntimeClassInImageCriApi StorageVersionAPI TopologyManagerPolicyAlphaOptions
aaaaagg: CustomCPUCFSQuotaPeriod
aaaabbB: MaxUnavailableStatefulSet
aaaabbb: StorageVersionMigrator
aaaaggg: InformerResourceVersion
aaabbgg: MutatingAdmissionPolicy
aabbBGG: ImageVolume
aabbbbb: ClusterTrustBundle ClusterTrustBundleProjection CoordinatedLeaderElection SELinuxMount
aabgGGG: DisableAllocatorDualWrite
abbgGGG: DynamicResourceAllocation
bBBGGG-: SchedulerQueueingHints
bBBGGGG: ResilientWatchCacheInitialization
bGGG---: StrictCostEnforcementForVAP StrictCostEnforcementForWebhooks
bbBBBBB: ContextualLogging
bbBBBGG: ProcMountType UserNamespacesSupport
bbBGGGG: OrderedNamespaceDeletion StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
bbbbBBB: WatchListClient
bbbbbBG: WatchCacheInitializationPostStartHook
bbbbbbb: ConcurrentWatchObjectDecode LocalStorageCapacityIsolationFSQuotaMonitoring
bbbggGG: VolumeAttributesClass
bbgGGGG: MultiCIDRServiceAllocator
bbxxx--: WatchFromStorageWithoutResourceVersion
ddDDDXX: DisableNodeKubeProxyVersion
ddddddd: AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests KMSv1
dxxx---: AllowServiceLBStatusOnNonLB
ggggGGG: ExecProbeTimeout
-BGGGGG: BtreeWatchCache
-aBBBBB: RemoteRequestHeaderUID SchedulerAsyncPreemption
-aBBBBG: DRAResourceClaimDeviceStatus
-aBBBGG: KubeletFineGrainedAuthz SELinuxChangePolicy
-aBGGGG: PodLifecycleSleepActionAllowZero RelaxedDNSSearchValidation
-aaBBBB: PodLevelResources WindowsGracefulNodeShutdown
-aaBBGG: DRAAdminAccess ExternalServiceAccountTokenSigner
-aaaBBB: KubeletCrashLoopBackOffMax
-aaaaBB: ComponentFlagz ComponentStatusz
-aaaaaa: AllowUnsafeMalformedObjectDeletion CBORServingAndStorage ClientsAllowCBOR ClientsPreferCBOR
  InPlacePodVerticalScalingExclusiveCPUs PodLogsQuerySplitStreams WindowsCPUAndMemoryAffinity
-addd--: InPlacePodVerticalScalingAllocatedStatus
-bBBBBB: ServiceAccountNodeAudienceRestriction
-dddddd: KubeletRegistrationGetOnExistsOnly
-dddxxx: AllowOverwriteTerminationGracePeriodSeconds
--BBBBB: AllowParsingUserUIDFromCertAuth SchedulerPopFromBackoffQ
--BBBDD: DisableCPUQuotaWithExclusiveCPUs
--BBBGG: DeclarativeValidation InOrderInformers
--DDXXX: AggregatedDiscoveryRemoveBetaType
--aBBBB: KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot
--aBBGG: KubeletPSI
--aBBgG: DRAPrioritizedList
--aBGGG: PodObservedGenerationTracking PreferSameTrafficDistribution
--aaBBB: DeploymentReplicaSetTerminatingReplicas HPAConfigurableTolerance KubeletEnsureSecretPulledImages
  PodTopologyLabelsAdmission
--aaaBB: DRAPartitionableDevices StrictIPCIDRValidation
--aaaBg: DRADeviceTaints
--aaaaB: StorageCapacityScoring
--aaaaa: ContainerStopSignals ReduceDefaultCrashLoopBackOffDecay
--abBGG: MutableCSINodeAllocatableCount
--bbbdx: DeclarativeValidationTakeover
--d----: LegacySidecarContainers
--dddxx: GitRepoVolumeDriver
---BBBB: DRASchedulerFilterTimeout DetectCacheInconsistency MatchLabelKeysInPodTopologySpreadSelectorMerge
  PreventStaticPodAPIReferences SizeBasedListCostEstimate StatefulSetSemanticRevisionComparison
  StructuredAuthenticationConfigurationEgressSelector TokenRequestServiceAccountUIDValidation
---DDDD: KubeletPodResourcesListUseActivePods
---G---: ProbeHostPodSecurityStandards
---aBBB: ClearingNominatedNodeNameAfterBinding ContainerRestartRules EnvFiles HostnameOverride
  NominatedNodeNameForExpectation
---aaBB: DRAConsumableCapacity DRADeviceBindingConditions RelaxedServiceNameValidation
---aaBG: DRAExtendedResource
---aaaa: InPlacePodVerticalScalingExclusiveMemory
---abbb: PodCertificateRequest
---bbbb: SchedulerAsyncAPICalls
----BBB: AuthorizePodWebsocketUpgradeCreatePermission InOrderInformersBatchProcess OpportunisticBatching
  StructuredAuthenticationConfigurationJWKSMetrics
----BGG: CSIServiceAccountTokenSecrets
----aBB: ConstrainedImpersonation InPlacePodLevelResourcesVerticalScaling MutablePodResourcesForSuspendedJobs
  MutableSchedulingDirectivesForSuspendedJobs RestartAllContainersOnContainerExits
----aBG: NodeDeclaredFeatures
----aa-: GangScheduling
----aaB: VolumeLimitScaling
----aaa: CloudControllerManagerWatchBasedRoutesReconciliation MutablePVNodeAffinity TaintTolerationComparisonOperators
  UserNamespacesHostNetworkSupport
----aab: GenericWorkload
----abg: DRADeviceTaintRules
----bBB: CRDObservedGenerationTracking
-----BB: AtomicFIFO ClientsAllowCARotation ClientsAllowTLSCacheGC DRAResourceClaimGranularStatusAuthorization
  DeclarativeValidationBeta ExtendWebSocketsToKubelet InPlacePodVerticalScalingInitContainers PLEGOnDemandRelist
  ResourceHealthStatusMessage StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob
  StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet UnlockWhileProcessingFIFO
-----DD: ServiceCIDRStatusFieldWiping
-----a-: WorkloadAwarePreemption
-----aa: CRIListStreaming ControllerManagerReleaseLeaderElectionLockOnExit DRAListTypeAttributes
  DRANodeAllocatableResources DRAResourcePoolStatus ImageVolumeWithDigest ManifestBasedAdmissionControlConfig
  NativeHistograms PersistentVolumeClaimUnusedSinceTime PodLevelResourceManagers PodsAPI ShardedListAndWatch
  TopologyAwareWorkloadScheduling WorkloadWithJob
-----ab: DRAWorkloadResourceClaims
-----dd: ChangeContainerStatusOnKubeletRestart
-----gg: AllowServiceExternalIPs
------B: EtcdRangeStream KubeProxyIPVS
------a: CompositePodGroup ConsistentListFromCacheSkipTimeoutFallback DRADerivedAttributes DRADeviceCompatibilityGroups
  DRAOptionalNodeOperations InPlacePodVerticalScalingSchedulerPreemption InterPodAffinityHostnameFastPath
  PodGroupPreemptionPolicy SchedulerPreQueueingHints
------b: DRAFractionalCapacityRange
"""

# The gates that need others, by these.
_DEPENDENCIES = """
APIServerIdentity: StorageVersionAPI UnknownVersionInteroperabilityProxy
AtomicFIFO: StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
  StaleControllerConsistencyStatefulSet
AuthorizeNodeWithSelectors: PodCertificateRequest
AuthorizeWithSelectors: AuthorizeNodeWithSelectors
ClusterTrustBundle: ClusterTrustBundleProjection
ContainerRestartRules NodeDeclaredFeatures: RestartAllContainersOnContainerExits
DRADeviceTaints: DRADeviceTaintRules
DeclarativeValidation: DeclarativeValidationBeta DeclarativeValidationTakeover
DynamicResourceAllocation: DRAAdminAccess DRAConsumableCapacity DRADeviceTaints DRAExtendedResource
  DRAListTypeAttributes DRANodeAllocatableResources DRAPartitionableDevices DRAPrioritizedList DRAResourcePoolStatus
  DRASchedulerFilterTimeout ResourceHealthStatus
DynamicResourceAllocation DRAResourceClaimDeviceStatus: DRADeviceBindingConditions
  DRAResourceClaimGranularStatusAuthorization
DynamicResourceAllocation GenericWorkload: DRAWorkloadResourceClaims
GangScheduling: WorkloadAwarePreemption
GenericWorkload: GangScheduling TopologyAwareWorkloadScheduling WorkloadWithJob
GracefulNodeShutdown: GracefulNodeShutdownBasedOnPodPriority WindowsGracefulNodeShutdown
ImageVolume: ImageVolumeWithDigest
InPlacePodVerticalScaling: InPlacePodVerticalScalingAllocatedStatus InPlacePodVerticalScalingExclusiveCPUs
InPlacePodVerticalScaling MemoryManager: InPlacePodVerticalScalingExclusiveMemory
InPlacePodVerticalScaling NodeDeclaredFeatures: InPlacePodVerticalScalingInitContainers
InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures: InPlacePodLevelResourcesVerticalScaling
MatchLabelKeysInPodTopologySpread: MatchLabelKeysInPodTopologySpreadSelectorMerge
MemoryManager: WindowsCPUAndMemoryAffinity
MultiCIDRServiceAllocator: DisableAllocatorDualWrite
NodeDeclaredFeatures: ExtendWebSocketsToKubelet
PodLevelResources: PodLevelResourceManagers
PodLifecycleSleepAction: PodLifecycleSleepActionAllowZero
ResourceHealthStatus: ResourceHealthStatusMessage
ServiceAccountTokenNodeBindingValidation: ServiceAccountTokenNodeBinding
StructuredAuthenticationConfiguration: StructuredAuthenticationConfigurationEgressSelector
  StructuredAuthenticationConfigurationJWKSMetrics
UserNamespacesSupport: ProcMountType UserNamespacesHostNetworkSupport
"""


@cache
def letters() -> dict[str, str]:
    """Return the letters of each gate, one for each minor version."""
    return {name: cells for cells, names in _groups(_TABLE) for name in names}


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
    needed = {name: tuple(others.split()) for others, names in _groups(_DEPENDENCIES) for name in names}
    return dict(sorted(needed.items()))


def _groups(table: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the groups of a table, each with its gates; indented lines continue a group."""
    for group in table.strip().replace("\n ", "").splitlines():
        about, _, names = group.partition(":")
        yield about, names.split()
