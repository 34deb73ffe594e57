"""Plugins' answers for one row and for a class against their answers for all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from podium.api.devices import DeviceClass
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.handle import CycleState
from podium.framework.plugin import (
    ClassFilterPlugin,
    ClassScorePlugin,
    PluginContext,
    RangeNormalizePlugin,
    RowFilterPlugin,
    RowScorePlugin,
)
from podium.framework.verdicts import SKIP, SUCCESS
from podium.plugins.registry import IN_TREE
from tests.builders import cluster_of, node, pod
from tests.fuzzing import Effort, efforts
from tests.generators import Objects, clusters

RESOURCES = [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}, {"name": "example.com/gpu", "weight": 5}]
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 40, "score": 9}, {"utilization": 100, "score": 2}]
RATIOS = {"RequestedToCapacityRatio": {"requestedToCapacityRatio": {"shape": SHAPE}}}
FIT: list[Mapping[str, Any]] = [
    {"scoringStrategy": {"type": kind, "resources": RESOURCES, **RATIOS.get(kind, {})}}
    for kind in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
]
EVEN = {"resources": [{"name": name, "weight": 1} for name in ("cpu", "memory", "example.com/gpu")]}


def plugins_on(cluster: Cluster) -> list[Any]:
    made = [IN_TREE[name](PluginContext({}, cluster)) for name in IN_TREE]
    made += [IN_TREE["NodeResourcesFit"](PluginContext(args, cluster)) for args in FIT]
    return [*made, IN_TREE["NodeResourcesBalancedAllocation"](PluginContext(EVEN, cluster))]


def check_rows(cluster: Cluster, record: PodRecord) -> None:
    state, view = CycleState(), View(cluster)
    rows = sorted(cluster.nodes.row_of.values())
    for plugin in plugins_on(cluster):
        if isinstance(plugin, RowFilterPlugin):
            refused = plugin.filter_rows(state, record, view).codes
            fits = plugin.row_filter(record.pod_class)
            assert [fits(record, row) for row in rows] == (refused[rows] == 0).tolist(), plugin.name
        if isinstance(plugin, RowScorePlugin):
            scores = plugin.score_rows(state, record, view)
            score = plugin.row_score(record.pod_class)
            assert [score(record, row) for row in rows] == scores[rows].tolist(), plugin.name


def test_a_row_that_has_changed_is_read_again() -> None:
    cluster = cluster_of(node("n", cpu=4, memory="8Gi", pods=2), node("m", cpu=4, memory="8Gi", pods=2))
    target = cluster.read(pod("p", cpu=1, memory="1Gi"))
    other = cluster.read(pod("q", cpu=2, memory="1Gi", on="n"))
    check_rows(cluster, target)

    cluster.add_pod(other)
    check_rows(cluster, target)

    cluster.put_node(node("n", cpu=2, memory="8Gi", pods=2))
    check_rows(cluster, target)

    cluster.put_node(node("n", cpu=4, memory="8Gi", pods=1))
    check_rows(cluster, target)

    cluster.remove_pod(other.uid)
    check_rows(cluster, target)

    cluster.remove_node("n")
    assert cluster.put_node(node("o", memory="8Gi")) == 0
    check_rows(cluster, target)


@efforts(20)
def test_one_row_gets_the_answer_that_it_gets_among_all(effort: Effort) -> None:
    @effort
    @given(clusters())
    def check(objects: Objects) -> None:
        cluster = cluster_of(*objects.surroundings)
        check_rows(cluster, cluster.read(objects.target))

    check()


def test_a_class_of_devices_that_stands_for_a_resource_counts_for_one_row_as_for_all() -> None:
    cluster = cluster_of(node("n", cpu=4), node("m", cpu=4, example_com__gpu=1), pod("q", on="m", example_com__gpu=1))
    record = cluster.read(pod("p", cpu=1, example_com__gpu=1))
    cluster.devices.backed["example.com/gpu"] = DeviceClass()

    check_rows(cluster, record)


@pytest.mark.parametrize(
    "wanted", [{"cpu": 1}, {"memory": "1Gi"}, {"cpu": 1, "memory": "1Gi"}, {"cpu": 1, "example_com__gpu": 1}]
)
def test_nodes_without_some_resource_and_nodes_that_are_overcommitted_get_the_same_answer_together(
    wanted: dict[str, Any],
) -> None:
    cluster = cluster_of(
        node("plain", cpu=4, memory="8Gi"),
        node("no-memory", cpu=4),
        node("no-cpu", memory="8Gi"),
        node("full", cpu=1, memory="1Gi", pods=1),
        node("cpu-overcommitted", cpu=2, memory="8Gi"),
        node("memory-overcommitted", cpu=4, memory="1Gi"),
        pod("a", on="full", cpu=1, memory="1Gi"),
        pod("b", on="cpu-overcommitted", cpu=3),
        pod("c", on="memory-overcommitted", memory="2Gi"),
    )

    check_rows(cluster, cluster.read(pod("p", **wanted)))


@efforts(20)
def test_a_class_level_answer_equals_that_of_every_attempt(effort: Effort) -> None:
    @effort
    @given(clusters())
    def check(objects: Objects) -> None:
        cluster = cluster_of(*objects.surroundings)
        record = cluster.read(objects.target)
        for plugin in plugins_on(cluster):
            if isinstance(plugin, ClassFilterPlugin) and plugin.never_filters(record.pod_class):
                assert plugin.pre_filter(CycleState(), record, cluster) == SKIP, plugin.name
            if isinstance(plugin, ClassScorePlugin):
                expected = SKIP if plugin.never_scores(record.pod_class) else SUCCESS
                assert plugin.pre_score(CycleState(), record, View(cluster)) == expected, plugin.name

    check()


@pytest.mark.parametrize("scores", [[0, 0], [3, 7, 0, 7], [5], [2, 2]])
def test_a_score_is_normalised_alone_as_among_all(scores: list[int]) -> None:
    cluster = cluster_of()
    record, view = cluster.read(pod("p")), View(cluster)
    for plugin in plugins_on(cluster):
        if isinstance(plugin, RangeNormalizePlugin):
            expected = plugin.normalize(CycleState(), record, np.array(scores), view)
            alone = [plugin.normalize_within(score, min(scores), max(scores)) for score in scores]
            assert alone == expected.tolist(), plugin.name
