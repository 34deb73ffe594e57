"""The kinds of objects: those that Podium reads, and what is known of the others that Kubernetes has.

A kind is known by its API group and name; the version does not matter. This is the one list of kinds: reading, the
store, simulations and the documents ask it.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.kind_names import short_names
from podium.api.limit_range import LimitRange
from podium.api.meta import Kubernetes
from podium.api.node import CSINode, Namespace, Node
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.pod_group_forms import OLDER_VERSION
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.quota import ResourceQuota
from podium.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from podium.api.runtime_class import RuntimeClass
from podium.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from podium.api.workloads import (
    ControllerRevision,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""What can be asked of the objects of most kinds, in the order in which the API names it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object: its API group ("" is the core) and name, whether it has a namespace, its reading.

    `version` is what Podium writes where it names the kind, and what a store holds; `other_versions` are further
    `apiVersion`s in which the same objects are served. A kind without a status says all there is to say by itself; one
    with a scale has a number of pods that others may set. A kind that is not `is_served` is off by default in v1.36.
    `verbs` are what can be asked of its objects.
    """

    group: str
    name: str
    namespaced: bool
    type: type[Kubernetes] = Kubernetes
    version: str = "v1"
    has_status: bool = True
    has_scale: bool = False
    is_served: bool = True
    other_versions: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS

    @property
    def api_version(self) -> str:
        """Group and version as objects carry them: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_generation(self) -> bool:
        """Whether `metadata.generation` counts the changes of what its objects ask for."""
        return self.name in _COUNTED.get(self.group, "").split()

    @property
    def plural(self) -> str:
        """The name in the API's paths, and for kubectl (apimachinery's UnsafeGuessKindToResource)."""
        name = self.name.lower()
        if name.endswith("endpoints"):
            return name
        if name.endswith("s"):
            return f"{name}es"
        return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"

    @property
    def words(self) -> tuple[str, ...]:
        """What kubectl takes for it: `deployment`, `deployments`, `deploy`."""
        return (self.name.lower(), self.plural, *short_names(self.group, self.name))


# What others refer to comes first: in this order the objects of an input are created.
_READ = (
    Kind("scheduling.k8s.io", "PriorityClass", False, PriorityClass, has_status=False),
    # Makes the classes of its levels that are not there.
    Kind("podium.dev", "DisruptionPolicy", False, DisruptionPolicy, "v1alpha1"),
    Kind("", "Namespace", False, Namespace, verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection")),
    # What pods get where they say nothing.
    Kind("", "LimitRange", True, LimitRange, has_status=False),
    Kind("node.k8s.io", "RuntimeClass", False, RuntimeClass, has_status=False),
    Kind("storage.k8s.io", "StorageClass", False, StorageClass, has_status=False),
    Kind("storage.k8s.io", "CSIDriver", False, CSIDriver, has_status=False),
    Kind("", "Node", False, Node),
    Kind("storage.k8s.io", "CSINode", False, CSINode, has_status=False),
    Kind("storage.k8s.io", "CSIStorageCapacity", True, CSIStorageCapacity, has_status=False),
    Kind("", "PersistentVolume", False, PersistentVolume),
    Kind("", "PersistentVolumeClaim", True, PersistentVolumeClaim),
    Kind("", "Service", True, Service),
    Kind("apps", "Deployment", True, Deployment, has_scale=True),
    Kind("apps", "StatefulSet", True, StatefulSet, has_scale=True),
    Kind("apps", "DaemonSet", True, DaemonSet),
    # A revision belongs to a StatefulSet or a DaemonSet.
    Kind("apps", "ControllerRevision", True, ControllerRevision, has_status=False),
    Kind("", "ReplicationController", True, ReplicationController, has_scale=True),
    Kind("apps", "ReplicaSet", True, ReplicaSet, has_scale=True),
    Kind("batch", "CronJob", True, CronJob),
    Kind("batch", "Job", True, Job),
    Kind("policy", "PodDisruptionBudget", True, PodDisruptionBudget),
    Kind("resource.k8s.io", "DeviceClass", False, DeviceClass, has_status=False),
    # Their API is off by default in v1.36.
    Kind("resource.k8s.io", "DeviceTaintRule", False, DeviceTaintRule, "v1beta2", is_served=False),
    Kind("resource.k8s.io", "ResourceSlice", False, ResourceSlice, has_status=False),
    Kind("resource.k8s.io", "ResourceClaimTemplate", True, ResourceClaimTemplate, has_status=False),
    Kind("resource.k8s.io", "ResourceClaim", True, ResourceClaim),
    # The older form of scheduler-plugins is another version of it. The API of v1.36 is off by default.
    Kind("scheduling.k8s.io", "PodGroup", True, PodGroup, "v1alpha2", other_versions=(OLDER_VERSION,)),
    Kind("", "Pod", True, Pod),
    # A quota counts what is there; it may have been lowered since.
    Kind("", "ResourceQuota", True, ResourceQuota),
)
# The kinds of which kube-apiserver counts the changes (the strategies in pkg/registry, PrepareForCreate).
_COUNTED: dict[str, str] = {
    "": "Pod PodTemplate ReplicationController",
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy "
        "ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apps": "DaemonSet Deployment ReplicaSet StatefulSet",
    "batch": "CronJob Job",
    "discovery.k8s.io": "EndpointSlice",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io": "Ingress IngressClass NetworkPolicy",
    "podium.dev": "DisruptionPolicy",
    "policy": "PodDisruptionBudget",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourceSlice",
    "scheduling.k8s.io": "PodGroup PriorityClass Workload",
    "storage.k8s.io": "CSIDriver",
}
KINDS = {(kind.group, kind.name): kind for kind in _READ}
"""The kinds that Podium reads, in the order in which objects of an input are created."""

WORKLOADS = ("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
"""The kinds that make pods, by name: whoever means their pods need not name one."""

KIND_OF = {kind.type: kind for kind in _READ}
"""The same by the type of their reading."""

KEPT_KINDS = (
    # A pod that is bound, by a request that names it in its body alone; nothing is kept of it.
    Kind("", "Binding", True, has_status=False, verbs=("create",)),
    Kind("", "ConfigMap", True, has_status=False),
    Kind("", "Endpoints", True, has_status=False),
    Kind("", "Event", True, has_status=False, other_versions=("events.k8s.io/v1",)),
    Kind("", "PodTemplate", True, has_status=False),
    Kind("", "Secret", True, has_status=False),
    Kind("", "ServiceAccount", True, has_status=False),
    Kind("admissionregistration.k8s.io", "MutatingAdmissionPolicy", False, has_status=False),
    Kind("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", False, has_status=False),
    Kind("admissionregistration.k8s.io", "MutatingWebhookConfiguration", False, has_status=False),
    Kind("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", False),
    Kind("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", False, has_status=False),
    Kind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", False, has_status=False),
    Kind("apiextensions.k8s.io", "CustomResourceDefinition", False),
    Kind("apiregistration.k8s.io", "APIService", False),
    Kind("autoscaling", "HorizontalPodAutoscaler", True, version="v2", other_versions=("autoscaling/v1",)),
    Kind("certificates.k8s.io", "CertificateSigningRequest", False),
    Kind("coordination.k8s.io", "Lease", True, has_status=False),
    Kind("discovery.k8s.io", "EndpointSlice", True, has_status=False),
    Kind("flowcontrol.apiserver.k8s.io", "FlowSchema", False),
    Kind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", False),
    Kind("networking.k8s.io", "IPAddress", False, has_status=False),
    Kind("networking.k8s.io", "Ingress", True),
    Kind("networking.k8s.io", "IngressClass", False, has_status=False),
    Kind("networking.k8s.io", "NetworkPolicy", True, has_status=False),
    Kind("networking.k8s.io", "ServiceCIDR", False),
    Kind("rbac.authorization.k8s.io", "ClusterRole", False, has_status=False),
    Kind("rbac.authorization.k8s.io", "ClusterRoleBinding", False, has_status=False),
    Kind("rbac.authorization.k8s.io", "Role", True, has_status=False),
    Kind("rbac.authorization.k8s.io", "RoleBinding", True, has_status=False),
    Kind("scheduling.k8s.io", "Workload", True, version="v1alpha2", has_status=False),
    Kind("storage.k8s.io", "VolumeAttachment", False),
    Kind("storage.k8s.io", "VolumeAttributesClass", False, has_status=False),
)
"""The kinds that a store keeps though Podium does not read them."""

_ALIASES = {(version.rpartition("/")[0], kind.name): kind for kind in _READ for version in kind.other_versions}

SERVED_KINDS = {(kind.group, kind.name): kind for kind in (*KEPT_KINDS, *_READ)}
"""All kinds that a store holds, those that are off by default among them."""

# Every other kind that Kubernetes v1.36 serves, or did since v1.21, by its group. None of their objects makes pods.
_WITHOUT_PODS = {
    "": "ComponentStatus",
    "certificates.k8s.io": "ClusterTrustBundle PodCertificateRequest",
    "coordination.k8s.io": "LeaseCandidate",
    "events.k8s.io": "Event",
    "internal.apiserver.k8s.io": "StorageVersion",
    "metrics.k8s.io": "NodeMetrics PodMetrics",
    "policy": "PodSecurityPolicy",
    "resource.k8s.io": "PodSchedulingContext ResourceClass ResourcePoolStatusRequest",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
# What makes pods, or has them made, beside the kinds that are read.
_WITH_PODS = frozenset((("autoscaling", "HorizontalPodAutoscaler"),))

_BUILT_IN = {
    *SERVED_KINDS,
    *((group, name) for group, names in _WITHOUT_PODS.items() for name in names.split()),
}
_BUILT_IN_GROUPS = frozenset((*(group for group, _ in _BUILT_IN), "extensions"))
_GROUP_OF = {kind.name: kind.group for kind in _READ}


def group_of(api_version: str) -> str:
    """The API group of an `apiVersion` such as apps/v1; "" for the core's v1."""
    return api_version.rpartition("/")[0]


def read_kind(group: str, name: str) -> Kind | None:
    """The kind of that name that Podium reads, also by the group of another version of it; None for any other."""
    return KINDS.get((group, name)) or _ALIASES.get((group, name))


def right_group(group: str, kind: str) -> str | None:
    """The group that has the kind, when `group` is a built-in one that has it not; else None."""
    right = _GROUP_OF.get(kind)
    has_it = (group, kind) in _BUILT_IN
    return right if right is not None and right != group and group in _BUILT_IN_GROUPS and not has_it else None


def right_name(group: str, kind: str) -> str | None:
    """The kind of a built-in group that is named but for small and capital letters; else None."""
    if group not in _BUILT_IN_GROUPS or (group, kind) in _BUILT_IN:
        return None
    lowered = kind.lower()
    return next((name for of, name in sorted(_BUILT_IN) if of == group and name.lower() == lowered), None)


def known_names(group: str) -> list[str] | None:
    """The kinds of a group of Kubernetes' own, sorted; None for a group that others add."""
    return sorted(name for of, name in _BUILT_IN if of == group) if group in _BUILT_IN_GROUPS else None


def may_create_pods(group: str, kind: str) -> bool:
    """Whether objects of a kind that is not read may make pods, or have more of them made.

    Of Kubernetes' own kinds that is known; an operator may make pods for any of its own.
    """
    return ((group, kind) not in _BUILT_IN and (group, kind) not in _ALIASES) or (group, kind) in _WITH_PODS
