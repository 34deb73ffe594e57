"""Kinds of random fleets, from a seed, with components that may idle between events.

The tests of a kind ask what is its own; what holds of all kinds is asked of each in one place.
"""

from collections.abc import Mapping
from typing import Protocol

from tests.sim.fleet_run import FleetRun
from tests.sim.omitted import NOTHING, Omitted
from tests.sim.preemption_settings import drawn_preemption
from tests.sim.shortest_story import MakeRun

# So slow that each fleet sleeps through a month of faults.
MONTHS = 10_000


class MakeFleet(Protocol):
    """Makes the fleet of a seed; with a pace its events are so many times as far apart."""

    def __call__(self, seed: int, is_faulty: bool = True, omitted: Omitted = NOTHING, *, pace: int = 1) -> FleetRun: ...


def preempting(seed: int, is_faulty: bool = True, omitted: Omitted = NOTHING, *, pace: int = 1) -> FleetRun:
    """Return a fleet whose schedulers preempt beyond what kube-scheduler does, by settings that are drawn."""
    return FleetRun(seed, is_faulty, omitted, pace=pace, preemption=drawn_preemption(seed))


FLEETS: Mapping[str, MakeFleet] = {"all machines": FleetRun, "wide preemption": preempting}


def sleeping(make: MakeFleet, pace: int) -> MakeRun:
    """Return a maker of fleets that idle between events."""

    def slow(seed: int, is_faulty: bool, omitted: Omitted) -> FleetRun:
        return make(seed, is_faulty, omitted, pace=pace)

    return slow
