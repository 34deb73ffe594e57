"""A machine with its place among others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from podium.machines.concerns import Rest
from podium.machines.machine import Machine
from podium.machines.parts.deadlines import Deadline

MakeMachine = Callable[[], Machine]


@dataclass(slots=True, eq=False)
class Component:
    """``make`` makes its machine, and makes it anew after a crash; ``machine`` is None while it is down.

    ``life`` counts its lives. ``began`` is the number of its present one among those of all components of a driver:
    what happened or was asked before that is not for it. A component that `waits` acts when all else is quiet: a
    scheduler. Its ``place`` is a number that grows with each component that joins a driver, ``deadline`` what its
    machine said when it was last asked, and ``rest`` what that need not be told at once while it `is_at_rest`.
    """

    name: str
    make: MakeMachine
    waits: bool = False
    machine: Machine | None = None
    life: int = 0
    began: int = 0
    place: int = 0
    deadline: Deadline | None = None
    rest: Rest | None = None
    is_at_rest: bool = False
