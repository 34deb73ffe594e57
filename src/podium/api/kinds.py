"""The registry of kinds: those that Podium reads, and facts about Kubernetes' other kinds.

A kind is identified by its API group and name, independent of the version. This is the only list of kinds: reading, the
store, simulations and the documents use it. Source of the names and orders for users: pkg/registry (ShortNames and
Categories of each storage), pkg/controlplane (the priorities of the groups).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Kubernetes
from podium.api.node import CSINode, Namespace, Node, RuntimeClass
from podium.api.pod import Pod
from podium.api.pod_group import OLDER_VERSION, PodGroup
from podium.api.policy import PodDisruptionBudget, PriorityClass
from podium.api.quota import LimitRange, ResourceQuota
from podium.api.resource_claims import ResourceClaim, ResourceClaimTemplate
from podium.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
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

# kubectl takes the first kind with a matching short name, in discovery order.
_SHORT_NAMES = {
    ("", "ComponentStatus"): ("cs",),
    ("", "ConfigMap"): ("cm",),
    ("", "Endpoints"): ("ep",),
    ("", "Event"): ("ev",),
    ("", "LimitRange"): ("limits",),
    ("", "Namespace"): ("ns",),
    ("", "Node"): ("no",),
    ("", "PersistentVolume"): ("pv",),
    ("", "PersistentVolumeClaim"): ("pvc",),
    ("", "Pod"): ("po",),
    ("", "ReplicationController"): ("rc",),
    ("", "ResourceQuota"): ("quota",),
    ("", "Service"): ("svc",),
    ("", "ServiceAccount"): ("sa",),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("crd", "crds"),
    ("apps", "DaemonSet"): ("ds",),
    ("apps", "Deployment"): ("deploy",),
    ("apps", "ReplicaSet"): ("rs",),
    ("apps", "StatefulSet"): ("sts",),
    ("autoscaling", "HorizontalPodAutoscaler"): ("hpa",),
    ("batch", "CronJob"): ("cj",),
    ("certificates.k8s.io", "CertificateSigningRequest"): ("csr",),
    ("events.k8s.io", "Event"): ("ev",),
    ("networking.k8s.io", "IPAddress"): ("ip",),
    ("networking.k8s.io", "Ingress"): ("ing",),
    ("networking.k8s.io", "NetworkPolicy"): ("netpol",),
    ("podium.dev", "DisruptionPolicy"): ("dpol",),
    ("policy", "PodDisruptionBudget"): ("pdb",),
    ("scheduling.k8s.io", "PriorityClass"): ("pc",),
    ("storage.k8s.io", "StorageClass"): ("sc",),
    ("storage.k8s.io", "VolumeAttributesClass"): ("vac",),
}
_CATEGORIES = {
    "all": (
        ("", "Pod"),
        ("", "ReplicationController"),
        ("", "Service"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("batch", "CronJob"),
        ("batch", "Job"),
    ),
    "api-extensions": (
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
    ),
}
_GROUPS = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
# Aggregated APIs come last.
_LAST_GROUP = "metrics.k8s.io"
_RANK_OF = {group: rank for rank, group in enumerate(_GROUPS)}


def short_names(group: str, kind: str) -> tuple[str, ...]:
    """Return the short names of the kind."""
    return _SHORT_NAMES.get((group, kind), ())


def categories(group: str, kind: str) -> tuple[str, ...]:
    """Return the categories that include the kind, such as `all`."""
    return tuple(name for name, kinds in _CATEGORIES.items() if (group, kind) in kinds)


def group_order(group: str) -> tuple[int, bool, str]:
    """Return the sort key of a group: Kubernetes' own in its order, then others by name, then the metrics."""
    return (_RANK_OF.get(group, len(_GROUPS)), group == _LAST_GROUP, group)


ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""The verbs of most kinds, in the order of the API."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind: its API group ("" is the core), its name, whether it is namespaced, and its typed reading.

    `version` is what Podium writes, and the storage version; `other_versions` are further `apiVersion`s in which the
    same objects are served. `has_status` and `has_scale` say whether the kind has these subresources. A kind that is
    not `is_served` is off by default in v1.36. `verbs` are its verbs.
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
        """The group and version as objects state them: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_generation(self) -> bool:
        """Whether `metadata.generation` counts the changes of the desired state."""
        return self.name in _COUNTED.get(self.group, "").split()

    @property
    def plural(self) -> str:
        """The plural in API paths and for kubectl (apimachinery's UnsafeGuessKindToResource)."""
        name = self.name.lower()
        if name.endswith("endpoints"):
            return name
        if name.endswith("s"):
            return f"{name}es"
        return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"

    @property
    def words(self) -> tuple[str, ...]:
        """The names that kubectl accepts: `deployment`, `deployments`, `deploy`."""
        return (self.name.lower(), self.plural, *short_names(self.group, self.name))


# Referenced kinds come first: the objects of an input are created in this order.
_READ = (
    Kind("scheduling.k8s.io", "PriorityClass", False, PriorityClass, has_status=False),
    # Creates the missing classes of its levels.
    Kind("podium.dev", "DisruptionPolicy", False, DisruptionPolicy, "v1alpha1"),
    Kind("", "Namespace", False, Namespace, verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection")),
    # Provides the defaults of pods.
    Kind("", "LimitRange", True, LimitRange, has_status=False),
    Kind("node.k8s.io", "RuntimeClass", False, RuntimeClass, has_status=False),
    Kind("storage.k8s.io", "StorageClass", False, StorageClass, has_status=False),
    Kind("storage.k8s.io", "CSIDriver", False, CSIDriver, has_status=False),
    Kind("", "Node", False, Node),
    Kind("storage.k8s.io", "CSINode", False, CSINode, has_status=False),
    Kind("storage.k8s.io", "CSIStorageCapacity", True, CSIStorageCapacity, has_status=False),
    Kind("", "PersistentVolume", False, PersistentVolume),
    Kind("", "PersistentVolumeClaim", True, PersistentVolumeClaim),
    Kind("storage.k8s.io", "VolumeAttachment", False, VolumeAttachment),
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
    # This API is off by default in v1.36.
    Kind("resource.k8s.io", "DeviceTaintRule", False, DeviceTaintRule, "v1beta2", is_served=False),
    Kind("resource.k8s.io", "ResourceSlice", False, ResourceSlice, has_status=False),
    Kind("resource.k8s.io", "ResourceClaimTemplate", True, ResourceClaimTemplate, has_status=False),
    Kind("resource.k8s.io", "ResourceClaim", True, ResourceClaim),
    # The older form of scheduler-plugins is another version of it. The API of v1.36 is off by default.
    Kind("scheduling.k8s.io", "PodGroup", True, PodGroup, "v1alpha2", other_versions=(OLDER_VERSION,)),
    Kind("", "Pod", True, Pod),
    # Created after the objects that it counts, because it may have been lowered since.
    Kind("", "ResourceQuota", True, ResourceQuota),
)
# The kinds with a generation in kube-apiserver (the strategies in pkg/registry, PrepareForCreate).
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
"""The kinds that Podium reads, in the creation order of an input's objects."""

WORKLOADS = ("CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
"""The kinds that create pods, by name: arguments that mean their pods can omit the kind."""

KIND_OF = {kind.type: kind for kind in _READ}
"""The same kinds by the type of their reading."""

KEPT_KINDS = (
    # Binds a pod that only the body names; it is not stored.
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
    Kind("storage.k8s.io", "VolumeAttributesClass", False, has_status=False),
)
"""The kinds that a store keeps although Podium does not read them."""

_ALIASES = {(version.rpartition("/")[0], kind.name): kind for kind in _READ for version in kind.other_versions}

SERVED_KINDS = {(kind.group, kind.name): kind for kind in (*KEPT_KINDS, *_READ)}
"""All kinds that a store holds, including those that are off by default."""

# All other kinds that Kubernetes v1.36 serves, or has served since v1.21, by group. None of them creates pods.
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
# Kinds that create or scale pods, besides those that are read.
_WITH_PODS = frozenset((("autoscaling", "HorizontalPodAutoscaler"),))

_BUILT_IN = {
    *SERVED_KINDS,
    *((group, name) for group, names in _WITHOUT_PODS.items() for name in names.split()),
}
_BUILT_IN_GROUPS = frozenset((*(group for group, _ in _BUILT_IN), "extensions"))
_GROUP_OF = {kind.name: kind.group for kind in _READ}


def group_of(api_version: str) -> str:
    """Return the API group of an `apiVersion` such as apps/v1; "" for the core's v1."""
    return api_version.rpartition("/")[0]


def read_kind(group: str, name: str) -> Kind | None:
    """Return the kind that Podium reads, also for the group of another version of it; None for any other."""
    return KINDS.get((group, name)) or _ALIASES.get((group, name))


def right_group(group: str, kind: str) -> str | None:
    """Return the group that has the kind if `group` is a built-in one without it; otherwise None."""
    right = _GROUP_OF.get(kind)
    has_it = (group, kind) in _BUILT_IN
    return right if right is not None and right != group and group in _BUILT_IN_GROUPS and not has_it else None


def right_name(group: str, kind: str) -> str | None:
    """Return the kind of a built-in group whose name differs only in case; otherwise None."""
    if group not in _BUILT_IN_GROUPS or (group, kind) in _BUILT_IN:
        return None
    lowered = kind.lower()
    return next((name for of, name in sorted(_BUILT_IN) if of == group and name.lower() == lowered), None)


def known_names(group: str) -> list[str] | None:
    """Return the kinds of a built-in group, sorted; None for any other group."""
    return sorted(name for of, name in _BUILT_IN if of == group) if group in _BUILT_IN_GROUPS else None


def may_create_pods(group: str, kind: str) -> bool:
    """Return whether objects of a kind that is not read may create pods, or scale them.

    For Kubernetes' own kinds that is known; an operator may create pods for any of its kinds.
    """
    return ((group, kind) not in _BUILT_IN and (group, kind) not in _ALIASES) or (group, kind) in _WITH_PODS
