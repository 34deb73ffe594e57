"""The registry of kinds: those that Podium reads, and facts about Kubernetes' other kinds.

A kind is identified by its API group and name, independent of the version. This is the only list of kinds: reading, the
store, simulations and the documents use it. Source of the names and orders for users: pkg/registry (ShortNames and
Categories of each storage), pkg/controlplane (the priorities of the groups).
"""

from __future__ import annotations

from msgspec import Struct

from podium.api import devices, disruption_policy, node, pod, pod_group, policy, storage, workloads
from podium.api.meta import Kubernetes, Raw, plain
from podium.api.pod_group import OLDER_VERSION
from podium.api.versions.apis import served_versions

# In the order of discovery, in which kubectl takes the first kind with a matching short name.
_GROUPS = (
    "",
    *"""
    apiregistration.k8s.io apps events.k8s.io authentication.k8s.io authorization.k8s.io autoscaling batch
    certificates.k8s.io networking.k8s.io policy rbac.authorization.k8s.io storage.k8s.io
    admissionregistration.k8s.io apiextensions.k8s.io scheduling.k8s.io coordination.k8s.io node.k8s.io
    discovery.k8s.io resource.k8s.io flowcontrol.apiserver.k8s.io
    """.split(),
)
# Aggregated APIs come last.
_LAST_GROUP = "metrics.k8s.io"
_RANK_OF = {group: rank for rank, group in enumerate(_GROUPS)}


def group_of(api_version: str) -> str:
    """Return the API group of an `apiVersion` such as apps/v1; "" for the core's v1."""
    return api_version.rpartition("/")[0]


def group_order(group: str) -> tuple[int, bool, str]:
    """Return the sort key of a group: Kubernetes' own in its order, then others by name, then the metrics."""
    return (_RANK_OF.get(group, len(_GROUPS)), group == _LAST_GROUP, group)


ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
"""The verbs of most kinds, in the order of the API."""


class Kind(Struct, frozen=True):
    """A kind: its API group ("" is the core), its name, whether it is namespaced, and its typed reading.

    `version` is what Podium writes, and the storage version; `other_versions` are further `apiVersion`s in which the
    same objects may be served; `podium.api.versions.apis` says in which Kubernetes versions. `has_status` and
    `has_scale` say whether the kind has these subresources, `has_generation` whether `metadata.generation` counts the
    changes of the desired state. `verbs` are its verbs, `categories` those that include it, such as `all`.
    """

    group: str
    name: str
    namespaced: bool
    type: type[Kubernetes] = Kubernetes
    version: str = "v1"
    has_status: bool = True
    has_scale: bool = False
    other_versions: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    has_generation: bool = False
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The group and version as objects state them: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

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
        return (self.name.lower(), self.plural, *self.short_names)


_TYPES: dict[str, type[Kubernetes]] = {
    name: type_
    for module in (devices, disruption_policy, node, pod, pod_group, policy, storage, workloads)
    for name, type_ in vars(module).items()
    if isinstance(type_, type) and issubclass(type_, Kubernetes)
}

# The kinds that are read, in the order in which the objects of an input are created: referenced kinds come first, as do
# classes and what provides defaults. A quota comes after the objects that it counts, because it may have been lowered
# since. Then the kinds that a store only keeps, and all others that Kubernetes v1.36 serves, or has served since v1.21;
# none of these creates pods. Each has its group and version, its name, its short names for kubectl, and
#   cluster              it is not namespaced
#   status, scale        it has this subresource
#   generation           it has a generation (the strategies in pkg/registry, PrepareForCreate)
#   all, api-extensions  the category
#   unserved             no store has it
_TABLE = """
scheduling.k8s.io/v1            PriorityClass                    pc       cluster generation
podium.dev/v1alpha1             DisruptionPolicy                 dpol     cluster status generation
v1                              Namespace                        ns       cluster status
v1                              LimitRange                       limits
node.k8s.io/v1                  RuntimeClass                     -        cluster
storage.k8s.io/v1               StorageClass                     sc       cluster
storage.k8s.io/v1               CSIDriver                        -        cluster generation
v1                              Node                             no       cluster status
storage.k8s.io/v1               CSINode                          -        cluster
storage.k8s.io/v1               CSIStorageCapacity               -
v1                              PersistentVolume                 pv       cluster status
v1                              PersistentVolumeClaim            pvc      status
storage.k8s.io/v1               VolumeAttachment                 -        cluster status
v1                              Service                          svc      status all
apps/v1                         Deployment                       deploy   status scale generation all
apps/v1                         StatefulSet                      sts      status scale generation all
apps/v1                         DaemonSet                        ds       status generation all
apps/v1                         ControllerRevision               -
v1                              ReplicationController            rc       status scale generation all
apps/v1                         ReplicaSet                       rs       status scale generation all
batch/v1                        CronJob                          cj       status generation all
batch/v1                        Job                              -        status generation all
policy/v1                       PodDisruptionBudget              pdb      status generation
resource.k8s.io/v1              DeviceClass                      -        cluster generation
resource.k8s.io/v1beta2         DeviceTaintRule                  -        cluster status generation
resource.k8s.io/v1              ResourceSlice                    -        cluster generation
resource.k8s.io/v1              ResourceClaimTemplate            -
resource.k8s.io/v1              ResourceClaim                    -        status
scheduling.k8s.io/v1alpha2      PodGroup                         -        status generation
v1                              Pod                              po       status generation all
v1                              ResourceQuota                    quota    status

v1                              Binding                          -
v1                              ConfigMap                        cm
v1                              Endpoints                        ep
v1                              Event                            ev
v1                              PodTemplate                      -        generation
v1                              Secret                           -
v1                              ServiceAccount                   sa
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy          -        cluster generation
admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding   -        cluster generation
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration     -        cluster generation api-extensions
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy        -        cluster status generation api-extensions
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding -        cluster generation api-extensions
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration   -        cluster generation api-extensions
apiextensions.k8s.io/v1         CustomResourceDefinition         crd,crds cluster status generation api-extensions
apiregistration.k8s.io/v1       APIService                       -        cluster status api-extensions
autoscaling/v2                  HorizontalPodAutoscaler          hpa      status all
certificates.k8s.io/v1          CertificateSigningRequest        csr      cluster status
coordination.k8s.io/v1          Lease                            -
discovery.k8s.io/v1             EndpointSlice                    -        generation
flowcontrol.apiserver.k8s.io/v1 FlowSchema                       -        cluster status generation
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration       -        cluster status generation
networking.k8s.io/v1            IPAddress                        ip       cluster
networking.k8s.io/v1            Ingress                          ing      status generation
networking.k8s.io/v1            IngressClass                     -        cluster generation
networking.k8s.io/v1            NetworkPolicy                    netpol   generation
networking.k8s.io/v1            ServiceCIDR                      -        cluster status
rbac.authorization.k8s.io/v1    ClusterRole                      -        cluster
rbac.authorization.k8s.io/v1    ClusterRoleBinding               -        cluster
rbac.authorization.k8s.io/v1    Role                             -
rbac.authorization.k8s.io/v1    RoleBinding                      -
scheduling.k8s.io/v1alpha2      Workload                         -        generation
storage.k8s.io/v1               VolumeAttributesClass            vac      cluster

v1                              ComponentStatus                  cs       unserved
certificates.k8s.io/-           ClusterTrustBundle               -        unserved
certificates.k8s.io/-           PodCertificateRequest            -        unserved
coordination.k8s.io/-           LeaseCandidate                   -        unserved
events.k8s.io/-                 Event                            ev       unserved
internal.apiserver.k8s.io/-     StorageVersion                   -        unserved
metrics.k8s.io/-                NodeMetrics                      -        unserved
metrics.k8s.io/-                PodMetrics                       -        unserved
policy/-                        PodSecurityPolicy                -        unserved
resource.k8s.io/-               PodSchedulingContext             -        unserved
resource.k8s.io/-               ResourceClass                    -        unserved
resource.k8s.io/-               ResourcePoolStatusRequest        -        unserved
storagemigration.k8s.io/-       StorageVersionMigration          -        unserved
"""
# The older form of scheduler-plugins is another version of a PodGroup.
_OTHER_VERSIONS = {
    ("", "Event"): ("events.k8s.io/v1",),
    ("autoscaling", "HorizontalPodAutoscaler"): ("autoscaling/v1",),
    ("scheduling.k8s.io", "PodGroup"): (OLDER_VERSION,),
}
# A binding binds a pod that only the body names; it is not stored.
_OTHER_VERBS = {"Binding": ("create",), "Namespace": tuple(verb for verb in ALL_VERBS if verb != "deletecollection")}


def _kind(line: str) -> tuple[Kind, bool]:
    """Return the kind of a line, and whether a store has it."""
    api_version, name, short, *has = line.split()
    group, _, version = api_version.rpartition("/")
    served = dict.fromkeys(each.api_version for each in served_versions().get((group, name), ()))
    kind = Kind(
        group,
        name,
        "cluster" not in has,
        _TYPES.get(name, Kubernetes),
        version,
        has_status="status" in has,
        has_scale="scale" in has,
        other_versions=(
            *(other for other in served if other != api_version),
            *_OTHER_VERSIONS.get((group, name), ()),
        ),
        verbs=_OTHER_VERBS.get(name, ALL_VERBS),
        has_generation="generation" in has,
        short_names=() if short == "-" else tuple(short.split(",")),
        categories=tuple(word for word in has if word in ("all", "api-extensions")),
    )
    return kind, "unserved" not in has


_LINES = [_kind(line) for line in _TABLE.splitlines() if line]

KINDS = {(kind.group, kind.name): kind for kind, _ in _LINES if kind.type is not Kubernetes}
"""The kinds that Podium reads, in the creation order of an input's objects."""

KIND_OF = {kind.type: kind for kind in KINDS.values()}
"""The same kinds by the type of their reading."""

KEPT_KINDS = tuple(kind for kind, is_stored in _LINES if is_stored and kind.type is Kubernetes)
"""The kinds that a store keeps although Podium does not read them."""

_ALIASES = {(group_of(version), kind.name): kind for kind in KINDS.values() for version in kind.other_versions}

SERVED_KINDS = {(kind.group, kind.name): kind for kind in (*KEPT_KINDS, *KINDS.values())}
"""All kinds that a store holds, including those that not every version serves."""

# Kubernetes' own kinds that create, scale, change or refuse pods, besides those that are read.
_WITH_PODS = frozenset(
    "HorizontalPodAutoscaler MutatingAdmissionPolicy MutatingWebhookConfiguration ValidatingAdmissionPolicy "
    "ValidatingWebhookConfiguration".split()
)

_BUILT_IN = {(kind.group, kind.name) for kind, _ in _LINES}
_BUILT_IN_GROUPS = frozenset((*(group for group, _ in _BUILT_IN), "extensions"))
_GROUP_OF = {kind.name: kind.group for kind in KINDS.values()}


def read_kind(group: str, name: str) -> Kind | None:
    """Return the kind that Podium reads, also for the group of another version of it; None for any other."""
    return KINDS.get((group, name)) or _ALIASES.get((group, name))


def manifest_of(item: Kubernetes) -> Raw:
    """Return the manifest of an object that no file has."""
    kind = KIND_OF[type(item)]
    return {"apiVersion": kind.api_version, "kind": kind.name, **plain(item)}


def right_group(group: str, kind: str) -> str | None:
    """Return the group that has the kind if `group` is a built-in one without it; otherwise None."""
    right = _GROUP_OF.get(kind)
    has_it = (group, kind) in _BUILT_IN
    return right if right is not None and right != group and group in _BUILT_IN_GROUPS and not has_it else None


def right_name(group: str, kind: str) -> str | None:
    """Return the kind of a built-in group whose name differs only in case; otherwise None."""
    if group not in _BUILT_IN_GROUPS or (group, kind) in _BUILT_IN:
        return None
    return next((name for of, name in sorted(_BUILT_IN) if of == group and name.lower() == kind.lower()), None)


def known_names(group: str) -> list[str] | None:
    """Return the kinds of a built-in group, sorted; None for any other group."""
    return sorted(name for of, name in _BUILT_IN if of == group) if group in _BUILT_IN_GROUPS else None


def may_affect_pods(group: str, kind: str) -> bool:
    """Return whether objects of a kind that is not read may create, scale, change or refuse pods.

    For Kubernetes' own kinds that is known; an operator may create pods for any of its kinds.
    """
    return ((group, kind) not in _BUILT_IN and (group, kind) not in _ALIASES) or kind in _WITH_PODS
