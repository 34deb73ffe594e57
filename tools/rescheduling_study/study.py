"""The runs of the study: the same part of the trace, each time with somebody else who moves pods."""

from __future__ import annotations

import gc
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podium.api.input.codec import load_text
from podium.driver.component import Component
from podium.framework.rescheduling.configuration import read_settings
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.sim.limits import Limits
from podium.sim.results.result import Result, result_of
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import Scenario, split_documents
from podium.sim.scenario_components import components_of
from podium.sim.simulation import Settings, Simulation
from podium.sim.traces.gpu_devices import with_devices
from podium.sim.traces.openb import read_trace
from podium.sim.traces.owners import with_owners
from podium.sim.traces.pressure import sped_up, with_fewer_nodes
from podium.sim.traces.trace import Trace
from tools.rescheduling_study.machines import RULES, SECOND, Descheduler, OnceInAWhile, Probe, Sample

_LARGE = {"devices": {"gpu": 8}, "requests": {"cpu": "64200m", "memory": "263168Mi"}}
_CONSOLIDATE = {"name": "Consolidate", "args": {"for": {**_LARGE, "places": 2}}}
RESCHEDULERS: dict[str, dict[str, Any]] = {
    "rebalance": {"aggressiveness": "Moderate", "policies": [{"name": "MoveToUnderusedNodes"}]},
    "consolidate": {"aggressiveness": "Moderate", "policies": [_CONSOLIDATE]},
    "consolidate, with hints": {"aggressiveness": "Moderate", "policies": [_CONSOLIDATE], "guidance": "Hint"},
}
"""The reschedulers that are tried, by name."""

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
"""A scheduler that fills nodes up, as HighNodeUtilization's documentation wants it."""


@dataclass(frozen=True, slots=True)
class Part:
    """Which part of the trace is played: its last pods, on a share of the nodes, so many times as fast."""

    nodes: str
    pods: str
    last: int
    share: float
    factor: float
    seconds: int

    def trace(self) -> Trace:
        """The part as a trace that begins at 0."""
        whole = read_trace(self.nodes, self.pods)
        arrivals = sorted(whole.arrivals, key=lambda arrival: arrival[0])[-self.last :]
        first = arrivals[0][0]
        begun = replace(whole, arrivals=[(at - first, raw) for at, raw in arrivals])
        return with_owners(with_devices(sped_up(with_fewer_nodes(begun, self.share), self.factor)))


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one run."""

    name: str
    samples: Sequence[Sample]
    result: Result
    large: frozenset[str]
    cpu_seconds: float


def play(name: str, part: Part, *, packs: bool = False, interval_seconds: int = 900) -> Run:
    """Play the part with a rescheduler, with descheduler by one of its rules, or ("off") with nobody."""
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
    settings = Settings(until_ns=part.seconds * SECOND, limits=Limits.raised(None, None, None))
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
    """The workloads whose pods want 8 GPUs."""
    return frozenset(raw["metadata"]["name"] for _, raw in trace.arrivals if "gpus-8" in str(raw["spec"]["template"]))
