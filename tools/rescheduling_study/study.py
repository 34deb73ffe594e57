"""The runs of the study: the same part of the trace, each time with another rescheduler."""

from __future__ import annotations

import gc
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.api.input.codec import load_text
from podium.framework.rescheduling.configuration import read_settings
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.runtime.runtime import Component
from podium.sim.results.result import Result, result_of
from podium.sim.run import components_of
from podium.sim.run_options import RunOptions, SimulationLimits
from podium.sim.scenario.scenario import Scenario, split_documents
from podium.sim.simulation import Simulation, SimulationSettings
from podium.sim.trace_import import Trace, read_trace, sped_up, with_devices, with_fewer_nodes, with_owners
from tools.rescheduling_study.machines import RULES, SECOND, Descheduler, OnceInAWhile, Probe, Sample

_LARGE = {"devices": {"gpu": 8}, "requests": {"cpu": "64200m", "memory": "263168Mi"}}
_CONSOLIDATE = {"name": "Consolidate", "args": {"for": {**_LARGE, "places": 2}}}
RESCHEDULERS: dict[str, dict[str, Any]] = {
    "rebalance": {"aggressiveness": "Moderate", "policies": [{"name": "MoveToUnderusedNodes"}]},
    "consolidate": {"aggressiveness": "Moderate", "policies": [_CONSOLIDATE]},
    "consolidate, with hints": {"aggressiveness": "Moderate", "policies": [_CONSOLIDATE], "guidance": "Hint"},
}
"""The reschedulers by name."""

PACKING: Mapping[str, Any] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                        }
                    },
                }
            ],
        }
    ],
}
"""A scheduler that fills nodes, as HighNodeUtilization's documentation requires."""


@dataclass(frozen=True, slots=True)
class Part:
    """The simulated part of the trace: its last pods, on a share of the nodes, at a higher speed."""

    nodes: str
    pods: str
    last: int
    share: float
    factor: float
    seconds: int

    def trace(self) -> Trace:
        """Return the part as a trace that begins at 0."""
        whole = read_trace(self.nodes, self.pods)
        arrivals = sorted(whole.arrivals, key=lambda arrival: arrival[0])[-self.last :]
        first = arrivals[0][0]
        begun = replace(whole, arrivals=[(at - first, raw) for at, raw in arrivals])
        return with_owners(with_devices(sped_up(with_fewer_nodes(begun, self.share), self.factor)))


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run."""

    name: str
    samples: Sequence[Sample]
    result: Result
    large: frozenset[str]
    cpu_seconds: float


def play(name: str, part: Part, *, packs: bool = False, interval_seconds: int = 900) -> Run:
    """Simulate the part with a rescheduler, with descheduler by one of its rules, or ("off") without either."""
    trace = part.trace()
    stream = io.BytesIO()
    trace.write(stream)
    objects, scenario = split_documents(load_text(stream.getvalue(), "trace"))
    if name in RESCHEDULERS:
        scenario = _with_rescheduler(scenario, RESCHEDULERS[name])
    configuration: Configuration | None = read_configuration(PACKING, "packing") if packs else None
    options = RunOptions(configuration=configuration)
    probe = Probe(interval_seconds * SECOND)
    watching: list[OnceInAWhile] = [probe]
    if name in RULES:
        watching.append(Descheduler(RULES[name]))
    components = [
        *components_of(scenario, options),
        *(Component(type(one).__name__.lower(), lambda one=one: one, waits=True) for one in watching),  # type: ignore[misc]
    ]
    settings = SimulationSettings(until_ns=part.seconds * SECOND, limits=SimulationLimits())
    simulation = Simulation(objects, scenario, settings=settings, components=components)
    for one in watching:
        one.store = simulation.store
    began = time.process_time()
    gc.disable()
    while simulation.step():
        pass
    gc.enable()
    gc.collect()
    cpu_seconds = time.process_time() - began
    return Run(name, probe.samples, result_of(simulation), _large(trace), cpu_seconds)


def _with_rescheduler(scenario: Scenario, raw: Mapping[str, Any]) -> Scenario:
    return replace(scenario, rescheduling=read_settings(raw))


def _large(trace: Trace) -> frozenset[str]:
    """Return the workloads whose pods need 8 GPUs."""
    return frozenset(raw["metadata"]["name"] for _, raw in trace.arrivals if "gpus-8" in str(raw["spec"]["template"]))
