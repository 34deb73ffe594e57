"""What scheduling reads of a pod: equal for all pods of one sort, and worked out once for them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.api.meta import ObjectMeta
from podium.api.pod import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    Container,
    GCEPersistentDisk,
    PodAffinity,
    PodSpec,
    Volume,
)
from podium.cluster.affinity_term import AffinityTerm, compile_term
from podium.cluster.marks import (
    AFFINITY,
    ANTI_AFFINITY,
    CLAIM,
    DISK,
    HOST_PORT,
    NAMESPACE,
    PREFERENCE,
    Mark,
)

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


Disk = GCEPersistentDisk | AWSElasticBlockStore | RBD | ISCSI
"""A disk that a pod can name itself."""

Owner = tuple[str, str, str]
"""A controller's API group, kind and name."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class PodClass:
    """What scheduling reads of a pod, and what was worked out from it.

    ``id`` is the class's place in arrays over classes; that of a class which ended is given to another one.
    ``owner`` is None for pods without a controller. ``requests`` maps resource indices (see `NodeColumns.resource`) to
    amounts: cpu in milli, others in whole units. ``nonzero`` is (cpu milli, memory bytes) with defaults for containers
    that name none, and ``nonzero_of_containers`` the same without regard to pod-level requests. ``marks`` are what
    questions about classes may need (`podium.cluster.marks`). ``pod_group`` is the key of the PodGroup that the pods
    name, "" for none. ``memo`` belongs to plugins: what they compile from the class alone, under keys of their own. It
    must not lead back to the class.
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
    marks: tuple[Mark, ...] = ()
    pod_group: str = ""
    memo: dict[Hashable, Any] = field(default_factory=dict)


def preferred_terms(near: PodAffinity, far: PodAffinity, namespace: str) -> tuple[WeightedTerm, ...]:
    """The preferred terms, each once: the weights of a term that is written several times add up."""
    weights: dict[AffinityTerm, int] = {}
    for sign, written in ((1, near.preferred), (-1, far.preferred)):
        for weighted in written:
            term = compile_term(weighted.pod_affinity_term, namespace)
            weights[term] = weights.get(term, 0) + sign * weighted.weight
    return tuple(WeightedTerm(weight, term) for term, weight in weights.items())


def claim_names(meta: ObjectMeta, spec: PodSpec) -> tuple[str, ...]:
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
    if not spec.init_containers:
        for container in spec.containers:
            if container.ports:
                break
        else:
            return ()
    sidecars = tuple(init for init in spec.init_containers if init.restart_policy == "Always")
    containers: tuple[Container, ...] = spec.containers + sidecars
    found = (
        HostPort(port.host_ip or WILDCARD_IP, port.protocol or "TCP", number)
        for container in containers
        for port in container.ports
        if (number := port.host_port or (port.container_port if spec.host_network else 0)) > 0
    )
    return tuple(dict.fromkeys(found))


def marks_of(pod_class: PodClass) -> tuple[Mark, ...]:
    """What questions about classes may need of a class."""
    return (
        (NAMESPACE, pod_class.namespace),
        *pod_class.labels.items(),
        *((ANTI_AFFINITY, term) for term in pod_class.required_anti_affinity),
        *((AFFINITY, term) for term in pod_class.required_affinity),
        *((PREFERENCE, weighted_term.weight, weighted_term.term) for weighted_term in pod_class.preferred),
        *((HOST_PORT, port) for port in pod_class.host_ports),
        *((CLAIM, name) for name in pod_class.claims),
        *(disk_mark(disk) for disk in disks_in(pod_class.spec.volumes)),
    )


def disks_in(volumes: Iterable[Volume]) -> tuple[Disk, ...]:
    """The disks that a pod names itself, without a claim."""
    sources = (
        source
        for volume in volumes
        for source in (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi)
    )
    return tuple(one for one in sources if one is not None)


def disk_mark(disk: Disk) -> Mark:
    """What two disks share that conflict."""
    match disk:
        case AWSElasticBlockStore():
            return DISK, "ebs", disk.volume_id
        case GCEPersistentDisk():
            return DISK, "gce", disk.pd_name
        case RBD():
            return DISK, "rbd", disk.pool, disk.image
        case ISCSI():
            return DISK, "iscsi", disk.iqn
