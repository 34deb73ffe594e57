"""Measures the scheduler alone, and explanations of a cluster that is in memory.

The driver stands in for the API server: it answers every action at once and shows the result, so that all that is
measured is the scheduler and its handling of what it is told.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from time import perf_counter_ns

from msgspec.structs import replace

from podium.api.collector import collector_paused
from podium.api.pod import Pod
from podium.app.bench.clusters import BUILDERS, Workload
from podium.app.bench.driver import BenchDriver
from podium.app.bench.measurement import Measurement, Stopwatch, peak_memory_mib, percentiles_us, rate
from podium.app.bench.operations import operations
from podium.app.explaining.explainer import Explainer
from podium.framework.settings.feature_gates import FeatureGates
from podium.machines.observations import Changed, Gone
from podium.machines.scheduling.scheduler import Scheduler

COUNTED_PODS = 40
"""How many pods are decided about once the clock has stopped, for the count of operations."""

_COUNTED_QUESTIONS = 3
_CHURN_EVERY = 10


class Play:
    """A workload at play: attempts, one after the other, and what goes on in the cluster meanwhile."""

    def __init__(self, workload: Workload, feature_gates: FeatureGates) -> None:
        self.workload = workload
        self.driver = BenchDriver(Scheduler(workload.configuration, feature_gates=feature_gates))
        for item in (*workload.nodes, *workload.groups):
            self.driver.scheduler.handle(Changed(item), self.driver.now)
        self.show(workload.placed)
        self._attempts = 0

    def show(self, pods: Sequence[Pod]) -> None:
        """Let the scheduler see pods."""
        for pod in pods:
            self.driver.show(pod)

    def run(self) -> None:
        """Until there is nothing to attempt any more."""
        attempt = self.driver.attempt
        if not self.workload.churn:
            while attempt():
                pass
            return
        while attempt():
            self._attempts += 1
            if self._attempts % _CHURN_EVERY == 0:
                self._churn(self._attempts // _CHURN_EVERY)

    def _churn(self, turn: int) -> None:
        """End a pod, and now and then change a node's labels or take a node away and bring it back."""
        driver, workload = self.driver, self.workload
        if turn <= len(workload.placed):
            driver.end(workload.placed[turn - 1].metadata.uid)
        node = workload.nodes[turn * 7 % len(workload.nodes)]
        if turn % 5 == 0:
            labels = {**node.metadata.labels, "turn": str(turn)}
            driver.scheduler.handle(Changed(replace(node, metadata=replace(node.metadata, labels=labels))), driver.now)
        elif turn % 5 == 1:
            driver.scheduler.handle(Gone(node), driver.now)
            driver.scheduler.handle(Changed(node), driver.now)


def measure_scheduling(name: str, nodes: int, pods: int, feature_gates: FeatureGates) -> Measurement:
    """Decide about the pods of a workload, by when each is bound or found to fit nowhere.

    Then decide about some more, for the count of operations.
    """
    with collector_paused():
        workload = BUILDERS[name](nodes, pods + COUNTED_PODS)
    timed, counted = workload.pods[:pods], workload.pods[pods:]
    watch = Stopwatch()
    play = Play(workload, feature_gates)
    play.show(timed)
    load_seconds = watch.lap()
    gc.collect()
    gc.freeze()
    watch.lap()
    play.run()
    seconds = watch.lap()
    gc.unfreeze()
    driver = play.driver
    return Measurement(
        workload=name,
        nodes=len(workload.nodes),
        placed=len(workload.placed),
        pods=len(timed),
        counts={"bound": len(driver.bound), "preempted": driver.preempted, "attempts": len(driver.attempt_ns)},
        load_seconds=round(load_seconds, 3),
        seconds=round(seconds, 3),
        pods_per_second=rate(len(timed), seconds),
        peak_memory_mib=peak_memory_mib(),
        attempt_us=percentiles_us(driver.attempt_ns),
        operations_per_pod=_counted(play, counted),
    )


def _counted(play: Play, pods: Sequence[Pod]) -> float | None:
    """The operations that a pod takes, from being seen to the end; None without pods."""
    if not pods:
        return None

    def decide() -> None:
        play.show(pods)
        play.run()

    return round(operations(decide).total() / len(pods), 1)


def measure_explaining(nodes: int, pods: int, feature_gates: FeatureGates) -> Measurement:
    """Explain the pods of a cluster, one after another; those of them that count would preempt."""
    with collector_paused():
        workload = BUILDERS["explain"](nodes, pods)
    watch = Stopwatch()
    explainer = Explainer([*workload.nodes, *workload.placed, *workload.pods], feature_gates=feature_gates)
    load_seconds = watch.lap()
    gc.collect()
    gc.freeze()
    watch.lap()
    times, outcomes = [], Counter[str]()
    for pod in workload.pods:
        began = perf_counter_ns()
        outcomes[explainer.explain(pod.key).outcome] += 1
        times.append(perf_counter_ns() - began)
    seconds = watch.lap()
    gc.unfreeze()
    some = workload.pods[:_COUNTED_QUESTIONS]
    counted = operations(lambda: [explainer.explain(pod.key) for pod in some])
    return Measurement(
        workload="explain",
        nodes=len(workload.nodes),
        placed=len(workload.placed),
        pods=len(workload.pods),
        counts={outcome: outcomes[outcome] for outcome in sorted(outcomes)},
        load_seconds=round(load_seconds, 3),
        seconds=round(seconds, 3),
        pods_per_second=rate(len(workload.pods), seconds),
        peak_memory_mib=peak_memory_mib(),
        attempt_us=percentiles_us(times),
        operations_per_pod=round(counted.total() / len(some), 1),
    )
