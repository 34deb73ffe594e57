"""A scheduler's surroundings without an API server, for measuring it alone."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from msgspec.structs import replace

from podium.api.pod import Pod
from podium.app.bench.measurement import SECOND_NS
from podium.machines.actions import Action, Bind, DeleteObject, Nominate, Record, ReportUnschedulable
from podium.machines.observations import Answered, Changed, Gone, Tick
from podium.machines.scheduling.scheduler import Scheduler

_STEP_NS = 1_000_000
_TICK = Tick()


class BenchDriver:
    """Carries out a scheduler's actions at once, without a store, and shows what came of them."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.pods: dict[str, Pod] = {}
        self.now = 1_700_000_000 * SECOND_NS
        self.bound: list[str] = []
        self.preempted = 0
        self.attempt_ns: list[int] = []
        self._carries: dict[type[Action], Callable[[Any], None]] = {
            Bind: self._bind,
            DeleteObject: self._delete,
            ReportUnschedulable: self._report,
            Nominate: lambda action: self._nominate(action.uid, action.node_name),
        }

    def show(self, pod: Pod) -> None:
        """Let the scheduler see a pod, and do what it says."""
        self.pods[pod.metadata.uid] = pod
        self._carry_out(self.scheduler.handle(Changed(pod), self.now))

    def end(self, uid: str) -> None:
        """Let a pod end and be gone."""
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self._carry_out(self.scheduler.handle(Gone(pod), self.now))

    def attempt(self) -> bool:
        """Let the scheduler make one attempt; False if it has nothing to attempt now."""
        scheduler = self.scheduler
        if scheduler.deadline().time_ns != 0:
            return False
        self.now += _STEP_NS
        start = perf_counter_ns()
        actions = scheduler.handle(_TICK, self.now)
        self.attempt_ns.append(perf_counter_ns() - start)
        self._carry_out(actions)
        return True

    def _carry_out(self, actions: list[Action]) -> None:
        if not actions:
            return
        handle, pending = self.scheduler.handle, list(actions)
        for action in pending:
            if type(action) is Record:
                continue
            pending += handle(Answered(action), self.now)
            carry = self._carries.get(type(action))
            if carry is not None:
                carry(action)

    def _bind(self, action: Bind) -> None:
        self.bound.append(action.uid)
        pod = self.pods[action.uid]
        # As the API server does, which clears the nomination with it.
        status = replace(pod.status, nominated_node_name="") if pod.status.nominated_node_name else pod.status
        self.show(replace(pod, spec=replace(pod.spec, node_name=action.node_name), status=status))

    def _delete(self, action: DeleteObject) -> None:
        if action.kind == "Pod":
            self.preempted += 1
            self.end(action.uid)

    def _report(self, action: ReportUnschedulable) -> None:
        if action.nominated_node_name is not None:
            self._nominate(action.uid, action.nominated_node_name)

    def _nominate(self, uid: str, node_name: str) -> None:
        pod = self.pods.get(uid)
        if pod is not None:
            self.show(replace(pod, status=replace(pod.status, nominated_node_name=node_name)))
