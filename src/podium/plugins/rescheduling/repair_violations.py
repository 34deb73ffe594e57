"""RepairViolations: pods that break what they require, as things are by now, go to where they do not.

Source: controlled-rescheduling.md, Example use cases ("moving a running pod onto a node that better satisfies its
scheduling criteria").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.linear import LinearForm, Movables
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.demands.demand import MICRO
from podium.plugins.rescheduling.demands.demand_moves import DemandMoves
from podium.plugins.rescheduling.demands.demands import Demands
from podium.plugins.rescheduling.demands.required import refusal, required


class RepairViolationsArgs(Arguments, frozen=True, kw_only=True):
    """It takes no arguments."""


class RepairViolations:
    """Proposes pods that their own scheduler would keep off the nodes where they are, were they not there.

    That is by node affinity and selectors, NoSchedule and NoExecute taints, required inter-pod affinity and
    anti-affinity, anybody's, and DoNotSchedule spread, as far as the profile of the pod's scheduler filters by them,
    and all of them together: a pod that meets them is let be, however uneven the rest. The objective is how many pods
    would have to move until nobody breaks anything; what no move can repair does not count where that is known.
    """

    name = "RepairViolations"

    def __init__(self, context: PluginContext) -> None:
        read_arguments(context.args, RepairViolationsArgs, self.name)
        self._demands = Demands(required)
        self._moves = DemandMoves(self._demands, _reason)

    def objective(self, picture: Picture) -> float:
        """How many pods would have to move until nobody breaks anything."""
        self._demands.follow(picture)
        return self._demands.missing / MICRO

    def linear(self, movables: Movables) -> LinearForm:
        """The objective, as far as demands have a linear form."""
        return self._demands.linear(movables)

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Pods by how much a move repairs, the most first, of equals the least important, then by key."""
        return self._moves.proposals(picture)


def _reason(picture: Picture, pod: PodRecord, complaints: Sequence[str]) -> str:
    told = refusal(picture, pod)
    if not told:
        return ""
    node = picture.node_name(pod.row)
    return f"{pod.key} would not be let onto {node} today: {'; '.join(complaints) or told}"
