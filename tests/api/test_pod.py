import pytest

from podium.api.meta import ObjectMeta, OwnerReference
from podium.api.node import Node
from podium.api.pod import NOMINATED_NODE_ANNOTATION, Pod, PodCondition, PodSpec, PodStatus


def test_an_object_is_known_by_its_namespace_and_name() -> None:
    assert Pod(metadata=ObjectMeta(namespace="shop", name="web")).key == "shop/web"
    assert Node(metadata=ObjectMeta(name="n1")).key == "n1"


def test_the_controller_is_the_owner_marked_as_controller() -> None:
    owners = (OwnerReference(name="a"), OwnerReference(name="b", controller=True))

    assert ObjectMeta(owner_references=owners).controller == owners[1]
    assert ObjectMeta(owner_references=owners[:1]).controller is None


def test_a_priority_that_was_not_filled_in_counts_as_zero() -> None:
    assert Pod().priority == 0
    assert Pod(spec=PodSpec(priority=-5)).priority == -5


def test_the_nominated_node_is_that_of_the_status_else_that_of_the_annotation() -> None:
    metadata = ObjectMeta(annotations={NOMINATED_NODE_ANNOTATION: "n2"})

    assert Pod(metadata=metadata, status=PodStatus(nominated_node_name="n1")).nominated_node_name == "n1"
    assert Pod(metadata=metadata).nominated_node_name == "n2"
    assert Pod().nominated_node_name == ""


@pytest.mark.parametrize(
    ("phase", "terminal"),
    [("Pending", False), ("Running", False), ("Unknown", False), ("Succeeded", True), ("Failed", True)],
)
def test_a_pod_that_succeeded_or_failed_is_terminal(phase: str, terminal: bool) -> None:
    assert Pod(status=PodStatus(phase=phase)).is_terminal == terminal


def test_a_pod_with_a_deletion_timestamp_is_terminating() -> None:
    assert Pod(metadata=ObjectMeta(deletion_timestamp="2026-01-01T00:00:00Z")).is_terminating
    assert not Pod().is_terminating


def test_a_condition_is_found_by_its_type() -> None:
    ready = PodCondition(type="Ready", status="True")
    status = PodStatus(conditions=(PodCondition(type="Initialized"), ready))

    assert status.condition("Ready") == ready
    assert status.condition("DisruptionTarget") is None
