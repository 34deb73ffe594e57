"""Measurements of simulations, and of the output of their results."""

from __future__ import annotations

import msgspec

from podium.api.collector import collector_paused
from podium.api.input.codec import Input, Reader, read_input
from podium.api.node import Node
from podium.api.versions.choice import ReleaseChoice
from podium.app.bench.eks_cluster import PODS_PER_NODE, EKSCluster
from podium.app.bench.measurement import Measurement, Stopwatch, measured, operations
from podium.app.console.output import in_json
from podium.sim.results.result import result_of
from podium.sim.run import caveats_of, play_on, simulation_of
from podium.sim.run_options import RunOptions

_COUNTED_NODES = 3
_MADE_BY_CONTROLLERS = ("ControllerRevision", "Pod", "ReplicaSet")


class SimulationInput(msgspec.Struct, frozen=True):
    """The input of a simulation: files, or the workloads of a generated cluster, whose pods controllers create."""

    files: tuple[str, ...]
    nodes: int

    def read(self) -> Input:
        if self.files:
            return read_input(self.files)
        given = (raw for raw in EKSCluster(self.nodes).objects() if raw["kind"] not in _MADE_BY_CONTROLLERS)
        with Reader() as reader:
            reader.read_text(b"\n".join(map(msgspec.json.encode, given)), "made cluster")
            return reader.input()


@collector_paused()
def measure_simulation(story: SimulationInput, release: ReleaseChoice) -> list[Measurement]:
    """Measure a simulation with all controllers, and the output of its result as JSON.

    Operations are those of a small generated cluster that this process has played before.
    """
    options, small = RunOptions(release=release), SimulationInput((), _COUNTED_NODES)
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
        operations_per_pod=steps / (_COUNTED_NODES * PODS_PER_NODE),
    )
    watch.lap()
    written = {"bytes": len(in_json(result.to_dict()))}
    return [simulated, measured("simulation-json", simulated.pods, watch.lap(), nodes=nodes, counts=written)]
