"""The Pod as the scheduler, the kubelet and the controllers read it (core/v1 Pod)."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.api.meta import Int32, Int64, Kubernetes, Narrow, Raw
from podium.api.selection import LabelSelector, NodeSelector, PreferredSchedulingTerm

# A quantity is written as text or as a number: "100m", "1Gi", 2, 0.5. `quantity.parse_quantity` reads it.
Quantity = str | int | float
ResourceList = dict[str, Quantity]


class ResourceRequirements(Narrow, frozen=True, kw_only=True):
    """What a container (or a whole pod) requests, and the limits it is held to."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(Narrow, frozen=True, kw_only=True):
    """A port that a container exposes; `host_port` 0 means none on the node."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class ContainerRestartRule(Narrow, frozen=True, kw_only=True):
    """What happens when a container exits in a certain way; of interest is the action alone."""

    action: str = ""


class Container(Narrow, frozen=True, kw_only=True):
    """A container; `restart_policy` Always on an init container makes it a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class Toleration(Narrow, frozen=True, kw_only=True):
    """A taint that the pod accepts; an empty key with Exists accepts all, an empty effect every effect."""

    key: str = ""
    operator: Literal["", "Exists", "Equal", "Lt", "Gt"] = ""
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: Int64 | None = None


class PodAffinityTerm(Narrow, frozen=True, kw_only=True):
    """Pods that must, or must not, share a topology domain with this one."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Narrow, frozen=True, kw_only=True):
    """A pod affinity term that counts `weight` (1 to 100) in the score."""

    weight: Int32
    pod_affinity_term: PodAffinityTerm


class NodeAffinity(Narrow, frozen=True, kw_only=True):
    """Which nodes a pod needs, and which it prefers."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class PodAffinity(Narrow, frozen=True, kw_only=True):
    """Pods to be near to (under `podAffinity`) or far from (under `podAntiAffinity`)."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(Narrow, frozen=True, kw_only=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Narrow, frozen=True, kw_only=True):
    """How evenly matching pods must, or should, lie over the domains of a topology key."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class PersistentVolumeClaimVolumeSource(Narrow, frozen=True, kw_only=True):
    """A claim in the pod's namespace that the pod mounts."""

    claim_name: str
    read_only: bool = False


class EphemeralVolumeSource(Narrow, frozen=True, kw_only=True):
    """A claim made for the pod, named `<pod>-<volume>`: what it is like, as it is written."""

    volume_claim_template: Raw = {}


class GCEPersistentDisk(Narrow, frozen=True, kw_only=True):
    """A Compute Engine disk named by the pod itself."""

    pd_name: str = msgspec.field(name="pdName")
    read_only: bool = False


class AWSElasticBlockStore(Narrow, frozen=True, kw_only=True):
    """An EBS volume named by the pod itself."""

    volume_id: str = msgspec.field(name="volumeID")


class RBD(Narrow, frozen=True, kw_only=True):
    """A Ceph block image named by the pod itself."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class ISCSI(Narrow, frozen=True, kw_only=True):
    """An iSCSI target named by the pod itself."""

    iqn: str = ""
    read_only: bool = False


class Volume(Narrow, frozen=True, kw_only=True):
    """A volume of a pod; only the sources that scheduling depends on are read."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None


class PodSchedulingGate(Narrow, frozen=True, kw_only=True):
    """A name that holds the pod out of the scheduling queue until it is removed."""

    name: str


class PodResourceClaim(Narrow, frozen=True, kw_only=True):
    """A claim for devices that the pod uses, or the template from which one is made for it."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Narrow, frozen=True, kw_only=True):
    """The PodGroup in the pod's namespace that the pod belongs to."""

    pod_group_name: str = ""


class PodSpec(Narrow, frozen=True, kw_only=True, weakref=True):
    """What a pod asks for. `priority` None counts as 0."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    termination_grace_period_seconds: Int64 = 30
    restart_policy: str = "Always"
    host_network: bool = False
    host_users: bool | None = None
    runtime_class_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None


class PodCondition(Narrow, frozen=True, kw_only=True):
    """One observed condition of a pod."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""


class ContainerStatus(Narrow, frozen=True, kw_only=True):
    """What was observed of a container's resources; its limits and requests are None where none were reported."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(Narrow, frozen=True, kw_only=True):
    """The claim that was made for a pod from a template; without a name the pod does without."""

    name: str
    resource_claim_name: str | None = None


class PodStatus(Narrow, frozen=True, kw_only=True):
    """What was observed of a pod. Its resources are those that it has as a whole."""

    phase: str = "Pending"
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()

    def condition(self, type_: str) -> PodCondition | None:
        """The condition of that type, or None."""
        for condition in self.conditions:
            if condition.type == type_:
                return condition
        return None


MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""Of a pod that only mirrors one that its kubelet read from a file."""

SOURCE_ANNOTATION = "kubernetes.io/config.source"
"""Of a pod as its kubelet has it: where it is from, "api" but for static pods."""

NOMINATED_NODE_ANNOTATION = "scheduler.kubernetes.io/nominated-node-name"


TERMINAL_PHASES = ("Succeeded", "Failed")
"""The phases of pods whose containers have all ended for good."""


class Pod(Kubernetes, frozen=True, kw_only=True):
    """A pod (core/v1)."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        """The pod's priority; 0 where none was filled in (component-helpers PodPriority)."""
        return self.spec.priority or 0

    @property
    def nominated_node_name(self) -> str:
        """The node that the pod waits for: from the status, or the annotation of the preemption design."""
        return self.status.nominated_node_name or self.metadata.annotations.get(NOMINATED_NODE_ANNOTATION, "")

    @property
    def is_terminal(self) -> bool:
        """Whether all containers have ended for good."""
        return self.status.phase in TERMINAL_PHASES

    @property
    def is_terminating(self) -> bool:
        """Whether the pod was deleted and is within its grace period."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_unschedulable(self) -> bool:
        """Whether a scheduler has said that no node can take the pod."""
        scheduled = self.status.condition("PodScheduled")
        return scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"

    @property
    def waits_for_node(self) -> bool:
        """Whether the pod has no node, and is not being deleted."""
        return not self.spec.node_name and self.metadata.deletion_timestamp is None
