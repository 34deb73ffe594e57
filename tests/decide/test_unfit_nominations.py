"""The nominations that end when a pod of higher priority takes room, or is nominated, on their node.

Rows 11 and 13 of Kubernetes' tests: TestNominatedNode, TestPreemptionAndNominatedNodeNameScenarios.
"""

from __future__ import annotations

import pytest

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView
from podium.decide.placement import unfit_nominations
from podium.framework.handle import CycleState
from podium.framework.plugin import Plugin
from podium.framework.verdicts import Status
from tests.builders import cluster_of, node, plain_runner, pod

RUNNING = [pod("q", on="n", cpu=2)]


def ended(cluster: Cluster, priority: int, leaving: frozenset[str] = frozenset(), *extra: Plugin) -> list[str]:
    runners = {"default-scheduler": plain_runner(cluster, extra=extra)}
    taker = cluster.read(pod("taker", priority=priority))
    return [one.name for one in unfit_nominations(cluster, runners, "n", taker, leaving)]


@pytest.mark.upstream(11, 13)
def test_a_lower_nomination_that_no_longer_fits_ends() -> None:
    cluster = cluster_of(node("n", cpu=4), *RUNNING, pod("low", priority=1, cpu=3, nominated="n"))

    assert ended(cluster, 5) == ["low"]


def test_asking_ends_nothing() -> None:
    """Not even for a moment that others see: who asks again gets the same answer."""
    waiting = [pod("first", priority=3, cpu=3, nominated="n"), pod("second", priority=2, cpu=2, nominated="n")]
    cluster = cluster_of(node("n", cpu=4), *RUNNING, *waiting)
    (first,) = [one for one, _ in cluster.nominations.all() if one.name == "first"]
    cluster.nominations.put(first, "n", ["default/q"])

    assert [ended(cluster, 5) for _ in range(2)] == [["first"]] * 2
    assert [(one.name, one.nominated_node_name) for one in cluster.nominations.on("n")] == [
        ("first", "n"),
        ("second", "n"),
    ]
    assert cluster.nominations.victims() == [("default/first", ("default/q",))]


def test_a_lower_nomination_that_still_fits_stays() -> None:
    """kube-scheduler ends it too; the preemption design does not."""
    cluster = cluster_of(node("n", cpu=4), *RUNNING, pod("low", priority=1, cpu=2, nominated="n"))

    assert ended(cluster, 5) == []
    assert len(cluster.nominations) == 1


def test_only_nominations_below_the_priority_are_looked_at() -> None:
    waiting = [pod(name, priority=priority, cpu=9, nominated="n") for name, priority in (("equal", 5), ("above", 6))]
    cluster = cluster_of(node("n", cpu=4), *waiting)

    assert ended(cluster, 5) == []


def test_a_nomination_counts_against_those_below_it_until_it_is_found_unfit() -> None:
    """The first does not fit beside the running pod; without its claim the second does, and the third no more."""
    waiting = [
        pod("first", priority=3, cpu=3, nominated="n"),
        pod("second", priority=2, cpu=2, nominated="n"),
        pod("third", priority=1, cpu=1, nominated="n"),
    ]
    cluster = cluster_of(node("n", cpu=4), *RUNNING, *waiting)

    assert ended(cluster, 5) == ["first", "third"]


def test_pods_that_are_leaving_count_as_gone() -> None:
    low = pod("low", priority=1, cpu=3, nominated="n")

    assert ended(cluster_of(node("n", cpu=4), *RUNNING, low), 5, frozenset({"default/q"})) == []
    preempted = pod("q", on="n", cpu=2, terminating=True, preempted=True)
    assert ended(cluster_of(node("n", cpu=4), preempted, low), 5) == []
    deleted = pod("q", on="n", cpu=2, terminating=True)
    assert ended(cluster_of(node("n", cpu=4), deleted, low), 5) == ["low"]


@pytest.mark.upstream(11)
def test_no_nomination_survives_its_node() -> None:
    cluster = cluster_of(node("other"), pod("low", priority=1, nominated="n"))

    assert ended(cluster, 2**31) == ["low"]


def test_a_nominated_pod_that_its_node_no_longer_selects_loses_the_nomination() -> None:
    target = pod("low", priority=1, nominated="n", node_selector={"disk": "ssd"})

    assert ended(cluster_of(node("n"), target), 5) == ["low"]


class Failing:
    name = "Failing"

    def filter(self, state: CycleState, pod: PodRecord, node: NodeView) -> Status:
        raise ZeroDivisionError


def test_a_pod_over_which_a_plugin_fails_keeps_its_nomination() -> None:
    """The preemptor must not suffer from the failing plugin; the pod's own attempt decides."""
    cluster = cluster_of(node("n", cpu=4), pod("low", priority=1, cpu=1, nominated="n"))

    assert ended(cluster, 5, frozenset(), Failing()) == []
