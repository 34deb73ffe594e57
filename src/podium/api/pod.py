"""The Pod, as the scheduler, the kubelet and the controllers read it (core/v1 Pod)."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.api.meta import APIStruct, Int32, Int64, Kubernetes, Raw
from podium.api.selectors import LabelSelector, NodeSelector, PreferredSchedulingTerm
from podium.api.times import SECOND, parse_time

# A quantity is text or a number: "100m", "1Gi", 2, 0.5. `quantity.parse_quantity` parses it.
Quantity = str | int | float
ResourceList = dict[str, Quantity]


class ResourceRequirements(APIStruct, frozen=True, kw_only=True):
    """The requests and limits of a container or of a whole pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(APIStruct, frozen=True, kw_only=True):
    """A port that a container exposes; `host_port` 0 means that it uses none of the node."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(name="hostIP", default="")
    protocol: str = "TCP"


class ContainerRestartRule(APIStruct, frozen=True, kw_only=True):
    """A rule for a container's exit; only the action is read."""

    action: str = ""


class Container(APIStruct, frozen=True, kw_only=True):
    """A container; `restart_policy` Always on an init container makes it a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class Toleration(APIStruct, frozen=True, kw_only=True):
    """A toleration of taints; an empty key with Exists tolerates all, an empty effect matches every effect."""

    key: str = ""
    operator: Literal["", "Exists", "Equal", "Lt", "Gt"] = ""
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    toleration_seconds: Int64 | None = None


class PodAffinityTerm(APIStruct, frozen=True, kw_only=True):
    """Pods that must, or must not, share a topology domain with this one."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(APIStruct, frozen=True, kw_only=True):
    """A pod affinity term that counts `weight` (1 to 100) in the score."""

    weight: Int32
    pod_affinity_term: PodAffinityTerm


class NodeAffinity(APIStruct, frozen=True, kw_only=True):
    """The required and preferred nodes of a pod."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: tuple[PreferredSchedulingTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


_ANY_NODE = NodeAffinity()


class PodAffinity(APIStruct, frozen=True, kw_only=True):
    """Pods to be placed close to (under `podAffinity`) or apart from (under `podAntiAffinity`)."""

    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=()
    )
    preferred: tuple[WeightedPodAffinityTerm, ...] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=()
    )


class Affinity(APIStruct, frozen=True, kw_only=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None

    @property
    def pod_terms(self) -> list[PodAffinityTerm]:
        """All terms of affinity and anti-affinity to pods, required and preferred ones."""
        sides = [side for side in (self.pod_affinity, self.pod_anti_affinity) if side is not None]
        preferred = (weighted.pod_affinity_term for side in sides for weighted in side.preferred)
        return [*(term for side in sides for term in side.required), *preferred]


class TopologySpreadConstraint(APIStruct, frozen=True, kw_only=True):
    """A limit or preference for the skew of matching pods over the domains of a topology key."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] = "Honor"
    node_taints_policy: Literal["Honor", "Ignore"] = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class PersistentVolumeClaimVolumeSource(APIStruct, frozen=True, kw_only=True):
    """A claim in the pod's namespace that the pod mounts."""

    claim_name: str
    read_only: bool = False


class EphemeralVolumeSource(APIStruct, frozen=True, kw_only=True):
    """A claim that is created for the pod, named `<pod>-<volume>`, from this template."""

    volume_claim_template: Raw = {}


class GCEPersistentDisk(APIStruct, frozen=True, kw_only=True):
    """A Compute Engine disk in a pod's volume."""

    pd_name: str = msgspec.field(name="pdName")
    read_only: bool = False


class AWSElasticBlockStore(APIStruct, frozen=True, kw_only=True):
    """An EBS volume in a pod's volume."""

    volume_id: str = msgspec.field(name="volumeID")


class RBD(APIStruct, frozen=True, kw_only=True):
    """A Ceph block image in a pod's volume."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class ISCSI(APIStruct, frozen=True, kw_only=True):
    """An iSCSI target in a pod's volume."""

    iqn: str = ""
    read_only: bool = False


class ImageVolumeSource(APIStruct, frozen=True, kw_only=True):
    """An image that is mounted as a volume."""

    reference: str = ""


class Volume(APIStruct, frozen=True, kw_only=True):
    """A volume of a pod; only sources that affect scheduling are read."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None
    image: ImageVolumeSource | None = None


class PodSchedulingGate(APIStruct, frozen=True, kw_only=True):
    """A gate that keeps the pod out of the active scheduling queue until it is removed."""

    name: str


class PodResourceClaim(APIStruct, frozen=True, kw_only=True):
    """A claim for devices that the pod uses, or a template for one."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(APIStruct, frozen=True, kw_only=True):
    """The PodGroup of the pod, in its namespace."""

    pod_group_name: str = ""


class PodSecurityContext(APIStruct, frozen=True, kw_only=True):
    """The security settings of a pod; only those that kubelets check."""

    supplemental_groups_policy: str = ""


class PodSpec(APIStruct, frozen=True, kw_only=True, weakref=True):
    """The desired state of a pod. `priority` None counts as 0."""

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
    active_deadline_seconds: Int64 | None = None
    restart_policy: str = "Always"
    host_network: bool = False
    host_users: bool | None = None
    runtime_class_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    os: dict[str, str] = {}

    @property
    def node_affinity(self) -> NodeAffinity:
        """The required and preferred nodes; without any affinity, an empty one."""
        return (self.affinity and self.affinity.node_affinity) or _ANY_NODE


class PodCondition(APIStruct, frozen=True, kw_only=True):
    """An observed condition of a pod."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""


class ContainerStatus(APIStruct, frozen=True, kw_only=True):
    """The observed resources of a container; limits and requests are None if they were not reported."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(APIStruct, frozen=True, kw_only=True):
    """The claim that was created for a pod from a template; without a name, the pod needs none."""

    name: str
    resource_claim_name: str | None = None


class PodStatus(APIStruct, frozen=True, kw_only=True):
    """The observed state of a pod. Its resources are pod-level resources."""

    phase: str = "Pending"
    nominated_node_name: str = ""
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: Raw = {}

    def condition(self, type_: str) -> PodCondition | None:
        for condition in self.conditions:
            if condition.type == type_:
                return condition
        return None


MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""The annotation of mirror pods, which represent static pods of a kubelet."""

SOURCE_ANNOTATION = "kubernetes.io/config.source"
"""The annotation of pods within a kubelet: their source, "api" except for static pods."""

NOMINATED_NODE_ANNOTATION = "scheduler.kubernetes.io/nominated-node-name"


TERMINAL_PHASES = ("Succeeded", "Failed")
"""The phases of pods whose containers have all terminated permanently."""


class Pod(Kubernetes, frozen=True, kw_only=True):
    """A pod (core/v1)."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        """The pod's priority; 0 if unset (component-helpers PodPriority)."""
        return self.spec.priority or 0

    @property
    def nominated_node_name(self) -> str:
        """The nominated node: from the status, or the annotation of the preemption design."""
        return self.status.nominated_node_name or self.metadata.annotations.get(NOMINATED_NODE_ANNOTATION, "")

    @property
    def is_terminal(self) -> bool:
        """Return whether all containers have terminated permanently."""
        return self.status.phase in TERMINAL_PHASES

    @property
    def is_ready(self) -> bool:
        """Return whether the pod is ready, as budgets and endpoints count it."""
        ready = self.status.condition("Ready")
        return ready is not None and ready.status == "True"

    @property
    def is_unschedulable(self) -> bool:
        """Return whether a scheduler has reported that no node fits the pod."""
        scheduled = self.status.condition("PodScheduled")
        return scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"

    @property
    def waits_for_node(self) -> bool:
        """Return whether the pod has no node, and is not being deleted."""
        return not self.spec.node_name and self.metadata.deletion_timestamp is None


def deletion_ns(object_: Kubernetes) -> int | None:
    """Return when an object's deletion began, by its own metadata; None if it is not being deleted."""
    meta = object_.metadata
    if meta.deletion_timestamp is None:
        return None
    return parse_time(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0) * SECOND
