"""Pods of a group that states a priority are as important as it says, to whoever would take their room."""

from __future__ import annotations

import numpy as np

from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.preempting.trials import VictimFilter


def below_their_groups(cluster: Cluster, further: VictimFilter | None) -> VictimFilter | None:
    """Lets be victims whom ``further`` does (None: everybody), and whose group states no priority that is as high.

    Source: pkg/scheduler/framework/preemption/types.go (NewPodVictim): a victim has its group's priority. Here it keeps
    its own where that is higher.
    """
    if not cluster.pod_groups.state_priorities:
        return further

    def allowed(pod: PodRecord, slots: Int64s) -> Bools:
        class_ids, places = np.unique(cluster.pods.pod_class[slots], return_inverse=True)
        stated = (cluster.pod_groups.stated_priority(cluster.classes[int(each)].pod_group) for each in class_ids)
        below = np.array([each is None or each < pod.priority for each in stated], dtype=np.bool_)
        found: Bools = below[places]
        return found if further is None else found & further(pod, slots)

    return allowed
