"""The nodes that are eligible for the pods of a DaemonSet."""

from typing import Any

import pytest

from podium.api.pod import Affinity, NodeAffinity, PodSpec, Toleration
from podium.api.selectors import NodeSelector
from podium.controllers.workloads.daemon_sets import NodeFitness, daemon_spec, target_node
from tests import builders
from tests.builders import node, node_term, tolerate

WANTED, MAY_STAY, UNFIT = (True, True), (False, True), (False, False)


def fitness(on: Any, **spec: Any) -> tuple[bool, bool]:
    return NodeFitness(PodSpec(**spec)).of(on)


def needs(*terms: Any) -> Affinity:
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))


def test_without_conditions_every_node_is_fit() -> None:
    assert fitness(node("n1", unschedulable=True)) == WANTED


def test_a_node_selector_must_match() -> None:
    assert fitness(node("n1", labels={"disk": "ssd"}), node_selector={"disk": "ssd"}) == WANTED
    assert fitness(node("n1"), node_selector={"disk": "ssd"}) == UNFIT


def test_required_affinity_must_match() -> None:
    assert fitness(node("n1", labels={"disk": "ssd"}), affinity=needs(node_term("disk=ssd"))) == WANTED
    assert fitness(node("n1"), affinity=needs(node_term("disk=ssd"))) == UNFIT
    assert fitness(node("n1"), affinity=needs(node_term(name="n1"))) == WANTED
    assert fitness(node("n1"), affinity=needs(node_term("disk=ssd"), node_term(name="n1"))) == WANTED


def test_a_template_may_name_its_node() -> None:
    assert fitness(node("n1"), node_name="n1") == WANTED
    assert fitness(node("n1"), node_name="n2") == UNFIT


@pytest.mark.parametrize(
    ("taint", "expected"), [("x:NoSchedule", MAY_STAY), ("x:NoExecute", UNFIT), ("x:PreferNoSchedule", WANTED)]
)
def test_taints_keep_pods_off_or_drive_them_out(taint: str, expected: tuple[bool, bool]) -> None:
    assert fitness(node("n1", taints=[taint])) == expected
    assert fitness(node("n1", taints=[taint]), tolerations=(tolerate("x"),)) == WANTED


@pytest.mark.parametrize(
    "taint",
    [
        "node.kubernetes.io/not-ready:NoExecute",
        "node.kubernetes.io/unreachable:NoExecute",
        "node.kubernetes.io/memory-pressure:NoSchedule",
        "node.kubernetes.io/disk-pressure:NoSchedule",
        "node.kubernetes.io/pid-pressure:NoSchedule",
        "node.kubernetes.io/unschedulable:NoSchedule",
    ],
)
def test_daemon_pods_tolerate_node_conditions(taint: str) -> None:
    assert fitness(node("n1", taints=[taint])) == WANTED


def test_a_lack_of_network_is_tolerated_by_pods_that_use_the_host_s() -> None:
    bare = node("n1", taints=["node.kubernetes.io/network-unavailable:NoSchedule"])

    assert fitness(bare, host_network=True) == WANTED
    assert fitness(bare) == MAY_STAY


def test_a_pod_is_for_the_node_that_it_is_on_or_that_its_affinity_names() -> None:
    assert target_node(builders.pod("p", on="n1", needs_nodes=[node_term(name="n2")])) == "n1"
    assert target_node(builders.pod("p", needs_nodes=[node_term(name="n2")])) == "n2"
    assert target_node(builders.pod("p", needs_nodes=[node_term("disk=ssd")])) == ""
    assert target_node(builders.pod("p")) == ""


def test_the_node_takes_the_place_of_the_nodes_that_the_template_requires() -> None:
    preferred = [{"weight": 1, "preference": {"matchExpressions": []}}]
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
    template = {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            },
            "podAffinity": {},
        }
    }

    affinity = daemon_spec(template, "n1")["affinity"]

    only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert affinity == {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only]},
            "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        },
        "podAffinity": {},
    }
    assert template["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] is required


def test_tolerations_are_added_once() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}

    tolerations = daemon_spec({"tolerations": [own], "hostNetwork": True}, "n1")["tolerations"]

    assert tolerations.count(own) == 1
    assert len(tolerations) == 7
    assert Toleration(key="x") not in tolerations
