"""The index of pods by node."""

from typing import Any

from podium.api.pod import Pod
from podium.controllers.nodes.node_lifecycle import BoundPods
from podium.controllers.observations import Changed
from tests.builders import pod


def put(pods: BoundPods, pod: Pod, **fields: Any) -> None:
    pods.put(pod, Changed(pod, fields))


def names(pods: BoundPods, node: str) -> list[str]:
    return [one.pod.metadata.uid for one in pods.on(node)]


def test_pods_are_found_by_key_and_by_node_as_they_were_seen_last() -> None:
    pods = BoundPods()
    put(pods, pod("a", on="n1"))
    put(pods, pod("b", on="n1"))
    put(pods, pod("a", on="n1"), new=True)

    found = pods.find("default/a")
    assert found is not None
    assert found.shown.raw == {"new": True}
    assert names(pods, "n1") == ["default/a", "default/b"]


def test_a_namesake_takes_the_place_of_a_pod_wherever_that_was() -> None:
    pods = BoundPods()
    put(pods, pod("a", on="n1", uid="1"))

    put(pods, pod("a", on="n2", uid="2"))
    assert (names(pods, "n1"), names(pods, "n2")) == ([], ["2"])

    put(pods, pod("a", uid="3"))
    assert names(pods, "n2") == []
    assert pods.find("default/a") is None


def test_a_removed_bound_pod_may_be_removed_again() -> None:
    pods = BoundPods()
    put(pods, pod("a", on="n1"))

    pods.remove("default/a")
    pods.remove("default/a")

    assert names(pods, "n1") == []
