"""From a chosen node to a bound pod: reserve, permit, bind claims, bind the pod; and back again where that fails.

The pod is assumed on its node from the first step on, so that the next attempts see the room as taken. What comes of
whatever happens on the way is told in a table, in `podium.machines.scheduling.binding.stages`.

Source: pkg/scheduler/schedule_one.go (assume, bindingCycle, handleBindingCycleError).
"""

from __future__ import annotations

from collections.abc import Callable, Set

from podium.api.resource_claims import ResourceClaim
from podium.cluster.cluster import Cluster
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.runner import Runner
from podium.framework.status import Code, Status
from podium.framework.waiting_pods import WaitingPod, WaitingPods
from podium.machines.actions import Action, Bind, BindClaim, Nominate, ReserveClaim
from podium.machines.answers import Answer
from podium.machines.observations import Answered, Problem
from podium.machines.parts.deadlines import Deadlines, earliest
from podium.machines.scheduling.binding import plugins
from podium.machines.scheduling.binding.cycle import (
    BindingCycle,
    FailedBinding,
    StepResult,
    claim_action,
    error_status,
    unbound_claims,
)
from podium.machines.scheduling.binding.reservations import Reservations
from podium.machines.scheduling.binding.stages import Stage
from podium.machines.scheduling.queue.queued_pod import SECOND_NS, QueuedPod

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
        self._plugins: dict[Runner, plugins.BindingPlugins] = {}
        # By uid: when to give up claims, and when to send a binding again.
        self._claim_deadlines: Deadlines[str] = Deadlines()
        self._retries: Deadlines[str] = Deadlines()
        # When to see again whether devices are ready.
        self._preparing: Deadlines[str] = Deadlines()
        self.reservations = Reservations(cluster.devices.book)
        # The cycles that have some of these times: most are through before the clock moves.
        self._timed: set[str] = set()
        self.timed: Set[str] = self._timed
        """The uids of pods whose cycles wait for a time, as things are."""
        # Pods, by uid, that wait for others of their gang; and how often, while any did, a pod came a step further.
        self.gathered: dict[str, None] = {}
        self.moves = 0
        # Pods that were bound, as the API answered, but are not yet seen on their node.
        self.unseen: set[str] = set()

    def __len__(self) -> int:
        return len(self._cycles)

    def __contains__(self, uid: str) -> bool:
        return uid in self._cycles

    def find(self, uid: str) -> BindingCycle | None:
        """The cycle of a pod, or None."""
        return self._cycles.get(uid)

    def stage(self, uid: str) -> Stage | None:
        """Where a pod stands on its way; None where it is on none."""
        cycle = self._cycles.get(uid)
        if cycle is not None:
            return cycle.stage
        return Stage.BOUND if uid in self.unseen else None

    @property
    def has_deadlines(self) -> bool:
        """Whether any cycle waits for a time."""
        return bool(self._timed or self.reservations.doubted)

    def is_assumed(self, uid: str) -> bool:
        """Whether a pod counts as placed though the API does not show it yet."""
        return uid in self._cycles or uid in self.unseen

    def start(
        self,
        queued: QueuedPod,
        runner: Runner,
        state: CycleState,
        node_name: str,
        now: int,
        *,
        is_together: bool = False,
    ) -> StepResult:
        """Assume the pod on the node and go as far as possible; if ``is_together``, not without others of its gang."""
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
        """Go on with a pod whose wait at Permit is over."""
        waiting, cycle = self._waiting.get(uid), self._cycles[uid]
        if waiting is None:
            raise ValueError(f"pod {cycle.queued.record.key} does not wait")
        self._waiting.remove(uid)
        if waiting.rejected_by:
            return self._fail(cycle, Status(Code.UNSCHEDULABLE, (waiting.message,), waiting.rejected_by))
        return self._guarded(self._pre_bind, cycle, now)

    def set_out(self, uid: str, now: int) -> StepResult:
        """Go on with a pod that waited for others of its gang: there are enough of them."""
        cycle = self._cycles[uid]
        if cycle.stage is not Stage.TOGETHER:
            raise ValueError(f"pod {cycle.queued.record.key} does not wait for its gang")
        return self._guarded(self._ask_for_binding, cycle, now)

    def claim_answered(self, answered: Answered, told: ResourceClaim | None, now: int) -> StepResult:
        """A claim was bound, or could not be; when the last one is, the pod's own binding follows.

        ``told`` is the claim for devices that the answer tells, None for none.

        A reservation of devices without an answer may have been carried out. They count as taken, and the same is asked
        for again, until that is known. An answer that only puts it off says nothing about it, and neither does one that
        the claim has changed, while it is such that the reservation could be made.
        """
        action, problem = answered.action, answered.problem
        if not isinstance(action, BindClaim | ReserveClaim):
            raise TypeError(f"{type(action).__name__} is not about a claim that a pod waits for")
        cycle = self._cycles.get(action.pod_uid)
        if cycle is None or action not in cycle.claims:
            return [], None
        if isinstance(action, ReserveClaim):
            answer, was_unknown = answered.answer, action in cycle.unanswered
            if answer is Answer.UNKNOWN or (was_unknown and self.reservations.is_in_doubt(action, answer)):
                cycle.unanswered |= {action}
                self._ask_again(cycle, now)
                return [], None
            self.reservations.answered(cycle, answered, told)
        cycle.claims -= {action}
        if problem is not None:
            return self._fail(cycle, error_status(f"binding claim {action.claim or _UNNAMED}: {problem.message}"))
        if cycle.claims:
            return [], None
        self._claim_deadlines.set(action.pod_uid, None)
        return self._guarded(self._prepare, cycle, now)

    def look_again(self, now: int) -> list[StepResult]:
        """See whether devices are ready that pods wait for."""
        results: list[StepResult] = []
        while (uid := self._preparing.take_due(now)) is not None:
            cycle = self._cycles[uid]
            results.append(self._guarded(self._prepare, cycle, now))
        return results

    def look_at_once(self, now: int) -> list[StepResult]:
        """Volumes or their claims have changed: see whether those are ready that pods wait for."""
        for uid in self._preparing.all_keys():
            self._preparing.set(uid, now)
        return self.look_again(now)

    def give_up_claims(self, now: int) -> list[FailedBinding]:
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
        if cycle is None or not (cycle.sent is action or cycle.sent == action):
            return [], None
        if problem is None:
            self._drop(cycle)
            self.unseen.add(action.uid)
            return plugins.post_bind(cycle), None
        answer = Answered(action, problem).answer
        is_in_doubt = cycle.stage is Stage.IN_DOUBT
        if is_in_doubt and answer is Answer.STALE:
            return [], None
        if answer is Answer.UNKNOWN or (is_in_doubt and answer is not Answer.GONE):
            cycle.stage = Stage.IN_DOUBT
            self._ask_again(cycle, now)
            return [], None
        return self._fail(cycle, error_status(f"binding to {cycle.node_name}: {problem.message}"))

    def retries(self, now: int) -> list[Action]:
        """The bindings to send again, and the reservations and releases of devices."""
        due = self.reservations.retries(now)
        while (uid := self._retries.take_due(now)) is not None:
            cycle = self._cycles[uid]
            if cycle.sent is not None:
                due.append(cycle.sent)
            else:
                due += [reservation for reservation in cycle.reservations if reservation in cycle.claims]
        return due

    def cancel(self, uid: str, status: Status) -> FailedBinding:
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
        if cycle.stage.is_sent and cycle.node_name == node_name:
            return plugins.post_bind(cycle)
        return plugins.unreserve(cycle)

    def next_deadline(self) -> int | None:
        """When a wait at Permit or for claims ends, or a binding is to be sent again; None where none of that is."""
        waiting = self._waiting.next_deadline()
        if not self.has_deadlines:
            return waiting
        deadlines = (self._retries, self._claim_deadlines, self._preparing, self.reservations)
        return earliest([*(times.next_time() for times in deadlines), waiting])

    def _guarded(self, step: Callable[[BindingCycle, int], StepResult], cycle: BindingCycle, now: int) -> StepResult:
        """Take a step; a plugin that raises fails the cycle, as one that answers with an error does."""
        try:
            return step(cycle, now)
        except PluginError as error:
            return self._fail(cycle, error_status(str(error)))

    def _reserve(self, cycle: BindingCycle, now: int) -> StepResult:
        status = plugins.reserve(cycle)
        return self._permit(cycle, now) if status.is_success else self._fail(cycle, status)

    def _permit(self, cycle: BindingCycle, now: int) -> StepResult:
        answer = plugins.permit(cycle, now)
        if isinstance(answer, Status):
            return self._pre_bind(cycle, now) if answer.is_success else self._fail(cycle, answer)
        pod = cycle.queued.record
        self._waiting.add(WaitingPod(pod, cycle.node_name, answer))
        cycle.stage = Stage.PERMIT
        return [Nominate(pod.key, pod.uid, cycle.node_name)], None

    def _pre_bind(self, cycle: BindingCycle, now: int) -> StepResult:
        # A pod that waited was nominated when its wait began.
        is_announced = cycle.stage is Stage.PERMIT
        cycle.stage = Stage.PRE_BIND
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
            self._timed.add(pod.uid)
            self._claim_deadlines.set(pod.uid, now + min(timeouts_ns))
        return [*([] if is_announced else [Nominate(pod.key, pod.uid, cycle.node_name)]), *claims], None

    def _prepare(self, cycle: BindingCycle, now: int) -> StepResult:
        """Bind the pod once what its claims got is ready for it; look again from time to time."""
        cycle.stage = Stage.PREPARE
        status = plugins.prepared(cycle, now)
        if status.is_success:
            return self._bind(cycle, now)
        if status.code is not Code.WAIT or cycle.ready_by_ns is None:
            return self._fail(cycle, status)
        uid = cycle.queued.record.uid
        self._timed.add(uid)
        self._preparing.set(uid, min(now + LOOK_AGAIN_NS, cycle.ready_by_ns))
        return [], None

    def _bind(self, cycle: BindingCycle, now: int) -> StepResult:
        if not cycle.is_together:
            return self._ask_for_binding(cycle, now)
        pod = cycle.queued.record
        cycle.stage = Stage.TOGETHER
        self.gathered[pod.uid] = None
        self.moves += 1
        return [], None

    def _ask_for_binding(self, cycle: BindingCycle, _now: int) -> StepResult:
        if cycle.is_together:
            self.gathered.pop(cycle.queued.record.uid, None)
        cycle.stage = Stage.BIND
        if not self._plugins[cycle.runner].binds_plainly:
            status = plugins.bind(cycle)
            if not status.is_success:
                return self._fail(cycle, status)
        pod = cycle.queued.record
        cycle.sent = Bind(pod.key, pod.uid, cycle.node_name)
        return [cycle.sent], None

    def _ask_again(self, cycle: BindingCycle, now: int) -> None:
        """Send what had no answer once more, in a while."""
        uid = cycle.queued.record.uid
        self._timed.add(uid)
        self._retries.set(uid, now + BIND_RETRY_NS)

    def _fail(self, cycle: BindingCycle, status: Status) -> tuple[list[Action], FailedBinding]:
        return [], FailedBinding(cycle, status, tuple(self._undo(cycle)))

    def _undo(self, cycle: BindingCycle) -> list[Action]:
        """Unreserve, and take the pod off its node and off its claims for devices."""
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
        if uid in self._timed:
            self._timed.discard(uid)
            for deadlines in (self._claim_deadlines, self._retries, self._preparing):
                deadlines.set(uid, None)
