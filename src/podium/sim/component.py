"""A machine with its place in the simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from podium.machines.deadlines import earliest
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

    def next_deadline(self) -> int | None:
        """When it has something to take in or to do; None while it is down, or for never."""
        if self.machine is None:
            return None
        arrival = self.informer.next_time() if self.informer else None
        return earliest((arrival, self.machine.next_deadline()))

    def is_settled(self) -> bool:
        """Whether nothing is on its way to it, and its machine is settled."""
        if self.machine is None or (self.informer and self.informer.next_time() is not None):
            return False
        return self.machine.is_settled()
