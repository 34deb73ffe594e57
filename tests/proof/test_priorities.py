"""From a pod's class to its queue order, through the API server: TestPodPriorityResolution (row 7)."""

from __future__ import annotations

import pytest

from podium.api.pod import Pod
from podium.controllers.actions import Bind
from podium.store.store import Store
from tests.builders import node
from tests.controllers.driving import Driver, the
from tests.store.objects import Raw, pod, priority_class
from tests.store.refusals import answer, refusal

CLASSES = [priority_class("high", 1000), priority_class("usual", 5, globalDefault=True)]


def of_class(name: str) -> Raw:
    return pod(name, spec={"priorityClassName": name, "schedulerName": "default-scheduler"})


def store_with(*objects: Raw) -> Store:
    store = Store()
    for one in objects:
        store.create(one, now=0)
    return store


@pytest.mark.upstream(7)
def test_pods_have_the_priority_of_their_class_and_are_attempted_in_its_order() -> None:
    names = ["high", "system-cluster-critical", "system-node-critical"]
    store = store_with(*CLASSES, pod("of-no-class"), *map(of_class, names))
    pods = [one.object for one in store.objects("Pod") if isinstance(one.object, Pod)]

    driver = Driver(node("n1"), *pods)
    turns = [the(Bind, driver.tick()).pod.removeprefix("default/") for _ in pods]

    assert turns == ["system-node-critical", "system-cluster-critical", "high", "of-no-class"]
    assert {one.metadata.name: one.priority for one in pods} == {
        "system-node-critical": 2_000_001_000,
        "system-cluster-critical": 2_000_000_000,
        "high": 1000,
        "of-no-class": 5,
    }


@pytest.mark.upstream(7)
def test_a_pod_of_an_unknown_class_is_refused() -> None:
    store = store_with(*CLASSES)

    error = refusal(store, lambda: store.create(of_class("unknown"), now=0))

    assert answer(error) == (403, "Forbidden")
    assert "no PriorityClass with name unknown was found" in error.message
