"""What a move would change in what pods prefer, foretold and as it comes true."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.plugins.rescheduling.demands.demands import Demands, Maker
from podium.plugins.rescheduling.demands.owned import Owned
from podium.plugins.rescheduling.demands.preferred import Preferred, Weights
from tests.builders import cluster_of
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters
from tests.plugins.rescheduling.pictures import picture_of, scratch

PREFERRED = Preferred(Weights(node_affinity=1, pod_affinity=1, topology_spread=1, taints=1))


@efforts(60)
@pytest.mark.parametrize("make", [PREFERRED, Owned(())], ids=["preferred", "owned"])
def test_leaving_and_arriving_foretell_what_a_move_changes(effort: Effort, make: Maker) -> None:
    @effort
    @given(clusters(EVERYTHING, least_pods=2), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        seen = picture_of(cluster_of(*objects.surroundings))
        demands = Demands(make)
        demands.follow(seen)
        for pod in [pod for pod in seen.cluster.placed.values() if pod.row >= 0 and not pod.terminating]:
            class_id, source = pod.pod_class.id, pod.row
            if class_id not in demands.concerned():
                continue
            target = chance.choice(sorted(seen.cluster.nodes.row_of.values()))
            before, leaving = demands.missing, demands.leaving(class_id)[source]
            demands.count(class_id, source, -1)
            arriving = demands.arriving(class_id)[target]
            demands.count(class_id, source, 1)
            with scratch(seen) as changes:
                changes.place(changes.take_off(pod.uid), target)
                demands.follow(seen)
                # What cannot be had is no less missing while a pod is on its way.
                assert abs(before - demands.missing - (leaving - arriving)) <= 2
            demands.follow(seen)
            assert demands.missing == before

    check()
