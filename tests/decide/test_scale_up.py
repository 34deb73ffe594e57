"""The new nodes that pending pods need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.decide.autoscaling import Expandable, NodeGroup, ScaleUpPlan, plan_scale_up
from podium.decide.transaction import ClusterTransaction
from tests.builders import HOSTNAME, ZONE, cluster_of, node, plain_runner, pod, spread_over, term, tolerate


def group(
    name: str,
    *,
    cpu: int | str = 4,
    maximum: int = 10,
    taints: Sequence[Raw] = (),
    labels: Mapping[str, str] | None = None,
) -> NodeGroup:
    """Return a group of nodes with cpu and 8 GiB of memory."""
    template = {
        "metadata": {"labels": dict(labels or {})},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }
    return NodeGroup(name, 0, maximum, 0, template)


def plan(
    pods: Iterable[Pod],
    *groups: NodeGroup | Expandable,
    there: Iterable[Kubernetes] = (),
    daemons: Iterable[Pod] = (),
) -> ScaleUpPlan:
    cluster = cluster_of(*there)
    expandable = [
        one if isinstance(one, Expandable) else Expandable(one, one.free_names(one.maximum, ()), "full")
        for one in groups
    ]
    with ClusterTransaction(cluster, {"default-scheduler": plain_runner(cluster)}) as transaction:
        read = [cluster.read(one) for one in pods]
        return plan_scale_up(transaction, expandable, read, [cluster.read(one) for one in daemons])


def chosen(found: ScaleUpPlan) -> dict[str, Any]:
    """Return the group, the new nodes' number, and the pods that they are for."""
    if found.chosen is None:
        return {}
    pods = sorted(one.name for one in found.chosen.pods)
    return {"group": found.chosen.group.name, "nodes": len(found.chosen.names), "pods": pods}


def pods(number: int, prefix: str = "p", **fields: Any) -> list[Pod]:
    return [pod(f"{prefix}{index}", **fields) for index in range(number)]


def test_as_many_nodes_are_added_as_the_pods_need() -> None:
    found = plan(pods(5, cpu=2), group("pool"))

    assert chosen(found) == {"group": "pool", "nodes": 3, "pods": ["p0", "p1", "p2", "p3", "p4"]}
    assert found.chosen is not None
    assert found.chosen.names == ("pool-0", "pool-1", "pool-2")


def test_pods_that_fit_on_present_nodes_get_none() -> None:
    found = plan(pods(3, cpu=2), group("pool"), there=[node("n1", cpu=4)])

    assert [one.name for one in found.fitting] == ["p0", "p1"]
    assert chosen(found) == {"group": "pool", "nodes": 1, "pods": ["p2"]}


def test_the_more_important_pods_are_tried_on_present_nodes_first() -> None:
    found = plan([pod("low", cpu=4), pod("high", cpu=4, priority=5)], group("pool"), there=[node("n1", cpu=4)])

    assert [one.name for one in found.fitting] == ["high"]


def test_room_that_a_nominated_pod_waits_for_is_taken() -> None:
    waiting = pod("waiting", cpu=3, priority=5, nominated="n1")
    found = plan([pod("p", cpu=2)], group("pool"), there=[node("n1", cpu=4), waiting])

    assert chosen(found) == {"group": "pool", "nodes": 1, "pods": ["p"]}


def test_a_group_is_not_taken_beyond_its_maximum() -> None:
    found = plan(pods(5, cpu=4), group("pool", maximum=2))

    assert chosen(found) == {"group": "pool", "nodes": 2, "pods": ["p0", "p1"]}
    assert [one.name for one in found.unhelped] == ["p2", "p3", "p4"]
    assert found.refusals["default/p4"] == {"pool": "full"}


def test_full_and_paused_groups_are_reported() -> None:
    full = Expandable(group("full", maximum=1), (), "full")
    paused = Expandable(group("paused"), (), "later")

    found = plan(pods(1, cpu=1), full, paused)

    assert found.chosen is None
    assert found.refusals == {"default/p0": {"full": "full", "paused": "later"}}


def test_the_group_that_wastes_least_is_chosen() -> None:
    found = plan(pods(1, cpu=3, memory="6Gi"), group("large", cpu=16), group("right", cpu=4))

    assert chosen(found)["group"] == "right"
    assert [(one.group.name, one.waste) for one in found.options] == [
        ("large", (Fraction(13, 16) + Fraction(1, 4)) / 2),
        ("right", (Fraction(1, 4) + Fraction(1, 4)) / 2),
    ]


def test_the_first_of_equal_groups_by_name_is_chosen() -> None:
    assert chosen(plan(pods(1, cpu=3), group("b"), group("a")))["group"] == "a"


@pytest.mark.parametrize(
    ("one", "group_", "reason"),
    [
        (pod("p", cpu=5), group("pool"), "Insufficient cpu"),
        (
            pod("p", node_selector={"disk": "ssd"}),
            group("pool"),
            "node(s) didn't match Pod's node affinity/selector",
        ),
        (
            pod("p"),
            group("pool", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
            "node(s) had untolerated taint(s)",
        ),
        (pod("p", labels={"app": "a"}, near=[term("app=b", ZONE)]), group("pool"), "pod affinity rules"),
    ],
)
def test_a_group_whose_nodes_the_filters_refuse_does_not_help(one: Pod, group_: NodeGroup, reason: str) -> None:
    found = plan([one], group_)

    assert found.chosen is None
    assert reason in found.refusals["default/p"]["pool"]


def test_a_group_helps_pods_that_select_its_labels_and_tolerate_its_taints() -> None:
    special = group("gpu", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}], labels={"disk": "ssd"})
    wanted = pod("p", cpu=1, node_selector={"disk": "ssd"}, tolerations=[tolerate("gpu=yes")])

    assert chosen(plan([wanted], group("plain"), special)) == {"group": "gpu", "nodes": 1, "pods": ["p"]}


def test_pods_that_want_to_be_apart_get_a_node_each() -> None:
    apart = pods(3, cpu="100m", labels={"app": "a"}, apart=[term("app=a", HOSTNAME)])

    assert chosen(plan(apart, group("pool")))["nodes"] == 3


def test_pods_that_want_to_be_together_get_one_node() -> None:
    together = pods(3, cpu=1, labels={"app": "a"}, near=[term("app=a", HOSTNAME)])

    assert chosen(plan(together, group("pool"))) == {"group": "pool", "nodes": 1, "pods": ["p0", "p1", "p2"]}


def test_a_spread_over_zones_that_the_group_cannot_keep_limits_it() -> None:
    spread = pods(3, cpu=1, labels={"app": "a"}, spread=[spread_over(ZONE, "app=a")])
    there = [node("n1", cpu=0, labels={ZONE: "z1"})]

    found = plan(spread, group("pool", labels={ZONE: "z2"}), there=there)

    assert chosen(found) == {"group": "pool", "nodes": 1, "pods": ["p0"]}


def test_daemon_pods_reduce_the_room_of_a_new_node() -> None:
    agent = pod("agent", cpu=1, owner="DaemonSet/agent")
    picky = pod("picky", cpu=4, owner="DaemonSet/picky", node_selector={"disk": "ssd"})

    assert chosen(plan(pods(4, cpu=2), group("pool")))["nodes"] == 2
    assert chosen(plan(pods(4, cpu=2), group("pool"), daemons=[agent, picky]))["nodes"] == 4


def test_a_node_without_memory_to_offer_wastes_none() -> None:
    bare = NodeGroup("bare", 0, 1, 0, {"status": {"allocatable": {"cpu": 4, "pods": 10}}})

    found = plan(pods(1, cpu=1), bare)

    assert found.chosen is not None
    assert found.chosen.waste == Fraction(3, 8)


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(1, 12))
def test_packing_keeps_to_its_bounds(sizes: list[int], maximum: int) -> None:
    """First fit leaves at most one node half empty, so that twice the sum is enough; the sum itself is needed."""
    asking = [pod(f"p{index}", cpu=size) for index, size in enumerate(sizes)]

    found = plan(asking, Expandable(group("pool", cpu=8, maximum=99), [f"pool-{n}" for n in range(maximum)], "full"))

    fitting = [size for size in sizes if size <= 8]
    if not fitting:
        assert found.chosen is None
        return
    assert found.chosen is not None
    number, packed = len(found.chosen.names), [int(one.name[1:]) for one in found.chosen.pods]
    total = sum(sizes[index] for index in packed)
    assert len(set(packed)) == len(packed)
    assert total <= 8 * number
    assert number <= maximum
    if number < maximum:
        assert sorted(sizes[index] for index in packed) == sorted(fitting)
        assert -(-total // 8) <= number <= -(-2 * total // 8)
    assert {one.uid for one in found.unhelped} == {f"default/p{n}" for n in range(len(sizes))} - {
        one.uid for one in found.chosen.pods
    }
