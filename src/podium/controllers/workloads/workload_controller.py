"""The base of the controllers of workloads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

from msgspec import Struct

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.policy import PriorityClass, ResourceQuota
from podium.api.quantity import parse_quantity
from podium.api.selectors import compile_label_selector, selector_from_labels
from podium.api.times import SECOND
from podium.controllers.actions import (
    Action,
    CreateObject,
    DeleteObject,
    PatchObject,
    Record,
    ReplaceStatus,
    deletion_of,
)
from podium.controllers.controller import NO_CHANGE, OWNER_ASPECTS, UNOWNED, Backoff, Reconciler
from podium.controllers.deadlines import earliest
from podium.controllers.indexes import SelectorIndex, exchange
from podium.controllers.observations import ActionFinished, Answer, Changed
from podium.controllers.workloads import owned_pods

Kind = TypeVar("Kind", bound=Kubernetes)

FAILED_CREATE = "FailedCreate"
"""The reason of events about objects that could not be created."""

# By kind, the reason and the words before the problem; only StatefulSets name their pods themselves.
_FAILURES = {
    "Job": (FAILED_CREATE, "Error creating job"),
    "Pod": (FAILED_CREATE, "Error creating"),
    "Pod with a name": (FAILED_CREATE, "create Pod {name} in StatefulSet {owner} failed error"),
    "ReplicaSet": ("ReplicaSetCreateError", 'Failed to create new replica set "{name}"'),
}
_GOING, _DOUBTFUL = "NamespaceTerminating", (Answer.UNKNOWN, Answer.REPLACED)


class WorkloadController(Reconciler[str], Generic[Kind]):
    """A controller of workloads of some kinds, by uid.

    It creates and deletes pods only when the effects of earlier requests were observed. It needs the wire form of
    workloads.
    """

    watches = frozenset(("PriorityClass", "ResourceQuota"))
    claim_finalizer = ""
    """The finalizer that adopted pods get and released ones lose; "" for none."""

    def __init__(
        self,
        *types: type[Kind],
        pod_owners: Sequence[str] = (),
        owns: type[Kubernetes] | None = None,
        adopts: Sequence[type[Kubernetes]] = (),
    ) -> None:
        """Create it for workloads of ``types``.

        ``pod_owners`` are the kinds whose pods it tracks, by default those of the workloads. ``owns`` is the type of
        other objects that the workloads own. Workloads adopt objects of the types ``adopts`` that their selector
        matches, and release those that it no longer matches.
        """
        super().__init__()
        self._orphans = {type_: owned_pods.Orphans() for type_ in adopts}
        self._selectors: SelectorIndex[str] = SelectorIndex()
        # The workloads (uids) that may own pods which they do not select.
        self._have_strays: set[str] = set()
        kinds = pod_owners or tuple(type_.__name__ for type_ in types)
        owned = (OWNER_ASPECTS.get(kind, 0) for kind in kinds)
        self.pod_aspects = reduce(or_, owned, UNOWNED if Pod in self._orphans else 0)
        self._types = types
        self._owns = () if owns is None else (owns,)
        self._workloads: dict[str, owned_pods.WorkloadObject[Kind]] = {}
        # The uid of the workload with each label, which names it in actions.
        self._uids: dict[str, str] = {}
        self._pods = owned_pods.OwnedPods(*kinds)
        self._owned: owned_pods.OwnedObjects[Any] = owned_pods.OwnedObjects()
        # When to sync the workload in `_sync` again, for new reasons and for retries only; and whether it has created
        # something after a refusal.
        self._times: list[int] = []
        self._retry_times: list[int] = []
        self._has_tried = False
        self._expectations = Expectations()
        self._waits = CreationWaits()
        # By uid: the version on which the last status write was based, unless that failed; and the time and message of
        # the last event about a failed creation.
        self._status_written: dict[str, str] = {}
        self._reported_failures: dict[str, tuple[int, str]] = {}
        # The pods (uids) that were observed before the first sync, while they may count as new; and its time.
        self._initial: set[str] = set()
        self._began_ns: int | None = None

    @abstractmethod
    def _sync(self, workload: owned_pods.WorkloadObject[Kind], now: int) -> list[Action]:
        """Return the actions that bring the cluster closer to the workload's specification, and its status."""

    def _sync_unknown(self, uid: str, now: int) -> list[Action]:
        return []

    def _see(self, object_: Kubernetes, *, is_gone: bool) -> None:
        """Take in or forget an object that is neither a workload nor owned by one."""

    def _may_own(self, workload: owned_pods.WorkloadObject[Kind], object_: Kubernetes) -> bool:
        """Return whether the workload can own an object that its selector matches."""
        return True

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        is_gone = shown is None
        is_orphan = self._see_orphan(object_, is_gone=is_gone)
        if isinstance(object_, Pod):
            if not self._pods.concern(object_):
                return [] if is_orphan else NO_CHANGE
            if self._began_ns is None and not is_gone:
                self._initial.add(object_.metadata.uid)
            for change in self._pods.lose(object_) if shown is None else self._pods.see(object_, shown):
                self._see_pod(change, now)
                self._check_selected(change)
        elif isinstance(object_, self._types):
            if shown is None:
                self._remove(self._uids.get(owned_pods.label_of(object_), ""))
            else:
                self._put(owned_pods.WorkloadObject(object_, shown.raw))
        elif isinstance(object_, self._owns):
            owned = self._owned
            seen = None if shown is None else owned_pods.WorkloadObject(object_, shown.raw)
            self._see_owned(owned.lose(object_) if seen is None else owned.see(seen))
        elif isinstance(object_, ResourceQuota):
            self._queue.add_all(self._waits.see_quota(object_, is_gone=is_gone))
        elif isinstance(object_, PriorityClass):
            self._queue.add_all(() if is_gone else self._waits.forget_refusals())
        else:
            self._see(object_, is_gone=is_gone)
        return []

    def _put(self, workload: owned_pods.WorkloadObject[Kind]) -> None:
        """Take in a workload, in place of another one with its name."""
        before = self._uids.get(workload.label)
        if before is not None and before != workload.uid:
            self._remove(before)
        uid, known = workload.uid, self._workloads.get(workload.uid)
        self._uids[workload.label] = uid
        self._workloads[uid] = workload
        self._queue.add(uid)
        if self._orphans and (known is None or _selector_of(known) != _selector_of(workload)):
            written = _selector_of(workload)
            selector = selector_from_labels(written) if isinstance(written, dict) else compile_label_selector(written)
            self._selectors.put(uid, selector, workload.object.metadata.namespace)
            self._have_strays.add(uid)

    def _remove(self, uid: str) -> None:
        if (workload := self._workloads.pop(uid, None)) is not None:
            del self._uids[workload.label]
            self._selectors.remove(uid)
            self._have_strays.discard(uid)
            self._forget(uid)
            self._expectations.pop(uid, None)
            self._waits.forget(uid)
            self._status_written.pop(uid, None)
            self._reported_failures.pop(uid, None)

    def _see_orphan(self, object_: Kubernetes, *, is_gone: bool) -> bool:
        """Take in an object that workloads may adopt; return whether it has, or had, no controller."""
        orphans = self._orphans.get(type(object_))
        if orphans is None or not (orphans.remove(object_) if is_gone else orphans.put(object_)):
            return False
        for uid in self._selectors.matching(object_.metadata.labels, object_.metadata.namespace):
            if is_gone:
                # An adoption may have succeeded unobserved.
                self._expectations.see(uid, owned_pods.label_of(object_))
            self._queue.add(uid)
        return True

    def _check_selected(self, change: owned_pods.OwnedPodChange) -> None:
        """Note a pod that its owner does not select."""
        uid, labels, before = change.owner_uid, change.now.pod.metadata.labels, change.before
        is_new = before is None or before.pod.metadata.labels != labels
        if is_new and Pod in self._orphans and uid in self._workloads and not self._selectors.of(uid).matches(labels):
            self._have_strays.add(uid)

    def _claim(self, workload: owned_pods.WorkloadObject[Kind], now: int) -> list[Action]:
        """Return the adoptions and releases that are due; nothing else happens until they are observed."""
        uid, label, finalizer = workload.uid, workload.label, self.claim_finalizer
        if not self._orphans or workload.is_deleted or not self._expectations.are_met(uid):
            return []
        selector = self._selectors.of(uid)
        actions: list[Action] = []
        for orphans in self._orphans.values():
            for object_ in orphans.matching(workload.object.metadata.namespace, selector):
                if self._may_own(workload, object_):
                    self._expectations.expect(uid, owned_pods.label_of(object_), now)
                    actions.append(owned_pods.claim_of(object_, uid, label, finalizer, by=workload.object))
        pods = self._pods.of(uid).all.values() if uid in self._have_strays else ()
        others = [each.object for each in self._owned.of(uid) if type(each.object) in self._orphans]
        owned: list[Kubernetes] = [*(each.pod for each in pods), *others]
        strays = [object_ for object_ in owned if not selector.matches(object_.metadata.labels)]
        if not strays:
            self._have_strays.discard(uid)
        for object_ in strays:
            if self._may_own(workload, object_):
                self._expectations.expect(uid, object_.metadata.uid, now)
                actions.append(owned_pods.claim_of(object_, uid, label, finalizer))
        return actions

    def _see_pod(self, change: owned_pods.OwnedPodChange, now: int) -> None:
        uid, pod = change.owner_uid, change.now
        if change.before is None:
            self._expectations.see_creation(uid)
            self._expectations.see(uid, owned_pods.label_of(pod.pod))
        if change.is_gone or not pod.is_active:
            was_asked_for = self._expectations.see(uid, pod.uid)
            has_stopped = change.before is not None and change.before.is_active
            is_new = now < pod.created_ns + SECOND and pod.uid not in self._initial
            if has_stopped and not was_asked_for and is_new:
                self._ended_at_once(uid, pod, now)
        self._queue.add(uid)

    def _ended_at_once(self, uid: str, pod: owned_pods.OwnedPod, now: int) -> None:
        """Handle the end of a pod that was created within the last second; its replacement has to wait."""
        self._waits.ends.fail(uid, now)

    def _see_owned(self, changes: list[owned_pods.OwnedChange[owned_pods.WorkloadObject[Any]]]) -> None:
        for change in changes:
            meta = change.now.object.metadata
            if change.is_gone:
                self._expectations.see(change.owner_uid, meta.uid)
            else:
                self._expectations.see(change.owner_uid, owned_pods.label_of(change.now.object))
                self._expectations.see(change.owner_uid, meta.uid, meta.generation)
            self._queue.add(change.owner_uid)

    def _reconcile_due(self, now: int) -> list[Action]:
        if self._began_ns is None:
            self._began_ns = now
        elif self._initial and now >= self._began_ns + SECOND:
            self._initial = set()
        return super()._reconcile_due(now)

    def _reconcile(self, key: str, now: int) -> list[Action]:
        workload = self._workloads.get(key)
        self._times, self._retry_times, self._has_tried = [], [], False
        self._expectations.give_up(key, now)
        if workload is None:
            actions = self._sync_unknown(key, now)
        else:
            actions = self._claim(workload, now) or self._sync(workload, now)
        if key in self._expectations:
            self._times.append(self._expectations[key].expires_ns)
        # Retries do not keep a simulation running.
        self._queue.add_at(key, earliest((*self._times, *self._retry_times)), recurs=not self._times)
        return actions

    # Helpers of sync

    def _may_create(self, workload: owned_pods.WorkloadObject[Kind], now: int) -> bool:
        """Return whether the workload may create something now; otherwise schedule another sync.

        After a refusal it may create one object, as a test.
        """
        if (until := self._waits.until(workload.uid, now)) is not None:
            times = self._retry_times if self._waits.is_mere_retry(workload.uid) else self._times
            times.append(until)
            return False
        has_tried, self._has_tried = self._has_tried, workload.uid in self._waits.refused
        return not has_tried

    def _create_named(self, workload: owned_pods.WorkloadObject[Kind], raw: Raw, now: int) -> CreateObject:
        """Create an object with a name; nothing else happens until it is observed."""
        self._expectations.expect(workload.uid, _name_of(raw), now)
        return CreateObject(raw, workload.label)

    def _delete(
        self, workload: owned_pods.WorkloadObject[Kind], object_: Kubernetes, now: int, generation: int | None = None
    ) -> DeleteObject:
        """Delete an object; nothing else happens until it is gone, or has a greater generation."""
        self._expectations.expect(workload.uid, object_.metadata.uid, now, generation)
        return deletion_of(object_, workload.label)

    def _write_status(self, workload: owned_pods.WorkloadObject[Kind], status: Raw) -> list[Action]:
        """Return the write of a status that differs from the workload's; one for each version, others are refused."""
        uid, version = workload.uid, workload.object.metadata.resource_version
        if status == workload.status or self._status_written.get(uid) == version:
            return []
        self._status_written[uid] = version
        return [ReplaceStatus({**workload.raw, "status": status}, workload.label)]

    # Answers

    def _handle_answer(self, key: str, finished: ActionFinished, now: int) -> list[Action]:
        """Handle an answer; return the event about a failed creation."""
        action, workload = finished.action, self._workloads.get(key)
        if workload is None:
            return []
        if isinstance(action, CreateObject):
            self._on_created(workload, action.raw, finished, now)
            return self._failed_creation(workload, action.raw, finished, now)
        has_failed = not (finished.answer.is_over or finished.answer is Answer.REPLACED)
        if isinstance(action, ReplaceStatus) and finished.problem is not None:
            self._status_written.pop(key, None)
        elif isinstance(action, PatchObject | DeleteObject) and has_failed:
            self._expectations.see(key, action.uid)
            self._expectations.see(key, f"{action.kind} {action.key}")
        return super()._handle_answer(key, finished, now)

    def _on_created(
        self, workload: owned_pods.WorkloadObject[Kind], raw: Raw, finished: ActionFinished, now: int
    ) -> None:
        """Handle the end of a creation; a doubtful one counts as failed."""
        uid = workload.uid
        if finished.problem is None:
            self._queue.succeed(uid)
            if self._waits.accept(uid):
                self._queue.add(uid)
            return
        self._waits.refuse(workload.object, finished, now)
        if "name" in raw["metadata"]:
            self._expectations.see(uid, _name_of(raw))
        else:
            self._expectations.see_creation(uid)
        self._queue.add(uid)

    def _failed_creation(
        self, workload: owned_pods.WorkloadObject[Kind], raw: Raw, finished: ActionFinished, now: int
    ) -> list[Action]:
        """Return the event about a failed creation; each message once per time, and none in a terminating namespace."""
        name, problem, is_doubtful = raw["metadata"].get("name", ""), finished.problem, finished.answer in _DOUBTFUL
        known = _FAILURES.get("Pod with a name" if raw["kind"] == "Pod" and name else raw["kind"])
        if known is None or problem is None or is_doubtful or problem.cause == _GOING:
            return []
        message = f"{known[1].format(name=name, owner=workload.object.metadata.name)}: {problem.message}"
        if exchange(self._reported_failures, workload.uid, (now, message)) == (now, message):
            return []
        return [Record("", workload.uid, "Warning", known[0], message, workload=workload.label)]


def _selector_of(workload: owned_pods.WorkloadObject[Any]) -> Any:
    """Return the selector: labels of a ReplicationController, a LabelSelector of other workloads."""
    return workload.object.spec.selector


def _name_of(raw: Raw) -> str:
    meta = raw["metadata"]
    return f"{raw['kind']} {meta['namespace']}/{meta['name']}"


class CreationWaits:
    """By uid, how long a workload must wait before it creates anything: 1 s, doubled up to 300 s.

    Upstream a workload whose pods end immediately replaces them at once; here it waits as after a refusal, so that time
    passes: ``ends`` are these failures. ``refused`` are the workloads whose last creation failed, with their namespaces
    and whether the refusals last.
    """

    def __init__(self) -> None:
        self._refusals: Backoff[str] = Backoff(SECOND, 300 * SECOND)
        self.ends: Backoff[str] = Backoff(SECOND, 300 * SECOND)
        self.refused: dict[str, tuple[str, bool]] = {}
        self._quotas: dict[str, ResourceQuota] = {}

    def refuse(self, workload: Kubernetes, finished: ActionFinished, now: int) -> None:
        """Record a failed or doubtful creation."""
        meta = workload.metadata
        self._refusals.fail(meta.uid, now, finished.wait_ns)
        self.refused[meta.uid] = meta.namespace, finished.answer.lasts

    def accept(self, uid: str) -> bool:
        """Record a creation; return whether the one before had failed."""
        self._refusals.forget(uid)
        return self.refused.pop(uid, None) is not None

    def until(self, uid: str, now: int) -> int | None:
        """Return when the workload may create something; None for now."""
        times = (self._refusals.until(uid, now), self.ends.until(uid, now))
        return max((time for time in times if time is not None), default=None)

    def is_mere_retry(self, uid: str) -> bool:
        """Return whether the next creation is expected to fail again."""
        lasts = uid in self.refused and self.refused[uid][1]
        return lasts or self._refusals.is_hopeless(uid) or self.ends.is_hopeless(uid)

    def see_quota(self, quota: ResourceQuota, *, is_gone: bool) -> list[str]:
        """Let the refused workloads of a namespace retry if a quota leaves more room; return their uids."""
        before = exchange(self._quotas, quota.key, None if is_gone else quota)
        if not is_gone:
            if before is None:
                return []
            was, used = before.status.used, quota.status.used
            is_less_used = any(parse_quantity(used.get(name, 0)) < parse_quantity(was[name]) for name in was)
            if before.spec == quota.spec and not is_less_used:
                return []
        refused = [uid for uid, (namespace, _) in self.refused.items() if namespace == quota.metadata.namespace]
        for uid in refused:
            self._refusals.forget(uid)
        return refused

    def forget_refusals(self) -> list[str]:
        """Expect the next creations to succeed, after a relevant change; return the refused workloads."""
        self.refused = {uid: (namespace, False) for uid, (namespace, _) in self.refused.items()}
        return list(self.refused)

    def forget(self, uid: str) -> None:
        self.accept(uid)
        self.ends.forget(uid)


# The time after which an unobserved effect is given up.
_TIMEOUT_NS = 300 * SECOND


class Expected(Struct):
    """The number of expected creations, and other expected changes by name.

    A change of an object (by uid) ends with a greater generation than this; None: only when the object is gone.
    """

    expires_ns: int = 0
    creations: int = 0
    changes: dict[str, int | None] = {}


class Expectations(dict[str, Expected]):
    """By workload (uid), the effects that its controller waits to observe, for at most five minutes.

    Source: pkg/controller/controller_utils.go (ControllerExpectations).
    """

    def expect_creations(self, uid: str, count: int, now: int) -> None:
        if count > 0:
            self._renewed(uid, now).creations += count

    def expect(self, uid: str, change: str, now: int, generation: int | None = None) -> None:
        """Expect a change: the creation of `KIND KEY`, or the end or a greater generation of an object (by uid)."""
        self._renewed(uid, now).changes[change] = generation

    def see_creation(self, uid: str) -> None:
        """Record that one more object was observed, or will not come."""
        if (expected := self.get(uid)) is not None:
            expected.creations = max(0, expected.creations - 1)
            self._drop_if_met(uid, expected)

    def see(self, uid: str, change: str, generation: int | None = None) -> bool:
        """Record that a change was observed, or will not come; return whether it was expected."""
        expected = self.get(uid)
        if expected is None or change not in expected.changes:
            return False
        least = expected.changes[change]
        if generation is not None and (least is None or generation <= least):
            return False
        del expected.changes[change]
        self._drop_if_met(uid, expected)
        return True

    def are_met(self, uid: str) -> bool:
        return uid not in self

    def give_up(self, uid: str, now: int) -> None:
        """Drop the expectations of a workload that have expired."""
        if uid in self and self[uid].expires_ns <= now:
            del self[uid]

    def _renewed(self, uid: str, now: int) -> Expected:
        expected = self.setdefault(uid, Expected())
        expected.expires_ns = now + _TIMEOUT_NS
        return expected

    def _drop_if_met(self, uid: str, expected: Expected) -> None:
        if not expected.creations and not expected.changes:
            del self[uid]
