"""`podium plan change` of a priority class: pods that get the new value, and pods that keep the old one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import podium
from tests.app.planning.small import Raw, ask, node, pod, priority_class, replica_set, reported, written

WEB, BATCH = (replica_set(name, 1, "3", priorityClassName=name) for name in ("web", "batch"))
BATCH_CLASS = priority_class("batch", 500)


def ready_at_the_end(answer: Raw) -> dict[str, int]:
    return {impact["workload"].rpartition("/")[2]: impact["readyAfter"] for impact in answer["impact"]}


def placed() -> Raw:
    """Return a pod of the class `web` that a person has written onto a node."""
    return _in_no_cluster(pod("web-0", "3", on="a", owner="web", priorityClassName="web"))


def stated() -> Raw:
    """One that waits, and states what the class gave it."""
    return _in_no_cluster(pod("web-0", "3", owner="web", priority=100, priorityClassName="web"))


def _in_no_cluster(raw: Raw) -> Raw:
    del raw["metadata"]["uid"]
    if raw["spec"]["priority"] == 0:
        del raw["spec"]["priority"]
    return raw


def test_a_class_of_manifests_is_so_before_its_first_pods_are_made(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), priority_class("web", 100), BATCH_CLASS, WEB, BATCH)
    saved = tmp_path / "saved.yaml"

    answer = reported("change", "pc/web", "value=1000", "-f", cluster, "--save", str(saved))

    assert ready_at_the_end(answer) == {"web": 1, "batch": 0}
    assert {found["priority"] for found in podium.simulate(saved).to_dict()["pods"]} == {500, 1000}


def test_a_patch_does_the_same(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), priority_class("web", 100), BATCH_CLASS, WEB, BATCH)
    patch = tmp_path / "patch.json"
    patch.write_text(json.dumps(priority_class("web", 1000)))

    assert ready_at_the_end(reported("change", "-f", cluster, "--patch-file", str(patch))) == {"web": 1, "batch": 0}


@pytest.mark.parametrize("known", [placed(), stated()], ids=["placed", "stated"])
def test_pods_that_have_their_priority_of_it_keep_that(tmp_path: Path, known: Raw) -> None:
    cluster = written(tmp_path, node("a"), priority_class("web", 100), BATCH_CLASS, WEB, BATCH, known)

    answer = reported("change", "pc/web", "value=1000", "-f", cluster)

    assert ready_at_the_end(answer) == {}


def of_cluster() -> Raw:
    """Return the class `web` as a cluster has it."""
    found = priority_class("web", 100)
    found["metadata"]["uid"] = "uid-class"
    return found


@pytest.mark.parametrize("class_", [priority_class("web", 100), of_cluster()], ids=["written", "stored"])
@pytest.mark.parametrize(
    ("known", "then"),
    [
        ([], {"web": 1, "batch": 0}),
        ([placed()], {}),
        ([stated()], {}),
        # Its replacement, for a pod of `batch` that preempts it, is of the new class and preempts that.
        ([pod("web-0", "3", on="a", owner="web", priority=100, priorityClassName="web")], {"web": 1, "batch": 0}),
    ],
    ids=["none", "placed", "stated", "stored"],
)
def test_a_changed_class_counts_for_the_same_pods_as_the_class_of_another_setting(
    tmp_path: Path, class_: Raw, known: list[Raw], then: dict[str, int]
) -> None:
    cluster = written(tmp_path, node("a"), class_, BATCH_CLASS, WEB, BATCH, *known)
    after = written(tmp_path, priority_class("web", 1000), name="after.json")

    changed = reported("change", "pc/web", "value=1000", "-f", cluster)
    compared = reported("diff", "--after", after, "-f", cluster)

    assert ready_at_the_end(changed) == then
    assert changed["impact"] == compared["impact"]
    assert [each for each in changed["caveats"] if each["about"] == "priorities-kept"] == [
        each for each in compared["caveats"] if each["about"] == "priorities-kept"
    ]


def test_a_changed_class_names_the_pods_that_keep_their_priority(tmp_path: Path) -> None:
    old, new = (
        pod(name, on="a", priority=value, priorityClassName="web") for name, value in (("old", 100), ("new", 7))
    )
    cluster = written(tmp_path, node("a"), of_cluster(), old, new)

    (caveat,) = [
        each
        for each in reported("change", "pc/web", "value=7", "-f", cluster)["caveats"]
        if each["about"] == "priorities-kept"
    ]

    assert caveat["names"] == ["default/old"]
    assert caveat["message"].startswith("1 pod keeps the old priority")
    changed = ask("change", "pc/web", "description=text", "-f", cluster).output
    assert "description: nothing -> text" in changed
    assert "1 pod keeps the old priority" in changed
