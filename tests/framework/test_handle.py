"""PostFilter plugins use exactly the methods of `Handle`."""

from collections.abc import Iterable

import pytest

from podium.api.meta import Kubernetes
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.what_if_view import WhatIfView
from podium.decide.placement import full_outcome, place
from podium.framework.cache.row_filters import RowFilters
from podium.framework.extenders import Extenders
from podium.framework.handle import CycleState, FilterParts, Handle, Reaches
from podium.framework.plugin import PostFilterPlugin
from podium.framework.runner import Runner
from podium.framework.verdicts import Outcome
from tests.builders import budget, cluster_of, configuration, node, pod, runner_on

OBJECTS: list[Kubernetes] = [
    *(node(f"n{i}", cpu=1) for i in range(3)),
    *(pod(f"q{i}", on=f"n{i}", cpu=1, priority=i, labels={"app": "q"}) for i in range(3)),
    budget("q", "app=q", allowed=1),
]


class NarrowHandle:
    """A runner of which nothing but the members of `Handle` can be reached."""

    def __init__(self, runner: Runner) -> None:
        self.cluster: Cluster = runner.cluster
        self._runner = runner

    def extenders_of(self, pod: PodRecord) -> Extenders | None:
        return self._runner.extenders_of(pod)

    def filter_what_if(self, state: CycleState, pod: PodRecord, worlds: WhatIfView, own_uid: str) -> Outcome:
        return self._runner.filter_what_if(state, pod, worlds, own_uid)

    def fits_without(self, state: CycleState, pod: PodRecord, node_name: str, gone: Iterable[PodRecord]) -> bool:
        return self._runner.fits_without(state, pod, node_name, gone)

    def for_known_nodes(self, state: CycleState) -> CycleState:
        return self._runner.for_known_nodes(state)

    def feasible_rows(self, pod: PodRecord) -> Int64s:
        return self._runner.feasible_rows(pod)

    def is_row_local(self, state: CycleState) -> bool:
        return self._runner.is_row_local(state)

    def reaches(self, state: CycleState, pod: PodRecord) -> Reaches:
        return self._runner.reaches(state, pod)

    def filter_parts(self, state: CycleState, pod: PodRecord) -> FilterParts | None:
        return self._runner.filter_parts(state, pod)

    def filter_view(self, state: CycleState, pod: PodRecord, view: View) -> Outcome:
        return self._runner.filter_view(state, pod, view)

    def row_filters(self, state: CycleState, pod: PodRecord, rows: int = 1) -> RowFilters | None:
        return self._runner.row_filters(state, pod, rows)


@pytest.mark.parametrize("args", [{}, {"equalPriorityPreemption": True}, {"acrossNodes": True}])
def test_every_post_filter_gets_by_with_the_handle(args: dict[str, bool]) -> None:
    cluster = cluster_of(*OBJECTS)
    runner = runner_on(cluster, configuration({"DefaultPreemption": args}))
    record = cluster.read(pod("p", cpu=1, priority=1))
    placement = place(runner, record)
    outcome = full_outcome(cluster, placement)
    handle: Handle = NarrowHandle(runner)

    assert runner.profile.post_filter
    for plugin in runner.profile.post_filter:
        assert isinstance(plugin, PostFilterPlugin)
        by_handle = plugin.post_filter(placement.state, record, handle, cluster, outcome)
        by_runner = plugin.post_filter(placement.state, record, runner, cluster, outcome)
        assert by_handle.status == by_runner.status
        assert (by_handle.nominated_node, by_handle.victims) == (by_runner.nominated_node, by_runner.victims)


def test_a_handle_says_whether_a_pod_fits_a_node_without_some_pods_and_beside_nominated_ones() -> None:
    cluster = cluster_of(*OBJECTS, pod("first", cpu=1, priority=5, nominated="n1"))
    runner = runner_on(cluster, configuration({}))
    record = cluster.read(pod("p", cpu=1, priority=1))
    state, on = place(runner, record).state, {placed.node_name: placed for placed in cluster.placed.values()}

    assert runner.fits_without(state, record, "n0", [on["n0"]])
    assert not runner.fits_without(state, record, "n0", [])
    assert not runner.fits_without(state, record, "n0", [on["n2"]])
    assert not runner.fits_without(state, record, "n1", [on["n1"]])
    assert not runner.fits_without(state, record, "no-such-node", [])
