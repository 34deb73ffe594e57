"""A machine with its place in the simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from podium.machines.deadlines import NEVER, Deadline, soonest
from podium.machines.machine import Machine
from podium.sim.informer import Informer

MakeMachine = Callable[[], Machine]


@dataclass(slots=True, eq=False)
class Component:
    """``make`` makes its machine, and makes it anew after a crash; ``life`` counts these.

    ``machine`` is None while it is down. ``informer`` None: it sees everything at once. A component that `waits` acts
    when all else is quiet: a scheduler.
    """

    name: str
    make: MakeMachine
    waits: bool = False
    machine: Machine | None = None
    informer: Informer | None = None
    life: int = field(default=0)

    def begin(self) -> None:
        """Start a new life."""
        self.machine = self.make()
        self.life += 1

    def deadline(self) -> Deadline:
        """When it has something to take in or to do; never while it is down, though it will have news."""
        if self.machine is None:
            return Deadline(None, True)
        arrival_ns = self.informer.next_time() if self.informer else None
        arrival = NEVER if arrival_ns is None else Deadline(arrival_ns, True)
        return soonest(arrival, self.machine.deadline())
