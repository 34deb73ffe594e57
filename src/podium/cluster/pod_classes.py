"""Pods with equal scheduling fields share one class, compiled once.

A Deployment's ten thousand pods are one class: its requests, selectors and terms are worked out for the first pod,
and every other one only points at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import ref

import msgspec
import numpy as np

from podium.api.kinds import group_of
from podium.api.meta import ObjectMeta, OwnerReference
from podium.api.pod import (
    Pod,
    PodAffinity,
    PodSpec,
    Volume,
)
from podium.api.pod_group import group_of_pod
from podium.api.qos import qos_class
from podium.api.resize import effective_spec
from podium.api.resource_requests import nonzero_requests, pod_requests
from podium.cluster.affinity_term import AffinityTerm, compile_terms
from podium.cluster.arrays import Int64s
from podium.cluster.marks import (
    MarkedThings,
    Needs,
)
from podium.cluster.nodes import NodeColumns
from podium.cluster.pod_class import (
    HostPort,
    Owner,
    PodClass,
    WeightedTerm,
    claim_names,
    host_ports,
    marks_of,
    preferred_terms,
)

KEPT_CLASSES = 256
"""So many plain classes, those read last, are known on although their last pod is gone: its like may come again."""


class ClassRef(ref[PodClass]):
    """A class for as long as some pod's record points at it, and what is to be given back when none does any more."""

    __slots__ = ("carried", "host_ports", "id", "key", "resources")

    def __init__(self, pod_class: PodClass, ended: Callable[[Any], object], key: bytes) -> None:
        super().__init__(pod_class, ended)  # type: ignore[call-arg]
        self.id = pod_class.id
        self.key = key
        self.host_ports = pod_class.host_ports
        self.resources = tuple(pod_class.requests)
        self.carried = Carried(pod_class.required_anti_affinity, pod_class.required_affinity, pod_class.preferred)

    def __new__(cls, pod_class: PodClass, ended: Callable[[Any], object], key: bytes) -> ClassRef:
        return super().__new__(cls, pod_class, ended)


@dataclass(frozen=True, slots=True)
class Carried:
    """The affinity terms of a pod class."""

    anti_affinity: tuple[AffinityTerm, ...]
    affinity: tuple[AffinityTerm, ...]
    preferences: tuple[WeightedTerm, ...]


class PodClasses:
    """The classes of all pods that have a record. ``requests`` is ``[resources, ids]``, ``nonzero`` is ``[2, ids]``.

    A class ends with the last record of its pods, and a plain one some time later. Nobody counts the records but Python
    itself: the classes are held weakly here, but for the plain ones that were read last, and noted when they end, to be
    forgotten by `take_ended` when nothing is under way.
    """

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._by_key: dict[bytes, ClassRef] = {}
        self._by_id: list[ClassRef | None] = []
        # In the order of reading, the last one at the end.
        self._read_last: dict[PodClass, None] = {}
        self._free: list[int] = []
        self.ended: list[ClassRef] = []
        """Those that have ended since `take_ended`, as things are: whether there are any is asked for every pod."""
        self._marked: MarkedThings[int] = MarkedThings()
        self._encoder = msgspec.msgpack.Encoder(order="deterministic")
        # By the identity of their spec, the classes of pods that were read while they waited. The spec is kept, so that
        # nothing else gets its identity, with what else a class was found by.
        self._by_spec: dict[int, tuple[PodSpec, str, dict[str, str], tuple[OwnerReference, ...], ClassRef]] = {}
        # By protocol and port, the host ports that pods of some class hold, with the number of such classes.
        self._host_ports: dict[tuple[str, int], dict[HostPort, int]] = {}
        self.requests: Int64s = np.zeros((len(columns.resources), 64), dtype=np.int64)
        self.nonzero: Int64s = np.zeros((2, 64), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[PodClass]:
        """The classes, by id."""
        for known in self._by_id:
            pod_class = None if known is None else known()
            if pod_class is not None:
                yield pod_class

    def __getitem__(self, class_id: int) -> PodClass:
        """The class of an id; raises KeyError where there is none."""
        known = self._by_id[class_id]
        pod_class = None if known is None else known()
        if pod_class is None:
            raise KeyError(class_id)
        return pod_class

    @property
    def capacity(self) -> int:
        """Above every id."""
        return int(self.requests.shape[1])

    def candidates(self, needs: Needs) -> list[PodClass]:
        """The classes that may have what is needed."""
        found = (self._by_id[class_id] for class_id in self._marked.candidates(needs))
        return [pod_class for reference in found if reference is not None and (pod_class := reference()) is not None]

    def host_ports_like(self, port: HostPort) -> list[HostPort]:
        """The host ports of the port's number and protocol that pods of some class hold."""
        return list(self._host_ports.get((port.protocol, port.port), ()))

    def take_ended(self) -> list[ClassRef]:
        """The classes that have ended since the last time; from now on their ids are given to others."""
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

    def of(self, pod: Pod) -> tuple[PodClass, bool]:
        """The class of ``pod``, compiled if it is the first of its kind; and whether it is.

        Pods of one sort that wait are known to be of one class by the spec that they share.
        """
        spec, meta = pod.spec, pod.metadata
        known_spec = self._by_spec.get(id(spec))
        if (
            known_spec is not None
            and known_spec[1] == meta.namespace
            and known_spec[2] == meta.labels
            and known_spec[3] == meta.owner_references
            and (pod_class := known_spec[4]()) is not None
        ):
            self._hold(pod_class)
            return pod_class, False
        pod_class, is_new = self._read(pod)
        # A volume may be named after the pod, and on a node the status has a say in what counts.
        if not spec.volumes and not spec.node_name:
            if len(self._by_spec) >= KEPT_CLASSES:
                self._by_spec.clear()
            reference = self._by_id[pod_class.id]
            if reference is None:
                raise AssertionError(f"class {pod_class.id} is not known")
            self._by_spec[id(spec)] = spec, meta.namespace, meta.labels, meta.owner_references, reference
        return pod_class, is_new

    def _read(self, pod: Pod) -> tuple[PodClass, bool]:
        """The same by all that the pod says."""
        spec, meta = pod.spec, pod.metadata
        owner = meta.controller if meta.owner_references else None
        shared = msgspec.structs.replace(
            spec,
            node_name="",
            priority=None,
            priority_class_name="",
            preemption_policy=None,
            scheduling_gates=(),
            # A volume of which nothing but its name is read may be named for each pod anew.
            volumes=tuple([volume for volume in spec.volumes if volume != Volume(name=volume.name)]),
        )
        claims = claim_names(meta, spec) if spec.volumes else ()
        owner_key = (group_of(owner.api_version), owner.kind, owner.name) if owner else None
        # A pod that waits for a node is counted by its spec, whatever its status says.
        counted = effective_spec(pod) if spec.node_name else spec
        resized = None if counted is spec else (counted.containers, counted.init_containers, counted.resources)
        key = self._encoder.encode((meta.namespace, meta.labels, owner_key, claims, shared, resized))
        known = self._by_key.get(key)
        pod_class = None if known is None else known()
        if pod_class is not None:
            self._hold(pod_class)
            return pod_class, False
        pod_class = self._compile(meta, shared, counted, owner_key, claims)
        self._append(pod_class, key)
        self._hold(pod_class)
        return pod_class, True

    def _hold(self, pod_class: PodClass) -> None:
        """Let a plain class be the one read last; what others carry (terms, claims, ports) ends with their pods."""
        if len(pod_class.marks) > 1 + len(pod_class.labels):
            return
        self._read_last.pop(pod_class, None)
        self._read_last[pod_class] = None
        if len(self._read_last) > KEPT_CLASSES:
            del self._read_last[next(iter(self._read_last))]

    def _compile(
        self, meta: ObjectMeta, spec: PodSpec, counted: PodSpec, owner: Owner | None, claims: tuple[str, ...]
    ) -> PodClass:
        """The class of pods with a spec; ``counted`` is the spec with the requests that count."""
        requests = pod_requests(counted)
        affinity = spec.affinity
        near = affinity.pod_affinity if affinity and affinity.pod_affinity else PodAffinity()
        far = affinity.pod_anti_affinity if affinity and affinity.pod_anti_affinity else PodAffinity()
        namespace = meta.namespace
        return PodClass(
            id=self._free.pop() if self._free else len(self._by_id),
            namespace=namespace,
            labels=meta.labels,
            spec=spec,
            owner=owner,
            requests={self._columns.resource(name): amount for name, amount in requests.items() if amount},
            nonzero=nonzero_requests(counted),
            nonzero_of_containers=nonzero_requests(msgspec.structs.replace(counted, resources=None)),
            qos=qos_class(spec),
            host_ports=host_ports(spec),
            claims=claims,
            required_affinity=compile_terms(near.required, namespace),
            required_anti_affinity=compile_terms(far.required, namespace),
            preferred=preferred_terms(near, far, namespace),
            pod_group=group_of_pod(namespace, meta.labels, spec),
        )

    def _append(self, pod_class: PodClass, key: bytes) -> None:
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
            self.requests = larger
            nonzero = np.zeros((2, size[1]), dtype=np.int64)
            nonzero[:, : self.nonzero.shape[1]] = self.nonzero
            self.nonzero = nonzero
        self.requests[:, pod_class.id] = 0
        for index, amount in pod_class.requests.items():
            self.requests[index, pod_class.id] = amount
        self.nonzero[:, pod_class.id] = pod_class.nonzero
        pod_class.marks = marks_of(pod_class)
        self._marked.put(pod_class.id, pod_class.marks)
        for port in pod_class.host_ports:
            self._count_port(port, 1)

    def _count_port(self, port: HostPort, sign: int) -> None:
        place = (port.protocol, port.port)
        held = self._host_ports.setdefault(place, {})
        held[port] = held.get(port, 0) + sign
        if not held[port]:
            del held[port]
            if not held:
                del self._host_ports[place]
