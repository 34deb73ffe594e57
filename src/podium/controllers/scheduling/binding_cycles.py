"""Binding cycles: reserve, permit, bind claims, bind the pod; and the rollback after failures.

From the first step, the pod is assumed on its node, so that its capacity is taken. docs/scheduling-automata.md has the
transitions as a table, which a test compares with them. Source: pkg/scheduler/schedule_one.go (assume, bindingCycle,
handleBindingCycleError).
"""

from __future__ import annotations

from collections.abc import Callable, Set

from podium.api.devices import ResourceClaim
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Bind, BindClaim, Nominate, ReserveClaim
from podium.controllers.deadlines import Deadlines, earliest
from podium.controllers.observations import ActionFinished, Answer
from podium.controllers.scheduling import binding_stages as plugins
from podium.controllers.scheduling.binding_stages import (
    BindingCycle,
    BindingStage,
    FailedBinding,
    StepResult,
    claim_action,
    error_status,
)
from podium.controllers.scheduling.queue.queued_pod import SECOND_NS, QueuedPod
from podium.controllers.scheduling.reservations import Reservations
from podium.framework.handle import CycleState, WaitingPod, WaitingPods
from podium.framework.runner import Runner
from podium.framework.verdicts import Code, PluginError, Status, unschedulable

# The wait before an unanswered binding is sent again; the server refuses it if it was carried out.
BIND_RETRY_NS = SECOND_NS

# After so many internal errors in a row (code 500, such as a timeout of etcd), a binding counts as not carried out.
MOST_INTERNAL_ERRORS = 3

# The interval of checks for ready devices (PollUntilContextTimeout of DynamicResources' PreBind).
LOOK_AGAIN_NS = 5 * SECOND_NS

# The plugin that rejects preempted pods which wait at Permit.
_PREEMPTING = "DefaultPreemption"

# The name in messages of a claim created for extended resources.
_UNNAMED = "for extended resources"


class BindingCycles:
    """All pods between placement and binding, and bound pods that the API does not show on their node yet.

    Methods return the actions, and the failure of a cycle that was rolled back. If it ``announces``, a pod that waits
    before its binding is nominated. ``recalls``: a preempted pod returns to the queue at any stage before its binding,
    and is retried; otherwise at Permit alone, as rejected.
    """

    def __init__(
        self, cluster: Cluster, waiting_pods: WaitingPods, *, announces: bool = True, recalls: bool = True
    ) -> None:
        self._cluster = cluster
        self._waiting = waiting_pods
        self._announces = announces
        self._recalls = recalls
        self._cycles: dict[str, BindingCycle] = {}
        self._plugins: dict[Runner, plugins.BindingPlugins] = {}
        # By uid: when claims time out, and when to send a binding again.
        self._claim_deadlines: Deadlines[str] = Deadlines()
        self._retries: Deadlines[str] = Deadlines()
        # When to check devices again.
        self._preparing: Deadlines[str] = Deadlines()
        self.reservations = Reservations(cluster.devices.claim_cache)
        self.refused = RefusedBindings()
        self._deadlines = (self._claim_deadlines, self._retries, self._preparing)
        self.timed: tuple[Set[str], ...] = tuple(deadlines.times.keys() for deadlines in self._deadlines)
        """The uids of pods whose cycles wait for a time; live views."""
        # The pods (uids) that wait for their gang, and a counter of steps made while any does.
        self.gathered: dict[str, None] = {}
        self.moves = 0
        # The pods whose binding was confirmed, but that the API does not show on their node yet.
        self.unseen: set[str] = set()

    def __len__(self) -> int:
        return len(self._cycles)

    def __contains__(self, uid: str) -> bool:
        return uid in self._cycles

    def find(self, uid: str) -> BindingCycle | None:
        return self._cycles.get(uid)

    def stage(self, uid: str) -> BindingStage | None:
        """Return the stage of a pod; None without a cycle."""
        if (cycle := self._cycles.get(uid)) is not None:
            return cycle.stage
        return BindingStage.BOUND if uid in self.unseen else None

    def has_deadlines(self) -> bool:
        """Return whether any cycle waits for a time."""
        return any(self.timed) or len(self.reservations.doubted) > 0

    def is_assumed(self, uid: str) -> bool:
        """Return whether a pod is assumed on a node that the API does not show yet."""
        return uid in self._cycles or uid in self.unseen

    def start(
        self, queued: QueuedPod, runner: Runner, state: CycleState, node_name: str, now: int, is_together: bool = False
    ) -> StepResult:
        """Assume the pod on the node, and take all steps that need not wait."""
        pod = queued.record
        cycle = self._cycles[pod.uid] = BindingCycle(queued, runner, state, node_name, is_together=is_together)
        if self.gathered:
            self.moves += 1
        pod.node_name = node_name
        self._cluster.add_pod(pod)
        between = self._plugins.get(runner)
        if between is None:
            between = self._plugins[runner] = plugins.BindingPlugins(runner)
        return self._guarded(self._reserve if between.concern(state) else self._bind, cycle, now)

    def resume(self, uid: str, now: int) -> StepResult:
        """Continue with a pod whose wait at Permit is over."""
        waiting, cycle = self._waiting.get(uid), self._cycles[uid]
        if waiting is None:
            raise ValueError(f"pod {cycle.queued.record.key} does not wait")
        self._waiting.remove(uid)
        if waiting.rejected_by:
            return self._fail(cycle, Status(Code.UNSCHEDULABLE, (waiting.message,), waiting.rejected_by))
        return self._guarded(self._pre_bind, cycle, now)

    def bind_gang_member(self, uid: str, now: int) -> StepResult:
        """Continue with a pod whose gang is ready."""
        cycle = self._cycles[uid]
        if cycle.stage is not BindingStage.TOGETHER:
            raise ValueError(f"pod {cycle.queued.record.key} does not wait for its gang")
        return self._guarded(self._ask_for_binding, cycle, now)

    def claim_answered(
        self, action: BindClaim | ReserveClaim, finished: ActionFinished, claim: ResourceClaim | None, now: int
    ) -> StepResult:
        """Handle the answer to a claim's write; ``claim`` is the claim in the answer, None without one.

        After the last claim the pod itself is bound. A reservation without a conclusive answer counts as carried out,
        and is sent again until its result is known.
        """
        cycle, problem = self._cycles.get(action.pod_uid), finished.problem
        if cycle is None or action not in cycle.claims:
            return [], None
        if isinstance(action, ReserveClaim):
            answer, was_unknown = finished.answer, action in cycle.unanswered
            if answer is Answer.UNKNOWN or (was_unknown and self.reservations.is_in_doubt(action, answer)):
                cycle.unanswered |= {action}
                self._ask_again(cycle, now)
                return [], None
            self.reservations.on_finished(action, finished, cycle, claim)
        cycle.claims -= {action}
        self.refused.on_finished(action, finished, cycle.queued.record)
        if problem is not None:
            return self._fail(cycle, error_status(f"binding claim {action.claim or _UNNAMED}: {problem.message}"))
        if cycle.claims:
            return [], None
        self._claim_deadlines.set(action.pod_uid, None)
        return self._guarded(self._prepare, cycle, now)

    def look_again(self, now: int, *, at_once: bool = False) -> list[StepResult]:
        """Check whether devices are ready for the pods that are due; ``at_once`` for all waiting pods."""
        for waiting in list(self._preparing.times) if at_once else ():
            self._preparing.set(waiting, now)
        results: list[StepResult] = []
        while (uid := self._preparing.take_due(now)) is not None:
            results.append(self._guarded(self._prepare, self._cycles[uid], now))
        return results

    def give_up_claims(self, now: int) -> list[FailedBinding]:
        """Fail the cycles whose claims were not bound in time; later answers are ignored."""
        failures = []
        while (uid := self._claim_deadlines.take_due(now)) is not None:
            cycle = self._cycles[uid]
            claims = ", ".join(sorted(action.claim for action in cycle.claims))
            status = error_status(f"binding to {cycle.node_name}: not bound in time: {claims}")
            failures.append(self._fail(cycle, status)[1])
        return failures

    def bind_answered(self, action: Bind, finished: ActionFinished, now: int) -> StepResult:
        """Handle the answer to a binding.

        Without an answer, or after an error of the server, the binding may have been carried out: the pod stays
        assumed, and the binding is sent again until the API shows the pod on a node or reports that it is gone. A
        conflict then means that the pod was bound or replaced, which the API will show. So `MOST_INTERNAL_ERRORS` in
        a row mean that it was not carried out, and fail the cycle.
        """
        cycle, problem = self._cycles.get(action.uid), finished.problem
        if cycle is None or not (cycle.sent is action or cycle.sent == action):
            return [], None
        if problem is not None:
            answer, is_in_doubt = finished.answer, cycle.stage is BindingStage.IN_DOUBT
            if is_in_doubt and answer is Answer.STALE:
                return [], None
            cycle.internal_errors = cycle.internal_errors + 1 if problem.code == 500 else 0
            is_unknown = answer is Answer.UNKNOWN or problem.code >= 500 or (is_in_doubt and answer is not Answer.GONE)
            if is_unknown and cycle.internal_errors < MOST_INTERNAL_ERRORS:
                cycle.stage = BindingStage.IN_DOUBT
                self._ask_again(cycle, now)
                return [], None
        self.refused.on_finished(action, finished, cycle.queued.record)
        if problem is not None:
            return self._fail(cycle, error_status(f"binding to {cycle.node_name}: {problem.message}"))
        self._drop(cycle)
        self.unseen.add(action.uid)
        return plugins.post_bind(cycle), None

    def retries(self, now: int) -> list[Action]:
        """Return the bindings, reservations and releases to send again."""
        due = self.reservations.retries(now)
        while (uid := self._retries.take_due(now)) is not None:
            cycle = self._cycles[uid]
            if cycle.sent is not None:
                due.append(cycle.sent)
            else:
                due += [reservation for reservation in cycle.reservations if reservation in cycle.claims]
        return due

    def cancel(self, uid: str, status: Status) -> FailedBinding:
        """Roll back the cycle of a pod. Raises KeyError without one."""
        return self._fail(self._cycles[uid], status)[1]

    def recall(self, uid: str, preemptor: PodRecord) -> FailedBinding | None:
        """Roll back the cycle of a preempted pod; None if it has none, or is deleted instead."""
        cycle = self._cycles.get(uid)
        if cycle is None or cycle.stage.is_sent:
            return None
        if self._recalls:
            return self.cancel(uid, error_status(f"preempted by pod {preemptor.key}"))
        is_waiting = cycle.stage is BindingStage.PERMIT
        return self.cancel(uid, unschedulable("preempted").by(_PREEMPTING)) if is_waiting else None

    def withdraw(self, uid: str) -> list[Action]:
        """Forget a pod that must not be bound, and roll back its cycle; return the actions."""
        self.unseen.discard(uid)
        return self._undo(self._cycles[uid]) if uid in self._cycles else []

    def on_bound(self, uid: str, node_name: str) -> list[Action]:
        """Handle that the API shows a pod on a node: the cycle has succeeded, or is given up.

        The pod stays on its assumed node until its new state replaces it.
        """
        self.unseen.discard(uid)
        cycle = self._cycles.get(uid)
        if cycle is None:
            return []
        self._drop(cycle)
        has_succeeded = cycle.stage.is_sent and cycle.node_name == node_name
        return plugins.post_bind(cycle) if has_succeeded else plugins.unreserve(cycle)

    def next_deadline(self) -> int | None:
        """Return when a wait ends or a binding is sent again; None if nothing is due."""
        waiting = self._waiting.next_deadline()
        if not self.has_deadlines():
            return waiting
        times = [deadlines.next_time() for deadlines in self._deadlines]
        return earliest((*times, self.reservations.next_time(), waiting))

    def _guarded(self, step: Callable[[BindingCycle, int], StepResult], cycle: BindingCycle, now: int) -> StepResult:
        """Take a step; a PluginError fails the cycle."""
        try:
            return step(cycle, now)
        except PluginError as error:
            return self._fail(cycle, error_status(str(error)))

    def _reserve(self, cycle: BindingCycle, now: int) -> StepResult:
        """Reserve, and wait at Permit or go on."""
        status = plugins.reserve(cycle)
        if not status.is_success:
            return self._fail(cycle, status)
        answer = plugins.permit(cycle, now)
        if isinstance(answer, Status):
            return self._pre_bind(cycle, now) if answer.is_success else self._fail(cycle, answer)
        self._waiting.add(WaitingPod(cycle.queued.record, cycle.node_name, answer))
        cycle.stage = BindingStage.PERMIT
        return self._announced(cycle), None

    def _pre_bind(self, cycle: BindingCycle, now: int) -> StepResult:
        # A pod that waited at Permit was nominated then.
        is_announced = cycle.stage is BindingStage.PERMIT
        cycle.stage = BindingStage.PRE_BIND
        wanted = plugins.pre_bind(cycle)
        if isinstance(wanted, Status):
            return self._fail(cycle, wanted)
        if not wanted:
            return self._prepare(cycle, now)
        pod = cycle.queued.record
        claims = [claim_action(claim, pod) for claim in wanted]
        cycle.claims = frozenset(claims)
        cycle.reservations = tuple(action for action in claims if isinstance(action, ReserveClaim))
        timeouts_ns = [claim.timeout_ns for claim in wanted if claim.timeout_ns is not None]
        if timeouts_ns:
            self._claim_deadlines.set(pod.uid, now + min(timeouts_ns))
        return [*([] if is_announced else self._announced(cycle)), *claims], None

    def _announced(self, cycle: BindingCycle) -> list[Action]:
        """Return the nomination of a pod that waits before its binding."""
        pod = cycle.queued.record
        return [Nominate(pod.key, pod.uid, cycle.node_name)] if self._announces else []

    def _prepare(self, cycle: BindingCycle, now: int) -> StepResult:
        """Bind the pod if its volumes and devices are ready; else check again later."""
        cycle.stage = BindingStage.PREPARE
        status = plugins.prepared(cycle, now)
        if status.is_success:
            return self._bind(cycle, now)
        if status.code is not Code.WAIT or cycle.ready_by_ns is None:
            return self._fail(cycle, status)
        self._preparing.set(cycle.queued.record.uid, min(now + LOOK_AGAIN_NS, cycle.ready_by_ns))
        return [], None

    def _bind(self, cycle: BindingCycle, now: int) -> StepResult:
        if not cycle.is_together:
            return self._ask_for_binding(cycle, now)
        pod = cycle.queued.record
        cycle.stage = BindingStage.TOGETHER
        self.gathered[pod.uid] = None
        self.moves += 1
        return [], None

    def _ask_for_binding(self, cycle: BindingCycle, _now: int) -> StepResult:
        if cycle.is_together:
            self.gathered.pop(cycle.queued.record.uid, None)
        cycle.stage = BindingStage.BIND
        if not self._plugins[cycle.runner].binds_plainly:
            status = plugins.bind(cycle)
            if not status.is_success:
                return self._fail(cycle, status)
        pod = cycle.queued.record
        cycle.sent = Bind(pod.key, pod.uid, cycle.node_name)
        return [cycle.sent], None

    def _ask_again(self, cycle: BindingCycle, now: int) -> None:
        """Send an unanswered request again after a while."""
        self._retries.set(cycle.queued.record.uid, now + BIND_RETRY_NS)

    def _fail(self, cycle: BindingCycle, status: Status) -> tuple[list[Action], FailedBinding]:
        return [], FailedBinding(cycle, status, tuple(self._undo(cycle)))

    def _undo(self, cycle: BindingCycle) -> list[Action]:
        """Unreserve, and remove the pod from its node and from its ResourceClaims."""
        pod = cycle.queued.record
        releases = self.reservations.give_up(cycle)
        actions = plugins.unreserve(cycle) + releases
        self._drop(cycle)
        self._cluster.remove_pod(pod.uid)
        pod.node_name = ""
        return actions

    def _drop(self, cycle: BindingCycle) -> None:
        uid = cycle.queued.record.uid
        del self._cycles[uid]
        if self.gathered:
            self.moves += 1
            self.gathered.pop(uid, None)
        self._waiting.remove(uid)
        if any(self.timed):
            for deadlines in self._deadlines:
                deadlines.set(uid, None)


BindingAction = Bind | BindClaim | ReserveClaim
Request = tuple[type[BindingAction], str]
"""A kind of request, and the namespace of the pods for which it is made."""

_WHAT: dict[type[BindingAction], str] = {
    Bind: "bind the pod",
    BindClaim: "bind the pod's volume claims",
    ReserveClaim: "reserve the pod's devices",
}


class RefusedBindings:
    """Remembers refusals by pod, until the pod is bound or gone, and by kind of request and namespace.

    A missing right concerns every pod that needs the same request. After a refusal no such pod in the namespace
    preempts until one of these requests is granted there, or the pod is gone to which it was refused last.
    """

    def __init__(self) -> None:
        # By uid: the request that was refused, and why. By request: the uid of the last pod to which it was.
        self._by_pod: dict[str, tuple[Request, str]] = {}
        self._by_request: dict[Request, str] = {}
        self.on_refused: Callable[[PodRecord, str], None] | None = None
        """Called with the pod and a message when a kind of request is first refused in a namespace."""

    def on_finished(self, action: BindingAction, finished: ActionFinished, pod: PodRecord) -> None:
        """Record the result of a request to bind a pod; a refusal that may pass changes nothing."""
        if finished.problem is None and not self._by_request:
            return
        request = type(action), pod.namespace
        if finished.problem is None:
            self._by_request.pop(request, None)
        elif finished.answer is Answer.REFUSED:
            reason = f"the API server refuses to {_WHAT[request[0]]}: {finished.problem.message}"
            self._by_pod[pod.uid] = request, reason
            if request not in self._by_request and self.on_refused is not None:
                self.on_refused(pod, reason)
            self._by_request[request] = pod.uid

    def reason(self, pod: PodRecord) -> str:
        """Return why the pod must not preempt; "" if it may."""
        if not self._by_pod:
            return ""
        if pod.uid in self._by_pod:
            return self._by_pod[pod.uid][1]
        needed: list[type[BindingAction]] = [Bind]
        needed += [BindClaim] * bool(pod.pod_class.claims) + [ReserveClaim] * bool(pod.spec.resource_claims)
        for each in needed:
            if refused := self._by_request.get((each, pod.namespace)):
                return self._by_pod[refused][1]
        return ""

    def forget(self, uid: str) -> None:
        """Forget a pod that is bound or gone."""
        known = self._by_pod.pop(uid, None)
        if known is not None and self._by_request.get(known[0]) == uid:
            del self._by_request[known[0]]
