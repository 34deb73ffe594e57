"""The scheduler: watches pods and nodes, attempts one pod at a time, and says what to bind, nominate and delete.

Source: pkg/scheduler (scheduler.go, schedule_one.go, eventhandlers.go); pod-preemption.md for nominations.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.framework.extenders import Extenders
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.machines.actions import (
    Action,
    Bind,
    BindClaim,
    DeleteObject,
    Evict,
    Nominate,
    PatchObject,
    Record,
    ReleaseClaim,
    ReportStatus,
    ReportUnschedulable,
    ReserveClaim,
)
from podium.machines.grounds import GANG_RELEASE
from podium.machines.machine import UNMOVED
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import AT_ONCE, NEVER, Deadline, earliest
from podium.machines.placement_kinds import PLACEMENT_KINDS
from podium.machines.scheduling.attempts import Attempts
from podium.machines.scheduling.binding.reservations import told_claim
from podium.machines.scheduling.parts import Parts
from podium.machines.scheduling.preemptions import Ended
from podium.machines.scheduling.queue.queued_pod import Place
from podium.machines.scheduling.room import ASSIGNED_POD_DELETE
from podium.machines.scheduling.shown.objects import ObjectsShown
from podium.machines.scheduling.shown.pods import PodsShown

RELEASE_FAILED = "ReleaseFailed"
"""What wakes a pod for which a claim was to give its devices back, and could not be written."""

OnAnswer = Callable[[Any, Answered, int], list[Action]]
"""Takes in how an action of its kind ended."""


class Scheduler:
    """A scheduler with one or several profiles, as a machine.

    Each `Tick` makes at most one scheduling attempt, and those that are known to end as another one has. While pods
    wait to be attempted, the next deadline is 0.
    """

    watches = PLACEMENT_KINDS | {"Pod"}

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        seed: int = 0,
        feature_gates: FeatureGates = FeatureGates(),  # noqa: B008 - an immutable value
        extenders: Extenders | None = None,
    ) -> None:
        """Without ``extenders`` nobody is asked, whatever the configuration says of them."""
        parts = Parts(configuration or default_configuration(), seed, feature_gates, extenders)
        self.cluster = parts.cluster
        self.waiting_pods = parts.waiting_pods
        self._waiting = parts.waiting_pods.uids
        self.runners = parts.runners
        self.queue = parts.queue
        self.bindings = parts.bindings
        self.preemptions = parts.preemptions
        self.futile = parts.futile
        self.cap = parts.cap
        self.reports = parts.reports
        self.known = parts.known
        self.gangs = parts.gangs
        self._has_gangs = parts.gangs.is_on
        self._queued = parts.queue.uids
        # Pods that wait for a time elsewhere than in the queue, by what they wait for, as things are.
        self._timed: tuple[Set[str], ...] = (
            *(parts.waiting_pods.uids, parts.bindings.timed, parts.reports.unwritten),
            *(parts.cap.held, parts.futile.waiting),
        )
        self._front = parts.front
        self._feed = parts.feed
        self._room = parts.room
        self._pods = PodsShown(parts)
        self._objects = ObjectsShown(
            parts.feed, self.queue, self.cap, self._room, parts.gangs, parts.cluster.devices.book
        )
        self._on_answers = self._handlers_of_answers()
        self.attempts = Attempts(parts, seed)
        # The deadline that was told last: nobody need look at what is the same again.
        self._told = NEVER

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` (nanoseconds) and say what to do."""
        # The most frequent first, and by their types: `isinstance` is slow to say no to a Struct.
        if type(observation) is Answered:
            take = self._on_answers.get(type(observation.action))
            if take is None and not (self._waiting or self._has_gangs):
                return UNMOVED
            actions = UNMOVED if take is None else take(observation.action, observation, now)
        elif type(observation) is Changed:
            shown = observation.object
            actions = self._pods.changed(shown, now) if isinstance(shown, Pod) else self._changed(shown, now)
        elif type(observation) is Gone:
            gone = observation.object
            actions = self._pods.gone(gone, now) if isinstance(gone, Pod) else self._gone(gone, now)
        elif type(observation) is Tick:
            actions = self._tick(now)
        else:
            actions = []
        if self._waiting:
            actions = actions + self._go_on(now)
        if self._has_gangs and self.bindings.gathered:
            actions = actions + self.gangs.settle(self.attempts, now)
        if actions or self._told is not NEVER or self._queued or any(self._timed):
            return actions
        # Nothing is due at any time, and nothing was when the deadline was told last.
        return actions if self._has_gangs else UNMOVED

    def _changed(self, changed: Kubernetes, now: int) -> list[Action]:
        """Any object but a pod was added or changed."""
        self.known.forget()
        return self._objects.changed(changed, now) + self._look_at(changed, now)

    def _gone(self, gone: Kubernetes, now: int) -> list[Action]:
        """Any object but a pod is no more."""
        self.known.forget()
        return self._objects.gone(gone, now)

    def _go_on(self, now: int) -> list[Action]:
        """Go on with the pods whose wait at Permit is over."""
        actions: list[Action] = []
        while settled := self.waiting_pods.settled(now):
            self.known.forget()
            for waiting in settled:
                actions += self.attempts.on_its_way(waiting.pod.uid, self.bindings.resume(waiting.pod.uid, now), now)
        return actions

    def deadline(self) -> Deadline:
        """When the scheduler next wants a `Tick`; that attempts end in errors once more is no news."""
        if self.queue.can_pop:
            self._told = AT_ONCE
            return AT_ONCE
        if not (any(self._timed) or self._has_gangs or self.queue.has_deadlines):
            self._told = NEVER
            return NEVER
        bindings_ns = self.bindings.next_deadline()
        times: tuple[int | None, ...] = (
            *(bindings_ns, self.queue.next_deadline(), self.reports.next_deadline()),
            *(self.futile.next_deadline(), self.cap.next_deadline()),
        )
        is_news = bindings_ns is not None or self.cap.is_awaited or self.queue.has_promising
        if self._has_gangs:
            times += (self.gangs.next_deadline(),)
            is_news = is_news or self.gangs.has_news
        time_ns, told = earliest(times), self._told
        if told.time_ns != time_ns or told.is_news is not is_news:
            told = self._told = Deadline(time_ns, is_news)
        return told

    def _look_at(self, changed: Kubernetes, now: int) -> list[Action]:
        """Where a volume or claim has changed, pods may have waited for that; and a group may be whole already."""
        if isinstance(changed, PodGroup):
            return self.gangs.look_at(changed, now)
        if not isinstance(changed, PersistentVolume | PersistentVolumeClaim):
            return []
        return [action for result in self.bindings.look_at_once(now) for action in self.attempts.went(result, now)]

    # How actions ended

    def _handlers_of_answers(self) -> dict[type[Action], OnAnswer]:
        """Who takes in how an action ended, by its kind. Nothing comes of the others."""
        return {
            Bind: self._bind_answered,
            **dict.fromkeys((BindClaim, ReserveClaim, ReleaseClaim), self._claim_answered),
            **dict.fromkeys((ReportStatus, DeleteObject), self._victim_answered),
            Evict: self._eviction_answered,
            **dict.fromkeys((ReportUnschedulable, Nominate), self._report_answered),
            PatchObject: self._patch_answered,
        }

    def _bind_answered(self, action: Bind, answered: Answered, now: int) -> list[Action]:
        result = self.bindings.bind_answered(action, answered.problem, now)
        if answered.problem is None and action.uid in self.bindings.unseen:
            self.queue.done(action.uid)
        return self.attempts.went(result, now)

    def _victim_answered(
        self, action: ReportStatus | DeleteObject | Evict, answered: Answered, now: int
    ) -> list[Action]:
        actions, ended = self.preemptions.answered(action, answered.problem)
        if ended is not None:
            self._preemption_ended(ended, now)
        return actions

    def _eviction_answered(self, action: Evict, answered: Answered, now: int) -> list[Action]:
        if action.cause == GANG_RELEASE:
            self.gangs.release_answered(action, answered)
            return []
        return self._victim_answered(action, answered, now)

    def _report_answered(self, action: ReportUnschedulable | Nominate, answered: Answered, now: int) -> list[Action]:
        self.reports.answered(answered, now)
        return []

    def _patch_answered(self, action: PatchObject, answered: Answered, now: int) -> list[Action]:
        if action.kind == "PodGroup":
            self.gangs.answered(answered, now)
        return []

    def _claim_answered(
        self, action: BindClaim | ReserveClaim | ReleaseClaim, answered: Answered, now: int
    ) -> list[Action]:
        """A claim was written, or not. Where the answer tells what it is like, nobody need wait until that is seen."""
        reservations = self.bindings.reservations
        told = told_claim(answered)
        if told is not None:
            self.known.forget()
            self._objects.claim_told(told, now)
        if isinstance(action, ReleaseClaim):
            if action.deallocate and answered.problem is not None and not answered.answer.lasts:
                # The pod waits for the devices that it was to get by this.
                self.queue.wake(action.pod_uid, RELEASE_FAILED, now)
            freed = reservations.released(answered, now)
            if freed is not None:
                self.known.forget()
                self._objects.claim_freed(freed, now)
            return []
        actions = self.attempts.went(self.bindings.claim_answered(answered, told, now), now)
        if isinstance(action, ReserveClaim) and action.pod_uid not in self._feed.pods:
            actions += reservations.forget_pod(action.pod, action.pod_uid)
        return actions

    def _preemption_ended(self, ended: Ended, now: int) -> None:
        """Open the preemptor's gate.

        It is tried again if something failed, or happened meanwhile that would have woken it; but where only some of
        its victims have ended, it waits for the others, unless it is to be bound first.
        """
        for uid in self.gangs.preemptions.with_group(ended.preemptor):
            queued = self.queue.find(uid)
            if queued is not None and (ended.failed or ended.binds_first):
                self.queue.activate([uid], now)
            elif queued is not None:
                is_worth_attempt = ended.all_gone or queued.woken_by != ASSIGNED_POD_DELETE
                self.queue.ask_gate_again(uid, now, is_worth_attempt=is_worth_attempt)

    # What is due

    def _tick(self, now: int) -> list[Action]:
        self.queue.flush(now)
        for waits in (self.futile, self.cap):
            while (uid := waits.take_due(now)) is not None:
                self.queue.activate([uid], now)
        actions = self._bind_on(now) if self.bindings.has_deadlines else []
        if self._has_gangs:
            actions += self.gangs.tick(self.attempts, now)
        actions += self._attempt_next(now)
        return actions + self._write_again(now) if self.reports.unwritten else actions

    def _bind_on(self, now: int) -> list[Action]:
        """Go on with the binding cycles whose time has come."""
        actions = self.bindings.retries(now)
        for failure in self.bindings.give_up_claims(now):
            actions += self.attempts.put_back(failure, now)
        for result in self.bindings.look_again(now):
            actions += self.attempts.went(result, now)
        return actions

    def _attempt_next(self, now: int) -> list[Action]:
        """Attempt the pod that goes first; then those behind it of which it is known that they fail as others did.

        That ends with the first one of which there is something to write to the API, since others may react to that.
        """
        actions: list[Action] = []
        if self.cluster.replacements.awaited or self._front.first:
            self._front.settle(self.queue, now)
        while (queued := self.queue.pop(now)) is not None:
            if self._has_gangs and self.gangs.concerns(queued.record):
                return actions + self.gangs.attempt(queued, self.attempts, now)
            known = self.known.find(queued.record, now)
            if known is None or self.futile.knows(queued.record):
                return actions + self.attempts.attempt(queued, now)
            told = self.attempts.not_scheduled(queued, known.plugins, known.message, now)
            actions += told
            if not all(isinstance(action, Record) for action in told):
                break
        return actions

    def _write_again(self, now: int) -> list[Action]:
        """Send writes that failed once more: about pods that still wait, and that end stray nominations."""
        actions: list[Action] = []
        for action in self.reports.take_due(now):
            queued = self.queue.find(action.uid)
            if queued is not None and queued.place is not Place.IN_FLIGHT:
                actions += self.reports.again(action, queued.record)
            elif isinstance(action, Nominate) and action.uid in self.cluster.placed:
                actions.append(action)
        return actions
