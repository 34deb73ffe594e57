"""How actions get to the API server, and answers back."""

from __future__ import annotations

from typing import Protocol

import msgspec

from podium.driver.component import Component
from podium.machines.actions import Action


class Asked(msgspec.Struct, frozen=True):
    """An action of a component, in the life that ``began`` then."""

    component: Component
    began: int
    action: Action


class Transport(Protocol):
    """Carries out what components ask for."""

    def send(self, asked: Asked, now: int) -> None:
        """Begin to carry out an action; actions of one component take effect in the order in which they come.

        How it ends is handed to the driver's ``answer``: at once or later, and never twice. An action whose answer is
        lost has to be answered all the same, with a Problem of code 0. What was written goes with the answer where the
        API server tells it.
        """
        ...
