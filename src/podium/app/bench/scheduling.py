"""Measurements of a scheduler alone.

The driver replaces the API server: it completes every action at once and delivers the result, so that only the
scheduler and its handling of observations are measured.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

from msgspec.structs import replace

from podium.api.collector import collector_paused
from podium.api.pod import Pod
from podium.api.versions.choice import ReleaseChoice
from podium.app.bench.clusters import BUILDERS, Workload
from podium.app.bench.measurement import SECOND_NS, Measurement, Stopwatch, measured, operations
from podium.controllers.actions import Action, Bind, DeleteObject, Nominate, Record, ReportUnschedulable
from podium.controllers.observations import ActionFinished, Changed, Deleted, Tick
from podium.controllers.scheduling.scheduler import Scheduler

COUNTED_PODS = 40
"""How many pods are decided about once the clock has stopped, for the count of operations."""

_CHURN_EVERY = 10


class WorkloadRun:
    """A run of a workload: attempts, one after another, interleaved with changes of the cluster."""

    def __init__(self, workload: Workload, release: ReleaseChoice) -> None:
        self.workload = workload
        self.driver = BenchDriver(Scheduler(workload.configuration, release=release.of()))
        for item in (*workload.nodes, *workload.groups):
            self.driver.scheduler.handle(Changed(item), self.driver.now)
        self.show(workload.placed)
        self._attempts = 0

    def show(self, pods: Sequence[Pod]) -> None:
        for pod in pods:
            self.driver.show(pod)

    def run(self) -> None:
        """Make attempts until the queue is empty.

        A workload with churn ends a pod after every few attempts, and sometimes changes a node's labels, or removes a
        node and adds it again.
        """
        driver, workload = self.driver, self.workload
        while driver.attempt():
            self._attempts += 1
            if not workload.churn or self._attempts % _CHURN_EVERY:
                continue
            turn = self._attempts // _CHURN_EVERY
            if turn <= len(workload.placed):
                driver.end(workload.placed[turn - 1].metadata.uid)
            node = workload.nodes[turn * 7 % len(workload.nodes)]
            if turn % 5 == 0:
                labels = {**node.metadata.labels, "turn": str(turn)}
                changed = replace(node, metadata=replace(node.metadata, labels=labels))
                driver.scheduler.handle(Changed(changed), driver.now)
            elif turn % 5 == 1:
                driver.scheduler.handle(Deleted(node), driver.now)
                driver.scheduler.handle(Changed(node), driver.now)


@contextmanager
def _frozen() -> Iterator[None]:
    """Exclude the objects that exist before the context from garbage collection."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def measure_scheduling(name: str, nodes: int, pods: int, release: ReleaseChoice) -> Measurement:
    """Measure decisions about the pods of a workload, until each is bound or fits nowhere.

    Operations are counted for further pods.
    """
    with collector_paused():
        workload = BUILDERS[name](nodes, pods + COUNTED_PODS)
    timed, counted = workload.pods[:pods], workload.pods[pods:]
    watch = Stopwatch()
    play = WorkloadRun(workload, release)
    play.show(timed)
    load_seconds = watch.lap()
    with _frozen():
        watch.lap()
        play.run()
        seconds = watch.lap()
    driver = play.driver

    def decide() -> None:
        play.show(counted)
        play.run()

    return measured(
        name,
        len(timed),
        seconds,
        nodes=len(workload.nodes),
        placed=len(workload.placed),
        counts={"bound": len(driver.bound), "preempted": driver.preempted, "attempts": len(driver.attempt_ns)},
        load_seconds=load_seconds,
        # A copy: the counted attempts are slow.
        times_ns=tuple(driver.attempt_ns),
        operations_per_pod=operations(decide).total() / len(counted) if counted else None,
    )


_STEP_NS = 1_000_000
_TICK = Tick()


class BenchDriver:
    """Executes a scheduler's actions at once, without a store, and delivers the results."""

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
            ReportUnschedulable: lambda action: self._nominate(action.uid, action.nominated_node_name),
            Nominate: lambda action: self._nominate(action.uid, action.node_name),
        }

    def show(self, pod: Pod) -> None:
        """Deliver a pod to the scheduler, and execute its actions."""
        self.pods[pod.metadata.uid] = pod
        self._carry_out(self.scheduler.handle(Changed(pod), self.now))

    def end(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self._carry_out(self.scheduler.handle(Deleted(pod), self.now))

    def _delete(self, action: DeleteObject) -> None:
        if action.kind == "Pod":
            self.preempted += 1
            self.end(action.uid)

    def attempt(self) -> bool:
        """Let the scheduler make one attempt; return False if its active queue is empty."""
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
            pending += handle(ActionFinished(action), self.now)
            carry = self._carries.get(type(action))
            if carry is not None:
                carry(action)

    def _bind(self, action: Bind) -> None:
        self.bound.append(action.uid)
        pod = self.pods[action.uid]
        # As the API server does, which clears the nomination with it.
        status = replace(pod.status, nominated_node_name="") if pod.status.nominated_node_name else pod.status
        self.show(replace(pod, spec=replace(pod.spec, node_name=action.node_name), status=status))

    def _nominate(self, uid: str, node_name: str | None) -> None:
        pod = self.pods.get(uid)
        if pod is not None and node_name is not None:
            self.show(replace(pod, status=replace(pod.status, nominated_node_name=node_name)))
