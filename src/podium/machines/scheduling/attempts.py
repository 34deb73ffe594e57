"""Attempts at single pods: what is asked for once it is decided where a pod goes, or that it goes nowhere.

Source: pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from podium.cluster.pods import PodRecord
from podium.decide.placement import Placement, place, rejecting_plugins
from podium.decide.preempting.post_filter import ask_post_filters
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.plugin import PostFilterResult
from podium.framework.runner import Runner
from podium.framework.status import Code, Status, unschedulable
from podium.machines.actions import Action, Nominate, Record, ReleaseClaim
from podium.machines.scheduling.binding.cycle import FailedBinding, StepResult
from podium.machines.scheduling.fit_error import fit_error
from podium.machines.scheduling.known_failures import KnownFailure
from podium.machines.scheduling.parts import Parts
from podium.machines.scheduling.preemption_grounds import preemption_grounds
from podium.machines.scheduling.queue.queued_pod import QueuedPod

OnAttempt = Callable[[QueuedPod, Runner], None]
"""Is shown a pod, and who decides about it."""


class Attempts:
    """Makes attempts, and takes back to the queue whatever came to nothing; for those who place gangs as well.

    ``cursor`` is where the next sample of nodes to score starts, where profiles ask for samples; all profiles share it.
    """

    def __init__(self, parts: Parts, seed: int) -> None:
        self.seed = seed
        self.cursor = 0
        self.on_attempt: OnAttempt | None = None
        """Is shown each pod right before its attempt, for those who write down how decisions were made."""
        self._cluster = parts.cluster
        self._runners = parts.runners
        self._queue = parts.queue
        self._bindings = parts.bindings
        self._preemptions = parts.preemptions
        self._futile = parts.futile
        self._cap = parts.cap
        self._reports = parts.reports
        self._known = parts.known
        self._room = parts.room

    def attempt(self, queued: QueuedPod, now: int) -> list[Action]:
        """Decide about a pod that was popped, and say what to do."""
        pod = queued.record
        runner = self._runners[pod.scheduler_name]
        self._cluster.pass_time(now)
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
        return self.goes_to(self._cluster.nodes.name(placement.row), queued, runner, placement.state, now)

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
        self._known.forget()
        nominated = self._cluster.nominations.remove(pod.uid)
        started = self._bindings.start(queued, runner, state, node_name, now, is_together=is_together)
        actions = self.on_its_way(pod.uid, started, now)
        if nominated not in ("", node_name):
            self._room.went_elsewhere(pod, nominated, now)
        if self._cluster.nominations.uids:
            actions += self._room.taken(node_name, pod.priority, pod.key, now)
        return actions

    def _nowhere(self, queued: QueuedPod, runner: Runner, placement: Placement, now: int) -> list[Action]:
        """No node fits: see what PostFilter proposes, and report."""
        pod = queued.record
        warnings = self._futile.judge(runner, pod, now)
        result = self._way_out(runner, placement, now)
        if result.binds_to:
            return [*warnings, *self.goes_to(result.binds_to, queued, runner, placement.state, now)]
        message = fit_error(placement, len(self._cluster.nodes), result.status.message)
        plugins = rejecting_plugins(placement)
        if pod.nominated_node_name or result.nominated_node or result.victims:
            self._known.forget()
        elif result.plan is not None and result.retry_ns is None and not self._futile.knows(pod):
            self._known.keep(pod, KnownFailure(tuple(plugins), message), now)
        if result.nominated_node:
            self._cluster.nominations.put(pod, result.nominated_node, [victim.uid for victim in result.victims])
        elif result.nominated_node == "":
            self._cluster.nominations.remove(pod.uid)
        node_name = pod.nominated_node_name
        victims, called_back = self.call_back(pod, result.victims, now)
        self._futile.begin(runner, placement.state, pod, node_name, victims, now)
        deletions = self._preemptions.start(
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
        return [*actions, *self._futile.note(pod), *called_back, *deletions]

    def _way_out(self, runner: Runner, placement: Placement, now: int) -> PostFilterResult:
        """What the PostFilter plugins propose; nothing while the pod must wait before it may preempt."""
        pod = placement.pod
        reason = self._futile.wait(pod, now)
        if not reason:
            result = ask_post_filters(runner, placement)
            if result.retry_ns is not None:
                self._cap.wait(pod, result.retry_ns)
            reason = self._cap.take(pod, result.victims)
            if not reason:
                return result
        return PostFilterResult(unschedulable(f"preemption: {reason}"), nominated_node="")

    def not_scheduled(
        self, queued: QueuedPod, plugins: Sequence[str], message: str, now: int, *, error: bool = False
    ) -> list[Action]:
        """Put a pod back after an attempt that came to nothing, and report what is new about it."""
        pod = queued.record
        queued.message = message
        self._queue.add_unschedulable(queued, plugins, (), now, error=error)
        actions: list[Action] = [Record(pod.key, pod.uid, "Warning", "FailedScheduling", message)]
        reason = "SchedulerError" if error else "Unschedulable"
        nominated = self._reports.nominated(pod.uid)
        actions += self._reports.report(pod, reason, message)
        if nominated and nominated != pod.nominated_node_name:
            self._room.given_up(pod, nominated, now)
        return actions

    def on_its_way(self, uid: str, result: StepResult, now: int) -> list[Action]:
        """The actions of the steps to Permit, or from there."""
        cycle = self._bindings.find(uid)
        if cycle is not None and cycle.stage.is_past_permit:
            self._queue.decide(uid)
        return self.went(result, now)

    def went(self, result: StepResult, now: int) -> list[Action]:
        """The actions of a binding cycle's step; a cycle that failed puts its pod back."""
        actions, failure = result
        for action in actions:
            if type(action) is Nominate:
                self._reports.write(action.uid, action.node_name)
        return actions if failure is None else actions + self.put_back(failure, now)

    def put_back(self, failure: FailedBinding, now: int, *, is_error: bool = True) -> list[Action]:
        """Put the pod of a binding cycle that came to nothing back; its room is there for others, not for itself.

        Where no plugin turned it down, that ``is_error`` unless somebody says that it is none.
        """
        self._known.forget()
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
        if not len(self._bindings):
            return [victim for victim in victims if not victim.terminating], actions
        for victim in victims:
            cycle = self._bindings.find(victim.uid)
            if cycle is not None and not cycle.stage.is_sent:
                status = Status(Code.ERROR, (f"preempted by pod {preemptor.key}",))
                actions += self.put_back(self._bindings.cancel(victim.uid, status), now)
            elif not victim.terminating:
                left.append(victim)
        return left, actions
