"""Whether a pod would fit a node if some pods were gone."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from podium.cluster.pods import PodRecord
from podium.cluster.worlds import Worlds
from podium.framework.cycle_state import CycleState
from podium.framework.runner import Runner


def fits_without(runner: Runner, pod: PodRecord, row: int, gone: Collection[PodRecord]) -> bool:
    """Whether the pod would fit the node in ``row`` without ``gone``, pods on any nodes, beside those nominated to it.

    The pod's own nomination does not count. Raises PluginError where a plugin fails over the pod.
    """
    state = CycleState()
    pre_filter = runner.pre_filter(state, pod)
    if not pre_filter.status.is_success or (pre_filter.rows is not None and row not in pre_filter.rows):
        return False
    worlds = Worlds(runner.cluster, np.array([row], dtype=np.int64))
    slots = np.array([other.slot for other in gone], dtype=np.int64)
    worlds.remove_anywhere(np.zeros(len(slots), dtype=np.int64), slots)
    return bool(runner.filter_worlds(state, pod, worlds, pod.uid).refused[0] == 0)
