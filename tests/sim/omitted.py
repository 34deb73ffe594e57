"""Features left out of a random run, to find which of them a failure needs."""

from dataclasses import dataclass

from tests.sim.faults import Fault


@dataclass(frozen=True, slots=True)
class Omitted:
    """The parts of a seed's run to leave out: faults, and steps and objects by their number."""

    faults: frozenset[Fault] = frozenset()
    steps: frozenset[int] = frozenset()
    objects: frozenset[int] = frozenset()
    meddling: bool = False


NOTHING = Omitted()
