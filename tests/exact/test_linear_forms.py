"""The linear forms of policies' objectives equal the objectives, for any placement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.pods import NO_ROW
from podium.decide.transaction import ClusterTransaction
from podium.framework.plugin import PluginContext
from podium.framework.rescheduling.policy import Picture, Signals
from podium.plugins.rescheduling.registry import IN_TREE
from tests.builders import cluster_of, plain_runner
from tests.exact.filter_rules import FILTER_RULES
from tests.exact.objectives import linear_form
from tests.exact.optimal import movables_in
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters

ARGS: Mapping[str, Mapping[str, Any]] = {
    "Consolidate": {},
    "MoveToUnderusedNodes": {"thresholds": {"cpu": 30, "pods": 2}, "targetThresholds": {"cpu": 40, "pods": 3}},
    "RepairViolations": {},
    "SatisfyPreferences": {},
    "SpreadDuplicates": {},
}


def picture_of(objects: Objects, is_target: list[bool], stays: set[str]) -> Picture:
    cluster = cluster_of(*objects.surroundings)
    runner = plain_runner(cluster)
    targets = cluster.nodes.present[: cluster.nodes.count].copy()
    for row, said in enumerate(is_target[: len(targets)]):
        targets[row] &= said
    runners = {"default-scheduler": runner}
    return Picture(
        cluster, runners, runner, 0, Signals(), targets, (), lambda pod: pod.name not in stays and not pod.terminating
    )


@efforts(7)
@pytest.mark.parametrize("name", sorted(ARGS))
def test_a_form_is_the_objective_wherever_pods_are_or_less_where_it_leaves_something_out(
    name: str, effort: Effort
) -> None:
    @effort
    @given(
        clusters(EVERYTHING, most_pods=6),
        st.lists(st.sampled_from([True, True, True, False]), min_size=4, max_size=4),
        st.sets(st.sampled_from(["pod-0", "pod-1", "pod-2"])),
        st.randoms(use_true_random=False),
    )
    def check(objects: Objects, is_target: list[bool], stays: set[str], chance: Any) -> None:
        picture = picture_of(objects, is_target, stays)
        policy = IN_TREE[name](PluginContext(ARGS[name], picture.cluster))
        policy.objective(picture)
        movables = movables_in(picture, FILTER_RULES)

        form = linear_form(policy, movables)

        assert form is not None
        rows = {pod.uid: chance.choice(movables.rows[pod.uid]) for pod in movables.pods}
        with ClusterTransaction(picture.cluster, picture.runners) as transaction:
            for pod in movables.pods:
                if rows[pod.uid] != pod.row:
                    transaction.place(transaction.take_off(pod.uid), rows[pod.uid])
            objective = policy.objective(picture)
        if form.left_out:
            assert form.value(rows) <= objective + 1e-6
        else:
            assert form.value(rows) == pytest.approx(objective, abs=1e-6)
        assert all(pod.row != NO_ROW for pod in movables.pods)

    check()
