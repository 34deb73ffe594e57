"""Measures simulations, the writing of what came of them, and what a score in the simple form adds to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from podium.api.collector import collector_paused
from podium.api.input.codec import Document, Input, Reader, read_input
from podium.api.node import Node
from podium.app.bench.gpu_trace import make_trace
from podium.app.bench.measurement import Measurement, Stopwatch, peak_memory_mib, rate
from podium.app.bench.operations import operations
from podium.app.console.output import in_json
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.framework.settings.feature_gates import FeatureGates
from podium.sim.results.result import Result, result_of
from podium.sim.run import rests_on, simulation_of
from podium.sim.run_options import RunOptions

SCORES = {
    "score": "podium.app.bench.scores:FewestPodsByRow",
    "score-unscoped": "podium.app.bench.scores:FewestPods",
}
"""The workloads that add a score to a simulation, with the plugin."""

_COUNTED_NODES, _COUNTED_PODS = 20, 20


@dataclass(frozen=True, slots=True)
class Story:
    """What is simulated: the files, or a made workload of a size."""

    files: tuple[str, ...]
    nodes: int
    pods: int

    def read(self) -> Input:
        """The objects and the scenario."""
        if self.files:
            return read_input(self.files)
        made = make_trace(self.nodes, self.pods)
        with Reader() as reader:
            reader.read_text(b"\n".join(map(msgspec.json.encode, made.documents())), "made workload")
            return reader.input()


@dataclass(frozen=True, slots=True)
class _Played:
    nodes: int
    result: Result
    load_seconds: float
    seconds: float

    def measurement(self, workload: str, counted: float, times_without: float | None = None) -> Measurement:
        summary = self.result.summary
        pods = len(self.result.pods)
        return Measurement(
            workload=workload,
            nodes=self.nodes,
            placed=0,
            pods=pods,
            counts={
                "bound": summary["bindings"],
                "preempted": summary["preempted"],
                "attempts": summary["attempts"],
                "events": len(self.result.events),
            },
            load_seconds=round(self.load_seconds, 3),
            seconds=round(self.seconds, 3),
            pods_per_second=rate(pods, self.seconds),
            peak_memory_mib=peak_memory_mib(),
            operations_per_pod=counted,
            times_without=times_without,
        )


@collector_paused()
def measure_simulation(story: Story, feature_gates: FeatureGates) -> list[Measurement]:
    """Play a story to its end, all controllers taking part, and then write what came of it as JSON."""
    options = RunOptions(feature_gates=feature_gates)
    counted = _counted(story, options)
    played = _play(story, options)
    simulated = played.measurement("simulation", counted)
    watch = Stopwatch()
    size = len(in_json(played.result.to_dict()))
    seconds = watch.lap()
    written = msgspec.structs.replace(
        simulated,
        workload="simulation-json",
        counts={"bytes": size},
        load_seconds=0.0,
        seconds=round(seconds, 3),
        pods_per_second=rate(simulated.pods, seconds),
        peak_memory_mib=peak_memory_mib(),
        operations_per_pod=None,
    )
    return [simulated, written]


@collector_paused()
def measure_score(workload: str, story: Story, feature_gates: FeatureGates) -> Measurement:
    """Play a story without and with a score in the simple form, and compare their CPU seconds.

    Each is played twice, in turns, and the quicker one counts: what else the machine does slows the other one.
    """
    plain = RunOptions(feature_gates=feature_gates)
    scored = replace(plain, configuration=_with_score(SCORES[workload]))
    # First, so that whatever is only done once in a process is not part of what is compared.
    counted = _counted(story, scored)
    turns = [_play(story, options) for options in (plain, scored, scored, plain)]
    without = min(turns[0].seconds, turns[3].seconds)
    with_score = min(turns[1], turns[2], key=lambda played: played.seconds)
    return with_score.measurement(workload, counted, round(with_score.seconds / without, 2))


def _play(story: Story, options: RunOptions) -> _Played:
    watch = Stopwatch()
    found = story.read()
    simulation = simulation_of(found.documents, options)
    load_seconds = watch.lap()
    while simulation.step():
        pass
    result = result_of(simulation, rests_on(found, simulation.scenario, options))
    return _Played(sum(map(_is_node, found.documents)), result, load_seconds, watch.lap())


def _is_node(document: Document) -> bool:
    return isinstance(document.object, Node)


def _counted(story: Story, options: RunOptions) -> float:
    """The operations a pod takes in a small made workload, once it has been played before in this process."""
    small = Story((), min(story.nodes, _COUNTED_NODES), min(story.pods, _COUNTED_PODS))
    _play(small, options)
    simulation = simulation_of(small.read().documents, options)

    def play() -> None:
        while simulation.step():
            pass

    return round(operations(play).total() / small.pods, 1)


def _with_score(plugin: str) -> Configuration:
    score = {"enabled": [{"name": plugin}]}
    profile = {"schedulerName": "default-scheduler", "plugins": {"score": score}}
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "bench")
