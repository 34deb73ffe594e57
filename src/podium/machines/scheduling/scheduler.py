"""The scheduler: watches pods and nodes, attempts one pod at a time, and says what to bind, nominate and delete.

Source: pkg/scheduler (scheduler.go, schedule_one.go, eventhandlers.go); pod-preemption.md for nominations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.cluster.pods import PodRecord
from podium.decide.placement import Placement, place, rejecting_plugins
from podium.decide.preempting.post_filter import ask_post_filters
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.extenders import Extenders
from podium.framework.plugin import PostFilterResult
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration, default_configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.framework.status import Code, Status, unschedulable
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
from podium.machines.scheduling.binding.cycle import FailedBinding
from podium.machines.scheduling.binding.reservations import told_claim
from podium.machines.scheduling.fit_error import fit_error
from podium.machines.scheduling.known_failures import KnownFailure
from podium.machines.scheduling.parts import Parts
from podium.machines.scheduling.preemption_grounds import preemption_grounds
from podium.machines.scheduling.preemptions import Ended
from podium.machines.scheduling.queue.queued_pod import Place, QueuedPod
from podium.machines.scheduling.room import ASSIGNED_POD_DELETE
from podium.machines.scheduling.shown.objects import ObjectsShown
from podium.machines.scheduling.shown.pods import PodsShown

OnAttempt = Callable[[QueuedPod, Runner], None]
"""Is shown a pod, and who decides about it."""

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
        self.seed = seed
        # Is shown each pod right before its attempt, for those who write down how decisions were made.
        self.on_attempt: OnAttempt | None = None
        # Where the next sample of nodes to score starts, where profiles ask for samples; all profiles share it.
        self.cursor = 0
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
            actions = actions + self.gangs.settle(self, now)
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
                actions += self.on_its_way(waiting.pod.uid, self.bindings.resume(waiting.pod.uid, now), now)
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
        return [action for result in self.bindings.look_at_once(now) for action in self._went(result, now)]

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
        return self._went(result, now)

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
            freed = reservations.released(answered, now)
            if freed is not None:
                self.known.forget()
                self._objects.claim_freed(freed, now)
            return []
        actions = self._went(self.bindings.claim_answered(answered, told, now), now)
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

    # Attempts

    def _tick(self, now: int) -> list[Action]:
        self.queue.flush(now)
        for waits in (self.futile, self.cap):
            while (uid := waits.take_due(now)) is not None:
                self.queue.activate([uid], now)
        actions = self._bind_on(now) if self.bindings.has_deadlines else []
        if self._has_gangs:
            actions += self.gangs.tick(self, now)
        actions += self._attempts(now)
        return actions + self._write_again(now) if self.reports.unwritten else actions

    def _bind_on(self, now: int) -> list[Action]:
        """Go on with the binding cycles whose time has come."""
        actions = self.bindings.retries(now)
        for failure in self.bindings.give_up_claims(now):
            actions += self.put_back(failure, now)
        for result in self.bindings.look_again(now):
            actions += self._went(result, now)
        return actions

    def _attempts(self, now: int) -> list[Action]:
        """Attempt the pod that goes first; then those behind it of which it is known that they fail as others did.

        That ends with the first one of which there is something to write to the API, since others may react to that.
        """
        actions: list[Action] = []
        if self.cluster.replacements.awaited or self._front.first:
            self._front.settle(self.queue, now)
        while (queued := self.queue.pop(now)) is not None:
            if self._has_gangs and self.gangs.concerns(queued.record):
                return actions + self.gangs.attempt(queued, self, now)
            known = self.known.find(queued.record, now)
            if known is None or self.futile.knows(queued.record):
                return actions + self._attempt(queued, now)
            told = self.not_scheduled(queued, known.plugins, known.message, now)
            actions += told
            if not all(isinstance(action, Record) for action in told):
                break
        return actions

    def _attempt(self, queued: QueuedPod, now: int) -> list[Action]:
        pod = queued.record
        runner = self.runners[pod.scheduler_name]
        self.cluster.pass_time(now)
        self.begins(queued, runner)
        try:
            placement = place(runner, pod, self.seed, cursor=self.cursor, detailed=False)
            self.cursor = placement.cursor
            if placement.error:
                return self.not_scheduled(queued, [], placement.error, now, error=True)
            if placement.row is None:
                return self._nowhere(queued, runner, placement, now)
        except PluginError as error:
            return self.not_scheduled(queued, [], str(error), now, error=True)
        return self.goes_to(self.cluster.nodes.name(placement.row), queued, runner, placement.state, now)

    def begins(self, queued: QueuedPod, runner: Runner) -> None:
        """An attempt at a pod is about to be made."""
        if self.on_attempt is not None:
            self.on_attempt(queued, runner)

    def goes_to(
        self,
        node_name: str,
        queued: QueuedPod,
        runner: Runner,
        state: CycleState,
        now: int,
        *,
        is_together: bool = False,
    ) -> list[Action]:
        """Begin to bind a pod to its node; if ``is_together``, not before enough of its gang are ready."""
        pod = queued.record
        self.known.forget()
        nominated = self.cluster.nominations.remove(pod.uid)
        started = self.bindings.start(queued, runner, state, node_name, now, is_together=is_together)
        actions = self.on_its_way(pod.uid, started, now)
        if nominated not in ("", node_name):
            self._room.went_elsewhere(pod, nominated, now)
        if self.cluster.nominations.uids:
            actions += self._room.taken(node_name, pod.priority, pod.key, now)
        return actions

    def _nowhere(self, queued: QueuedPod, runner: Runner, placement: Placement, now: int) -> list[Action]:
        """No node fits: see what PostFilter proposes, and report."""
        pod = queued.record
        warnings = self.futile.judge(runner, pod, now)
        result = self._way_out(runner, placement, now)
        if result.binds_to:
            return [*warnings, *self.goes_to(result.binds_to, queued, runner, placement.state, now)]
        message = fit_error(placement, len(self.cluster.nodes), result.status.message)
        plugins = rejecting_plugins(placement)
        if pod.nominated_node_name or result.nominated_node or result.victims:
            self.known.forget()
        elif result.plan is not None and result.retry_ns is None and not self.futile.knows(pod):
            self.known.keep(pod, KnownFailure(tuple(plugins), message), now)
        if result.nominated_node:
            self.cluster.nominations.put(pod, result.nominated_node, [victim.uid for victim in result.victims])
        elif result.nominated_node == "":
            self.cluster.nominations.remove(pod.uid)
        node_name = pod.nominated_node_name
        victims, called_back = self.call_back(pod, result.victims, now)
        self.futile.begin(runner, placement.state, pod, node_name, victims, now)
        deletions = self.preemptions.start(
            pod,
            node_name,
            victims,
            evicts=result.evicts,
            binds_first=result.binds_first,
            grounds=preemption_grounds(result.plan) if victims else None,
        )
        actions = [*self.not_scheduled(queued, plugins, message, now), *warnings]
        actions += [ReleaseClaim(end.claim, end.uid, pod.key, pod.uid, deallocate=True) for end in result.releases]
        if result.nominated_node:
            actions += self._room.nominated(pod, result.victims, now)
        return [*actions, *self.futile.note(pod), *called_back, *deletions]

    def _way_out(self, runner: Runner, placement: Placement, now: int) -> PostFilterResult:
        """What the PostFilter plugins propose; nothing while the pod must wait before it may preempt."""
        pod = placement.pod
        reason = self.futile.wait(pod, now)
        if not reason:
            result = ask_post_filters(runner, placement)
            if result.retry_ns is not None:
                self.cap.wait(pod, result.retry_ns)
            reason = self.cap.take(pod, result.victims)
            if not reason:
                return result
        return PostFilterResult(unschedulable(f"preemption: {reason}"), nominated_node="")

    def not_scheduled(
        self, queued: QueuedPod, plugins: Sequence[str], message: str, now: int, *, error: bool = False
    ) -> list[Action]:
        """Put a pod back after an attempt that came to nothing, and report what is new about it."""
        pod = queued.record
        queued.message = message
        self.queue.add_unschedulable(queued, plugins, (), now, error=error)
        actions: list[Action] = [Record(pod.key, pod.uid, "Warning", "FailedScheduling", message)]
        reason = "SchedulerError" if error else "Unschedulable"
        nominated = self.reports.nominated(pod.uid)
        actions += self.reports.report(pod, reason, message)
        if nominated and nominated != pod.nominated_node_name:
            self._room.given_up(pod, nominated, now)
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

    def on_its_way(self, uid: str, result: tuple[list[Action], FailedBinding | None], now: int) -> list[Action]:
        """The actions of the steps to Permit, or from there."""
        cycle = self.bindings.find(uid)
        if cycle is not None and cycle.stage.is_past_permit:
            self.queue.decide(uid)
        return self._went(result, now)

    def _went(self, result: tuple[list[Action], FailedBinding | None], now: int) -> list[Action]:
        """The actions of a binding cycle's step; a cycle that failed puts its pod back."""
        actions, failure = result
        for action in actions:
            if type(action) is Nominate:
                self.reports.write(action.uid, action.node_name)
        return actions if failure is None else actions + self.put_back(failure, now)

    def put_back(self, failure: FailedBinding, now: int, *, is_error: bool = True) -> list[Action]:
        """Put the pod of a binding cycle that came to nothing back; its room is there for others, not for itself.

        Where no plugin turned it down, that ``is_error`` unless somebody says that it is none.
        """
        self.known.forget()
        cycle, plugins = failure.cycle, failure.rejected_by
        pod, message = cycle.queued.record, failure.status.message
        error = is_error and not plugins
        actions = [*failure.aftermath, *self.not_scheduled(cycle.queued, plugins, message, now, error=error)]
        if failure.frees_room:
            self._room.turned_back(replace(pod, node_name=cycle.node_name), now)
        return actions

    def call_back(
        self, preemptor: PodRecord, victims: Iterable[PodRecord], now: int
    ) -> tuple[list[PodRecord], list[Action]]:
        """Call back to the queue those victims that are still on the way to their node.

        Returns the others that are to be deleted, and the actions.
        """
        left: list[PodRecord] = []
        actions: list[Action] = []
        if not len(self.bindings):
            return [victim for victim in victims if not victim.terminating], actions
        for victim in victims:
            cycle = self.bindings.find(victim.uid)
            if cycle is not None and not cycle.stage.is_sent:
                status = Status(Code.ERROR, (f"preempted by pod {preemptor.key}",))
                actions += self.put_back(self.bindings.cancel(victim.uid, status), now)
            elif not victim.terminating:
                left.append(victim)
        return left, actions
