"""SatisfyPreferences: pods go to where more of what they prefer holds.

Source: controlled-rescheduling.md, Rescheduler ("moving a pod onto a node that meets more of the pod's
affinity/anti-affinity preferences than wherever it is currently running").
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.demands.demand_policy import DemandPolicy
from podium.plugins.rescheduling.demands.demands import Demands
from podium.plugins.rescheduling.demands.preferred import Preferred, Weights


class SatisfyPreferencesArgs(Arguments, frozen=True, kw_only=True):
    """Arguments: how much each kind of preference counts; 0 leaves it out.

    ``nodeAffinity``: preferred node affinity. ``podAffinity``: preferred inter-pod affinity and anti-affinity.
    ``topologySpread``: ScheduleAnyway constraints. ``taints``: PreferNoSchedule taints that a pod does not tolerate.
    """

    node_affinity: float = 1.0
    pod_affinity: float = 1.0
    topology_spread: float = 1.0
    taints: float = 1.0

    def __post_init__(self) -> None:
        for name, weight in (
            ("nodeAffinity", self.node_affinity),
            ("podAffinity", self.pod_affinity),
            ("topologySpread", self.topology_spread),
            ("taints", self.taints),
        ):
            if not 0 <= weight <= 100:
                raise ValueError(f"{name} must be from 0 to 100")


class SatisfyPreferences(DemandPolicy):
    """Proposes pods that miss more of their preferences, or make others miss more, than they would elsewhere.

    The objective adds up what the pods miss: of each kind of preference a share from 0 to 1, by the weights of the
    terms. Who has nothing to prefer misses nothing, nor does who prefers what no node gives. Of one kind a pod that
    moves gains or loses 1 at most for itself, and as much for each pod that would rather be near it, or apart from it.
    """

    name = "SatisfyPreferences"

    def __init__(self, context: PluginContext) -> None:
        arguments = read_arguments(context.args, SatisfyPreferencesArgs, self.name)
        weights = Weights(
            node_affinity=arguments.node_affinity,
            pod_affinity=arguments.pod_affinity,
            topology_spread=arguments.topology_spread,
            taints=arguments.taints,
        )
        super().__init__(Demands(Preferred(weights)), _reason)


def _reason(picture: Picture, pod: PodRecord, complaints: Sequence[str]) -> str:
    reason = f"{pod.key} would have more of what is preferred elsewhere than on {picture.node_name(pod.row)}"
    return f"{reason}: {'; '.join(complaints)}" if complaints else reason
