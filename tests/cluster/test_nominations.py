"""Nominated pods by node."""

from __future__ import annotations

import pytest

from tests.builders import cluster_of, node, pod


@pytest.mark.upstream(36)
def test_a_pod_waits_for_one_node_at_a_time() -> None:
    cluster = cluster_of(node("a"), node("b"))
    waiting = cluster.read(pod("p"))

    cluster.nominations.put(waiting, "a")
    cluster.nominations.put(waiting, "b")

    assert (cluster.nominations.on("a"), cluster.nominations.on("b")) == ([], [waiting])
    assert (waiting.nominated_node_name, cluster.nominations.node_of("default/p")) == ("b", "b")


@pytest.mark.upstream(36)
def test_the_end_of_a_nomination_says_where_it_was_and_shows_on_the_pod() -> None:
    cluster = cluster_of(node("a"))
    waiting = cluster.read(pod("p"))
    cluster.nominations.put(waiting, "a")

    assert cluster.nominations.remove("default/p") == "a"
    assert waiting.nominated_node_name == ""
    assert cluster.nominations.remove("default/p") == ""
    assert "default/p" not in cluster.nominations


@pytest.mark.upstream(36)
def test_a_newer_reading_of_a_pod_takes_over_its_nomination() -> None:
    cluster = cluster_of(node("a"))
    older, newer = cluster.read(pod("p")), cluster.read(pod("p", priority=3))
    cluster.nominations.put(older, "a")

    cluster.nominations.put(newer, "a")

    assert cluster.nominations.on("a") == [newer]
    assert (older.nominated_node_name, newer.nominated_node_name) == ("", "a")


def test_the_pods_of_a_node_come_by_falling_priority_then_by_key() -> None:
    waiting = [pod(name, priority=priority, nominated="a") for name, priority in (("c", 1), ("b", 5), ("a", 1))]
    cluster = cluster_of(node("a"), *waiting, pod("elsewhere", nominated="gone"))

    assert [one.name for one in cluster.nominations.on("a")] == ["b", "a", "c"]
    assert [(one.name, name) for one, name in cluster.nominations.all()] == [
        ("b", "a"),
        ("a", "a"),
        ("c", "a"),
        ("elsewhere", "gone"),
    ]
    assert cluster.nominations.rows() == [0]
    assert [one.name for one in cluster.nominations.on_row(0)] == ["b", "a", "c"]


def test_a_nomination_changes_the_row_of_its_node() -> None:
    """So that what is kept of the row is worked out again."""
    cluster = cluster_of(node("a"), node("b"))
    waiting = cluster.read(pod("p"))
    start = cluster.nodes.changes.position

    def changed(since: int) -> list[int] | None:
        found = cluster.nodes.changes.since(since)
        return None if found is None else found.tolist()

    cluster.nominations.put(waiting, "b")
    assert changed(start) == [1]
    begun = cluster.nodes.changes.position
    cluster.nominations.put(waiting, "gone")
    assert changed(begun) == [1]
    ended = cluster.nodes.changes.position
    cluster.nominations.remove(waiting.uid)
    assert changed(ended) == []
