"""A machine with its place among others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.machines.machine import Machine

MakeMachine = Callable[[], Machine]


@dataclass(slots=True, eq=False)
class Component:
    """``make`` makes its machine, and makes it anew after a crash; ``machine`` is None while it is down.

    ``life`` counts its lives. ``began`` is the number of its present one among those of all components of a driver:
    what happened or was asked before that is not for it. A component that `waits` acts when all else is quiet: a
    scheduler.
    """

    name: str
    make: MakeMachine
    waits: bool = False
    machine: Machine | None = None
    life: int = 0
    began: int = 0
