"""What the controllers of workloads have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.policy import PriorityClass
from podium.api.quota import ResourceQuota
from podium.machines.actions import Action, CreateObject, DeleteObject, PatchObject, ReplaceStatus
from podium.machines.answers import Answer
from podium.machines.concerns import OWNED
from podium.machines.machine import UNMOVED
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline, Deadlines, soonest
from podium.machines.parts.work_queue import WorkQueue
from podium.machines.workloads.creation_waits import CreationWaits
from podium.machines.workloads.expectations import Expectations
from podium.machines.workloads.failed_creations import FailedCreations
from podium.machines.workloads.found_pods import FoundPods
from podium.machines.workloads.owned_pods import OwnedPod, OwnedPods, Sighting
from podium.machines.workloads.status_writes import StatusWrites
from podium.machines.workloads.workload import Workload, label_of

Kind = TypeVar("Kind", bound=Kubernetes)
Write = CreateObject | ReplaceStatus | PatchObject | DeleteObject

_SECOND = 10**9


class WorkloadController(ABC, Generic[Kind]):
    """Gives the workloads of some kinds what they ask for.

    It takes in what it is told, and at the next tick looks at each workload to which something has happened. It makes
    and deletes pods only while nothing is outstanding that it asked for earlier. It needs the wire form of workloads.
    """

    watches = frozenset(("PriorityClass", "ResourceQuota"))
    heeded_pods = OWNED

    def __init__(self, *types: type[Kind], pod_owners: tuple[str, ...] = ()) -> None:
        """``pod_owners`` are the kinds whose pods it keeps in mind, unless these are its own ``types``."""
        self._types = types
        self._workloads: dict[str, Workload[Kind]] = {}
        # The uid of the workload with each label, as actions name it.
        self._uids: dict[str, str] = {}
        self._pods = OwnedPods(*(pod_owners or tuple(type_.__name__ for type_ in types)))
        self._queue: WorkQueue[str] = WorkQueue()
        # When to look at workloads again, apart from when only to try something once more.
        self._timers: Deadlines[str] = Deadlines()
        self._retries: Deadlines[str] = Deadlines()
        # The same for the workload that is being looked at.
        self._times: list[int] = []
        self._retry_times: list[int] = []
        # Whether it has tried, after a refusal, to create something.
        self._has_tried = False
        self._expectations: Expectations[str] = Expectations()
        self._waits = CreationWaits()
        self._failed_creations = FailedCreations()
        self._statuses = StatusWrites()
        self._found = FoundPods()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` and say what to write."""
        match observation:
            case Tick():
                self._found.end(now)
                return self._work(now)
            case Changed(object=object_, raw=raw):
                if isinstance(object_, Pod):
                    if not self._pods.concern(object_):
                        return UNMOVED
                    self._found.see(object_)
                self._change(object_, raw, now)
            case Gone(object=object_):
                if isinstance(object_, Pod) and not self._pods.concern(object_):
                    return UNMOVED
                self._go(object_, now)
            case Answered(action=action):
                if isinstance(action, Write):
                    return self._answered(action, observation, now)
        return []

    def deadline(self) -> Deadline:
        """When there is something to look at; that what was refused, or ended at once, is tried again is no news."""
        timers, retries = self._timers.deadline(), self._retries.deadline(is_news=False)
        return soonest(self._queue.deadline(), timers, retries, self._expectations.deadline())

    @abstractmethod
    def _sync(self, workload: Workload[Kind], now: int) -> list[Action]:
        """What brings the world nearer to what the workload asks for, and its status."""

    def _sync_unknown(self, uid: str, now: int) -> list[Action]:
        """What is to be done about the pods of a workload that is not, or not yet, known."""
        return []

    def _see(self, object_: Kubernetes, raw: Raw) -> None:
        """Take in an object that is neither a workload nor a pod."""

    def _lose(self, object_: Kubernetes) -> None:
        """An object is gone that is neither a workload nor a pod."""

    def _change(self, object_: Kubernetes, raw: Raw, now: int) -> None:
        if isinstance(object_, Pod):
            self._see_pods(self._pods.see(object_, raw), now)
        elif isinstance(object_, self._types):
            self._put(Workload(object_, raw))
        elif isinstance(object_, ResourceQuota):
            self._see_quota(object_, is_gone=False)
        elif isinstance(object_, PriorityClass):
            for uid in self._waits.forget_refusals():
                self._queue.add(uid)
        else:
            self._see(object_, raw)

    def _go(self, object_: Kubernetes, now: int) -> None:
        if isinstance(object_, Pod):
            self._see_pods(self._pods.lose(object_), now)
        elif isinstance(object_, self._types):
            self._remove(self._uids.get(label_of(object_), ""))
        elif isinstance(object_, ResourceQuota):
            self._see_quota(object_, is_gone=True)
        else:
            self._lose(object_)

    def _put(self, workload: Workload[Kind]) -> None:
        """Take in a workload as it is now, in the place of a namesake."""
        before = self._uids.get(workload.label)
        if before is not None and before != workload.uid:
            self._remove(before)
        self._uids[workload.label] = workload.uid
        self._workloads[workload.uid] = workload
        self._queue.add(workload.uid)

    def _remove(self, uid: str) -> None:
        """A workload is gone."""
        workload = self._workloads.pop(uid, None)
        if workload is None:
            return
        del self._uids[workload.label]
        self._queue.forget(uid)
        self._timers.set(uid, None)
        self._retries.set(uid, None)
        self._expectations.forget(uid)
        self._waits.forget(uid, workload.object.metadata.namespace)
        self._failed_creations.forget(uid)
        self._statuses.forget(uid)

    def _see_pods(self, sightings: list[Sighting], now: int) -> None:
        for sighting in sightings:
            self._see_pod(sighting, now)

    def _see_pod(self, sighting: Sighting, now: int) -> None:
        uid = sighting.owner_uid
        if sighting.before is None:
            self._expectations.see_creation(uid)
        pod = sighting.after or sighting.before
        if pod is not None and (sighting.after is None or not pod.is_active):
            was_asked_for = self._expectations.see(uid, pod.uid)
            if sighting.has_stopped and not was_asked_for and self._is_new(pod, now) and self._is_replaced_at_once(pod):
                self._waits.end(uid, now)
        self._queue.add(uid)

    def _is_new(self, pod: OwnedPod, now: int) -> bool:
        """Whether a pod was created within the last second, as far as its time of creation tells.

        One that was there when the controller began has not come of what it does, however new it is.
        """
        return now < pod.created_ns + _SECOND and pod.uid not in self._found

    def _is_replaced_at_once(self, pod: OwnedPod) -> bool:
        """Whether nothing but `CreationWaits` delays the replacement of a pod that has ended."""
        return True

    def _see_quota(self, quota: ResourceQuota, *, is_gone: bool) -> None:
        for uid in self._waits.see_quota(quota, is_gone=is_gone):
            self._queue.add(uid)

    def _work(self, now: int) -> list[Action]:
        for source in (self._timers.take_due, self._retries.take_due, self._expectations.take_expired):
            while (due := source(now)) is not None:
                self._queue.add(due)
        actions: list[Action] = []
        while (uid := self._queue.take(now)) is not None:
            workload = self._workloads.get(uid)
            self._times, self._retry_times, self._has_tried = [], [], False
            actions += self._sync(workload, now) if workload is not None else self._sync_unknown(uid, now)
            self._timers.set(uid, min(self._times, default=None))
            self._retries.set(uid, min(self._retry_times, default=None))
        return actions

    # What sync makes use of

    def _may_create(self, workload: Workload[Kind], now: int) -> bool:
        """Whether the workload may create something now; if not, it is looked at again when it may.

        After a refusal it may try with one object, whose creation shows whether others would be taken.
        """
        uid, namespace = workload.uid, workload.object.metadata.namespace
        until = self._waits.until(uid, now)
        if until is not None:
            times = self._retry_times if self._waits.is_mere_retry(uid, namespace) else self._times
            times.append(until)
            return False
        has_tried, self._has_tried = self._has_tried, self._waits.is_refused(uid, namespace)
        return not has_tried

    def _delete(self, workload: Workload[Kind], pod: OwnedPod, now: int) -> DeleteObject:
        self._expectations.expect(workload.uid, pod.uid, now)
        return DeleteObject("Pod", pod.pod.key, pod.uid, workload.label)

    def _create_named(self, workload: Workload[Kind], raw: Raw, now: int) -> CreateObject:
        """Create an object that has a name; until it is seen, `_see_named` told of it, nothing else happens."""
        self._expectations.expect(workload.uid, _name_of(raw), now)
        return CreateObject(raw, workload.label)

    def _see_named(self, uid: str, kind: str, name: str) -> None:
        self._expectations.see(uid, f"{kind} {name}")

    # Answers

    def _answered(self, action: Write, answered: Answered, now: int) -> list[Action]:
        """Take in an answer, and tell whose workload it is of what was not created."""
        self._take_answer(action, answered, now)
        uid = self._owner_of(action)
        if uid is None or not isinstance(action, CreateObject):
            return []
        return self._failed_creations.told(self._workloads[uid], answered, now)

    def _take_answer(self, action: Write, answered: Answered, now: int) -> None:
        uid = self._owner_of(action)
        if uid is None:
            return
        if isinstance(action, CreateObject):
            self._created(self._workloads[uid], action.raw, answered, now)
            return
        if isinstance(action, ReplaceStatus):
            if answered.problem is not None:
                self._statuses.forget(uid)
        elif not (answered.answer.is_over or answered.answer is Answer.REPLACED):
            self._expectations.see(uid, action.uid)
        self._queue.answer(uid, answered, now)

    def _owner_of(self, action: Write) -> str | None:
        """The workload in whose name the action was; None where it is gone."""
        references = action.raw["metadata"].get("ownerReferences") if isinstance(action, CreateObject) else None
        uid = references[0]["uid"] if references else self._uids.get(action.cause)
        return uid if uid in self._workloads else None

    def _created(self, workload: Workload[Kind], raw: Raw, answered: Answered, now: int) -> None:
        """A creation has ended; one that may have been carried out counts as one that was not."""
        uid, namespace = workload.uid, workload.object.metadata.namespace
        if answered.problem is None:
            self._queue.succeed(uid)
            if self._waits.accept(uid, namespace):
                self._queue.add(uid)
            return
        self._waits.refuse(uid, namespace, answered, now)
        if "name" in raw["metadata"]:
            self._expectations.see(uid, _name_of(raw))
        else:
            self._expectations.see_creation(uid)
        self._queue.add(uid)


def _name_of(raw: Raw) -> str:
    return f"{raw['kind']} {raw['metadata']['name']}"
