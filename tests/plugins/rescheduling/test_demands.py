"""The change in satisfied preferences by a move: predicted and actual."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.arrays import Int64s
from podium.plugins.rescheduling.demand_policies import SatisfyPreferencesArgs, owner_demands, preferred, required
from podium.plugins.rescheduling.demands import Demands, Maker
from tests.builders import ZONE, cluster_of, node, pod, spread_over
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters
from tests.plugins.rescheduling.pictures import picture_of, picture_on, scratch_of

SPREAD = partial(preferred, SatisfyPreferencesArgs(node_affinity=0, pod_affinity=0, topology_spread=1, taints=0))
PREFERRED = partial(preferred, SatisfyPreferencesArgs(node_affinity=1, pod_affinity=1, topology_spread=0, taints=1))


@efforts(30)
@pytest.mark.parametrize("make", [PREFERRED, partial(owner_demands, ())], ids=["preferred", "owned"])
def test_leaving_and_arriving_foretell_what_a_move_changes(effort: Effort, make: Maker) -> None:
    @effort
    @given(clusters(EVERYTHING, least_pods=2), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        seen = picture_on(cluster_of(*objects.surroundings))
        demands = Demands(make)
        demands.follow(seen)
        for known in [known for known in seen.cluster.placed.values() if known.row >= 0 and not known.terminating]:
            class_id, source = known.pod_class.id, known.row
            if class_id not in demands.of_class:
                continue
            target = chance.choice(sorted(seen.cluster.nodes.row_of.values()))
            before, leaving = demands.missing, demands.leaving(class_id)[source]
            demands.count(class_id, source, -1)
            arriving = demands.arriving(class_id)[target]
            demands.count(class_id, source, 1)
            with scratch_of(seen) as changes:
                changes.place(changes.take_off(known.uid), target)
                demands.follow(seen)
                # What cannot be had is no less missing while a pod is on its way.
                assert abs(before - demands.missing - (leaving - arriving)) <= 2
            demands.follow(seen)
            assert demands.missing == before

    check()


@efforts(30)
@pytest.mark.parametrize(
    "make", [PREFERRED, SPREAD, partial(owner_demands, ()), required], ids=["all", "spread", "owned", "required"]
)
def test_pods_that_are_counted_all_at_once_count_as_they_do_one_by_one(effort: Effort, make: Maker) -> None:
    @effort
    @given(clusters(EVERYTHING, least_pods=2))
    def check(objects: Objects) -> None:
        seen = picture_on(cluster_of(*objects.surroundings))
        at_once = Demands(make)
        at_once.follow(seen)
        placed = [known for known in seen.cluster.placed.values() if known.row >= 0 and not known.terminating]
        for filled, counted in zip(at_once.all, make(seen, at_once._places.classes), strict=True):
            for known in placed:
                if known.pod_class.id in counted.concerns:
                    counted.count(known.pod_class.id, known.row, 1)
            assert filled.missing == counted.missing
            for known in placed:
                class_id = known.pod_class.id
                if class_id not in counted.concerns:
                    continue
                for demand in (filled, counted):
                    demand.count(class_id, known.row, -1)
                assert filled.missing == counted.missing
                assert filled.arriving(class_id).tolist() == counted.arriving(class_id).tolist()
                for demand in (filled, counted):
                    demand.count(class_id, known.row, 1)
                assert filled.leaving(class_id).tolist() == counted.leaving(class_id).tolist()
                assert filled.complaint(class_id, known.row) == counted.complaint(class_id, known.row)

    check()


@efforts(30)
def test_no_move_that_makes_spread_more_even_is_overlooked(effort: Effort) -> None:
    @effort
    @given(st.lists(st.integers(0, 5), min_size=2, max_size=4), st.integers(1, 3), st.integers(1, 5))
    def check(crowd: list[int], max_skew: int, min_domains: int) -> None:
        spread = [spread_over(ZONE, "app=web", max_skew, min_domains=min_domains)]
        nodes = [node(f"n{number}", zone=f"z{number}") for number in range(len(crowd))]
        pods = [
            pod(f"w{number}-{i}", on=f"n{number}", labels={"app": "web"}, spread=spread)
            for number, many in enumerate(crowd)
            for i in range(many)
        ]
        seen = picture_of(*nodes, *pods)
        demands = Demands(required)
        demands.follow(seen)
        before = demands.missing
        for source in [number for number, many in enumerate(crowd) if many]:
            for target in range(len(crowd)):
                if before > _missing(demands, source, target):
                    assert demands.leaving(0)[source] > _arriving(demands, source)[target]

    check()


def _missing(demands: Demands, source: int, target: int) -> int:
    """Return what is missed if a pod moves from row to row."""
    demands.count(0, source, -1)
    demands.count(0, target, 1)
    missing = demands.missing
    demands.count(0, target, -1)
    demands.count(0, source, 1)
    return missing


def _arriving(demands: Demands, source: int) -> Int64s:
    """Return what its arrival would bring once a pod has left a row."""
    demands.count(0, source, -1)
    arriving = demands.arriving(0)
    demands.count(0, source, 1)
    return arriving
