"""Pod classes: the compiled data that pods with equal scheduling fields share.

The ten thousand pods of a Deployment are one class: requests, selectors and terms are compiled for the first pod, and
the others refer to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple
from weakref import ref

import msgspec
import numpy as np

from podium.api import resource_requests
from podium.api.kinds import group_of
from podium.api.meta import NAMESPACE_NAME_LABEL, ObjectMeta, OwnerReference
from podium.api.pod import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    Container,
    GCEPersistentDisk,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    Volume,
)
from podium.api.pod_group import group_of_pod
from podium.api.selectors import NOTHING, Selector, compile_label_selector
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Behavior, Release
from podium.cluster import selector_index
from podium.cluster.arrays import Int64s, add_count, grown
from podium.cluster.nodes import NodeColumns


class NamespaceLabels:
    """The labels of each namespace.

    An unknown namespace has only the label that the API server gives to all, its own name, so that dumps without
    Namespace objects work. (Upstream lists Namespaces and would not see it.)
    """

    def __init__(self, release: Release = DEFAULT_RELEASE) -> None:
        self._labels: dict[str, Mapping[str, str]] = {}
        self.generation = 0
        """The number of changes so far."""
        self.negative_mean_all = release.has(Behavior.NEGATIVE_NAMESPACES_MATCH_ALL)
        """Return whether negative namespace selectors of pods to be scheduled select every namespace."""

    def __getitem__(self, name: str) -> Mapping[str, str]:
        labels = self._labels.get(name)
        return {NAMESPACE_NAME_LABEL: name} if labels is None else labels

    def put(self, name: str, labels: Mapping[str, str]) -> bool:
        """Set a namespace's labels; return whether they changed."""
        changed = self[name] != labels
        self._labels[name] = labels
        self.generation += changed
        return changed

    def remove(self, name: str) -> bool:
        """Remove a namespace; return whether its labels changed."""
        labels = self._labels.pop(name, None)
        changed = labels is not None and labels != self[name]
        self.generation += changed
        return changed


class AffinityTerm(msgspec.Struct, frozen=True):
    """A compiled inter-pod affinity term, comparable and hashable.

    Selects pods in ``namespaces`` or matched by ``namespace_selector``. ``repetition`` distinguishes equal terms of a
    pod, each of which counts in scores. Source: core/v1 PodAffinityTerm; pkg/scheduler/framework/types.go
    (AffinityTerm).
    """

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    repetition: int = 0

    def selects(self, namespace: str, labels: Mapping[str, str], namespaces: NamespaceLabels) -> bool:
        """Return whether this term of a placed pod selects a pod of ``namespace`` with ``labels``."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespaces[namespace])
        ) and self.selector.matches(labels)

    def selects_for_owner(self, namespace: str, labels: Mapping[str, str], namespaces: NamespaceLabels) -> bool:
        """Return whether this term of a pod to be scheduled selects another pod.

        A namespace selector that an empty label set matches (NotIn, DoesNotExist) then selects every namespace since
        1.34: kube-scheduler resolves the selector to namespaces, but clears it only in a copy, and matches it against
        no labels (interpodaffinity/plugin.go, mergeAffinityTermNamespacesIfNotEmpty).
        """
        means_all = namespaces.negative_mean_all and self.namespace_selector.matches({})
        return self.selector.matches(labels) if means_all else self.selects(namespace, labels, namespaces)

    @property
    def required_keys(self) -> list[list[selector_index.IndexKey]]:
        """Return the index keys that a pod class needs in order to be selected."""
        groups = selector_index.selector_keys(self.selector)
        if self.namespace_selector == NOTHING:
            groups.append([(selector_index.NAMESPACE, name) for name in sorted(self.namespaces)])
        return groups


def compile_terms(terms: Sequence[PodAffinityTerm], namespace: str) -> tuple[AffinityTerm, ...]:
    """Compile the required terms of a pod in ``namespace``; repeated terms stay distinct."""
    if not terms:
        return ()
    seen = Counter[AffinityTerm]()
    found = []
    for term in terms:
        compiled = compile_term(term, namespace)
        found.append(msgspec.structs.replace(compiled, repetition=seen[compiled]))
        seen[compiled] += 1
    return tuple(found)


def compile_term(term: PodAffinityTerm, namespace: str) -> AffinityTerm:
    """Compile a term of a pod in ``namespace``.

    matchLabelKeys are ignored as in kube-scheduler, since the API server merges them into the selector when the pod is
    created (pkg/registry/core/pod/strategy.go).
    """
    own = (namespace,) if not term.namespaces and term.namespace_selector is None else term.namespaces
    wider = NOTHING if term.namespace_selector is None else compile_label_selector(term.namespace_selector)
    return AffinityTerm(term.topology_key, compile_label_selector(term.label_selector), frozenset(own), wider)


WILDCARD_IP = "0.0.0.0"  # noqa: S104 - the address that stands for all of a node's addresses


class HostPort(msgspec.Struct, frozen=True):
    """A port that a pod occupies on its node."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Return whether two pods cannot hold both: same port and protocol on overlapping addresses."""
        return (
            self.port == other.port
            and self.protocol == other.protocol
            and (self.ip == other.ip or WILDCARD_IP in (self.ip, other.ip))
        )


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A preferred affinity term; the weight is negative for anti-affinity."""

    weight: int
    term: AffinityTerm


Disk = GCEPersistentDisk | AWSElasticBlockStore | RBD | ISCSI
"""A disk that a pod can mount without a claim."""

Owner = tuple[str, str, str]
"""A controller's API group, kind and name."""


class PodClass(msgspec.Struct, eq=False, weakref=True):
    """The compiled fields of a pod that scheduling reads.

    ``id`` is the index into arrays over classes; the id of an ended class is reused. ``owner`` is None for pods without
    a controller. ``requests`` maps resource indices (`NodeColumns.resource`) to amounts: cpu in milli, others in whole
    units. ``nonzero`` is (cpu milli, memory bytes) with defaults for containers that request none;
    ``nonzero_of_containers`` ignores pod-level requests. ``index_keys`` are for `podium.cluster.selector_index`.
    ``pod_group`` is the key of the PodGroup, or "". ``memo`` is for plugins' compiled data; it must not refer to the
    class. ``recreated`` is the class of a new pod of the same spec if a resize lets this one count differently.
    """

    id: int
    namespace: str
    labels: Mapping[str, str]
    spec: PodSpec
    owner: Owner | None
    requests: dict[int, int]
    nonzero: tuple[int, int]
    nonzero_of_containers: tuple[int, int]
    qos: str
    host_ports: tuple[HostPort, ...]
    claims: tuple[str, ...]
    required_affinity: tuple[AffinityTerm, ...]
    required_anti_affinity: tuple[AffinityTerm, ...]
    preferred: tuple[WeightedTerm, ...]
    index_keys: tuple[selector_index.IndexKey, ...] = ()
    pod_group: str = ""
    memo: dict[Hashable, Any] = {}
    recreated: PodClass | None = None


def claim_names(meta: ObjectMeta, spec: PodSpec) -> tuple[str, ...]:
    """Return the names of the claims that a pod mounts; an ephemeral volume's claim is named after pod and volume."""
    names = []
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{meta.name}-{volume.name}")
    return tuple(names)


def host_ports(spec: PodSpec, *, with_sidecars: bool = True) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars (pkg/scheduler/util GetHostPorts).

    With host networking every container port is a host port, as the API server defaults it (defaults.go).
    """
    if not spec.init_containers and not any(container.ports for container in spec.containers):
        return ()
    sidecars = tuple(init for init in spec.init_containers if with_sidecars and init.restart_policy == "Always")
    containers: tuple[Container, ...] = spec.containers + sidecars
    found = (
        HostPort(port.host_ip or WILDCARD_IP, port.protocol or "TCP", number)
        for container in containers
        for port in container.ports
        if (number := port.host_port or (port.container_port if spec.host_network else 0)) > 0
    )
    return tuple(dict.fromkeys(found))


def index_keys_of(pod_class: PodClass) -> tuple[selector_index.IndexKey, ...]:
    """Return the index keys of a class."""
    return (
        (selector_index.NAMESPACE, pod_class.namespace),
        *pod_class.labels.items(),
        *((selector_index.ANTI_AFFINITY, term) for term in pod_class.required_anti_affinity),
        *((selector_index.AFFINITY, term) for term in pod_class.required_affinity),
        *(
            (selector_index.PREFERENCE, weighted_term.weight, weighted_term.term)
            for weighted_term in pod_class.preferred
        ),
        *((selector_index.HOST_PORT, port) for port in pod_class.host_ports),
        *((selector_index.CLAIM, name) for name in pod_class.claims),
        *(disk_key(disk) for disk in disks_in(pod_class.spec.volumes)),
    )


def disks_in(volumes: Iterable[Volume]) -> tuple[Disk, ...]:
    """Return the disks that a pod mounts without a claim."""
    sources = (
        source
        for volume in volumes
        for source in (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi)
    )
    return tuple(one for one in sources if one is not None)


def disk_key(disk: Disk) -> selector_index.IndexKey:
    """Return an index key that conflicting disks share."""
    match disk:
        case AWSElasticBlockStore():
            return selector_index.DISK, "ebs", disk.volume_id
        case GCEPersistentDisk():
            return selector_index.DISK, "gce", disk.pd_name
        case RBD():
            return selector_index.DISK, "rbd", disk.pool, disk.image
        case ISCSI():
            return selector_index.DISK, "iscsi", disk.iqn


KEPT_CLASSES = 256
"""The number of recently read plain classes that are kept after their last pod, since a similar pod may follow."""

KEPT_CONTAINERS = 1_024
"""The number of lists of containers whose last class is kept, for pods that share them."""

_KEY_BYTES = 16

Described = tuple[str, dict[str, str], tuple[OwnerReference, ...], tuple[str, ...]]
"""The inputs of a class besides the spec: namespace, labels, owners and claims."""


class ClassRef(ref[PodClass]):
    """A weak reference to a class, with what has to be released when the class ends."""

    __slots__ = ("carried", "host_ports", "id", "key", "resources")

    def __init__(self, pod_class: PodClass, ended: Callable[[Any], object], key: bytes) -> None:
        super().__init__(pod_class, ended)  # type: ignore[call-arg]
        self.id = pod_class.id
        self.key = key
        self.host_ports = pod_class.host_ports
        self.resources = tuple(pod_class.requests)
        self.carried = terms_of(pod_class)

    def __new__(cls, pod_class: PodClass, ended: Callable[[Any], object], key: bytes) -> ClassRef:
        return super().__new__(cls, pod_class, ended)


TermsOfClass = tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...], tuple[WeightedTerm, ...]]
"""The affinity terms of a pod class: required anti-affinity, required affinity, and preferences."""


def terms_of(pod_class: PodClass) -> TermsOfClass:
    """Return the affinity terms of a pod class."""
    return pod_class.required_anti_affinity, pod_class.required_affinity, pod_class.preferred


class CountingRules(NamedTuple):
    """The parts of a pod that count for schedulers and kubelets of a version.

    ``pod_level``: the resources of the whole pod; ``resizes``: those in its status, and ``pod_resizes`` in that of the
    whole pod; ``sidecar_ports``: the host ports of init containers that always restart.
    """

    pod_level: bool = True
    resizes: bool = True
    pod_resizes: bool = True
    sidecar_ports: bool = True

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, release: Release) -> CountingRules:
        return cls(
            release.enabled(Gate.POD_LEVEL_RESOURCES),
            release.enabled(Gate.IN_PLACE_RESIZE),
            release.enabled(Gate.IN_PLACE_RESIZE_OF_PODS),
            release.has(Behavior.SIDECAR_PORTS),
        )


ALL_COUNTS = CountingRules()


def _differ_in_nodes_alone(spec: PodSpec, other: PodSpec) -> bool:
    """Return whether specs with equal containers differ at most in the nodes that their affinity requires."""
    affinity, others = spec.affinity, other.affinity
    if affinity is None or others is None or msgspec.structs.replace(spec, affinity=others) != other:
        return False
    return msgspec.structs.replace(affinity, node_affinity=others.node_affinity) == others


class PodClasses:
    """The classes of all known pods. ``requests`` is ``[resources, ids]``, ``nonzero`` is ``[2, ids]``.

    A class ends with the last record that refers to it, or some time later if it is plain. References here are weak,
    except for recently read plain classes, so that Python counts the records. Ended classes are collected in ``ended``
    and removed by `take_ended` when that is safe.
    """

    def __init__(self, columns: NodeColumns, release: Release = DEFAULT_RELEASE) -> None:
        self._columns = columns
        self._rules = CountingRules.of(release)
        has_sums = release.has(Behavior.SIDECAR_DEFAULTS_SUMMED)
        self._nonzero_requests = (
            resource_requests.nonzero_requests if has_sums else resource_requests.largest_nonzero_requests
        )
        self._by_key: dict[bytes, ClassRef] = {}
        self._by_id: list[ClassRef | None] = []
        # In the order of reading.
        self._read_last: dict[PodClass, None] = {}
        self._free: list[int] = []
        self.ended: list[ClassRef] = []
        """The classes that ended since `take_ended`; read directly, since every pod checks it."""
        self._marked: selector_index.ObjectIndex[int] = selector_index.ObjectIndex()
        self._encoder = msgspec.msgpack.Encoder(order="deterministic")
        # By the identity of the containers, the class of the last pod with them, and what determines it. Pods that were
        # read together share their containers, and comparing with the last one takes less than a digest.
        self._by_containers: dict[int, tuple[PodSpec, Described, ClassRef]] = {}
        # By protocol and port, the host ports of all classes, with the number of classes that have each.
        self._host_ports: dict[tuple[str, int], dict[HostPort, int]] = {}
        self.requests: Int64s = np.zeros((len(columns.resources), 64), dtype=np.int64)
        self.nonzero: Int64s = np.zeros((2, 64), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[PodClass]:
        """Iterate over the classes, by id."""
        for known in self._by_id:
            pod_class = None if known is None else known()
            if pod_class is not None:
                yield pod_class

    def __getitem__(self, class_id: int) -> PodClass:
        """Return the class of an id; raises KeyError if there is none."""
        known = self._by_id[class_id]
        pod_class = None if known is None else known()
        if pod_class is None:
            raise KeyError(class_id)
        return pod_class

    def candidates(self, required_keys: selector_index.RequiredKeys) -> list[PodClass]:
        found = (self._by_id[class_id] for class_id in self._marked.candidates(required_keys))
        return [pod_class for reference in found if reference is not None and (pod_class := reference()) is not None]

    def host_ports_like(self, port: HostPort) -> list[HostPort]:
        """Return the host ports of all classes with the same number and protocol."""
        return list(self._host_ports.get((port.protocol, port.port), ()))

    def take_ended(self) -> list[ClassRef]:
        """Remove the classes that have ended and return them; their ids become free."""
        ended = self.ended[:]
        del self.ended[: len(ended)]
        for reference in ended:
            self._by_id[reference.id] = None
            self._free.append(reference.id)
            self._marked.remove(reference.id)
            self._columns.give_back_resources(reference.resources)
            if self._by_key[reference.key] is reference:
                del self._by_key[reference.key]
            for port in reference.host_ports:
                self._count_port(port, -1)
        return ended

    def counted_spec(self, pod: Pod) -> PodSpec:
        """Return the spec with the effective requests, which of a pending pod are those of its spec in any case."""
        if not pod.spec.node_name or not self._rules.resizes:
            return pod.spec
        return resource_requests.effective_spec(pod, resizes_pods=self._rules.pod_resizes)

    def of(self, pod: Pod) -> tuple[PodClass, bool]:
        """Return the class of ``pod``, and whether it is new."""
        spec, meta = pod.spec, pod.metadata
        if spec.resources is not None and not self._rules.pod_level:
            spec = msgspec.structs.replace(spec, resources=None)
            pod = msgspec.structs.replace(pod, spec=spec)
        # A volume of which only the name is known may have a different name in each pod.
        volumes = spec.volumes and tuple([volume for volume in spec.volumes if volume != Volume(name=volume.name)])
        is_bare = not spec.node_name and not spec.volumes
        anywhere = spec if is_bare else msgspec.structs.replace(spec, node_name="", volumes=volumes)
        claims = claim_names(meta, spec) if volumes else ()
        counted = self.counted_spec(pod)
        resized = None if counted is spec else (counted.containers, counted.init_containers, counted.resources)
        described = meta.namespace, meta.labels, meta.owner_references, claims
        alike = self._by_containers.get(id(spec.containers))
        if resized is None and alike is not None and alike[1] == described and alike[0] == anywhere:
            pod_class = alike[2]()
            if pod_class is not None:
                self._hold(pod_class)
                return pod_class, False
        owner = meta.controller if meta.owner_references else None
        owner_key = (group_of(owner.api_version), owner.kind, owner.name) if owner else None
        shared = msgspec.structs.replace(
            anywhere,
            priority=None,
            priority_class_name="",
            preemption_policy=None,
            scheduling_gates=(),
            security_context=None,
        )
        # A digest, since an encoded spec takes kilobytes and DaemonSets make as many classes as there are nodes.
        content = meta.namespace, meta.labels, owner_key, claims, shared, resized
        try:
            written = self._encoder.encode(content)
        except OverflowError:
            # An amount is a number of more than 64 bits.
            written = repr(content).encode()
        key = blake2b(written, digest_size=_KEY_BYTES).digest()
        known = self._by_key.get(key)
        pod_class = None if known is None else known()
        if is_new := pod_class is None:
            like = alike[2]() if resized is None and alike is not None and alike[1] == described else None
            if like is not None and _differ_in_nodes_alone(shared, like.spec):
                # Pods of a DaemonSet, which name their nodes.
                pod_class = msgspec.structs.replace(like, id=self._free_id(), spec=shared, memo={})
            else:
                pod_class = self._compile(meta, shared, counted, owner_key, claims)
            known = self._append(pod_class, key)
        self._hold(pod_class)
        if resized is None and known is not None:
            if len(self._by_containers) >= KEPT_CONTAINERS:
                self._by_containers.clear()
            self._by_containers[id(spec.containers)] = anywhere, described, known
        return pod_class, is_new

    def _hold(self, pod_class: PodClass) -> None:
        """Keep a plain class as the most recently read one. Classes with terms, claims or ports end with their pods."""
        if len(pod_class.index_keys) > 1 + len(pod_class.labels):
            return
        self._read_last.pop(pod_class, None)
        self._read_last[pod_class] = None
        if len(self._read_last) > KEPT_CLASSES:
            del self._read_last[next(iter(self._read_last))]

    def _compile(
        self, meta: ObjectMeta, spec: PodSpec, counted: PodSpec, owner: Owner | None, claims: tuple[str, ...]
    ) -> PodClass:
        """Compile a class; ``counted`` is the spec with the effective requests."""
        requests = resource_requests.pod_requests(counted)
        affinity = spec.affinity
        near = affinity.pod_affinity if affinity and affinity.pod_affinity else PodAffinity()
        far = affinity.pod_anti_affinity if affinity and affinity.pod_anti_affinity else PodAffinity()
        namespace = meta.namespace
        nonzero = self._nonzero_requests(counted)
        without = counted if counted.resources is None else msgspec.structs.replace(counted, resources=None)
        weights: dict[AffinityTerm, int] = {}
        for sign, written in ((1, near.preferred), (-1, far.preferred)):
            for weighted in written:
                term = compile_term(weighted.pod_affinity_term, namespace)
                weights[term] = weights.get(term, 0) + sign * weighted.weight
        return PodClass(
            id=self._free_id(),
            namespace=namespace,
            labels=meta.labels,
            spec=spec,
            owner=owner,
            requests={self._columns.resource(name): amount for name, amount in requests.items() if amount},
            nonzero=nonzero,
            nonzero_of_containers=resource_requests.nonzero_requests(without),
            qos=resource_requests.qos_class(spec),
            host_ports=host_ports(spec, with_sidecars=self._rules.sidecar_ports),
            claims=claims,
            required_affinity=compile_terms(near.required, namespace),
            required_anti_affinity=compile_terms(far.required, namespace),
            preferred=tuple(WeightedTerm(weight, term) for term, weight in weights.items()),
            pod_group=group_of_pod(namespace, meta.labels, spec),
        )

    def _free_id(self) -> int:
        return self._free.pop() if self._free else len(self._by_id)

    def _append(self, pod_class: PodClass, key: bytes) -> ClassRef:
        known = self._by_key[key] = ClassRef(pod_class, self.ended.append, key)
        if pod_class.id == len(self._by_id):
            self._by_id.append(known)
        else:
            self._by_id[pod_class.id] = known
        size = (len(self._columns.resources), self.requests.shape[1])
        if len(self._by_id) > size[1]:
            size = (size[0], 2 * size[1])
        if size != self.requests.shape:
            larger = np.zeros(size, dtype=np.int64)
            larger[: self.requests.shape[0], : self.requests.shape[1]] = self.requests
            self.requests, self.nonzero = larger, grown(self.nonzero, size[1])
        self.requests[:, pod_class.id] = 0
        for index, amount in pod_class.requests.items():
            self.requests[index, pod_class.id] = amount
        self.nonzero[:, pod_class.id] = pod_class.nonzero
        pod_class.index_keys = pod_class.index_keys or index_keys_of(pod_class)
        self._marked.put(pod_class.id, pod_class.index_keys)
        for port in pod_class.host_ports:
            self._count_port(port, 1)
        return known

    def _count_port(self, port: HostPort, sign: int) -> None:
        place = (port.protocol, port.port)
        held = self._host_ports.setdefault(place, {})
        if add_count(held, port, sign) and not held:
            del self._host_ports[place]
