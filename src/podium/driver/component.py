"""A machine with its place among others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from podium.machines.machine import Machine

MakeMachine = Callable[[], Machine]


@dataclass(slots=True, eq=False)
class Component:
    """``make`` makes its machine, and makes it anew after a crash; ``machine`` is None while it is down.

    ``life`` is the number of its present life among those of all components of a driver: what was meant for an earlier
    one is not for it. A component that `waits` acts when all else is quiet: a scheduler.
    """

    name: str
    make: MakeMachine
    waits: bool = False
    machine: Machine | None = None
    life: int = field(default=0)
