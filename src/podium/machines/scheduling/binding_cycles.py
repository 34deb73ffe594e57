"""From a chosen node to a bound pod: reserve, permit, bind claims, bind the pod; and back again where that fails.

The pod is assumed on its node from the first step on, so that the next attempts see the room as taken.

Source: pkg/scheduler/schedule_one.go (assume, bindingCycle, handleBindingCycleError).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from podium.cluster.cluster import Cluster
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling, PluginError
from podium.framework.plugin import PermitResult
from podium.framework.runner import Runner
from podium.framework.status import SUCCESS, Code, Status
from podium.framework.waiting_pods import WaitingPod, WaitingPods
from podium.machines.actions import Action, Bind, Nominate, ReleaseClaim, ReserveClaim
from podium.machines.answers import Answer
from podium.machines.deadlines import Deadlines, earliest
from podium.machines.observations import Answered, Problem
from podium.machines.scheduling.binding_cycle import (
    BindingCycle,
    ClaimAction,
    Failure,
    Stage,
    StepResult,
    claim_action,
    error_status,
    tell_bound,
    unbound_claims,
    unreserve,
)
from podium.machines.scheduling.queued_pod import SECOND_NS, QueuedPod

# How long an unanswered binding is left alone before it is sent again; the server refuses what was carried out.
BIND_RETRY_NS = SECOND_NS

# How often it is looked whether devices are ready (PollUntilContextTimeout of DynamicResources' PreBind).
LOOK_AGAIN_NS = 5 * SECOND_NS

# What a claim is called that is made for a pod's extended resources.
_UNNAMED = "for extended resources"


class BindingCycles:
    """All pods between decision and binding, and those whose binding has yet to be seen in the API.

    Methods return what to do now, and whether the cycle failed; a failed cycle has been undone already.
    """

    def __init__(self, cluster: Cluster, waiting_pods: WaitingPods) -> None:
        self._cluster = cluster
        self._waiting = waiting_pods
        self._cycles: dict[str, BindingCycle] = {}
        # By uid: when to give up claims, and when to send a binding again.
        self._claim_deadlines: Deadlines[str] = Deadlines()
        self._retries: Deadlines[str] = Deadlines()
        # When to see again whether devices are ready.
        self._preparing: Deadlines[str] = Deadlines()
        # Pods that were bound, as the API answered, but are not yet seen on their node.
        self.unseen: set[str] = set()

    def __len__(self) -> int:
        return len(self._cycles)

    def __contains__(self, uid: str) -> bool:
        return uid in self._cycles

    def find(self, uid: str) -> BindingCycle | None:
        """The cycle of a pod, or None."""
        return self._cycles.get(uid)

    def is_assumed(self, uid: str) -> bool:
        """Whether a pod counts as placed though the API does not show it yet."""
        return uid in self._cycles or uid in self.unseen

    def start(self, queued: QueuedPod, runner: Runner, state: CycleState, node_name: str, now: int) -> StepResult:
        """Assume the pod on the node and go as far as possible."""
        pod = queued.record
        cycle = self._cycles[pod.uid] = BindingCycle(queued, runner, state, node_name)
        pod.node_name = node_name
        self._cluster.add_pod(pod)
        return self._guarded(cycle, lambda: self._reserve(cycle, now))

    def resume(self, uid: str, now: int) -> StepResult:
        """Go on with a pod whose wait at Permit is over."""
        waiting, cycle = self._waiting.get(uid), self._cycles[uid]
        if waiting is None:
            raise ValueError(f"pod {cycle.queued.record.key} does not wait")
        self._waiting.remove(uid)
        if waiting.rejected_by:
            return self._fail(cycle, Status(Code.UNSCHEDULABLE, (waiting.message,), waiting.rejected_by))
        return self._guarded(cycle, lambda: self._pre_bind(cycle, now, announced=True))

    def claim_answered(self, action: ClaimAction, problem: Problem | None, now: int) -> StepResult:
        """A claim was bound, or could not be; when the last one is, the pod's own binding follows.

        A reservation of devices without an answer may have been carried out. They count as taken, and the same is asked
        for again, until that is known; an answer that only puts it off says nothing about it either.
        """
        cycle = self._cycles.get(action.pod_uid)
        if cycle is None or action not in cycle.claims:
            return [], None
        if isinstance(action, ReserveClaim):
            answer = Answered(action, problem).answer
            if answer is Answer.UNKNOWN or (answer is Answer.PASSING and action in cycle.unanswered):
                cycle.unanswered.add(action)
                self._retries.set(action.pod_uid, now + BIND_RETRY_NS)
                return [], None
            if problem is None:
                self._cluster.devices.written(action.uid or action.pod_uid)
                self._cluster.devices.reserved(action.uid, action.pod_uid)
        cycle.claims.discard(action)
        if problem is not None:
            return self._fail(cycle, error_status(f"binding claim {action.claim or _UNNAMED}: {problem.message}"))
        if cycle.claims:
            return [], None
        self._claim_deadlines.set(action.pod_uid, None)
        return self._guarded(cycle, lambda: self._prepare(cycle, now))

    def look_again(self, now: int) -> list[StepResult]:
        """See whether devices are ready that pods wait for."""
        results: list[StepResult] = []
        while (uid := self._preparing.take_due(now)) is not None:
            cycle = self._cycles[uid]
            results.append(self._guarded(cycle, partial(self._prepare, cycle, now)))
        return results

    def look_at_once(self, now: int) -> list[StepResult]:
        """Volumes or their claims have changed: see whether those are ready that pods wait for."""
        for uid in self._preparing.all_keys():
            self._preparing.set(uid, now)
        return self.look_again(now)

    def give_up_claims(self, now: int) -> list[Failure]:
        """The cycles whose claims were not bound in time; an answer that comes after all says nothing any more."""
        failures = []
        while (uid := self._claim_deadlines.take_due(now)) is not None:
            cycle = self._cycles[uid]
            failures.append(self._fail(cycle, error_status(unbound_claims(cycle)))[1])
        return failures

    def bind_answered(self, action: Bind, problem: Problem | None, now: int) -> StepResult:
        """The binding was carried out, refused, or left without an answer.

        Without an answer it may have been carried out. The pod stays assumed and the same binding is sent again, until
        the API shows the pod on a node or says that there is none. A conflict then says that the pod was bound, by us
        or by others, or replaced: which of these, the API will show.
        """
        cycle = self._cycles.get(action.uid)
        if cycle is None or cycle.bind != action or cycle.stage is not Stage.BIND:
            return [], None
        if problem is None:
            self._drop(cycle)
            self.unseen.add(action.uid)
            return tell_bound(cycle), None
        answer = Answered(action, problem).answer
        if answer is Answer.UNKNOWN or (cycle.may_be_bound and answer not in (Answer.GONE, Answer.STALE)):
            cycle.may_be_bound = True
            self._retries.set(action.uid, now + BIND_RETRY_NS)
            return [], None
        if cycle.may_be_bound and answer is Answer.STALE:
            return [], None
        return self._fail(cycle, error_status(f"binding to {cycle.node_name}: {problem.message}"))

    def retries(self, now: int) -> list[Action]:
        """The bindings to send again, and the reservations of devices."""
        due: list[Action] = []
        while (uid := self._retries.take_due(now)) is not None:
            cycle = self._cycles[uid]
            reservations = [one for one in cycle.reservations if one in cycle.claims]
            due += [cycle.bind] if cycle.stage is Stage.BIND else reservations
        return due

    def cancel(self, uid: str, status: Status) -> Failure:
        """Undo the cycle of a pod. Raises KeyError where there is none."""
        return self._fail(self._cycles[uid], status)[1]

    def withdraw(self, uid: str) -> list[Action]:
        """Forget a pod that is not to be bound, and undo its cycle if there is one; says what went wrong with that."""
        self.unseen.discard(uid)
        return self._undo(self._cycles[uid]) if uid in self._cycles else []

    def seen(self, uid: str, node_name: str) -> list[Action]:
        """The API shows a pod on a node. A cycle that asked for that has ended well; any other is given up.

        The pod stays on the node where it was assumed, until it is replaced by what the API shows.
        """
        self.unseen.discard(uid)
        cycle = self._cycles.get(uid)
        if cycle is None:
            return []
        self._drop(cycle)
        if cycle.stage is Stage.BIND and cycle.node_name == node_name:
            return tell_bound(cycle)
        return [*unreserve(cycle)]

    def next_deadline(self) -> int | None:
        """When a wait at Permit or for claims ends, or a binding is to be sent again; None where none of that is."""
        deadlines = (self._retries, self._claim_deadlines, self._preparing)
        return earliest([*(one.next_time() for one in deadlines), self._waiting.next_deadline()])

    def _guarded(self, cycle: BindingCycle, step: Callable[[], StepResult]) -> StepResult:
        """Take a step; a plugin that raises fails the cycle, as one that answers with an error does."""
        try:
            return step()
        except PluginError as error:
            return self._fail(cycle, error_status(str(error)))

    def _reserve(self, cycle: BindingCycle, now: int) -> StepResult:
        pod = cycle.queued.record
        for plugin in cycle.runner.profile.reserve:
            with Calling(plugin.name, "Reserve", pod):
                status = plugin.reserve(cycle.state, pod, cycle.node_name)
            if not status.is_success:
                return self._fail(cycle, status.by(plugin.name))
        status = self._permit(cycle, now)
        if status.code is Code.WAIT:
            cycle.stage = Stage.PERMIT
            return [Nominate(pod.key, pod.uid, cycle.node_name)], None
        if not status.is_success:
            return self._fail(cycle, status)
        return self._pre_bind(cycle, now, announced=False)

    def _permit(self, cycle: BindingCycle, now: int) -> Status:
        pod = cycle.queued.record
        waiting = WaitingPod(pod, cycle.node_name)
        for plugin in cycle.runner.profile.permit:
            with Calling(plugin.name, "Permit", pod):
                answer = plugin.permit(cycle.state, pod, cycle.node_name)
            result = answer if isinstance(answer, PermitResult) else PermitResult(answer)
            if result.status.code is Code.WAIT:
                waiting.deadlines_ns[plugin.name] = now + result.timeout_ns
            elif not result.status.is_success:
                return result.status.by(plugin.name)
        if not waiting.deadlines_ns:
            return SUCCESS
        self._waiting.add(waiting)
        return Status(Code.WAIT)

    def _pre_bind(self, cycle: BindingCycle, now: int, *, announced: bool) -> StepResult:
        cycle.stage = Stage.PRE_BIND
        pod = cycle.queued.record
        actions: list[Action] = []
        timeouts_ns: list[int] = []
        for plugin in cycle.runner.profile.pre_bind:
            with Calling(plugin.name, "PreBind", pod):
                answer = plugin.pre_bind(cycle.state, pod, cycle.node_name)
            if isinstance(answer, Status):
                if not answer.is_success and not answer.is_skip:
                    return self._fail(cycle, answer.by(plugin.name))
                continue
            for claim in answer:
                action = claim_action(claim, pod)
                cycle.claims.add(action)
                actions.append(action)
                timeouts_ns += [] if claim.timeout_ns is None else [claim.timeout_ns]
        cycle.reservations = [action for action in actions if isinstance(action, ReserveClaim)]
        if not cycle.claims:
            return self._prepare(cycle, now)
        self._claim_deadlines.set(pod.uid, now + min(timeouts_ns) if timeouts_ns else None)
        nominate = Nominate(pod.key, pod.uid, cycle.node_name)
        return (actions if announced else [nominate, *actions]), None

    def _prepare(self, cycle: BindingCycle, now: int) -> StepResult:
        """Bind the pod once what its claims got is ready for it; look again from time to time."""
        pod = cycle.queued.record
        for plugin in cycle.runner.preparing:
            with Calling(plugin.name, "PreBind", pod):
                wait = plugin.prepared(cycle.state, pod, cycle.node_name)
            if wait.status.code is not Code.WAIT:
                if not wait.status.is_success:
                    return self._fail(cycle, wait.status.by(plugin.name))
                continue
            if cycle.ready_by_ns is None:
                cycle.ready_by_ns = now + wait.timeout_ns
            if cycle.ready_by_ns <= now:
                return self._fail(cycle, plugin.give_up(cycle.state, pod, cycle.node_name))
            self._preparing.set(pod.uid, min(now + LOOK_AGAIN_NS, cycle.ready_by_ns))
            return [], None
        return self._bind(cycle)

    def _bind(self, cycle: BindingCycle) -> StepResult:
        cycle.stage = Stage.BIND
        pod = cycle.queued.record
        for plugin in cycle.runner.profile.bind:
            with Calling(plugin.name, "Bind", pod):
                status = plugin.bind(cycle.state, pod, cycle.node_name)
            if status.is_skip:
                continue
            if not status.is_success:
                return self._fail(cycle, status.by(plugin.name))
            return [cycle.bind], None
        return self._fail(cycle, error_status("no Bind plugin took the pod"))

    def _fail(self, cycle: BindingCycle, status: Status) -> tuple[list[Action], Failure]:
        return [], Failure(cycle, status, tuple(self._undo(cycle)))

    def _undo(self, cycle: BindingCycle) -> list[Action]:
        """Unreserve, and take the pod off its node and off its claims for devices."""
        pod = cycle.queued.record
        actions: list[Action] = [*unreserve(cycle)]
        for reservation in cycle.reservations:
            self._cluster.devices.let_go(reservation.uid, pod.uid)
        actions += [ReleaseClaim(one.claim, one.uid, pod.key, pod.uid) for one in cycle.reservations]
        self._drop(cycle)
        self._cluster.remove_pod(pod.uid)
        pod.node_name = ""
        return actions

    def _drop(self, cycle: BindingCycle) -> None:
        uid = cycle.queued.record.uid
        del self._cycles[uid]
        self._waiting.remove(uid)
        self._claim_deadlines.set(uid, None)
        self._retries.set(uid, None)
        self._preparing.set(uid, None)
