"""A controller in its place among the components of a driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import Protocol

import msgspec

from podium.controllers.actions import Action
from podium.controllers.controller import Controller, IdleDeferral
from podium.controllers.deadlines import Deadline

MakeMachine = Callable[[], Controller]


@dataclass(slots=True, eq=False)
class Component:
    """A component: ``make`` creates its controller, again after a crash; ``machine`` is None while it is down.

    ``life`` counts its lives. ``began`` is the sequence number of the current life among those of all components of a
    driver: earlier observations and answers are not for it. A component that `waits` acts only when all others are
    quiet, such as a scheduler. ``place`` grows with each component that joins a driver. ``deadline`` is the
    controller's last deadline, and ``rest`` selects the observations that are deferred while it `is_at_rest`.
    """

    name: str
    make: MakeMachine
    waits: bool = False
    machine: Controller | None = None
    life: int = 0
    began: int = 0
    place: int = 0
    deadline: Deadline | None = None
    rest: IdleDeferral | None = None
    is_at_rest: bool = False


class CallCount:
    """A counter of ``calls``. After the first ``unchecked`` ones, `check` runs before each; this one allows all."""

    def __init__(self, unchecked: int = maxsize) -> None:
        self.calls = 0
        self.unchecked = unchecked

    def check(self, components: Sequence[Component]) -> None:
        """Check the components that are about to be called and counted."""


class RequestedAction(msgspec.Struct, frozen=True):
    """An action of a component, in the life that ``began`` with that number."""

    component: Component
    began: int
    action: Action


class Transport(Protocol):
    """An interface that carries out the actions of components."""

    def send(self, asked: RequestedAction, now: int) -> None:
        """Start an action; the actions of one component take effect in order.

        The result is passed to the driver's ``answer``: immediately or later, and exactly once. An action whose answer
        is lost gets a Problem of code 0. The result contains the written object if the API server returns it.
        """
