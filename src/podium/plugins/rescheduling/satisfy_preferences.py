"""SatisfyPreferences: pods go to where more of what they prefer holds.

Source: controlled-rescheduling.md, Rescheduler ("moving a pod onto a node that meets more of the pod's
affinity/anti-affinity preferences than wherever it is currently running").
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from podium.cluster.pods import PodRecord
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Proposal, Relocation
from podium.framework.settings.arguments import Arguments, read_arguments
from podium.plugins.rescheduling.preferences.wish import MICRO
from podium.plugins.rescheduling.preferences.wishes import Weights, Wishes
from podium.plugins.rescheduling.rough_fit import rough_fit


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


class SatisfyPreferences:
    """Proposes pods that miss more of their preferences, or make others miss more, than they would elsewhere.

    The objective adds up what the pods miss: of each kind of preference a share from 0 to 1, by the weights of the
    terms. Who has nothing to prefer misses nothing, nor does who prefers what no node gives. Of one kind a pod that
    moves gains or loses 1 at most for itself, and as much for each pod that would rather be near it, or apart from it.
    """

    name = "SatisfyPreferences"

    def __init__(self, context: PluginContext) -> None:
        arguments = read_arguments(context.args, SatisfyPreferencesArgs, self.name)
        self._wishes = Wishes(
            Weights(
                node_affinity=arguments.node_affinity,
                pod_affinity=arguments.pod_affinity,
                topology_spread=arguments.topology_spread,
                taints=arguments.taints,
            )
        )

    def objective(self, picture: Picture) -> float:
        """How much all pods miss of their preferences."""
        self._wishes.follow(picture)
        return self._wishes.missing / MICRO

    def proposals(self, picture: Picture) -> Iterator[Proposal]:
        """Pods by what there is to be gained, the most first, of equals the least important, then by key."""
        self._wishes.follow(picture)
        refused: set[tuple[int, int]] = set()
        for pod in self._candidates(picture):
            self._wishes.follow(picture)
            place = (pod.pod_class.id, pod.row)
            if place in refused:
                continue
            found = self._proposal(picture, pod)
            if found is None:
                refused.add(place)
                continue
            yield found
            if picture.cluster.placed.get(pod.uid, pod).row == place[1]:
                # Its like would fare no better while nothing else moves.
                refused.add(place)
            else:
                refused.clear()

    def _candidates(self, picture: Picture) -> list[PodRecord]:
        """The pods that would gain somewhere that may take them."""
        found: list[tuple[int, PodRecord]] = []
        for class_id in self._wishes.missed_classes():
            leaving = self._wishes.leaving(class_id)
            pods = self._pods_of(picture, class_id)
            pods = [pod for pod in pods if leaving[pod.row] > 0 and picture.is_movable(pod)]
            if not pods:
                continue
            arriving = self._wishes.arriving(class_id)[rough_fit(picture, pods[0], is_new=True)]
            if len(arriving):
                lowest = int(arriving.min())
                found += [(lowest - int(leaving[pod.row]), pod) for pod in pods if leaving[pod.row] > lowest]
        found.sort(key=lambda entry: (entry[0], entry[1].priority, entry[1].key, entry[1].uid))
        return [pod for _, pod in found]

    def _pods_of(self, picture: Picture, class_id: int) -> list[PodRecord]:
        pods = picture.cluster.pods
        records = [pods.record(slot) for slot in pods.of_class.get(class_id, ())]
        return [record for record in records if record.row >= 0 and not record.terminating]

    def _proposal(self, picture: Picture, pod: PodRecord) -> Proposal | None:
        """The pod's move to where it gains, as things are by now; None where it would gain nowhere."""
        wishes, class_id, row = self._wishes, pod.pod_class.id, pod.row
        leaving = int(wishes.leaving(class_id)[row])
        complaints = wishes.complaints(class_id, row)
        wishes.count(class_id, row, -1)
        arriving = wishes.arriving(class_id)
        wishes.count(class_id, row, 1)
        targets = rough_fit(picture, pod) & (arriving < leaving)
        if not targets.any():
            return None
        reason = f"{pod.key} would have more of what is preferred elsewhere than on {picture.node_name(row)}"
        told = f"{reason}: {'; '.join(complaints)}" if complaints else reason
        return Proposal((Relocation(pod, targets, np.asarray(-arriving, dtype=np.float64)),), told)
