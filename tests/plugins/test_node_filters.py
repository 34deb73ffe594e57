"""Rules of filters that depend on the node only: cordon, taints, name, selector and affinity."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import PodiumError
from podium.api.pod import Pod, Toleration
from podium.api.selectors import NodeSelectorRequirement, NodeSelectorTerm
from tests.builders import cluster_of, configuration, explain, node, node_term, plain_runner, pod, tolerate

CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
UNSELECTED = "node(s) didn't match Pod's node affinity/selector"


def refusal(one: Any, target: Pod, args: dict[str, Any] | None = None) -> str:
    """Why the node refuses the pod; "" where it does not."""
    settings = None if args is None else configuration(args)
    return explain([one, target], settings=settings).nodes[one.metadata.name].message


# NodeUnschedulable


def test_a_cordoned_node_takes_only_pods_that_tolerate_it() -> None:
    cordoned = node("n", unschedulable=True)

    assert refusal(cordoned, pod("p")) == CORDONED
    for text in ("node.kubernetes.io/unschedulable:NoSchedule", "node.kubernetes.io/unschedulable", ""):
        assert refusal(cordoned, pod("p", tolerations=[tolerate(text)])) == ""
    assert refusal(cordoned, pod("p", tolerations=[tolerate(":NoExecute")])) == CORDONED


# TaintToleration


@pytest.mark.parametrize(
    ("taint", "toleration", "tolerated"),
    [
        ("gpu=yes:NoSchedule", tolerate("gpu=yes:NoSchedule"), True),
        ("gpu=yes:NoSchedule", tolerate("gpu=yes"), True),
        ("gpu=yes:NoSchedule", tolerate("gpu"), True),
        ("gpu=yes:NoSchedule", tolerate(""), True),
        ("gpu=yes:NoSchedule", tolerate(":NoSchedule"), True),
        ("gpu=yes:NoSchedule", tolerate("gpu=no"), False),
        ("gpu=yes:NoSchedule", tolerate("gpu=yes:NoExecute"), False),
        ("gpu=yes:NoSchedule", tolerate("cpu"), False),
        ("gpu:NoSchedule", Toleration(key="gpu"), True),  # Equal is the default, and so is the empty value
        ("gpu=yes:NoExecute", tolerate("gpu:NoExecute", seconds=5), True),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(taint: str, toleration: Toleration, tolerated: bool) -> None:
    found = refusal(node("n", taints=[taint]), pod("p", tolerations=[toleration]))

    assert found == ("" if tolerated else TAINTED)


def test_every_taint_must_be_tolerated_but_those_that_only_say_what_is_preferred() -> None:
    both = node("n", taints=["gpu:NoSchedule", "flaky:NoExecute"])
    one, other = tolerate("gpu"), tolerate("flaky")

    assert refusal(both, pod("p", tolerations=[one])) == TAINTED
    assert refusal(both, pod("p", tolerations=[one, other])) == ""
    assert refusal(node("n", taints=["gpu:PreferNoSchedule"]), pod("p")) == ""


def test_nodes_with_fewer_disliked_taints_are_preferred() -> None:
    nodes = [
        node("none"),
        node("one", taints=["a:PreferNoSchedule"]),
        node("two", taints=["a:PreferNoSchedule", "b:PreferNoSchedule"]),
    ]

    def scores(*tolerations: Toleration) -> dict[str, int]:
        found = explain([*nodes, pod("p", tolerations=tolerations)]).scores
        return {name: one["TaintToleration"] for name, one in found.items()}

    assert scores() == {"none": 300, "one": 150, "two": 0}
    assert scores(tolerate("a")) == {"none": 300, "one": 300, "two": 0}
    # A toleration of another effect says nothing about preferences.
    assert scores(tolerate("a:NoSchedule")) == {"none": 300, "one": 150, "two": 0}


# NodeAffinity


@pytest.mark.parametrize(
    ("selector", "terms", "fits"),
    [
        ({}, None, True),
        ({"disk": "ssd"}, None, True),
        ({"disk": "hdd"}, None, False),
        ({"gpu": "yes"}, None, False),
        ({}, [node_term("disk=ssd")], True),
        ({}, [node_term("disk=hdd"), node_term("size>3")], True),
        ({}, [node_term("disk=ssd,size>9")], False),
        ({}, [node_term("size<5"), node_term("!size")], True),
        ({}, [node_term("size>4")], False),
        ({}, [node_term("")], False),  # a term without conditions selects nothing
        ({"disk": "ssd"}, [node_term("disk=hdd")], False),
        ({}, [node_term(name="n")], True),
        ({}, [node_term("disk=ssd", name="n")], True),
        ({}, [node_term("disk=hdd", name="n")], False),
        ({}, [node_term(name="other"), node_term("disk")], True),
    ],
)
def test_the_selector_and_one_of_the_terms_must_match(
    selector: dict[str, str], terms: list[NodeSelectorTerm] | None, fits: bool
) -> None:
    one = node("n", labels={"disk": "ssd", "size": "4"})

    found = refusal(one, pod("p", node_selector=selector, needs_nodes=terms))

    assert found == ("" if fits else UNSELECTED)


def test_a_pod_that_selects_by_name_in_every_term_is_tried_on_those_nodes_alone() -> None:
    nodes = [node("a"), node("b", labels={"disk": "ssd"}), node("c")]

    found = explain([*nodes, pod("p", needs_nodes=[node_term(name="a"), node_term("disk=hdd", name="b")])]).nodes

    assert found["c"].plugin == "PreFilter"
    assert (found["a"].message, found["b"].message) == ("", UNSELECTED)


def test_a_term_may_name_the_node_that_it_is_not() -> None:
    but_a = NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=("a",))
    target = pod("p", needs_nodes=[NodeSelectorTerm(match_fields=(but_a,))])

    found = explain([node("a"), node("b"), target]).nodes

    assert (found["a"].message, found["b"].message) == (UNSELECTED, "")


def test_terms_that_name_different_nodes_at_once_are_in_conflict() -> None:
    one = node_term(name="a")
    both = NodeSelectorTerm(match_fields=(*one.match_fields, *node_term(name="b").match_fields))

    found = explain([node("a"), node("b"), pod("p", needs_nodes=[both])])

    assert found.pre_filter is not None
    assert (found.pre_filter.plugin, found.pre_filter.message) == ("NodeAffinity", "pod affinity terms conflict")


def test_preferred_terms_add_up() -> None:
    nodes = [node("a", labels={"disk": "ssd", "rack": "r"}), node("b", labels={"rack": "r"}), node("c")]
    target = pod("p", likes_nodes=[(30, node_term("disk")), (10, node_term("rack=r"))])

    found = explain([*nodes, target]).scores

    assert {name: one["NodeAffinity"] for name, one in found.items()} == {"a": 200, "b": 50, "c": 0}


def test_the_schedulers_owner_can_add_affinity_for_all_pods() -> None:
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["mine"]}]}
    preferred = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    added = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
        "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
    }
    args = {"NodeAffinity": {"addedAffinity": added}}

    foreign, mine = node("n"), node("n", labels={"pool": "mine"})
    assert refusal(foreign, pod("p"), args) == "node(s) didn't match scheduler-enforced node affinity"
    assert refusal(mine, pod("p"), args) == ""
    assert refusal(mine, pod("p", node_selector={"gpu": "yes"}), args) == UNSELECTED
    both = [node("a", labels={"pool": "mine", "disk": "ssd"}), node("b", labels={"pool": "mine"}), pod("p")]
    found = explain(both, settings=configuration(args)).scores
    assert {name: one["NodeAffinity"] for name, one in found.items()} == {"a": 200, "b": 0}


def test_arguments_with_unknown_fields_are_refused() -> None:
    with pytest.raises(PodiumError, match="addedAfinity"):
        plain_runner(cluster_of(), "NodeAffinity", args={"addedAfinity": {}})
