"""The placement of all pods, and the moves since the last look."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from podium.cluster.pods import NO_ROW
from podium.decide.rescheduling.replacement_placement import SOFT_TAINT
from podium.framework.rescheduling.policy import PodSignals, Signals, replacement
from podium.plugins.rescheduling.move_to_underused_nodes import NodeLoads
from podium.plugins.rescheduling.node_use import PodPlaces
from tests.builders import namespace, node, pod, service
from tests.plugins.rescheduling.pictures import again, move, picture_of, policy_of, scratch_of

MARK = f"{SOFT_TAINT.key}:{SOFT_TAINT.effect}"


def steps(places: PodPlaces, seen: Any) -> list[tuple[int, int]] | None:
    """Rows and by how much their pods changed."""
    moved = places.follow(seen)
    return None if moved is None else [(row, number) for _, row, number in moved]


def test_pod_places_report_each_move_once() -> None:
    seen, places = picture_of(node("a"), node("b"), pod("w", on="a"), pod("x", on="b")), PodPlaces()
    assert steps(places, seen) is None
    assert steps(places, seen) == []
    move(seen, "default/w", "b")
    assert steps(places, seen) == [(0, -1), (1, 1)]
    assert steps(places, seen) == []


def test_an_undone_change_is_an_inverse_move() -> None:
    seen, places = picture_of(node("a"), node("b"), pod("w", on="a"), pod("x", on="a")), PodPlaces()
    places.follow(seen)
    with scratch_of(seen) as changes:
        changes.place(changes.take_off("default/w"), 1)
        changes.take_off("default/x")
        assert steps(places, seen) == [(0, -2), (1, 1)]
    assert steps(places, seen) == [(1, -1), (0, 2)]


def test_another_pod_of_the_same_class_in_the_same_place_is_no_move_but_has_a_use_of_its_own() -> None:
    used = {"w": PodSignals(cpu_used_milli=100), "another": PodSignals(cpu_used_milli=700)}
    seen = picture_of(node("a"), pod("w", on="a"), signals=Signals(pods=used))
    places, loads = PodPlaces(), NodeLoads(("cpu",), by_use=True)
    places.follow(seen)
    loads.follow(seen)
    with scratch_of(seen) as changes:
        gone = changes.take_off("default/w")
        changes.place(replace(gone, uid=replacement("w"), row=NO_ROW, slot=-1), 0)
        assert (steps(places, seen), loads.follow(seen).tolist()) == ([], [0])
        assert loads.amounts.tolist() == [[100]]
        changes.take_off(replacement("w"))
        changes.place(replace(gone, uid="another", row=NO_ROW, slot=-1), 0)
        assert (steps(places, seen), loads.follow(seen).tolist()) == ([], [0])
        assert loads.amounts.tolist() == [[700]]


def test_pods_that_terminate_are_gone() -> None:
    seen, places = picture_of(node("a"), pod("w", on="a", terminating=True), pod("x", on="a")), PodPlaces()
    places.follow(seen)
    assert [rows.tolist() for rows in places.rows_by_class().values()] == [[0]]


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        (node("a"), False),
        (node("a", taints=[MARK]), False),
        (node("a", avoids=["ReplicaSet/web"]), False),
        (node("a", labels={"disk": "ssd"}), True),
        (node("a", taints=["old:PreferNoSchedule"]), True),
        (node("a", cpu="1"), True),
        (node("c"), True),
    ],
)
def test_only_node_changes_other_than_the_own_marks_cause_a_full_rescan(change: Any, is_new: bool) -> None:
    seen, places = picture_of(node("a"), node("b"), pod("w", on="a")), PodPlaces()
    places.follow(seen)
    seen.cluster.put_node(change)
    assert (steps(places, seen) is None) == is_new


def test_another_picture_of_the_same_cluster_continues() -> None:
    seen, places = picture_of(node("a"), node("b"), pod("w", on="a")), PodPlaces()
    places.follow(seen)
    move(seen, "default/w", "b")
    assert steps(places, dataclasses.replace(seen)) == [(0, -1), (1, 1)]


@pytest.mark.parametrize(
    "change",
    [
        namespace("default", team="ml"),
        service("web", app="web"),
    ],
)
def test_other_changes_than_those_of_pods_cause_a_full_rescan(change: Any) -> None:
    seen, places = picture_of(node("a"), pod("w", on="a")), PodPlaces()
    places.follow(seen)
    seen.cluster.put(change)
    assert steps(places, seen) is None


def test_another_cluster_and_other_targets_cause_a_full_rescan() -> None:
    seen, places = picture_of(node("a"), pod("w", on="a")), PodPlaces()
    places.follow(seen)
    assert steps(places, picture_of(node("a"), pod("w", on="a"))) is None
    closed = dataclasses.replace(seen, targets=np.zeros(1, dtype=np.bool_))
    assert steps(places, closed) is None
    assert steps(places, again(closed)) is None


def test_the_reschedulers_own_mark_is_no_taint_that_pods_would_rather_avoid() -> None:
    seen = picture_of(node("a", taints=[MARK]), node("b"), pod("w", on="a", owner="ReplicaSet/web"))
    assert policy_of("SatisfyPreferences").objective(seen) == 0
