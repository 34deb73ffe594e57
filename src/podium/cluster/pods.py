"""The pods that a scheduler knows: records, and columns over slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from weakref import ref

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from podium.api.meta import ObjectMeta, OwnerReference
from podium.api.pod import MIRROR_ANNOTATION, Pod, PodCondition, PodSpec, PodStatus
from podium.api.policy import NEVER_PREEMPTED, preemption_policy
from podium.api.resource_requests import reports_any
from podium.api.times import parse_time
from podium.cluster.arrays import Bools, Int32s, Int64s, grown, take_out
from podium.cluster.pod_classes import PodClass

NO_ROW = -1
# A pod without a start time counts as started last (pkg/scheduler/util GetPodStartTime: now).
NOT_STARTED_NS = np.iinfo(np.int64).max
PREEMPTED = "PreemptionByScheduler"
TEMPLATE_HASH = "pod-template-hash"
"""The label that distinguishes the pods of a Deployment's ReplicaSets."""
DEFAULT_POLICY = "PreemptLowerPriority"


class PodRecord(Struct, eq=False):
    """One pod as the scheduler knows it; ``key`` is `namespace/name`.

    ``node_name`` is where it runs, is bound or assumed ("" if pending), ``row`` that node's row (`NO_ROW` if unknown).
    ``start_ns`` is `NOT_STARTED_NS` without a start time. ``ready``: the Ready condition is true. ``preempted``: it has
    the DisruptionTarget condition of a scheduler's preemption. ``made_claims`` are the device claims created for it:
    the pod's name for each and the claim's name, None if none is needed. ``read_from`` is the spec that determined its
    class, None if its status did too.
    """

    namespace: str
    name: str
    uid: str
    pod_class: PodClass
    priority: int
    preemption_policy: str
    created_ns: int
    start_ns: int
    ready: bool
    terminating: bool
    preempted: bool
    node_name: str
    nominated_node_name: str
    annotations: Mapping[str, str]
    gates: tuple[str, ...]
    scheduler_name: str
    controller: OwnerReference | None
    made_claims: tuple[tuple[str, str | None], ...] = ()
    read_from: ref[PodSpec] | None = None
    row: int = NO_ROW
    slot: int = -1
    key: str = ""

    def __post_init__(self) -> None:
        self.key = f"{self.namespace}/{self.name}"

    @property
    def owner_uid(self) -> str:
        """Return the uid of the pod's controller, or its own without one."""
        if self.controller is None:
            return self.uid
        return self.controller.uid or f"{self.namespace}/{self.controller.kind}/{self.controller.name}"

    @property
    def workload(self) -> str:
        """Return the topmost owner known from names, as `namespace/Kind/name`.

        Pods of a Deployment's ReplicaSets belong to the Deployment; a pod without a controller to itself.
        """
        return workload_of(self.namespace, self.name, self.controller, self.labels)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.pod_class.labels

    @property
    def spec(self) -> PodSpec:
        """Return the pod's spec without node, priority and gates."""
        return self.pod_class.spec

    def on_node(self, node_name: str, **changes: Any) -> PodRecord:
        """Return a copy of the pod on a node, without a nomination and with other changes."""
        return replace(self, node_name=node_name, nominated_node_name="", row=NO_ROW, slot=-1, **changes)

    def without_node(self, **changes: Any) -> PodRecord:
        """Return the pod as its controller creates it again: without a node, and with the requests of its spec."""
        return self.on_node("", pod_class=self.pod_class.recreated or self.pod_class, **changes)

    @property
    def is_healthy(self) -> bool:
        """Return whether rates and caps count the pod's disruption: it is ready and not terminating."""
        return self.ready and not self.terminating

    @property
    def is_preemptible(self) -> bool:
        """Return whether the pod's policy allows its preemption; drains and node pressure may remove it in any case."""
        return self.preemption_policy not in NEVER_PREEMPTED

    def ranks_as(self, other: PodRecord) -> bool:
        """Return whether preemption treats two readings of the pod alike."""
        return (
            self.start_ns == other.start_ns
            and (self.controller is other.controller or self.owner_uid == other.owner_uid)
            and (self.preemption_policy == other.preemption_policy or self.is_preemptible == other.is_preemptible)
            and (self.annotations is other.annotations or self.is_mirror == other.is_mirror)
        )

    @property
    def is_mirror(self) -> bool:
        """Return whether the pod mirrors a static pod of its kubelet; deleting it changes nothing."""
        return MIRROR_ANNOTATION in self.annotations


def workload_of(namespace: str, name: str, controller: OwnerReference | None, labels: Mapping[str, str]) -> str:
    """Return `PodRecord.workload` for a pod of that name, controller and labels."""
    if controller is None:
        return f"{namespace}/Pod/{name}"
    kind, owner = top_owner(controller, labels.get(TEMPLATE_HASH, ""))
    return f"{namespace}/{kind}/{owner}"


def top_owner(controller: OwnerReference, template_hash: str) -> tuple[str, str]:
    """Return kind and name of the workload above a pod's controller.

    A Deployment's ReplicaSet is named after the Deployment and the pods' template hash.
    """
    if controller.kind == "ReplicaSet" and template_hash:
        name = controller.name.removesuffix(f"-{template_hash}")
        if name != controller.name:
            return "Deployment", name
    return controller.kind, controller.name


def read_pod(pod: Pod, pod_class: PodClass, *, honors_policy: bool = True) -> PodRecord:
    """Return the record of a pod as the API shows it. A pod without a uid gets its key as uid.

    Without ``honors_policy`` the preemption policy is the default, whatever the pod says.
    """
    meta, spec, status = pod.metadata, pod.spec, pod.status
    # Fast paths: most pending pods have no conditions, gates or claims.
    ready, preempted = _read_conditions(status.conditions) if status.conditions else (False, False)
    claims = status.resource_claim_statuses
    # Positional, since some twenty keyword arguments take twice as long.
    return PodRecord(
        meta.namespace,
        meta.name,
        meta.uid or pod.key,
        pod_class,
        pod.priority,
        preemption_policy(pod) if honors_policy else DEFAULT_POLICY,
        parse_time(meta.creation_timestamp) if meta.creation_timestamp else 0,
        parse_time(status.start_time) if status.start_time else NOT_STARTED_NS,
        ready,
        pod.is_terminating,
        preempted,
        spec.node_name,
        pod.nominated_node_name,
        meta.annotations,
        tuple(gate.name for gate in spec.scheduling_gates) if spec.scheduling_gates else (),
        spec.scheduler_name,
        meta.controller if meta.owner_references else None,
        tuple((claim.name, claim.resource_claim_name) for claim in claims) if claims else (),
        None if spec.node_name and shows_resources(status) else ref(spec),
    )


def _read_conditions(conditions: Sequence[PodCondition]) -> tuple[bool, bool]:
    """Return whether a pod's conditions show that it is ready, and that a scheduler preempted it."""
    ready = preempted = False
    # The first condition of a type counts.
    for condition in reversed(conditions):
        if condition.type == "Ready":
            ready = condition.status == "True"
        elif condition.type == "DisruptionTarget":
            preempted = condition.status == "True" and condition.reason == PREEMPTED
    return ready, preempted


def shows_resources(status: PodStatus) -> bool:
    """Return whether the status of a pod on a node may affect its requests."""
    return status.resources is not None or reports_any(status.container_statuses, status.init_container_statuses)


def has_same_class(record: PodRecord, pod: Pod) -> bool:
    """Return whether a newer reading of a record's pod certainly has the same class, without reading its spec."""
    meta, read_from = pod.metadata, record.read_from
    return (
        read_from is not None
        and read_from() is pod.spec
        and not (pod.spec.node_name and shows_resources(pod.status))
        and record.pod_class.labels == meta.labels
        and record.controller == (meta.controller if meta.owner_references else None)
    )


def differs_by_node_alone(before: Pod, after: Pod) -> bool:
    """Return whether records of two readings of a pod differ in the node only, which the second one sets.

    Readings with nominations, or whose status affects the requests, are treated as different.
    """
    return (
        _same_metadata(before.metadata, after.metadata)
        and _same_status(before.status, after.status)
        and not shows_resources(after.status)
        and not after.nominated_node_name
        and replace(after.spec, node_name="") == before.spec
    )


def differs_by_nomination_alone(before: Pod, after: Pod) -> bool:
    """Return whether records of two readings of a pending pod differ at most in the nomination.

    False if that cannot be decided without comparing the specs.
    """
    status, was = after.status, before.status
    return (
        after.spec is before.spec
        and not after.spec.node_name
        and status.phase == was.phase
        and _same_metadata(before.metadata, after.metadata)
        and after.metadata.name == before.metadata.name
        and after.metadata.namespace == before.metadata.namespace
        and _same_status(was, status)
    )


def _same_metadata(before: ObjectMeta, after: ObjectMeta) -> bool:
    """Return whether the metadata of two readings, names aside, give the same record."""
    return before is after or (
        before.labels == after.labels
        and before.annotations == after.annotations
        and before.owner_references == after.owner_references
        and before.deletion_timestamp == after.deletion_timestamp
        and before.creation_timestamp == after.creation_timestamp
    )


def _same_status(before: PodStatus, after: PodStatus) -> bool:
    """Return whether the status of two readings gives the same record."""
    return before is after or (
        before.start_time == after.start_time
        and before.resource_claim_statuses == after.resource_claim_statuses
        and (
            before.conditions is after.conditions
            or _read_conditions(before.conditions) == _read_conditions(after.conditions)
        )
    )


class PodTable:
    """The pods that occupy a node (running, bound or assumed), as columns over slots.

    ``row[slot]`` is `NO_ROW` for free slots and unknown nodes. ``healthy``: see `PodRecord.is_healthy`. ``of_class``
    has the slots of each class, by class id.
    """

    def __init__(self, capacity: int = 256) -> None:
        self.row: Int32s = np.full(capacity, NO_ROW, dtype=np.int32)
        self.pod_class: Int32s = np.zeros(capacity, dtype=np.int32)
        self.priority: Int64s = np.zeros(capacity, dtype=np.int64)
        self.start_ns: Int64s = np.zeros(capacity, dtype=np.int64)
        self.terminating: Bools = np.zeros(capacity, dtype=np.bool_)
        self.healthy: Bools = np.zeros(capacity, dtype=np.bool_)
        self.records: list[PodRecord | None] = []
        self.of_class: dict[int, dict[int, None]] = {}
        self._free: list[int] = []

    @property
    def count(self) -> int:
        """Return the number of slots that are or were in use."""
        return len(self.records)

    def record(self, slot: int) -> PodRecord:
        """Return the pod in ``slot``; raises KeyError for a free one."""
        record = self.records[slot]
        if record is None:
            raise KeyError(slot)
        return record

    def put(self, record: PodRecord) -> None:
        """Give a record without a row a slot, and write its columns."""
        if self._free:
            slot = self._free.pop()
            self.records[slot] = record
        else:
            slot = len(self.records)
            if slot == len(self.row):
                for name in ("row", "pod_class", "priority", "start_ns", "terminating", "healthy"):
                    setattr(self, name, grown(getattr(self, name), 2 * slot))
                self.row[slot:] = NO_ROW
            self.records.append(record)
        record.slot = slot
        self.pod_class[slot] = record.pod_class.id
        self.priority[slot] = record.priority
        self.start_ns[slot] = record.start_ns
        self.terminating[slot] = record.terminating
        self.of_class.setdefault(record.pod_class.id, {})[slot] = None
        self.healthy[slot] = record.is_healthy

    def replace(self, record: PodRecord) -> None:
        """Replace the record in a slot; class, priority and row stay the same."""
        self.records[record.slot] = record
        self.start_ns[record.slot] = record.start_ns
        self.healthy[record.slot] = record.is_healthy

    def remove(self, record: PodRecord) -> None:
        """Free the slot of a record without a row."""
        slot = record.slot
        if self.records[slot] is not record:
            raise ValueError(f"pod {record.key} is not in slot {slot}")
        self.records[slot] = None
        record.slot = -1
        self._free.append(slot)
        take_out(self.of_class, record.pod_class.id, slot)

    def slots_of(self, classes: Iterable[int]) -> Int64s:
        """Return the slots of the pods of some classes (ids)."""
        slots = [slot for class_id in classes for slot in self.of_class.get(class_id, ())]
        return np.array(slots, dtype=np.int64)
