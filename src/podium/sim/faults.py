"""What may go wrong between a machine and the API server."""

from __future__ import annotations

from random import Random
from typing import Protocol

from podium.machines.actions import Action
from podium.machines.observations import Problem


class Faults(Protocol):
    """Decides how each action of a machine fares."""

    def answer(self, action: Action, rng: Random) -> Problem | int | None:
        """What becomes of an action that is about to be carried out; all chance comes from `rng`.

        None: nothing unusual. A Problem that is not ambiguous: the action is refused with it and not carried out. An
        ambiguous one: it is carried out, and the answer lost. A number: it is carried out at once, and answered that
        many nanoseconds later.
        """
        ...
