"""Patches of stored objects, of their status and of their scale."""

from typing import Any

import pytest

from podium.api.input.yaml import MAX_DEPTH
from podium.store.api_resources import APIResource
from podium.store.patching import PatchType
from podium.store.store import Store
from tests.store.objects import Raw, node, pod, serving
from tests.store.refusals import answer, refusal


def store_with(*objects: Raw) -> Store:
    store = Store()
    for raw in objects:
        store.create(raw, now=0)
    return store


def test_a_merge_patch_labels() -> None:
    store = store_with(node("n1", zone="a", old="x"))

    patched = store.patch("Node", "n1", {"metadata": {"labels": {"disk": "ssd", "old": None}}}, "merge")

    assert patched.object.metadata.labels == {"zone": "a", "disk": "ssd"}
    assert patched.version == 2


def test_a_strategic_merge_patch_cordons() -> None:
    store = store_with(node("n1"))

    assert store.patch("Node", "n1", {"spec": {"unschedulable": True}}, "strategic").raw["spec"] == {
        "unschedulable": True
    }


def test_a_json_patch_tests_and_replaces() -> None:
    store = store_with(node("n1", zone="a"))
    patch = [
        {"op": "test", "path": "/metadata/labels/zone", "value": "a"},
        {"op": "replace", "path": "/metadata/labels/zone", "value": "b"},
    ]

    assert store.patch("Node", "n1", patch, "json").object.metadata.labels == {"zone": "b"}
    assert answer(refusal(store, lambda: store.patch("Node", "n1", patch, "json"))) == (422, "Invalid")


def test_a_patch_that_changes_nothing_commits_nothing() -> None:
    store = store_with(node("n1", zone="a"))

    assert store.patch("Node", "n1", {"metadata": {"labels": {"zone": "a"}}}, "merge").version == 1


def test_a_patch_of_the_status_changes_no_spec_and_the_reverse() -> None:
    store = store_with(node("n1", cpu=4))
    patch = {"spec": {"unschedulable": True}, "status": {"allocatable": {"cpu": 8}}}

    status = store.patch("Node", "n1", patch, "merge", "status")
    assert status.raw["status"]["allocatable"]["cpu"] == 8
    assert not status.raw.get("spec")

    rest = store.patch("Node", "n1", {**patch, "status": {"allocatable": {"cpu": 1}}}, "merge")
    assert rest.raw["status"]["allocatable"]["cpu"] == 8
    assert rest.raw["spec"] == {"unschedulable": True}


@pytest.mark.parametrize(
    "metadata", [{"resourceVersion": "7"}, {"uid": "someone-else"}], ids=["another version", "another uid"]
)
def test_b40_a_patch_may_carry_preconditions(metadata: Raw) -> None:
    store = store_with(node("n1"))

    assert answer(refusal(store, lambda: store.patch("Node", "n1", {"metadata": metadata}, "merge"))) == (
        409,
        "Conflict",
    )


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"name": "n2"}},
        {"metadata": {"namespace": "default"}},
        {"kind": "Pod"},
        {"apiVersion": "v2"},
        {"metadata": None},
        {"metadata": "none"},
        "nothing",
        {"spec": "none"},
        {"spec": {"taints": "none"}},
        {"metadata": {"labels": {"zone": 1}}},
    ],
)
def test_b22_a_patch_leaves_an_object_of_the_same_name_that_can_be_read(patch: Any) -> None:
    store = store_with(node("n1"))

    assert answer(refusal(store, lambda: store.patch("Node", "n1", patch, "merge"))) == (400, "BadRequest")


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("depth", [MAX_DEPTH, 5_000])
@pytest.mark.parametrize("type_", ["merge", "strategic", "json"])
def test_b02_a_patch_cannot_nest_without_bound(depth: int, type_: PatchType) -> None:
    store = store_with(node("n1"))
    spec = nested(depth)
    patch = [{"op": "add", "path": "/spec", "value": spec}] if type_ == "json" else {"spec": spec}

    assert answer(refusal(store, lambda: store.patch("Node", "n1", patch, type_))) == (400, "BadRequest")


def test_b02_moves_cannot_nest_without_bound() -> None:
    store = store_with({**node("n1"), "spec": {"a": {}}})
    turn = [
        {"op": "move", "from": "/spec/a", "path": "/spec/b"},
        {"op": "add", "path": "/spec/a", "value": {}},
        {"op": "move", "from": "/spec/b", "path": "/spec/a/b"},
    ]

    assert answer(refusal(store, lambda: store.patch("Node", "n1", turn * 1_000, "json"))) == (400, "BadRequest")
    assert store.patch("Node", "n1", turn * 100, "json").version == 2


def test_nulls_that_a_patch_brings_along_are_nothing() -> None:
    store = store_with(node("n1"))
    taint = {"key": "gpu", "effect": "NoSchedule", "value": None}

    patched = store.patch("Node", "n1", [{"op": "add", "path": "/spec", "value": {"taints": [taint]}}], "json")

    assert patched.raw["spec"]["taints"] == [{"key": "gpu", "effect": "NoSchedule"}]


def test_a_patch_of_what_does_not_exist_is_not_found() -> None:
    store = Store()

    assert answer(refusal(store, lambda: store.patch("Node", "n1", {}, "merge"))) == (404, "NotFound")


def test_a_custom_resource_takes_no_strategic_merge_patch() -> None:
    widget = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=False, is_custom=True)
    store = Store(resources=serving(widget))
    store.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}, now=0)

    error = refusal(store, lambda: store.patch("Widget.example.com", "a", {}, "strategic"))

    assert answer(error) == (415, "UnsupportedMediaType")
    assert store.patch("Widget.example.com", "a", {"spec": {"size": 1}}, "merge").raw["spec"] == {"size": 1}


def test_a_patch_keeps_the_rules_of_its_kind() -> None:
    store = store_with(pod("web"))
    patch = {"spec": {"nodeName": "n1"}}

    error = refusal(store, lambda: store.patch("Pod", "default/web", patch, "strategic"))

    assert answer(error) == (422, "Invalid")
