"""Measurements of simulations, and of the output of their results."""

from __future__ import annotations

import math
from bisect import bisect
from itertools import accumulate
from random import Random

import msgspec

from podium.api.collector import collector_paused
from podium.api.input.codec import Input, Reader, read_input
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.versions.choice import ReleaseChoice
from podium.app.bench.measurement import Measurement, Stopwatch, measured, operations
from podium.app.console.output import in_json
from podium.sim.results.result import result_of
from podium.sim.run import caveats_of, play_on, simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.trace_import import GPU_MILLI, GPU_MODEL, PRIORITY_CLASSES, Trace, node_object, pod_object

_COUNTED_NODES, _COUNTED_PODS = 20, 20


class SimulationInput(msgspec.Struct, frozen=True):
    """The input of a simulation: files, or a generated workload of a size."""

    files: tuple[str, ...]
    nodes: int
    pods: int

    def read(self) -> Input:
        if self.files:
            return read_input(self.files)
        made = make_trace(self.nodes, self.pods)
        with Reader() as reader:
            reader.read_text(b"\n".join(map(msgspec.json.encode, made.documents())), "made workload")
            return reader.input()


@collector_paused()
def measure_simulation(story: SimulationInput, release: ReleaseChoice) -> list[Measurement]:
    """Measure a simulation with all controllers, and the output of its result as JSON.

    Operations are those of a small generated workload that this process has played before.
    """
    options = RunOptions(release=release)
    small = SimulationInput((), min(story.nodes, _COUNTED_NODES), min(story.pods, _COUNTED_PODS))
    known, counted = (simulation_of(small.read().documents, options) for _ in range(2))
    play_on(known)
    steps = operations(lambda: play_on(counted)).total()
    watch = Stopwatch()
    found = story.read()
    simulation = simulation_of(found.documents, options)
    load_seconds = watch.lap()
    play_on(simulation)
    result = result_of(simulation, caveats_of(found, simulation, options))
    seconds, summary = watch.lap(), result.summary
    counts = {name: summary[key] for name, key in (("bound", "bindings"), ("preempted",) * 2, ("attempts",) * 2)}
    nodes = sum(isinstance(document.object, Node) for document in found.documents)
    simulated = measured(
        "simulation",
        len(result.pods),
        seconds,
        nodes=nodes,
        counts={**counts, "events": len(result.events)},
        load_seconds=load_seconds,
        operations_per_pod=steps / small.pods,
    )
    watch.lap()
    written = {"bytes": len(in_json(result.to_dict()))}
    return [simulated, measured("simulation-json", simulated.pods, watch.lap(), nodes=nodes, counts=written)]


# Share of the nodes; cores, GiB of memory, GPUs and their model.
_FLEETS = (
    (36, 96, 384, 8, "G2"),
    (25, 104, 512, 2, "T4"),
    (11, 32, 256, 0, ""),
    (8, 96, 512, 0, ""),
    (7, 16, 120, 2, "P100"),
    (5, 64, 256, 2, "P100"),
    (4, 32, 128, 4, "V100M16"),
    (3, 128, 768, 8, "G3"),
    (1, 8, 32, 1, "V100M16"),
)
# Share of the pods; cpu in milli, MiB of memory, thousandths of a GPU.
_PODS = (
    (18, 3152, 5600, 810),
    (15, 11300, 49152, 1000),
    (10, 11400, 48128, 1000),
    (9, 12500, 57344, 0),
    (8, 3152, 5600, 1000),
    (7, 11908, 47104, 470),
    (6, 8000, 30517, 470),
    (6, 32000, 49152, 0),
    (5, 18708, 64512, 1000),
    (4, 11908, 47104, 650),
    (3, 9810, 41560, 1000),
    (3, 8000, 30517, 0),
    (3, 4000, 22888, 320),
    (2, 24200, 93184, 1000),
    (1, 88000, 327680, 8000),
)
_CLASSES = {"production": 57, "best-effort": 41, "mid": 2}
_GAP_SECONDS = 30
_MEDIAN_RUN_SECONDS = 480
_SPREAD_OF_RUNS = 1.7
_LONGEST_RUN_SECONDS = 100_000


def make_trace(nodes: int, pods: int, seed: int = 0) -> Trace:
    """Return nodes, and pods that arrive over time; equal seeds give equal traces."""
    draw = Random(seed)  # noqa: S311 - repeatable draws
    shares = list(accumulate(share for share, *_ in _FLEETS))
    fleets = [bisect(shares, (index + 0.5) / nodes * shares[-1]) for index in range(nodes)]
    arrivals, time = [], 0.0
    for index in range(pods):
        time += draw.expovariate(1 / _GAP_SECONDS)
        arrivals.append((int(time), _pod(index, draw)))
    return Trace("gpu-trace", [*PRIORITY_CLASSES, *map(_node, range(nodes), fleets)], arrivals)


def _node(index: int, fleet: int) -> Raw:
    _, cores, memory_gib, gpus, model = _FLEETS[fleet]
    amounts: Raw = {"cpu": str(cores), "memory": f"{memory_gib}Gi", **({GPU_MILLI: gpus * 1000} if gpus else {})}
    return node_object(f"node-{index:05d}", {GPU_MODEL: model} if gpus else {}, amounts)


def _pod(index: int, draw: Random) -> Raw:
    ((_, cpu_milli, memory_mib, gpu_milli),) = draw.choices(_PODS, [share for share, *_ in _PODS])
    (priority,) = draw.choices(list(_CLASSES), list(_CLASSES.values()))
    run = draw.lognormvariate(math.log(_MEDIAN_RUN_SECONDS), _SPREAD_OF_RUNS)
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi", **({GPU_MILLI: gpu_milli} if gpu_milli else {})}
    seconds = min(int(run) + 1, _LONGEST_RUN_SECONDS)
    return pod_object(f"pod-{index:06d}", {"app": priority}, requests, {}, seconds=seconds, priorityClassName=priority)
