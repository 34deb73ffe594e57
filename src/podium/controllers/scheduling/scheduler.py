"""The scheduler: attempts one pod at a time, and binds, nominates and preempts pods.

Source: pkg/scheduler (scheduler.go, schedule_one.go, eventhandlers.go); pod-preemption.md for nominations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from functools import partial
from typing import Any

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Behavior, Release
from podium.cluster.cluster import Cluster, ClusterUpdater
from podium.cluster.pods import PodRecord
from podium.cluster.replacements import Replacements
from podium.controllers.actions import (
    GANG_RELEASE,
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
from podium.controllers.controller import NO_CHANGE, PLACEMENT_KINDS
from podium.controllers.deadlines import AT_ONCE, NEVER, Deadline, earliest
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation, Tick
from podium.controllers.scheduling.attempts import CapacityEvents, SchedulingAttempts
from podium.controllers.scheduling.binding_cycles import BindingCycles
from podium.controllers.scheduling.binding_stages import StepResult
from podium.controllers.scheduling.deferred_resizes import DeferredResizes, resize_runners
from podium.controllers.scheduling.event_handlers import EventHandlers
from podium.controllers.scheduling.futile_preemptions import FutilePreemptions
from podium.controllers.scheduling.gangs.gangs import Gangs
from podium.controllers.scheduling.gangs.group_reports import GangState
from podium.controllers.scheduling.known_failures import DerivedFailures, KnownFailures
from podium.controllers.scheduling.pod_reports import PodReports
from podium.controllers.scheduling.preemptions import CapWaits, RunningPreemption, RunningPreemptions
from podium.controllers.scheduling.queue.hints import ASSIGNED_POD_DELETE, check_of_node, registrations_of
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import QueuePlace, QueueSettings
from podium.controllers.scheduling.reservations import claim_in_answer
from podium.decide.placement import lot
from podium.framework.extenders import Extenders
from podium.framework.handle import WaitingPods
from podium.framework.plugin import is_own
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.framework.verdicts import SUCCESS, Calling, PluginError, Status, unresolvable
from podium.plugins.registry import IN_TREE

PREEMPTION_GATE = "DefaultPreemption"
_HELD = unresolvable("waiting for the preemption for this pod to be finished").by(PREEMPTION_GATE)

RELEASE_FAILED = "ReleaseFailed"
"""The label of the event that wakes a pod after the deallocation of a claim for it has failed."""


class Scheduler:
    """A scheduler with one or several profiles.

    Each `Tick` makes at most one scheduling attempt, and resolves further pods by known failures. While pods wait for
    an attempt, the next deadline is 0.
    """

    watches = PLACEMENT_KINDS | {"Pod"}

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        seed: int = 0,
        release: Release = DEFAULT_RELEASE,
        extenders: Extenders | None = None,
    ) -> None:
        """Create a scheduler; without ``extenders`` none are called, even if the configuration names some."""
        configuration = configuration or default_configuration()
        self.cluster = cluster = Cluster(release)
        # kube-scheduler starts at the first node, and is somewhere else after a while.
        cluster.nodes.search_start = lot("", seed) if seed else 0
        self.waiting_pods = WaitingPods()
        profiles = build_profiles(configuration, Registry(IN_TREE), cluster, waiting_pods=self.waiting_pods, seed=seed)
        self.runners = {name: Runner(profile, cluster) for name, profile in profiles.items()}
        for runner in self.runners.values():
            runner.extenders = extenders
        self._boost = PriorityBoost(cluster.replacements)
        registered, has_hints = registrations_of(cluster, self.runners)
        self.queue = SchedulingQueue(
            {name: _sort_key(runner) for name, runner in self.runners.items()},
            self._pre_enqueue,
            registered,
            QueueSettings(
                configuration.pod_initial_backoff_seconds * 10**9,
                configuration.pod_max_backoff_seconds * 10**9,
                pop_from_backoff=release.enabled(Gate.POP_FROM_BACKOFF),
                has_hints=has_hints,
                counts_attempts=not release.has(Behavior.BACKOFF_COUNTS_REJECTIONS),
            ),
            self._boost.first,
        )
        self.bindings = BindingCycles(
            cluster,
            self.waiting_pods,
            announces=release.enabled(Gate.NOMINATION_FOR_EXPECTATION),
            recalls=release.has(Behavior.PREEMPTED_IN_MEMORY),
        )
        asks_again = not release.has(Behavior.ENDING_VICTIMS_LEFT_ALONE)
        is_synchronous = not release.enabled(Gate.ASYNC_PREEMPTION)
        self.preemptions = RunningPreemptions(cluster, synchronous=is_synchronous, asks_again=asks_again)
        self.futile = FutilePreemptions(cluster, configuration.max_futile_preemptions)
        self.cap = CapWaits(cluster)
        self.reports = PodReports()
        self.known = KnownFailures(self.runners)
        gang_state = GangState(cluster, self.bindings, self.runners)
        capacity = CapacityEvents(
            *(cluster, self.runners, self.queue, self.reports),
            *(configuration.nomination_clearing, gang_state.concerns, asks_again),
        )
        self.attempts = SchedulingAttempts(
            *(cluster, self.runners, self.queue, self.bindings, self.preemptions, self.futile, self.cap),
            *(self.reports, self.known, DerivedFailures(cluster, self.runners), capacity, seed),
        )
        self.gangs = Gangs(self.attempts, gang_state)
        self._updater = updater = ClusterUpdater(cluster)
        ends_nominations = release.enabled(Gate.CLEARED_NOMINATION)
        resizes_preempt = release.enabled(Gate.RESIZES_PREEMPT)
        resizing = resize_runners(configuration, cluster, seed) if resizes_preempt else {}
        self.resizes = DeferredResizes(self.attempts, resizing)
        self._events = EventHandlers(
            *(self.attempts, updater, self.gangs, self.resizes),
            ends_nominations=ends_nominations,
            node_check=None if has_hints else partial(check_of_node, cluster, self.runners),
        )
        self._waiting = self.waiting_pods.uids
        self._has_gangs = self.gangs.is_on
        self._queued = self.queue.uids
        # The pods that wait for a time outside the queue, by what they wait for.
        self._timed: tuple[Set[str], ...] = (
            *(self.waiting_pods.uids, *self.bindings.timed, self.reports.unwritten),
            *(self.cap.held, self.futile.waiting, self.resizes.due),
        )
        # By the action's type; answers to others have no effect. Asking a Struct for its type one by one is slow.
        self._on_answers: dict[type[Action], Callable[[Any, ActionFinished, int], list[Action]]] = {
            Bind: self._bind_answered,
            **dict.fromkeys((BindClaim, ReserveClaim, ReleaseClaim), self._claim_answered),
            **dict.fromkeys((ReportStatus, DeleteObject, Evict), self._victim_answered),
            **dict.fromkeys((ReportUnschedulable, Nominate, PatchObject), self._report_answered),
        }
        # The last deadline; an equal one is returned as the same object.
        self._last_deadline = NEVER

    def _pre_enqueue(self, pod: PodRecord) -> Status:
        status = self.runners[pod.scheduler_name].pre_enqueue(pod)
        if status is not SUCCESS:
            return status
        if self.preemptions.synchronous:
            return SUCCESS
        group = pod.pod_class.pod_group
        is_held = self.preemptions.holds(pod.uid) or (group and self.gangs.attempts.holds(group))
        return _HELD if is_held else SUCCESS

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Handle an observation at ``now`` (nanoseconds); return the actions."""
        # The most frequent types come first; `isinstance` is slow for a Struct of another type.
        if type(observation) is ActionFinished:
            answered = self._on_answers.get(type(observation.action))
            actions = NO_CHANGE if answered is None else answered(observation.action, observation, now)
        elif type(observation) is Changed:
            shown = observation.object
            actions = (
                self._events.pod_changed(shown, now) if isinstance(shown, Pod) else self._on_object_change(shown, now)
            )
        elif type(observation) is Deleted:
            gone = observation.object
            actions = self._events.pod_gone(gone, now) if isinstance(gone, Pod) else self._events.object_gone(gone, now)
        else:
            actions = self._tick(now) if type(observation) is Tick else []
        if self._waiting:
            actions = actions + self._resume_permitted(now)
        if self._has_gangs and self.bindings.gathered:
            actions = actions + self.gangs.bindings.settle(now)
        if actions or self._last_deadline is not NEVER or self._queued or any(self._timed):
            return actions
        # No deadline before, and none now.
        return actions if self._has_gangs else NO_CHANGE

    def _on_object_change(self, changed: Kubernetes, now: int) -> list[Action]:
        """Handle the addition or change of an object other than a pod; pods may wait for a volume or claim."""
        actions = self._events.object_changed(changed, now)
        is_awaited = isinstance(changed, PersistentVolume | PersistentVolumeClaim)
        return actions + self._finish(self.bindings.look_again(now, at_once=True), now) if is_awaited else actions

    def _resume_permitted(self, now: int) -> list[Action]:
        """Continue with the pods whose wait at Permit is over."""
        actions: list[Action] = []
        while settled := self.waiting_pods.settled(now):
            self.known.forget()
            for waiting in settled:
                actions += self.attempts.advance_binding(
                    waiting.pod.uid, self.bindings.resume(waiting.pod.uid, now), now
                )
        return actions

    def deadline(self) -> Deadline:
        """Return when the scheduler next wants a `Tick`; retries after errors do not keep a simulation running."""
        if (self.queue.can_pop() or self.resizes.can_attempt) and not self.preemptions.blocking:
            self._last_deadline = AT_ONCE
            return AT_ONCE
        if not (any(self._timed) or self._has_gangs or self.queue.has_deadlines):
            self._last_deadline = NEVER
            return NEVER
        bindings_ns = self.bindings.next_deadline()
        times: tuple[int | None, ...] = (
            *(bindings_ns, self.queue.next_deadline(), self.reports.next_deadline()),
            *(self.futile.next_deadline(), self.cap.next_deadline()),
        )
        keeps_alive = bindings_ns is not None or bool(self.cap.held) or self.queue.has_promising
        if self._has_gangs:
            times += (self.gangs.next_deadline(),)
            keeps_alive = keeps_alive or self.gangs.keeps_alive
        time_ns, deadline = earliest(times), self._last_deadline
        if deadline.time_ns != time_ns or deadline.keeps_alive is not keeps_alive:
            deadline = self._last_deadline = Deadline(time_ns, keeps_alive)
        return deadline

    def _finish(self, results: Iterable[StepResult], now: int) -> list[Action]:
        return [action for result in results for action in self.attempts.finish_binding_step(result, now)]

    # Results of actions

    def _bind_answered(self, bind: Bind, finished: ActionFinished, now: int) -> list[Action]:
        result = self.bindings.bind_answered(bind, finished, now)
        if finished.problem is None and bind.uid in self.bindings.unseen:
            self.queue.done(bind.uid)
        return self.attempts.finish_binding_step(result, now)

    def _report_answered(
        self, action: ReportUnschedulable | Nominate | PatchObject, finished: ActionFinished, now: int
    ) -> list[Action]:
        if not isinstance(action, PatchObject):
            self.reports.on_finished(action, finished, now)
        elif action.kind == "PodGroup":
            self.gangs.reports.on_finished(action, finished, now)
        return []

    def _victim_answered(
        self, action: ReportStatus | DeleteObject | Evict, finished: ActionFinished, now: int
    ) -> list[Action]:
        if type(action) is Evict and action.cause == GANG_RELEASE:
            self.gangs.releases.on_finished(action, finished)
            return []
        actions, ended = self.preemptions.on_finished(action, finished, now)
        for preemption in ended:
            if preemption.attempt is not None:
                actions += self.attempts.conclude(preemption.attempt, now, preemption.failure)
            else:
                self._preemption_ended(preemption, now)
        return actions

    def _claim_answered(
        self, action: BindClaim | ReserveClaim | ReleaseClaim, finished: ActionFinished, now: int
    ) -> list[Action]:
        """Handle the answer to a claim's write. If it returns the claim, that counts before the API shows it."""
        reservations = self.bindings.reservations
        claim = claim_in_answer(finished)
        if claim is not None:
            self.known.forget()
            self._events.claim_written(claim, now)
        if isinstance(action, ReleaseClaim):
            if action.deallocate and finished.problem is not None and not finished.answer.lasts:
                # The pod waits for the devices that this would have freed.
                self.queue.wake(action.pod_uid, RELEASE_FAILED, now)
            if (freed := reservations.released(action, finished, now)) is not None:
                self.known.forget()
                self._events.claim_freed(freed, now)
            return []
        actions = self.attempts.finish_binding_step(self.bindings.claim_answered(action, finished, claim, now), now)
        if isinstance(action, ReserveClaim) and action.pod_uid not in self._updater.pods:
            actions += reservations.forget_pod(action.pod, action.pod_uid)
        return actions

    def _preemption_ended(self, ended: RunningPreemption, now: int) -> None:
        """Ask the preemptor's gate again.

        The pod is attempted again if a request failed, or if something else has woken it. While only some victims are
        gone, it waits for the others, unless it may be bound first.
        """
        for uid in self.gangs.attempts.with_group(ended.preemptor):
            queued = self.queue.find(uid)
            if queued is not None and (ended.failure is not None or ended.binds_first):
                self.queue.activate([uid], now)
            elif queued is not None:
                are_gone = self.cluster.placed.keys().isdisjoint(ended.victims)
                is_worth_attempt = are_gone or queued.woken_by != ASSIGNED_POD_DELETE
                self.queue.ask_gate_again(uid, now, is_worth_attempt)

    # Due work

    def _tick(self, now: int) -> list[Action]:
        self.queue.flush(now)
        for waits in (self.futile, self.cap):
            while (uid := waits.take_due(now)) is not None:
                self.queue.activate([uid], now)
        actions: list[Action] = []
        if self.bindings.has_deadlines():
            actions += self.bindings.retries(now)
            for failure in self.bindings.give_up_claims(now):
                actions += self.attempts.requeue_failed_binding(failure, now)
            actions += self._finish(self.bindings.look_again(now), now)
        if self._has_gangs:
            actions += self.gangs.tick(now)
        actions += self._attempt_next(now)
        return actions + self._write_again(now) if self.reports.unwritten else actions

    def _attempt_next(self, now: int) -> list[Action]:
        """Attempt the first pod of the queue; before it, resolve those whose failure is known.

        This ends with the first action that others may react to: more than an event, or a report of another message.
        """
        actions: list[Action] = []
        if self.preemptions.blocking:
            return actions
        if self.resizes.due and self.resizes.can_attempt:
            return self.resizes.attempt(now)
        if self.cluster.replacements.awaited or self._boost.first:
            self._boost.settle(self.queue, now)
        while (queued := self.queue.take(now)) is not None:
            pod = queued.record
            is_in_gang = self._has_gangs and self.gangs.concerns(pod)
            known = None if is_in_gang else self.known.find(pod, now)
            if known is None or self.futile.knows(pod):
                self.queue.begin(queued, now)
                return actions + (self.gangs.attempts if is_in_gang else self.attempts).attempt(queued, now)
            made = self.attempts.fail_as_known(queued, known, now)
            actions += made
            # Most only have their event.
            if len(made) > 1 and any(type(one) is not Record and not getattr(one, "rewords", False) for one in made):
                break
        return actions

    def _write_again(self, now: int) -> list[Action]:
        """Retry failed writes: about pods that are still pending, and to clear stray nominations."""
        actions: list[Action] = []
        for action in self.reports.take_due(now):
            queued = self.queue.find(action.uid)
            if queued is not None and queued.place is not QueuePlace.IN_FLIGHT:
                actions += self.reports.again(action, queued.record)
            elif isinstance(action, Nominate) and action.uid in self.cluster.placed:
                actions.append(action)
        return actions


def _sort_key(runner: Runner) -> Callable[[PodRecord, int], tuple[int, ...]]:
    """Return the profile's QueueSort key. It raises PluginError if the plugin fails or returns no integers."""
    plugin = runner.profile.queue_sort
    name = "" if plugin is None else plugin.name
    if plugin is not None and is_own(plugin):
        return plugin.sort_key

    def sort_key(pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        with Calling(name, "QueueSort", pod):
            key: Any = runner.sort_key(pod, queued_ns)
        if isinstance(key, tuple) and all(isinstance(part, int) for part in key):
            return key
        raise PluginError(f"plugin {name} answered at QueueSort for pod {pod.key} with {key!r}, not with integers")

    return sort_key


class PriorityBoost:
    """Puts replacements of evicted pods that have priority at the front of the queue.

    ``first`` are their uids; only `settle` changes them. Source: controlled-rescheduling.md, Rescheduler; an extension
    of kube-scheduler.
    """

    def __init__(self, replacements: Replacements) -> None:
        self.first: set[str] = set()
        self._replacements = replacements
        self._version = replacements.version

    def settle(self, queue: SchedulingQueue, now: int) -> None:
        """Update the queue, which reads ``first``."""
        if self._version == self._replacements.version:
            return
        self._version = self._replacements.version
        moved = sorted(self.first ^ self._replacements.first)
        self.first.symmetric_difference_update(moved)
        for uid in moved:
            queue.reorder(uid, now)
