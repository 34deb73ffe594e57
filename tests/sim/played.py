"""Simulations with the first-fit scheduler, as short lines."""

from collections.abc import Sequence
from typing import Any

import podium
from podium.api.clock_inference import start_time
from podium.api.pod import Pod
from podium.app.simulating.simulation_result import SimulationResult
from podium.controllers.controller import Controller
from podium.runtime.runtime import Component
from podium.sim.run import components_of
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import split_documents
from podium.sim.simulation import Simulation, SimulationSettings
from tests.sim.first_fit import FirstFit
from tests.sim.objects import documents
from tests.store.objects import Raw


def simulation_of(
    *objects: Raw, schedulers: Sequence[Controller | Component] | None = None, faults: Any = None, **settings: Any
) -> Simulation:
    """Return a simulation of the objects, one of which may be a scenario, that has not begun to pass time.

    Schedulers given as machines cannot crash.
    """
    found, scenario = split_documents(documents(*objects))
    chosen = {"start_ns": start_time(found), "until_ns": scenario.until_ns, **settings}
    components = [
        one if isinstance(one, Component) else Component(f"scheduler-{index}", lambda one=one: one, waits=True)  # type: ignore[misc]
        for index, one in enumerate(schedulers or [FirstFit()])
    ]
    options = RunOptions(seed=chosen.get("seed", 0))
    components = components_of(scenario, options, schedulers=components)
    return Simulation(found, scenario, settings=SimulationSettings(**chosen), components=components, faults=faults)


def played(*objects: Raw, **settings: Any) -> Simulation:
    """Return the simulation at its end."""
    simulation = simulation_of(*objects, **settings)
    while simulation.step():
        pass
    return simulation


def instantly(objects: Any, **options: Any) -> SimulationResult:
    """Return a simulation in which requests take no time, for tests that state exact times."""
    return podium.simulate(objects, latency=0, **options)


def reported(simulation: Simulation, *reasons: str) -> list[str]:
    """Return the events, or those with one of the reasons, as in `30 Terminated default/b on n1 by kubelet`."""
    return [
        " ".join(
            str(part)
            for part in (event.time, event.reason, event.pod, event.node and f"on {event.node}", f"by {event.by}")
            if part is not None
        )
        for event in simulation.history.events
        if not reasons or event.reason in reasons
    ]


def pods(simulation: Simulation) -> dict[str, Pod]:
    """Return the pods that exist, by name."""
    found = (stored.object for stored in simulation.store.objects("Pod"))
    return {pod.metadata.name: pod for pod in found if isinstance(pod, Pod)}
