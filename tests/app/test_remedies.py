"""Remedies are exact: the stated change lets the pod run, and any smaller change does not."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod, TopologySpreadConstraint
from podium.api.policy import HIGHEST_USER_PRIORITY
from podium.api.resource_requests import node_allocatable
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import NodeObstacles, find_obstacles, obstacle_texts
from podium.app.explaining.preemption_text import victim_facts
from podium.app.explaining.remedies import Remedies, find_remedies
from tests.builders import ZONE, configuration, explain, node, node_term, pod, spread_over, term
from tests.fuzzing import usual


def obstacles_of(explanation: Explanation) -> list[NodeObstacles]:
    return find_obstacles(explanation.runner, explanation.record)


def facts_of(*objects: Kubernetes) -> dict[str, list[str]]:
    """Return the facts about each node on which something stands in the way."""
    explanation = explain(objects)
    cluster = explanation.runner.cluster
    return {one.node: obstacle_texts(cluster, explanation.record, one) for one in obstacles_of(explanation)}


def remedies_of(*objects: Kubernetes) -> Remedies:
    explanation = explain(objects)
    return find_remedies(explanation, obstacles_of(explanation))


def with_more(one: Node, resource: str, amount: int) -> Node:
    """Return the node with so much more of a resource: cpu in milli, all else in units."""
    amounts = node_allocatable(one.status)
    total = amounts.get(resource, 0) + amount
    written = f"{total}m" if resource == "cpu" else total
    return replace(one, status=replace(one.status, allocatable={**one.status.allocatable, resource: written}))


AMOUNTS = st.integers(1, 20)


@settings(max_examples=usual(25))
@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, st.integers(0, 5)), min_size=1, max_size=4), AMOUNTS, AMOUNTS)
def test_a_node_with_just_what_is_short_takes_the_pod_and_with_less_does_not(
    sizes: Sequence[tuple[int, int, int]], cpu: int, memory: int
) -> None:
    nodes = [node(f"n{i}", cpu=f"{size}", memory=f"{other}Gi") for i, (size, other, _) in enumerate(sizes)]
    running = [pod(f"r{i}", on=f"n{i}", cpu=f"{held}", memory=f"{held}Gi") for i, (*_, held) in enumerate(sizes)]
    incoming = pod("p", cpu=f"{cpu}", memory=f"{memory}Gi")

    for one in obstacles_of(explain([*nodes, *running, incoming])):
        place = next(item for item in nodes if item.metadata.name == one.node)
        for spared, fits in ((0, True), (1, False)):
            enough = place
            for short in one.shortages:
                enough = with_more(enough, short.resource, short.lacking - spared)
            others = [pod_ for pod_ in running if pod_.spec.node_name == one.node]
            assert explain([enough, *others, incoming]).nodes[one.node].is_success is fits


def test_every_filter_is_asked_not_only_the_first_that_refuses() -> None:
    found = facts_of(
        node("a", cpu=1, taints=["dedicated=gpu:NoSchedule", "old:PreferNoSchedule"], unschedulable=True, pods=0),
        pod("p", cpu=3),
    )

    assert found == {
        "a": [
            "cordoned (spec.unschedulable)",
            "taint dedicated=gpu:NoSchedule not tolerated",
            "cpu: 3 asked, 1 in all",
            "full: 0 pods, and 0 allowed",
        ]
    }


def test_a_shortage_says_what_is_asked_and_what_is_free() -> None:
    assert facts_of(node("a", cpu=4, memory="4Gi"), pod("r", on="a", cpu=3), pod("p", cpu="1500m", memory="5Gi")) == {
        "a": ["cpu short by 500m (1500m asked, 1 of 4 free)", "memory: 5Gi asked, 4Gi in all"]
    }


def test_the_nearest_node_comes_first() -> None:
    objects = [
        node("both", cpu=1, taints=["t:NoSchedule"]),
        node("far", cpu=1),
        node("near", cpu=2),
        node("tainted", cpu=4, taints=["t:NoSchedule"]),
    ]

    assert list(facts_of(*objects, pod("p", cpu=3))) == ["near", "far", "tainted", "both"]


def test_labels_that_a_node_lacks_are_set_against_those_wanted() -> None:
    found = facts_of(
        node("a", labels={"disk": "hdd"}),
        node("b"),
        node("c", labels={"disk": "ssd"}),
        pod("p", node_selector={"disk": "ssd"}),
    )

    assert found == {"a": ["label disk=hdd (wanted: disk=ssd)"], "b": ["no label disk (wanted: disk=ssd)"]}


def test_the_remedy_names_the_closest_node_affinity_term() -> None:
    terms = [node_term("disk=ssd,gpu"), node_term("arch=arm64")]

    assert facts_of(node("a"), pod("p", needs_nodes=terms)) == {
        "a": ["no label arch (wanted: arch=arm64) (the nearest of 2 terms)"]
    }
    assert facts_of(node("a"), pod("p", needs_nodes=[node_term(name="b")])) == {"a": ["not metadata.name=b"]}


def test_the_holder_of_a_host_port_is_named() -> None:
    assert facts_of(node("a"), pod("r", on="a", ports=[80]), pod("p", ports=[80, 81])) == {
        "a": ["port 80/TCP held by default/r"]
    }


def test_affinity_names_the_pods_that_are_missed_or_avoided() -> None:
    zones = [node("a", zone="z1"), node("b")]
    web = pod("web", on="a", labels={"app": "web"}, apart=[term("app=db", ZONE)])

    assert facts_of(*zones, web, pod("p", near=[term("app=cache", ZONE)])) == {
        "a": [f"no pod of app=cache in {ZONE}=z1"],
        "b": [f"no label {ZONE}, which the pod's affinity needs"],
    }
    assert facts_of(*zones, web, pod("p", apart=[term("app=web")])) == {
        "a": ["default/web there, avoided by the pod's anti-affinity"]
    }
    assert facts_of(*zones, web, pod("p", labels={"app": "db"})) == {
        "a": [f"default/web in {ZONE}=z1, whose anti-affinity avoids the pod"]
    }


@pytest.mark.parametrize(
    ("constraint", "obstacles"),
    [
        (
            spread_over(ZONE, "app=web"),
            {
                "a": [f"{ZONE}=z1 has 1 matching pod and the emptiest domain 0; maxSkew is 1"],
                "c": [f"no label {ZONE}, which the pod must spread over"],
            },
        ),
        (spread_over(ZONE, "app=web", 2), {"c": [f"no label {ZONE}, which the pod must spread over"]}),
    ],
)
def test_a_spread_constraint_gives_its_counts(
    constraint: TopologySpreadConstraint, obstacles: dict[str, list[str]]
) -> None:
    nodes = [node("a", zone="z1"), node("b", zone="z2"), node("c")]
    running = pod("r", on="a", labels={"app": "web"})

    assert facts_of(*nodes, running, pod("p", labels={"app": "web"}, spread=[constraint])) == obstacles


def test_room_that_a_node_keeps_for_a_nominated_pod_is_an_obstacle() -> None:
    nominated = pod("n", cpu=2, priority=7, nominated="a")

    assert facts_of(node("a", cpu=2), nominated, pod("p", cpu=1)) == {
        "a": ["room kept for default/n (priority 7), nominated there"]
    }


def test_unknown_filter_messages_are_shown_unchanged() -> None:
    only_ssd = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]}
    added = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": only_ssd}}

    explanation = explain([node("a"), pod("p")], "default/p", configuration({"NodeAffinity": added}))

    (obstacles,) = obstacles_of(explanation)
    found = obstacle_texts(explanation.runner.cluster, explanation.record, obstacles)
    assert found == ["node(s) didn't match scheduler-enforced node affinity"]


def test_nodes_with_the_same_obstacles_are_one_remedy() -> None:
    found = remedies_of(node("a", cpu=1), node("b", cpu=1), node("c", cpu=2), pod("p", cpu=3))

    assert list(found.nodes.items()) == [
        (("cpu: 3 asked, 2 in all",), ["c"]),
        (("cpu: 3 asked, 1 in all",), ["a", "b"]),
    ]


def _crowd() -> list[Kubernetes]:
    priorities = {"a": 50, "b": 20, "c": 90}
    nodes: list[Kubernetes] = [node(name, cpu=1) for name in priorities]
    return [*nodes, *(pod(f"on-{name}", on=name, cpu=1, priority=one) for name, one in priorities.items())]


def test_the_least_priority_that_would_get_the_pod_a_node_is_found() -> None:
    remedy = remedies_of(*_crowd(), pod("p", cpu=1)).pod

    assert remedy is not None
    assert (remedy.priority, remedy.from_never, remedy.then.node) == (21, False, "b")
    assert explain([*_crowd(), pod("p", cpu=1, priority=21)]).outcome == "preempts"
    assert explain([*_crowd(), pod("p", cpu=1, priority=20)]).outcome == "unschedulable"


@pytest.mark.parametrize(("priority", "needed"), [(30, None), (10, 21)])
def test_a_never_preempting_pod_is_given_the_remedy_of_preemption(priority: int, needed: int | None) -> None:
    remedy = remedies_of(*_crowd(), pod("p", cpu=1, priority=priority, policy="Never")).pod

    assert remedy is not None
    assert (remedy.priority, remedy.from_never, remedy.then.node) == (needed, True, "b")


def test_above_a_nominated_pod_the_room_kept_for_it_is_free() -> None:
    remedy = remedies_of(node("a", cpu=1), pod("n", cpu=1, priority=5, nominated="a"), pod("p", cpu=1)).pod

    assert remedy is not None
    assert (remedy.priority, remedy.then.outcome) == (6, "schedulable")


@pytest.mark.parametrize(
    "objects",
    [
        [node("a", cpu=1), pod("p", cpu=2)],
        [node("a", cpu=1), pod("r", on="a", cpu=1, priority=HIGHEST_USER_PRIORITY), pod("p", cpu=1)],
    ],
)
def test_remedies_omit_priorities_beyond_the_user_range(objects: list[Kubernetes]) -> None:
    assert remedies_of(*objects).pod is None


def _why(victim: Pod, incoming: Pod) -> list[str]:
    """Why the victim has to go from node a, where it is alone."""
    explanation = explain([node("a", cpu=2, zone="z1"), victim, incoming])
    assert explanation.plan is not None
    assert explanation.plan.chosen is not None
    (found,) = explanation.plan.chosen.victims
    (obstacles,) = obstacles_of(explanation)
    return victim_facts(explanation.runner.cluster, explanation.record, found, obstacles)


@pytest.mark.parametrize(
    ("victim", "incoming", "why"),
    [
        (pod("v", on="a", cpu=2, memory="1Gi"), pod("p", cpu=1, priority=1), ["frees 2 cpu"]),
        (pod("v", on="a", ports=[80]), pod("p", ports=[80], priority=1), ["holds port 80/TCP"]),
        (
            pod("v", on="a", labels={"app": "web"}),
            pod("p", apart=[term("app=web")], priority=1),
            ["is one that its anti-affinity avoids"],
        ),
        (
            pod("v", on="a", apart=[term("app=web")]),
            pod("p", labels={"app": "web"}, priority=1),
            ["avoids it by anti-affinity"],
        ),
    ],
)
def test_a_victim_s_row_says_what_the_pod_needs_of_it(victim: Pod, incoming: Pod, why: list[str]) -> None:
    assert _why(victim, incoming) == why
