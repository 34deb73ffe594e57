"""Measures the scheduler in process: how many decisions a second, how long each takes, how much memory.

The driver stands in for the API server: it answers every action at once and shows the result, so that all that is
measured is the scheduler and its handling of what it is told.
"""

from __future__ import annotations

import gc
import resource
from collections import Counter
from dataclasses import asdict, dataclass
from time import perf_counter_ns
from typing import Any

import msgspec
import numpy as np

from podium.api.pod import Pod
from podium.app.bench_workloads import WORKLOADS, Workload
from podium.app.explain import Explainer
from podium.framework.feature_gates import FeatureGates
from podium.machines.actions import Action, Bind, DeleteObject, ReportUnschedulable
from podium.machines.observations import Answered, Changed, Gone, Tick
from podium.machines.scheduling.scheduler import Scheduler

SECOND_NS = 1_000_000_000
_STEP_NS = 1_000_000
_CHURN_EVERY = 10


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one workload came to.

    ``pods_per_second`` counts the pods of the workload over the wall time from the first attempt to the last, by when
    each is bound or found to fit nowhere; ``attempt_us`` are percentiles of single attempts. ``preempted`` counts
    victims. For the workload ``explain`` an attempt is one explanation, and ``preempted`` counts those that would
    preempt. ``peak_memory_mib`` is the process's, and so covers what was measured before in it.
    """

    workload: str
    nodes: int
    placed: int
    pods: int
    bound: int
    attempts: int
    preempted: int
    load_seconds: float
    seconds: float
    pods_per_second: float
    attempts_per_second: float
    attempt_us: dict[str, float]
    peak_memory_mib: float

    def to_dict(self) -> dict[str, Any]:
        """The measurement as plain values."""
        return asdict(self)


class BenchDriver:
    """Carries out a scheduler's actions at once, without a store."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.pods: dict[str, Pod] = {}
        self.now = 1_700_000_000 * SECOND_NS
        self.bound: list[str] = []
        self.preempted = 0
        self.attempt_ns: list[int] = []

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
        if self.scheduler.deadline().time_ns != 0:
            return False
        self.now += _STEP_NS
        start = perf_counter_ns()
        actions = self.scheduler.handle(Tick(), self.now)
        self.attempt_ns.append(perf_counter_ns() - start)
        self._carry_out(actions)
        return True

    def _carry_out(self, actions: list[Action]) -> None:
        pending = list(actions)
        for action in pending:
            pending += self.scheduler.handle(Answered(action), self.now)
            match action:
                case Bind(uid=uid, node_name=node_name):
                    self.bound.append(uid)
                    self._change(uid, spec=msgspec.structs.replace(self.pods[uid].spec, node_name=node_name))
                case DeleteObject(kind="Pod", uid=uid):
                    self.preempted += 1
                    self.end(uid)
                case ReportUnschedulable(uid=uid, nominated_node_name=str() as name):
                    self._change(uid, status=msgspec.structs.replace(self.pods[uid].status, nominated_node_name=name))

    def _change(self, uid: str, **fields: Any) -> None:
        self.show(msgspec.structs.replace(self.pods[uid], **fields))


def measure(
    name: str,
    nodes: int | None = None,
    pods: int | None = None,
    feature_gates: FeatureGates = FeatureGates(),  # noqa: B008 - an immutable value
) -> Measurement:
    """Build a workload and measure it."""
    spec = WORKLOADS[name]
    workload = spec.build(nodes or spec.nodes, pods or spec.pods)
    of = _measure_explain if name == "explain" else _measure_scheduling
    return of(workload, feature_gates)


def _measure_scheduling(workload: Workload, feature_gates: FeatureGates) -> Measurement:
    driver = BenchDriver(Scheduler(feature_gates=feature_gates))
    start = perf_counter_ns()
    for node in workload.nodes:
        driver.scheduler.handle(Changed(node), driver.now)
    for pod in (*workload.placed, *workload.pods):
        driver.show(pod)
    gc.collect()
    gc.freeze()
    loaded = perf_counter_ns()
    _play(driver, workload)
    seconds = (perf_counter_ns() - loaded) / SECOND_NS
    gc.unfreeze()
    load_seconds = (loaded - start) / SECOND_NS
    return _measurement(workload, driver.attempt_ns, load_seconds, seconds, len(driver.bound), driver.preempted)


def _measure_explain(workload: Workload, feature_gates: FeatureGates) -> Measurement:
    """Load the workload as a dump, and explain its pods one after another."""
    start = perf_counter_ns()
    explainer = Explainer([*workload.nodes, *workload.placed, *workload.pods], feature_gates=feature_gates)
    gc.collect()
    gc.freeze()
    loaded = perf_counter_ns()
    times, outcomes = [], Counter[str]()
    for pod in workload.pods:
        began = perf_counter_ns()
        outcomes[explainer.explain(pod.key).outcome] += 1
        times.append(perf_counter_ns() - began)
    seconds = (perf_counter_ns() - loaded) / SECOND_NS
    gc.unfreeze()
    load_seconds = (loaded - start) / SECOND_NS
    return _measurement(workload, times, load_seconds, seconds, outcomes["schedulable"], outcomes["preempts"])


def _play(driver: BenchDriver, workload: Workload) -> None:
    attempts = 0
    while driver.attempt():
        attempts += 1
        if workload.churn and attempts % _CHURN_EVERY == 0:
            _churn(driver, workload, attempts // _CHURN_EVERY)


def _churn(driver: BenchDriver, workload: Workload, turn: int) -> None:
    """End a pod, and now and then change a node's labels or take a node away and bring it back."""
    if turn <= len(workload.placed):
        driver.end(workload.placed[turn - 1].metadata.uid)
    node = workload.nodes[turn * 7 % len(workload.nodes)]
    if turn % 5 == 0:
        labels = {**node.metadata.labels, "turn": str(turn)}
        changed = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))
        driver.scheduler.handle(Changed(changed), driver.now)
    elif turn % 5 == 1:
        driver.scheduler.handle(Gone(node), driver.now)
        driver.scheduler.handle(Changed(node), driver.now)


def _measurement(
    workload: Workload, times_ns: list[int], load_seconds: float, seconds: float, bound: int, preempted: int
) -> Measurement:
    times = np.array(times_ns) / 1000
    ranks = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
    return Measurement(
        workload=workload.name,
        nodes=len(workload.nodes),
        placed=len(workload.placed),
        pods=len(workload.pods),
        bound=bound,
        attempts=len(times),
        preempted=preempted,
        load_seconds=round(load_seconds, 3),
        seconds=round(seconds, 3),
        pods_per_second=round(len(workload.pods) / seconds, 1),
        attempts_per_second=round(len(times) / seconds, 1),
        attempt_us={name: round(float(np.percentile(times, rank)), 1) for name, rank in ranks.items()},
        peak_memory_mib=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    )
