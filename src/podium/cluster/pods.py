"""The pods that a scheduler knows, each in a slot of some columns."""

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
from podium.api.times import parse_time
from podium.cluster.arrays import Bools, Int32s, Int64s, grown
from podium.cluster.pod_class import PodClass

NO_ROW = -1
# A pod without a start time counts as started last (pkg/scheduler/util GetPodStartTime: now).
NOT_STARTED_NS = np.iinfo(np.int64).max
PREEMPTED = "PreemptionByScheduler"
DEFAULT_POLICY = "PreemptLowerPriority"


class PodRecord(Struct, eq=False):
    """One pod as the scheduler knows it; its ``key`` is `namespace/name`.

    ``node_name`` is where it runs, is bound or assumed to run ("" while pending), ``row`` that node's row (`NO_ROW`
    while the node is unknown or there is none). ``start_ns`` is `NOT_STARTED_NS` without a start time. ``ready``: its
    condition Ready is true. ``preempted``: it carries the DisruptionTarget condition of a scheduler's preemption.
    ``made_claims`` are the claims for devices that were made for it: the pod's name for each, and its own (None for one
    that the pod does without). ``read_from`` is the spec that its class was found by, while others keep it; None
    where its status had a say in that.
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
        """Who the pod belongs to: the uid of its controller, or its own where it has none."""
        if self.controller is None:
            return self.uid
        return self.controller.uid or f"{self.namespace}/{self.controller.kind}/{self.controller.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.pod_class.labels

    @property
    def spec(self) -> PodSpec:
        """The pod's spec without what is the pod's own: node, priority and gates."""
        return self.pod_class.spec

    def on_node(self, node_name: str, **changes: Any) -> PodRecord:
        """The pod as it would come to a node and be nominated to none, with what else is to be another."""
        return replace(self, node_name=node_name, nominated_node_name="", row=NO_ROW, slot=-1, **changes)

    def without_node(self, **changes: Any) -> PodRecord:
        """The same on no node."""
        return self.on_node("", **changes)

    @property
    def is_healthy(self) -> bool:
        """Whether the pod's disruption would be one to its budgets' rates and to caps: ready, and not on its way."""
        return self.ready and not self.terminating

    @property
    def is_preemptible(self) -> bool:
        """Whether the pod's policy lets preemption remove it at all; drain and pressure on the node may in any case."""
        return self.preemption_policy not in NEVER_PREEMPTED

    def ranks_as(self, other: PodRecord) -> bool:
        """Whether nothing differs from another reading of the pod that preemption ranks it by, or spares it for."""
        return (
            self.start_ns == other.start_ns
            and (self.controller is other.controller or self.owner_uid == other.owner_uid)
            and (self.preemption_policy == other.preemption_policy or self.is_preemptible == other.is_preemptible)
            and (self.annotations is other.annotations or self.is_mirror == other.is_mirror)
        )

    @property
    def is_mirror(self) -> bool:
        """Whether the pod only mirrors one that its kubelet read from a file; deleting it changes nothing."""
        return MIRROR_ANNOTATION in self.annotations


def read_pod(pod: Pod, pod_class: PodClass, *, honors_policy: bool = True) -> PodRecord:
    """The record of a pod as the API shows it. A pod without a uid is known by its key.

    Without ``honors_policy`` the preemption policy is read as the default, whatever the pod says.
    """
    meta, spec, status = pod.metadata, pod.spec, pod.status
    # Most pods that wait have no conditions, gates and claims, so that nothing is looked for among them.
    ready, preempted = _said_by(status.conditions) if status.conditions else (False, False)
    claims = status.resource_claim_statuses
    # In the order of the fields: some twenty given by name take twice as long.
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
        None if spec.node_name and tells_of_resources(status) else ref(spec),
    )


def _said_by(conditions: Sequence[PodCondition]) -> tuple[bool, bool]:
    """Whether a pod's conditions say that it is ready, and that a scheduler's preemption disrupts it."""
    ready = preempted = False
    # Of several of one type the first counts.
    for condition in reversed(conditions):
        if condition.type == "Ready":
            ready = condition.status == "True"
        elif condition.type == "DisruptionTarget":
            preempted = condition.status == "True" and condition.reason == PREEMPTED
    return ready, preempted


def tells_of_resources(status: PodStatus) -> bool:
    """Whether the status of a pod on a node has a say in what it is counted for."""
    return bool(status.container_statuses or status.init_container_statuses or status.resources is not None)


def is_of_class_of(record: PodRecord, pod: Pod) -> bool:
    """Whether a newer reading of a record's pod is of its class, as far as that is seen without reading its spec."""
    meta, read_from = pod.metadata, record.read_from
    return (
        read_from is not None
        and read_from() is pod.spec
        and not (pod.spec.node_name and tells_of_resources(pod.status))
        and record.pod_class.labels == meta.labels
        and record.controller == (meta.controller if meta.owner_references else None)
    )


def differs_by_node_alone(before: Pod, after: Pod) -> bool:
    """Whether records of two readings of a pod would be the same but for the node; only the second one has a node.

    Neither is then nominated. A pod on a node is counted by its status too, where that tells of resources: such a
    reading is never called the same.
    """
    status = after.status
    if not _is_told_the_same(before.metadata, after.metadata):
        return False
    if not _reads_the_same(before.status, status):
        return False
    if tells_of_resources(status):
        return False
    return not after.nominated_node_name and replace(after.spec, node_name="") == before.spec


def differs_by_nomination_alone(before: Pod, after: Pod) -> bool:
    """Whether records of two readings of a pod that waits would be the same but for the nomination.

    As far as that is seen without reading its spec: the two may be said to differ where they do not.
    """
    status, was = after.status, before.status
    return (
        after.spec is before.spec
        and not after.spec.node_name
        and status.phase == was.phase
        and _is_told_the_same(before.metadata, after.metadata)
        and after.metadata.name == before.metadata.name
        and after.metadata.namespace == before.metadata.namespace
        and _reads_the_same(was, status)
    )


def is_plainly_of_one_class(before: Pod, after: Pod) -> bool:
    """Whether two readings of a pod that waits are of one class, as far as that is seen without reading its spec."""
    meta, was, spec = after.metadata, before.metadata, after.spec
    if spec is not before.spec or spec.node_name:
        return False
    return meta is was or (
        meta.name == was.name
        and meta.namespace == was.namespace
        and meta.labels == was.labels
        and meta.owner_references == was.owner_references
    )


def _is_told_the_same(before: ObjectMeta, after: ObjectMeta) -> bool:
    """Whether the metadata of a pod, but for its name, say the same to its record."""
    return before is after or (
        before.labels == after.labels
        and before.annotations == after.annotations
        and before.owner_references == after.owner_references
        and before.deletion_timestamp == after.deletion_timestamp
        and before.creation_timestamp == after.creation_timestamp
    )


def _reads_the_same(before: PodStatus, after: PodStatus) -> bool:
    """Whether the status of a pod says the same to its record."""
    return before is after or (
        before.start_time == after.start_time
        and before.resource_claim_statuses == after.resource_claim_statuses
        and (before.conditions is after.conditions or _said_by(before.conditions) == _said_by(after.conditions))
    )


class PodTable:
    """The pods that occupy a node (running, bound or assumed), as columns over slots.

    ``row[slot]`` is `NO_ROW` for a free slot, and for a pod whose node is unknown. ``healthy``: ready, and not
    terminating. ``of_class`` holds the slots of the pods of each class, by its id.
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
        """How many slots are or were in use."""
        return len(self.records)

    def record(self, slot: int) -> PodRecord:
        """The pod in ``slot``; raises KeyError for a free one."""
        record = self.records[slot]
        if record is None:
            raise KeyError(slot)
        return record

    def put(self, record: PodRecord) -> None:
        """Give ``record``, which is on no row yet, a slot, and write its columns."""
        if self._free:
            slot = self._free.pop()
            self.records[slot] = record
        else:
            slot = len(self.records)
            if slot == len(self.row):
                self._grow(2 * slot)
            self.records.append(record)
        record.slot = slot
        self.pod_class[slot] = record.pod_class.id
        self.priority[slot] = record.priority
        self.start_ns[slot] = record.start_ns
        self.terminating[slot] = record.terminating
        of_class = self.of_class.get(record.pod_class.id)
        if of_class is None:
            of_class = self.of_class[record.pod_class.id] = {}
        of_class[slot] = None
        self.healthy[slot] = record.is_healthy

    def replace(self, record: PodRecord) -> None:
        """Let ``record`` take over the slot that it names; class, priority and row are as they were."""
        self.records[record.slot] = record
        self.start_ns[record.slot] = record.start_ns
        self.healthy[record.slot] = record.is_healthy

    def remove(self, record: PodRecord) -> None:
        """Free the slot of ``record``, which is on no row any more."""
        slot = record.slot
        if self.records[slot] is not record:
            raise ValueError(f"pod {record.key} is not in slot {slot}")
        self.records[slot] = None
        record.slot = -1
        self._free.append(slot)
        of_class = self.of_class[record.pod_class.id]
        del of_class[slot]
        if not of_class:
            del self.of_class[record.pod_class.id]

    def slots_of(self, classes: Iterable[int]) -> Int64s:
        """The slots of the pods of some classes, given by their ids."""
        slots = [slot for class_id in classes for slot in self.of_class.get(class_id, ())]
        return np.array(slots, dtype=np.int64)

    def _grow(self, capacity: int) -> None:
        used = len(self.row)
        for name in ("row", "pod_class", "priority", "start_ns", "terminating", "healthy"):
            setattr(self, name, grown(getattr(self, name), capacity))
        self.row[used:] = NO_ROW
