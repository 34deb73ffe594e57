"""What policies have in common that go by what pods ask of their places."""

from __future__ import annotations

from collections.abc import Iterator

from podium.framework.rescheduling.linear import LinearForm, Movables
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal
from podium.plugins.rescheduling.demands.demand import MICRO
from podium.plugins.rescheduling.demands.demand_moves import DemandMoves, Reason
from podium.plugins.rescheduling.demands.demands import Demands


class DemandPolicy:
    """The part of a policy that its demands decide: the objective is how much is missed of them.

    ``reason`` has the last word on each pod that is proposed.
    """

    def __init__(self, demands: Demands, reason: Reason) -> None:
        self._demands = demands
        self._moves = DemandMoves(demands, reason)

    def objective(self, picture: Picture) -> float:
        """How much is missed, in all."""
        self._demands.follow(picture)
        return self._demands.missing / MICRO

    def linear(self, movables: Movables) -> LinearForm:
        """The objective, as far as demands have a linear form."""
        return self._demands.linear(movables)

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Pods by what there is to be gained, the most first, of equals the least important, then by key."""
        return self._moves.proposals(picture)
