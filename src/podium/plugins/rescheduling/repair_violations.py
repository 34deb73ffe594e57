"""RepairViolations: pods that break what they require, as things are by now, go to where they do not.

Source: controlled-rescheduling.md, Example use cases ("moving a running pod onto a node that better satisfies its
scheduling criteria").
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.demands.demand_policy import DemandPolicy
from podium.plugins.rescheduling.demands.demands import Demands
from podium.plugins.rescheduling.demands.required import refusal, required


class RepairViolationsArgs(Arguments, frozen=True, kw_only=True):
    """It takes no arguments."""


class RepairViolations(DemandPolicy):
    """Proposes pods that their own scheduler would keep off the nodes where they are, were they not there.

    That is by node affinity and selectors, NoSchedule and NoExecute taints, required inter-pod affinity and
    anti-affinity, anybody's, and DoNotSchedule spread, as far as the profile of the pod's scheduler filters by them,
    and all of them together: a pod that meets them is let be, however uneven the rest. The objective is how many pods
    would have to move until nobody breaks anything; what no move can repair does not count where that is known.
    """

    name = "RepairViolations"

    def __init__(self, context: PluginContext) -> None:
        read_arguments(context.args, RepairViolationsArgs, self.name)
        super().__init__(Demands(required), _reason)


def _reason(picture: Picture, pod: PodRecord, complaints: Sequence[str]) -> str:
    told = refusal(picture, pod)
    if not told:
        return ""
    node = picture.node_name(pod.row)
    return f"{pod.key} would not be let onto {node} today: {'; '.join(complaints) or told}"
