"""Pods with equal scheduling fields share one class, compiled once.

A Deployment's ten thousand pods are one class: its requests, selectors and terms are worked out for the first pod,
and every other one only points at them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from podium.api.kinds import group_of
from podium.api.meta import ObjectMeta
from podium.api.pod import Container, Pod, PodAffinity, PodSpec
from podium.api.qos import qos_class
from podium.api.requests import nonzero_requests, pod_requests
from podium.api.resize import effective_spec
from podium.cluster.affinity_term import AffinityTerm, compile_term, compile_terms
from podium.cluster.arrays import Int64s
from podium.cluster.nodes import NodeColumns

WILDCARD_IP = "0.0.0.0"  # noqa: S104 - the address that stands for all of a node's addresses


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port that a pod takes on its node."""

    ip: str
    protocol: str
    port: int

    def conflicts(self, other: HostPort) -> bool:
        """Whether two pods cannot hold both: the same port and protocol on overlapping addresses."""
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


Owner = tuple[str, str, str]
"""A controller's API group, kind and name."""


@dataclass(slots=True, eq=False)
class PodClass:
    """What scheduling reads of a pod, and what was worked out from it.

    ``owner`` is None for pods without a controller. ``requests`` maps resource indices (see `NodeColumns.resource`) to
    amounts: cpu in milli, others in whole units. ``nonzero`` is (cpu milli, memory bytes) with defaults for containers
    that name none, and ``nonzero_of_containers`` the same without regard to pod-level requests. ``memo`` belongs to
    plugins: what they compile from the class alone, under keys of their own.
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
    memo: dict[Hashable, Any] = field(default_factory=dict)


class PodClasses:
    """All pod classes seen. ``requests`` is ``[resources, classes]``, ``nonzero`` is ``[2, classes]``."""

    def __init__(self, columns: NodeColumns) -> None:
        self._columns = columns
        self._by_key: dict[bytes, PodClass] = {}
        self._encoder = msgspec.msgpack.Encoder(order="deterministic")
        self.all: list[PodClass] = []
        # Every host port that pods of some class hold, in order of appearance.
        self.host_ports: dict[HostPort, None] = {}
        self.requests: Int64s = np.zeros((len(columns.resources), 64), dtype=np.int64)
        self.nonzero: Int64s = np.zeros((2, 64), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.all)

    def of(self, pod: Pod) -> PodClass:
        """The class of ``pod``, compiled if it is the first of its kind."""
        spec, owner = pod.spec, pod.metadata.controller
        shared = msgspec.structs.replace(
            spec, node_name="", priority=None, priority_class_name="", preemption_policy=None, scheduling_gates=()
        )
        claims = _claims(pod.metadata, spec)
        owner_key = (group_of(owner.api_version), owner.kind, owner.name) if owner else None
        # A pod that waits for a node is counted by its spec, whatever its status says.
        counted = effective_spec(pod) if spec.node_name else spec
        resized = None if counted is spec else (counted.containers, counted.init_containers, counted.resources)
        key = self._encoder.encode((pod.metadata.namespace, pod.metadata.labels, owner_key, claims, shared, resized))
        known = self._by_key.get(key)
        if known is None:
            known = self._by_key[key] = self._compile(pod.metadata, shared, counted, owner_key, claims)
        return known

    def _compile(
        self, meta: ObjectMeta, spec: PodSpec, counted: PodSpec, owner: Owner | None, claims: tuple[str, ...]
    ) -> PodClass:
        """The class of pods with a spec; ``counted`` is the spec with the requests that count."""
        requests = pod_requests(counted)
        affinity = spec.affinity
        near = affinity.pod_affinity if affinity and affinity.pod_affinity else PodAffinity()
        far = affinity.pod_anti_affinity if affinity and affinity.pod_anti_affinity else PodAffinity()
        namespace = meta.namespace
        pod_class = PodClass(
            id=len(self.all),
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
            preferred=_preferred(near, far, namespace),
        )
        self._append(pod_class)
        self.host_ports.update(dict.fromkeys(pod_class.host_ports))
        return pod_class

    def _append(self, pod_class: PodClass) -> None:
        self.all.append(pod_class)
        size = (len(self._columns.resources), self.requests.shape[1])
        if len(self.all) > size[1]:
            size = (size[0], 2 * size[1])
        if size != self.requests.shape:
            larger = np.zeros(size, dtype=np.int64)
            larger[: self.requests.shape[0], : self.requests.shape[1]] = self.requests
            self.requests = larger
            nonzero = np.zeros((2, size[1]), dtype=np.int64)
            nonzero[:, : self.nonzero.shape[1]] = self.nonzero
            self.nonzero = nonzero
        for index, amount in pod_class.requests.items():
            self.requests[index, pod_class.id] = amount
        self.nonzero[:, pod_class.id] = pod_class.nonzero


def _preferred(near: PodAffinity, far: PodAffinity, namespace: str) -> tuple[WeightedTerm, ...]:
    """The preferred terms, each once: the weights of a term that is written several times add up."""
    weights: dict[AffinityTerm, int] = {}
    for sign, written in ((1, near.preferred), (-1, far.preferred)):
        for one in written:
            term = compile_term(one.pod_affinity_term, namespace)
            weights[term] = weights.get(term, 0) + sign * one.weight
    return tuple(WeightedTerm(weight, term) for term, weight in weights.items())


def _claims(meta: ObjectMeta, spec: PodSpec) -> tuple[str, ...]:
    """The names of the claims that a pod mounts; an ephemeral volume's claim is named after pod and volume."""
    names = []
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{meta.name}-{volume.name}")
    return tuple(names)


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars (pkg/scheduler/util GetHostPorts).

    On the node's network each port of a container is one of the node, as the API server fills in (defaults.go).
    """
    sidecars = tuple(init for init in spec.init_containers if init.restart_policy == "Always")
    containers: tuple[Container, ...] = spec.containers + sidecars
    found = (
        HostPort(port.host_ip or WILDCARD_IP, port.protocol or "TCP", number)
        for container in containers
        for port in container.ports
        if (number := port.host_port or (port.container_port if spec.host_network else 0)) > 0
    )
    return tuple(dict.fromkeys(found))
