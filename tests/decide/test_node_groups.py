"""Node groups, and the nodes made from their templates."""

from dataclasses import replace
from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.reading import read
from podium.decide.autoscaling import NodeGroup, is_starting, removal_taint, started
from tests.builders import HOSTNAME, ZONE

TEMPLATE: Raw = {
    "metadata": {"labels": {ZONE: "z1", HOSTNAME: "template"}, "annotations": {"a": "b"}},
    "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
GROUP = NodeGroup("pool", 0, 3, 40 * 10**9, TEMPLATE)


def test_a_new_node_is_as_the_template_but_for_its_name_its_group_and_that_it_is_starting() -> None:
    raw = GROUP.node("pool-0")

    assert raw["metadata"] == {
        "name": "pool-0",
        "labels": {ZONE: "z1", HOSTNAME: "pool-0", "podium.dev/node-group": "pool"},
        "annotations": {"a": "b"},
    }
    assert raw["status"]["allocatable"] == TEMPLATE["status"]["allocatable"]
    assert raw["spec"]["podCIDR"] == "10.0.0.0/24"
    new = read(raw, Node)
    assert is_starting(new)
    assert [(one.type, one.status) for one in new.status.conditions] == [("Ready", "False")]


def test_a_starting_node_is_taken_for_what_it_will_be() -> None:
    raw = GROUP.node("pool-0")
    raw["spec"]["taints"].append({"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"})

    after = started(read(raw, Node))

    assert not is_starting(after)
    assert [taint.key for taint in after.spec.taints] == ["gpu"]
    assert started(after) is after


def test_a_malformed_starting_taint_is_kept() -> None:
    broken = read({"spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}}, Node)

    assert started(broken) == broken


def test_names_take_the_smallest_free_numbers() -> None:
    assert GROUP.free_names(3, {"pool-1", "pool-2"}) == ["pool-0", "pool-3", "pool-4"]
    assert GROUP.free_names(0, ()) == []


def test_the_mark_of_a_removal_is_found() -> None:
    marked = read({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]}}, Node)

    assert removal_taint(marked) == marked.spec.taints[0]
    assert removal_taint(read(GROUP.node("pool-0"), Node)) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"minimum": 2, "maximum": 1}, "node group pool: 2 to 1 nodes is not a range"),
        ({"minimum": -1}, "node group pool: -1 to 3 nodes is not a range"),
        ({"start_up_ns": -1}, "node group pool: the start-up time is negative"),
    ],
)
def test_a_group_that_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    given = {"name": "pool", "minimum": 0, "maximum": 3, "start_up_ns": 0, "template": TEMPLATE, **fields}

    with pytest.raises(ValueError, match=message):
        NodeGroup(**given)


def test_a_template_that_is_not_a_node_is_rejected() -> None:
    with pytest.raises(InputError, match="taints"):
        NodeGroup("pool", 0, 1, 0, {"spec": {"taints": [{"effect": "NoSchedule"}]}})


def test_nodes_are_made_after_one_of_a_cluster_without_its_identity() -> None:
    known = {"uid": "abc", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": []}
    group = replace(GROUP, template={**GROUP.template, "metadata": {**known, "annotations": {"a": "b"}}})

    metadata = group.node("pool-0")["metadata"]

    assert not known.keys() & metadata.keys()
    assert metadata["annotations"] == {"a": "b"}
