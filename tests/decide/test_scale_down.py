"""The nodes that an autoscaler can remove."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod, PodCondition
from podium.api.policy import PodDisruptionBudget
from podium.cluster.budgets import Budgets
from podium.cluster.cluster import Cluster
from podium.decide.autoscaling import (
    RemovalTerms,
    ScaleDownPlan,
    ScaleDownSettings,
    Shrinkable,
    plan_scale_down,
    residents,
    utilization,
    why_kept,
)
from podium.decide.transaction import ClusterTransaction
from tests import builders
from tests.builders import HOSTNAME, budget, cluster_of, node, plain_runner, term

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def pod(name: str, *, safe: str = "", mirror: bool = False, owner: str = "ReplicaSet/web", **fields: Any) -> Pod:
    """Return a pod of the ReplicaSet web, unless it is said otherwise."""
    made = builders.pod(name, owner=owner, **fields)
    annotations = {SAFE: safe} if safe else {}
    if mirror:
        annotations["kubernetes.io/config.mirror"] = "1"
    return replace(made, metadata=replace(made.metadata, annotations=annotations))


def around(
    budgets: Iterable[PodDisruptionBudget] = (),
    *,
    keeps_data: Collection[str] = (),
    closed: Collection[str] = (),
    **options: Any,
) -> RemovalTerms:
    known = Budgets()
    for one in budgets:
        known.put(one)
    of_terms = {name: options.pop(name) for name in ("priority_cutoff", "max_candidates") if name in options}
    return RemovalTerms(known, keeps_data, closed, ScaleDownSettings(**options), **of_terms)


def scratch_on(cluster: Cluster) -> ClusterTransaction:
    return ClusterTransaction(cluster, {"default-scheduler": plain_runner(cluster)})


def plan(
    *objects: Kubernetes,
    candidates: Collection[str] = ("n1", "n2", "n3"),
    spare: int = 9,
    keeps_data: Collection[str] = (),
    closed: Collection[str] = (),
    **options: Any,
) -> ScaleDownPlan:
    cluster = cluster_of(*objects)
    budgets = [one for one in objects if isinstance(one, PodDisruptionBudget)]
    names = tuple(name for name in candidates if name in cluster.nodes.row_of)
    surroundings = around(budgets, keeps_data=keeps_data, closed=closed, **options)
    with scratch_on(cluster) as transaction:
        return plan_scale_down(transaction, [Shrinkable(names, spare)], surroundings)


FULL = [node("n2", cpu=4), pod("full", on="n2", cpu=2)]


def test_a_node_without_pods_is_not_needed() -> None:
    assert plan(node("n1"), *FULL).unneeded == ("n1",)


def test_a_little_used_node_is_not_needed_when_its_pods_fit_elsewhere() -> None:
    found = plan(node("n1", cpu=4), pod("a", on="n1", cpu=1), *FULL)

    assert found.unneeded == ("n1",)
    assert found.kept == {"n2": "50% of it is requested"}


def test_a_node_is_kept_whose_pods_do_not_fit_elsewhere_all_together() -> None:
    found = plan(node("n1", cpu=8), pod("a", on="n1", cpu="1500m"), pod("b", on="n1", cpu="1"), *FULL)

    assert found.kept["n1"] == "default/b fits on no other node"


def test_moved_pods_must_pass_the_filters_where_they_go() -> None:
    apart: dict[str, Any] = {"labels": {"app": "a"}, "apart": [term("app=a", HOSTNAME)]}
    there = [node("n1", zone="z"), node("n2", zone="z"), pod("a", on="n1", cpu=1, **apart), pod("b", on="n2", **apart)]

    assert plan(*there, candidates=["n1"]).kept["n1"] == "default/a fits on no other node"


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (pod("a", on="n1", owner=""), "default/a has no controller that replaces it"),
        (pod("a", on="n1", owner="", safe="true"), ""),
        (pod("a", on="n1", safe="false"), f"default/a is annotated {SAFE}: false"),
        (pod("data", on="n1"), "default/data keeps data on the node"),
        (pod("data", on="n1", safe="true"), ""),
    ],
)
def test_a_pod_that_may_not_be_moved_keeps_its_node(one: Pod, reason: str) -> None:
    found = plan(node("n1"), one, *FULL, keeps_data=["default/data"])

    assert found.kept.get("n1", "") == reason


@pytest.mark.parametrize(
    "one",
    [
        pod("agent", on="n1", owner="DaemonSet/agent", safe="false"),
        pod("static", on="n1", owner="", mirror=True),
        pod("ending", on="n1", owner="", terminating=True),
        pod("cheap", on="n1", owner="", priority=-11),
    ],
)
def test_pods_that_come_with_the_node_end_or_are_expendable_do_not_keep_it(one: Pod) -> None:
    assert plan(node("n1"), one, *FULL).unneeded == ("n1",)


def test_a_pod_that_is_annotated_like_one_of_a_daemon_set_does_not_keep_its_node() -> None:
    own = pod("own", on="n1", owner="")
    annotated = {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}
    like_daemon = replace(own, metadata=replace(own.metadata, annotations=annotated))

    assert plan(node("n1"), own, *FULL).kept["n1"] == "default/own has no controller that replaces it"
    assert plan(node("n1"), like_daemon, *FULL).unneeded == ("n1",)


@pytest.mark.parametrize(("kind", "is_kept"), [("Job", False), ("StatefulSet", False), ("Workflow", True)])
def test_pods_of_controllers_that_are_not_kubernetes_own_keep_their_node(kind: str, is_kept: bool) -> None:
    there = [node("n1"), pod("a", on="n1", owner=f"{kind}/own"), *FULL]

    reason = f"default/a belongs to a {kind}, which may not replace it"
    assert plan(*there).kept.get("n1") == (reason if is_kept else None)
    assert plan(*there, skip_nodes_with_custom_controller_pods=False).unneeded == ("n1",)


@pytest.mark.parametrize(
    ("namespace", "covered", "is_kept"),
    [
        ("kube-system", "", True),
        ("kube-system", "app=other", True),
        ("kube-system", "app=dns", False),
        ("dns", "", False),
    ],
)
def test_system_pods_without_a_budget_keep_their_node(namespace: str, covered: str, is_kept: bool) -> None:
    budgets = [budget("b", covered, 1, namespace=namespace)] if covered else []
    there = [node("n1"), pod("dns", on="n1", namespace=namespace, labels={"app": "dns"}), *FULL, *budgets]

    reason = "kube-system/dns is a system pod without a disruption budget"
    assert plan(*there).kept.get("n1") == (reason if is_kept else None)
    assert plan(*there, skip_nodes_with_system_pods=False).unneeded == ("n1",)


def test_expendable_pods_are_evicted_and_their_budgets_count() -> None:
    cheap = pod("cheap", on="n1", priority=-11, labels={"app": "a"})
    found = plan(node("n1"), cheap, *FULL, budget("b", "app=a", 0))

    assert found.kept["n1"] == "default/cheap may not be evicted: the disruption budget default/b is used up"


def test_budgets_count_for_all_nodes_of_a_plan_together() -> None:
    two = [pod(f"a{n}", on=f"n{n}", cpu="100m", labels={"app": "a"}) for n in (1, 2)]
    found = plan(node("n1"), node("n2"), node("big"), pod("b", on="big", cpu=4), *two, budget("b", "app=a", 1))

    assert found.unneeded == ("n1",)
    assert "default/b is used up" in found.kept["n2"]


def test_a_group_keeps_its_minimum_and_loses_empty_nodes_first() -> None:
    there = [node("n1"), node("n2"), node("n3"), node("big"), pod("a", on="n1", cpu=1)]

    assert plan(*there, spare=2).unneeded == ("n2", "n3")
    assert plan(*there, spare=2).kept == {"n1": "its group has no more nodes than its minimum"}
    assert plan(*there, spare=3).unneeded == ("n2", "n3", "n1")
    assert plan(*there, spare=-1).unneeded == ()


def test_scale_down_removes_the_least_used_node_first() -> None:
    there = [node("n1", cpu=8), node("n2", cpu=8), pod("a", on="n1", cpu=2), pod("b", on="n2", cpu=1)]

    found = plan(*there)

    assert found.unneeded == ("n2",)
    assert found.kept == {"n1": "pods of another node would move to it"}


def test_a_node_that_is_removed_takes_in_no_pods() -> None:
    there = [node("n1"), node("n2"), pod("a", on="n1", cpu=1)]

    assert plan(*there).unneeded == ("n2",)
    assert plan(*there, candidates=["n1"], closed=["n2"]).kept == {"n1": "default/a fits on no other node"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}, "is annotated"),
        ({"ready": "False"}, "it is not ready"),
        ({"ready": "Unknown"}, "it is not ready"),
        ({"ready": "True"}, ""),
    ],
)
def test_a_node_that_is_exempt_or_not_ready_is_kept(change: dict[str, Any], reason: str) -> None:
    one = node("n1")
    one = replace(one, metadata=replace(one.metadata, annotations=change.get("annotations", {})))
    if "ready" in change:
        conditions = (PodCondition(type="Ready", status=change["ready"]),)
        one = replace(one, status=replace(one.status, conditions=conditions))

    assert reason in plan(one, *FULL).kept.get("n1", "")
    assert bool(reason) is ("n1" in plan(one, *FULL).kept)


def test_a_node_is_kept_that_a_pod_waits_for() -> None:
    waiting = pod("waiting", priority=5, nominated="n1")

    assert plan(node("n1"), waiting, *FULL).kept["n1"] == "default/waiting waits for room on it"


def test_only_so_many_nodes_with_pods_are_looked_into() -> None:
    there = [node(f"n{n}", cpu=8) for n in (1, 2, 3)] + [pod(f"a{n}", on=f"n{n}", cpu=n) for n in (1, 2, 3)]

    found = plan(*there, node("big", cpu=99), node("n0"), candidates=["n0", "n1", "n2", "n3"], max_candidates=1)

    assert found.unneeded == ("n0", "n1")
    assert found.kept == {"n2": "other nodes are checked first", "n3": "other nodes are checked first"}


# Utilization


@pytest.mark.parametrize(
    ("pods", "share"),
    [
        ([], Fraction(0)),
        ([pod("a", on="n1", cpu=2)], Fraction(1, 4)),
        ([pod("a", on="n1", cpu=2, memory="16Gi")], Fraction(1, 2)),
        ([pod("a", on="n1", cpu=2), pod("d", on="n1", cpu=4, owner="DaemonSet/d")], Fraction(3, 4)),
        ([pod("a", on="n1", cpu=2), pod("m", on="n1", cpu=4, mirror=True)], Fraction(3, 4)),
        ([pod("a", on="n1", cpu=2), pod("cheap", on="n1", cpu=4, priority=-11)], Fraction(1, 4)),
        ([pod("a", on="n1", cpu=2), pod("small", on="n1", cpu=4, priority=-10)], Fraction(3, 4)),
        ([pod("a", on="n1", cpu=2, terminating=True)], Fraction(1, 4)),
        ([pod("a", on="n1", cpu=1), pod("d", on="n1", cpu=8, owner="DaemonSet/d")], Fraction(9, 8)),
    ],
)
def test_the_larger_share_of_cpu_and_memory_counts(pods: list[Pod], share: Fraction) -> None:
    cluster = cluster_of(node("n1", cpu=8, memory="32Gi"), *pods)

    assert utilization(scratch_on(cluster), 0, around()) == share


def test_a_node_is_little_used_below_the_threshold_and_not_at_it() -> None:
    there = [node("n1", cpu=8), pod("a", on="n1", cpu=2), node("big", cpu=99)]

    assert plan(*there, utilization_threshold=0.25).kept == {"n1": "25% of it is requested"}
    assert plan(*there, utilization_threshold=0.26).unneeded == ("n1",)


# One node by itself


def test_node_removal_is_decided_by_the_pods_of_that_node_alone() -> None:
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4), pod("a", on="n1", cpu=3))
    with scratch_on(cluster) as transaction:
        assert why_kept(transaction, "n1", around()) == ""
        assert list(cluster.nodes.row_of) == ["n2"]

    cluster.add_pod(cluster.read(pod("b", on="n2", cpu=2)))
    with scratch_on(cluster) as transaction:
        assert why_kept(transaction, "n1", around()) == "default/a fits on no other node"
        assert sorted(cluster.nodes.row_of) == ["n1", "n2"]


def test_resident_pods_are_listed_in_key_order() -> None:
    cluster = cluster_of(
        node("n1"),
        pod("c", on="n1"),
        pod("b", on="n1", owner=""),
        pod("a", on="n1", priority=-15),
        pod("d", on="n1", terminating=True),
        pod("e", on="n1", owner="DaemonSet/e"),
    )

    found = residents(cluster.pods_on(0), around())

    assert [one.name for one in found.moving] == ["b", "c"]
    assert [one.name for one in found.expendable] == ["a"]
    assert [one.name for one in found.terminating] == ["d"]
    assert [one.name for one in found.to_evict] == ["b", "c", "a"]
    assert found.obstacle == "default/b has no controller that replaces it"
    assert not found.is_empty


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), max_size=12))
def test_all_nodes_of_a_plan_can_go_at_once(placed: list[tuple[int, int]]) -> None:
    """Their pods fit on what is left, without a node having more than it can hold."""
    nodes: list[Node] = [node(f"n{number}", cpu=8) for number in range(5)]
    pods: list[Pod] = []
    room = [8] * 5
    for index, (number, size) in enumerate(placed):
        if room[number] >= size:
            room[number] -= size
            pods.append(pod(f"p{index}", on=f"n{number}", cpu=size))
    cluster = cluster_of(*nodes, *pods)
    with scratch_on(cluster) as transaction:
        found = plan_scale_down(transaction, [Shrinkable(tuple(one.metadata.name for one in nodes), 4)], around())
        left = cluster.nodes
        assert set(left.row_of) == {f"n{number}" for number in range(5)} - set(found.unneeded)
        assert all(left.requested[0, row] <= left.allocatable[0, row] for row in left.row_of.values())
        on_nodes = [one.uid for row in left.row_of.values() for one in cluster.pods_on(row)]
        assert sorted(on_nodes) == sorted(one.metadata.uid for one in pods)
