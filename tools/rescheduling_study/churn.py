"""`python -m tools.rescheduling_study.churn`: the state of a cluster after a trace has come and gone for some time.

Plays a trace with workloads for its pods, and writes what exists at the end as manifests for `podium reschedule -f`,
which plans moves with a certificate. Prints what descheduler's rules would evict in that state.
"""

from __future__ import annotations

import argparse
import gc
import io
from pathlib import Path

import msgspec

from podium.api.input.codec import load_text
from podium.sim.run import components_of
from podium.sim.run_options import RunOptions, SimulationLimits
from podium.sim.scenario.scenario import split_documents
from podium.sim.simulation import Simulation, SimulationSettings
from podium.sim.trace_import import Trace, read_trace, with_fewer_nodes, with_owners
from podium.store.store import Store
from tools.rescheduling_study.cluster_state import ClusterState
from tools.rescheduling_study.machines import RULES, SECOND

_DAY = 86_400
# What a rescheduler needs of the objects.
_KINDS = ("PriorityClass", "Node", "ReplicaSet", "Job", "Pod")


def store_after(trace: Trace, seconds: int) -> Store:
    """Play the trace for so long; return the objects that exist then."""
    stream = io.BytesIO()
    trace.write(stream)
    objects, scenario = split_documents(load_text(stream.getvalue(), trace.name))
    settings = SimulationSettings(until_ns=seconds * SECOND, limits=SimulationLimits())
    components = components_of(scenario, RunOptions())
    simulation = Simulation(objects, scenario, settings=settings, components=components)
    while simulation.step():
        pass
    return simulation.store


def save(store: Store, file: Path) -> None:
    """Write the objects of a rescheduler's kinds as JSON lines."""
    with file.open("wb") as stream:
        for kind in _KINDS:
            for item in store.objects(kind):
                stream.write(msgspec.json.encode(item.raw) + b"\n")


def would_evict(store: Store) -> str:
    """Return a line for each of descheduler's rules, after one about the nodes and pods."""
    state = ClusterState(store)
    nodes = state.nodes()
    pods = sum(len(node.pods) for node in nodes)
    lines = [f"{len(nodes):,} nodes, {state.in_use():,} in use; {pods:,} pods run, {len(state.waiting):,} wait"]
    return "\n".join([*lines, *(f"{name} would evict {len(rule(nodes)):,} pods" for name, rule in RULES.items())])


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tools.rescheduling_study.churn", description=__doc__)
    parser.add_argument("--trace", nargs="+", required=True, help="the files of the trace, as for podium simulate")
    parser.add_argument("--scale-nodes", type=float, default=1.0, help="play on such a share of the nodes")
    parser.add_argument("--days", type=float, default=31, help="for so long")
    parser.add_argument("--save", type=Path, required=True, help="the file for the manifests")
    args = parser.parse_args()
    gc.disable()
    trace = with_owners(with_fewer_nodes(read_trace(*args.trace), args.scale_nodes))
    store = store_after(trace, int(args.days * _DAY))
    save(store, args.save)
    print(would_evict(store))


if __name__ == "__main__":
    main()
