"""The kinds of change in a node update (upstream's nodeSchedulingPropertiesChange)."""

import pytest
from msgspec.structs import replace

from podium.api.node import Node, NodeStatus
from podium.controllers.scheduling.queue.hints import node_changes
from podium.framework.events import ActionType
from tests.builders import node

PLAIN = node("n", cpu=4)
DECLARING = replace(PLAIN, status=replace(PLAIN.status, declared_features=("AFeature",)))


@pytest.mark.parametrize(
    ("new", "changes"),
    [
        (node("n", cpu=5), ActionType.UPDATE_NODE_ALLOCATABLE),
        (node("n", cpu=4, labels={"disk": "ssd"}), ActionType.UPDATE_NODE_LABEL),
        (node("n", cpu=4, taints=["gpu:NoSchedule"]), ActionType.UPDATE_NODE_TAINT),
        (node("n", cpu=4, unschedulable=True), ActionType.UPDATE_NODE_OTHER),
        (node("n", cpu=4, images={"web:v1": 1}), ActionType.UPDATE_NODE_OTHER),
        (DECLARING, ActionType.UPDATE_NODE_DECLARED_FEATURE),
        (node("n", cpu=4), ActionType(0)),
    ],
)
def test_an_update_is_named_for_what_it_changed(new: Node, changes: ActionType) -> None:
    assert node_changes(PLAIN, new) == changes


def test_an_uncordoned_node_counts_as_one_with_other_taints() -> None:
    assert node_changes(node("n", cpu=4, unschedulable=True), PLAIN) == ActionType.UPDATE_NODE_TAINT


def test_capacity_is_no_change_where_the_node_states_what_is_allocatable() -> None:
    larger = replace(PLAIN, status=replace(PLAIN.status, capacity={"cpu": "64"}))

    assert node_changes(PLAIN, larger) == ActionType(0)


def test_an_update_of_several_things_is_all_of_them() -> None:
    new = node("n", cpu=5, labels={"disk": "ssd"}, taints=["gpu:NoSchedule"], images={"web:v1": 1})
    status: NodeStatus = replace(new.status, declared_features=("AFeature",))

    assert node_changes(PLAIN, replace(new, status=status)) == (
        ActionType.UPDATE_NODE_ALLOCATABLE
        | ActionType.UPDATE_NODE_LABEL
        | ActionType.UPDATE_NODE_TAINT
        | ActionType.UPDATE_NODE_DECLARED_FEATURE
        | ActionType.UPDATE_NODE_OTHER
    )
