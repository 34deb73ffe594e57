"""Attempts to schedule single pods, the actions that follow from their results, and events about free capacity.

Source: pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Nominate, Rationale, Record, ReleaseClaim
from podium.controllers.scheduling.binding_cycles import BindingCycles
from podium.controllers.scheduling.binding_stages import BindingStage, FailedBinding, StepResult
from podium.controllers.scheduling.futile_preemptions import FutilePreemptions
from podium.controllers.scheduling.known_failures import DerivedFailures, KnownFailure, KnownFailures
from podium.controllers.scheduling.pod_reports import PodReports, fit_error
from podium.controllers.scheduling.preemptions import CapWaits, RunningPreemptions
from podium.controllers.scheduling.queue.hints import assigned_event
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.decide.placement import Placement, lower_nominations, place, rejecting_plugins, unfit_nominations
from podium.decide.post_filter import ask_post_filters
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.handle import CycleState
from podium.framework.plugin import PostFilterResult
from podium.framework.runner import Runner
from podium.framework.settings.configuration import NominationClearing
from podium.framework.verdicts import PluginError, unschedulable

OnAttempt = Callable[[QueuedPod, Runner], None]
"""Receives a pod and its profile's runner before an attempt."""


class _FailedAttempt(msgspec.Struct, frozen=True, eq=False):
    """An attempt at a pod that fits nowhere, and the answer of PostFilter."""

    queued: QueuedPod
    placement: Placement
    plugins: list[str]
    message: str
    result: PostFilterResult
    warnings: Sequence[Action]


@dataclass(eq=False)
class SchedulingAttempts:
    """Makes scheduling attempts, and returns pods to the queue after failures; also for gangs."""

    cluster: Cluster
    runners: Mapping[str, Runner]
    queue: SchedulingQueue
    bindings: BindingCycles
    preemptions: RunningPreemptions
    futile: FutilePreemptions
    cap: CapWaits
    reports: PodReports
    known: KnownFailures
    derived: DerivedFailures
    capacity: CapacityEvents
    seed: int
    on_attempt: OnAttempt | None = None
    """Called before each attempt, for recorders of decisions."""

    def attempt(self, queued: QueuedPod, now: int) -> list[Action]:
        """Schedule a popped pod; return the actions."""
        pod = queued.record
        runner = self.runners[pod.scheduler_name]
        self.cluster.pass_time(now)
        if self.on_attempt is not None:
            self.on_attempt(queued, runner)
        try:
            # The result may follow from that of an earlier attempt.
            derived = None
            if not (self.derived.is_empty or self.known.likeness(pod) is None or self.futile.knows(pod)):
                derived = None if self.bindings.refused.reason(pod) else self.derived.derive(runner, pod)
            if derived is not None:
                self.known.keep(pod, derived, now)
                return self.requeue_unscheduled(queued, derived.plugins, derived.message, now)
            placement = place(runner, pod, self.seed, detailed=False)
            self.cluster.nodes.search_start = placement.cursor
            if placement.error:
                return self.requeue_unscheduled(queued, [], placement.error, now, error=True)
            if placement.row is None:
                return self._handle_unschedulable(queued, runner, placement, now)
        except PluginError as error:
            return self.requeue_unscheduled(queued, [], str(error), now, error=True)
        return self.start_binding(self.cluster.nodes.name(placement.row), queued, runner, placement.state, now)

    def start_binding(
        self, node_name: str, queued: QueuedPod, runner: Runner, state: CycleState, now: int, is_together: bool = False
    ) -> list[Action]:
        """Start a pod's binding cycle; if ``is_together``, it waits until enough of its gang are ready."""
        pod = queued.record
        self.known.forget()
        nominated = self.cluster.nominations.remove(pod.uid)
        started = self.bindings.start(queued, runner, state, node_name, now, is_together)
        actions = self.advance_binding(pod.uid, started, now)
        if nominated not in ("", node_name):
            self.capacity.bound_elsewhere(pod, nominated, now)
        if self.cluster.nominations.uids:
            actions += self.capacity.capacity_taken(node_name, pod, pod.key, now)
        return actions

    def _handle_unschedulable(self, queued: QueuedPod, runner: Runner, placement: Placement, now: int) -> list[Action]:
        """Run PostFilter for a pod that fits on no node, and report the failure."""
        pod = queued.record
        warnings = self.futile.judge(runner, pod, now)
        result = self._post_filter(runner, placement, now)
        if result.binds_to:
            return [*warnings, *self.start_binding(result.binds_to, queued, runner, placement.state, now)]
        message = fit_error(placement, len(self.cluster.nodes.row_of), result.status.message)
        plugins = [*rejecting_plugins(placement), *result.waits_for]
        if pod.nominated_node_name or result.nominated_node or result.victims:
            self.known.forget()
        elif result.plan is not None and result.retry_ns is None and not self.futile.knows(pod):
            failure = KnownFailure(tuple(sorted({*plugins})), message)
            self.known.keep(pod, failure, now)
            if self.known.likeness(pod) is not None:
                self.derived.keep(runner, placement, result, failure)
        node_name = pod.nominated_node_name if result.nominated_node is None else result.nominated_node
        failed = _FailedAttempt(queued, placement, plugins, message, result, warnings)
        if not self.preemptions.synchronous:
            self._nominate(pod, result)
        victims, cancelled = self.cancel_bindings(pod, result.victims, now)
        self.futile.begin(runner, placement.state, pod, node_name, victims, now)
        deletions = self.preemptions.start(
            pod,
            victims,
            evicts=result.evicts,
            binds_first=result.binds_first,
            rationale=preemption_grounds(result.plan) if victims else None,
            attempt=failed if self.preemptions.synchronous else None,
        )
        concluded = [] if self.preemptions.blocking else self.conclude(failed, now)
        return [*concluded, *self.futile.note(pod), *cancelled, *deletions]

    def conclude(self, failed: _FailedAttempt, now: int, failure: str | None = None) -> list[Action]:
        """Return a pod to the queue after a failed attempt; ``failure`` is why its victims could not be deleted."""
        queued, result, message = failed.queued, failed.result, failed.message
        pod = queued.record
        if failure is not None:
            result = replace(result, nominated_node=None, victims=())
            message = fit_error(failed.placement, len(self.cluster.nodes), f"preemption: {failure}")
        if self.preemptions.synchronous:
            # A nomination begins when the victims have been deleted.
            self._nominate(pod, result)
        actions = [*self.requeue_unscheduled(queued, failed.plugins, message, now), *failed.warnings]
        for end in result.releases:
            actions.append(ReleaseClaim(end.claim, end.uid, pod.key, pod.uid, deallocate=True))
        return actions + self.capacity.pod_nominated(pod, result.victims, now) if result.nominated_node else actions

    def _nominate(self, pod: PodRecord, result: PostFilterResult) -> None:
        if result.nominated_node:
            self.cluster.nominations.put(pod, result.nominated_node, map(_UID_OF, result.victims))
        elif result.nominated_node == "":
            self.cluster.nominations.remove(pod.uid)

    def _post_filter(self, runner: Runner, placement: Placement, now: int) -> PostFilterResult:
        """Return the result of the PostFilter plugins; an empty one while the pod must not preempt."""
        pod = placement.pod
        reason = self.futile.wait(pod, now) or self.bindings.refused.reason(pod)
        if not reason:
            result = ask_post_filters(runner, placement)
            if result.retry_ns is not None:
                self.cap.wait(pod, result.retry_ns)
            reason = self.cap.take(pod, result.victims)
            if not reason:
                return result
        return PostFilterResult(unschedulable(f"preemption: {reason}"), nominated_node="")

    def requeue_unscheduled(
        self, queued: QueuedPod, plugins: Sequence[str], message: str, now: int, *, error: bool = False
    ) -> list[Action]:
        """Return a pod to the queue after a failed attempt, and report what is new."""
        pod = queued.record
        queued.message = message
        self.queue.add_unschedulable(queued, plugins, now, is_error=error)
        return self._report_failure(pod, message, now, error)

    def fail_as_known(self, queued: QueuedPod, known: KnownFailure, now: int) -> list[Action]:
        """Return a pod that was taken from the queue to it without an attempt, and report what is new."""
        self.queue.reject(queued, known.plugins, now)
        queued.message = known.message
        return self._report_failure(queued.record, known.message, now, error=False)

    def _report_failure(self, pod: PodRecord, message: str, now: int, error: bool) -> list[Action]:
        reason = "SchedulerError" if error else "Unschedulable"
        nominated, may_reword = self.reports.nominated(pod.uid), pod.scheduler_name in self.known.trusted
        reports = self.reports.report(pod, reason, message, may_reword)
        actions: list[Action] = [Record(pod.key, pod.uid, "Warning", "FailedScheduling", message), *reports]
        if nominated and nominated != pod.nominated_node_name:
            self.capacity.nomination_ended(pod, nominated, now)
        return actions

    def advance_binding(self, uid: str, result: StepResult, now: int) -> list[Action]:
        """Return the actions of a binding cycle's step up to Permit, or from there."""
        cycle = self.bindings.find(uid)
        if cycle is not None and cycle.stage.is_past_permit:
            self.queue.decide(uid)
        return self.finish_binding_step(result, now)

    def finish_binding_step(self, result: StepResult, now: int) -> list[Action]:
        """Return the actions of a binding cycle's step; a failed cycle returns its pod to the queue."""
        actions, failure = result
        for action in actions:
            if type(action) is Nominate:
                self.reports.write(action.uid, action.node_name)
        return actions if failure is None else actions + self.requeue_failed_binding(failure, now)

    def requeue_failed_binding(self, failure: FailedBinding, now: int, *, is_error: bool = True) -> list[Action]:
        """Return the pod of a failed binding cycle to the queue, and offer its capacity to others.

        ``is_error`` False: a failure without a rejecting plugin is no error.
        """
        self.known.forget()
        cycle, plugins = failure.cycle, failure.rejected_by
        pod, message = cycle.queued.record, failure.status.message
        error = is_error and not plugins
        actions = [*failure.aftermath, *self.requeue_unscheduled(cycle.queued, plugins, message, now, error=error)]
        # Within the attempt itself, others have not missed the capacity.
        if cycle.stage is not BindingStage.RESERVE:
            self.capacity.binding_failed(replace(pod, node_name=cycle.node_name), now)
        return actions

    def cancel_bindings(
        self, preemptor: PodRecord, victims: Iterable[PodRecord], now: int
    ) -> tuple[list[PodRecord], list[Action]]:
        """Cancel the binding cycles of victims that are not bound yet; return the other victims, and the actions."""
        left: list[PodRecord] = []
        actions: list[Action] = []
        for victim in victims:
            recalled = self.bindings.recall(victim.uid, preemptor)
            if recalled is not None:
                actions += self.requeue_failed_binding(recalled, now)
            elif self.preemptions.asks_again or not victim.terminating:
                left.append(victim)
        return left, actions


def preemption_grounds(plan: Any) -> Rationale | None:
    """Return the rationale of a preemption plan; None if another plugin proposed the victims."""
    if not isinstance(plan, PreemptionPlan) or plan.chosen is None:
        return None
    chosen, choice = plan.chosen, plan.choice
    others = tuple(filter(chosen.node_name.__ne__, choice.equals))
    number = len(chosen.victims)
    what = f"{number:,} victim{'' if number == 1 else 's'} for room on {chosen.node_name}"
    if chosen.budget_violations:
        what += f", {chosen.budget_violations:,} beyond their budgets"
    if choice.candidates == 1:
        rule = "the only candidate"
    else:
        rule = choice.criterion or ", ".join([criterion.words for criterion in plan.criteria])
        rule = rule or "kube-scheduler's order of candidates"
    if plan.is_exchange:
        rule = f"fairer shares among equals: {rule}"
    return Rationale(rule, what, chosen.node_name, choice.candidates, others)


_UID_OF = attrgetter("uid")


class CapacityEvents(msgspec.Struct, frozen=True):
    """Wakes the pods that a change of capacity concerns, and clears nominations that no longer hold.

    `Configuration.nomination_clearing` selects these. With ``always_clears``, a preemptor clears lower nominations even
    if all its victims terminate already. The nomination of a pod that ``is_in_gang`` ends with those of its group.
    Source: pkg/scheduler/eventhandlers.go (deleteAssignedPodFromCache, hasNominatedNodeNameChanged),
    framework/preemption/executor.go (getLowerPriorityNominatedPods).
    """

    cluster: Cluster
    runners: Mapping[str, Runner]
    queue: SchedulingQueue
    reports: PodReports
    clearing: NominationClearing
    is_in_gang: Callable[[PodRecord], bool] = lambda _: False
    always_clears: bool = False

    def capacity_freed(self, pod: PodRecord, now: int) -> None:
        """Handle that ``pod`` no longer uses its node."""
        self.queue.move(assigned_event(pod, None), now)

    def binding_failed(self, pod: PodRecord, now: int) -> None:
        """Handle that ``pod`` failed on the way to a node: its capacity is free for other pods."""
        self.queue.move(assigned_event(pod, None), now, lambda other: other.uid != pod.uid)

    def nomination_ended(self, pod: PodRecord, node_name: str, now: int) -> None:
        """Wake the pods that the ended nomination of ``pod`` kept off a node, and ``pod`` itself."""
        claim, counts_for = replace(pod, nominated_node_name=node_name), self.cluster.nominations.counts_for

        def was_kept_off(other: PodRecord) -> bool:
            try:
                return other.uid == pod.uid or counts_for(pod, other)
            except PluginError:
                return True

        self.queue.move(assigned_event(claim, None), now, was_kept_off)

    def bound_elsewhere(self, pod: PodRecord, node_name: str, now: int) -> None:
        """Handle that ``pod`` is placed on another node than it was nominated to (k/k#134859)."""
        if self.clearing == "Unfit":
            self.nomination_ended(pod, node_name, now)

    def pod_nominated(self, pod: PodRecord, victims: Iterable[PodRecord], now: int) -> list[Action]:
        """Clear the nominations that must give way to ``pod``, which is nominated to the node of ``victims``."""
        node_name = pod.nominated_node_name
        if self.clearing == "Unfit":
            leaving = frozenset(victim.uid for victim in victims)
            return self.capacity_taken(node_name, pod, pod.key, now, leaving)
        lower = lower_nominations(self.cluster, node_name, pod)
        if not lower or not (self.always_clears or any(not victim.terminating for victim in victims)):
            return []
        return self._clear(lower, node_name, pod.key, now)

    def capacity_taken(
        self, node_name: str, taker: PodRecord | None, cause: str, now: int, leaving: frozenset[str] = frozenset()
    ) -> list[Action]:
        """Clear the nominations to a node that no longer fit, if the configuration clears only those.

        ``taker`` is the pod that takes capacity, None if the node is gone. ``leaving`` are the uids of pods that are
        about to end.
        """
        nominations = self.cluster.nominations
        if self.clearing != "Unfit" or not nominations.uids or not nominations.on(node_name):
            return []
        unfit = unfit_nominations(self.cluster, self.runners, node_name, taker, leaving)
        return self._clear(unfit, node_name, cause, now)

    def gang_plan_ended(self, key: str, now: int) -> list[Action]:
        """Clear the nominations of a gang whose plan no longer holds."""
        nominations = self.cluster.nominations
        if not nominations.uids:
            return []
        members = self.cluster.pod_groups.members(key)
        pods = [pod for uid, pod in members.items() if uid in nominations and self.is_in_gang(pod)]
        return self._clear(pods, "", key, now)

    def _clear(self, pods: list[PodRecord], node_name: str, cause: str, now: int) -> list[Action]:
        actions: list[Action] = []
        if not pods:
            return actions
        nominations = self.cluster.nominations
        # The other nominated pods of their gangs lose theirs, too.
        found = {pod.uid: pod for pod in pods}
        for key in dict.fromkeys(pod.pod_class.pod_group for pod in pods if self.is_in_gang(pod)):
            for uid, other in self.cluster.pod_groups.members(key).items():
                if uid in nominations:
                    found.setdefault(uid, other)
        claims = [(pod, nominations.remove(pod.uid) or node_name) for pod in found.values()]
        for pod, claimed in claims:
            actions.append(Nominate(pod.key, pod.uid, "", cause))
            self.reports.write(pod.uid, "")
            self.nomination_ended(pod, claimed, now)
            if self.clearing == "Unfit":
                self.queue.activate([pod.uid], now)
        return actions
