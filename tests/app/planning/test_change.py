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


def test_a_class_of_a_cluster_changes_for_pods_that_come_later(tmp_path: Path) -> None:
    of_cluster = priority_class("web", 100)
    of_cluster["metadata"]["uid"] = "uid-class"
    cluster = written(tmp_path, node("a"), of_cluster, BATCH_CLASS, WEB, BATCH)

    assert ready_at_the_end(reported("change", "pc/web", "value=1000", "-f", cluster)) == {}
    assert "value: 100 -> 1000" in ask("change", "pc/web", "value=1000", "-f", cluster).output
