"""Measures what a dump of a cluster costs: the command from its start to the first answer, and one more question."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from resource import struct_rusage
from time import perf_counter_ns

from podium.api.collector import collector_paused
from podium.app.bench.dump import QUESTIONS, question, write_dump
from podium.app.bench.measurement import Measurement, Stopwatch, peak_memory_mib, percentiles_us, rate
from podium.app.bench.operations import operations
from podium.app.library import load
from podium.framework.settings.feature_gates import FeatureGates

_COUNTED_NODES, _COUNTED_PODS = 5, 100


def measure_loading(nodes: int, pods: int) -> Measurement:
    """Run `podium explain` in a process of its own on a dump: seconds and memory are that process's."""
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        dump = Path(folder) / "dump.json"
        write_dump(dump, nodes, pods)
        usage = _explained(dump)
        size = dump.stat().st_size
        small = Path(folder) / "small.json"
        write_dump(small, _COUNTED_NODES, _COUNTED_PODS)
        counted = operations(lambda: _Questions(small, FeatureGates()).ask(0))
    seconds = usage.ru_utime + usage.ru_stime
    return Measurement(
        workload="load",
        nodes=nodes,
        placed=0,
        pods=pods,
        counts={"bytes": size},
        load_seconds=0.0,
        seconds=round(seconds, 3),
        pods_per_second=rate(pods, seconds),
        peak_memory_mib=peak_memory_mib(usage),
        operations_per_pod=round(counted.total() / _COUNTED_PODS, 1),
    )


@collector_paused()
def measure_questions(nodes: int, pods: int, feature_gates: FeatureGates) -> Measurement:
    """Load a dump once, ask one question, and then the one about each other pending pod: these are measured."""
    watch = Stopwatch()
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as folder:
        dump = Path(folder) / "dump.json"
        write_dump(dump, nodes, pods)
        watch.lap()
        questions = _Questions(dump, feature_gates)
    questions.ask(0)
    load_seconds = watch.lap()
    times, outcomes = [], Counter[str]()
    numbers = range(1, min(QUESTIONS, pods))
    for number in numbers:
        began = perf_counter_ns()
        outcomes[questions.ask(number)] += 1
        times.append(perf_counter_ns() - began)
    seconds = watch.lap()
    counted = operations(lambda: questions.ask(1))
    return Measurement(
        workload="question",
        nodes=nodes,
        placed=pods,
        pods=len(numbers),
        counts={outcome: outcomes[outcome] for outcome in sorted(outcomes)},
        load_seconds=round(load_seconds, 3),
        seconds=round(seconds, 3),
        pods_per_second=rate(len(numbers), seconds),
        peak_memory_mib=peak_memory_mib(),
        attempt_us=percentiles_us(times),
        operations_per_pod=float(counted.total()),
    )


class _Questions:
    """A dump that is loaded, to be asked about its pending pods."""

    def __init__(self, dump: Path, feature_gates: FeatureGates) -> None:
        self._cluster = load(dump, feature_gates=feature_gates)

    def ask(self, number: int) -> str:
        """What would happen to a pending pod, all of the answer's text included."""
        explanation = self._cluster.explain(question(number))
        explanation.to_dict()
        return explanation.outcome


def _explained(dump: Path) -> struct_rusage:
    """What the command takes that explains a pending pod of the dump."""
    command = [sys.executable, "-m", "podium", "explain", question(0), "-f", str(dump), "-o", "json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - this very program
    _, status, usage = os.wait4(process.pid, 0)
    # The child is reaped: this is for the object alone, which would look for it otherwise.
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"podium explain ended with {process.returncode}")
    return usage
