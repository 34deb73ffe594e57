"""The changes that each observation reports; the final cluster depends on the final objects only."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster, ClusterUpdater, ObjectChange
from podium.cluster.nodes import CPU
from tests.builders import namespace, node, pod


def ended(one: Pod) -> Pod:
    return replace(one, status=replace(one.status, phase="Succeeded"))


def test_a_pod_change_includes_the_previous_state() -> None:
    feed = ClusterUpdater(Cluster())

    first = feed.pod_changed(pod("q", cpu=1))
    second = feed.pod_changed(pod("q", cpu=2))
    last = feed.pod_gone(pod("q"))

    assert first.before is None
    assert second.before is first.after
    assert (last.before, last.after) == (second.after, None)
    assert feed.pod_gone(pod("q")) == (None, None, None)
    assert not feed.pods


def test_a_pod_that_has_ended_is_gone() -> None:
    feed = ClusterUpdater(Cluster())
    known = feed.pod_changed(pod("q")).after

    assert feed.pod_changed(ended(pod("q"))) == (known, None, None)
    assert feed.pod_changed(ended(pod("q"))) == (None, None, None)


def test_the_pods_of_an_owner_follow_adoption_and_deletion() -> None:
    feed = ClusterUpdater(Cluster())
    owned = feed.pod_changed(pod("a", owner="ReplicaSet/web")).after
    alone = feed.pod_changed(pod("alone")).after
    feed.pod_changed(pod("b", owner="ReplicaSet/web"))
    assert owned is not None
    assert alone is not None

    feed.pod_changed(pod("b"))
    feed.pod_changed(pod("alone", owner="ReplicaSet/web"))
    adopted = [each.name for each in feed.pods_of(owned.owner_uid)]
    feed.pod_gone(pod("a"))

    assert adopted == ["a", "alone"]
    assert [each.name for each in feed.pods_of(owned.owner_uid)] == ["alone"]
    assert feed.pods_of(alone.owner_uid) == []


def test_a_namesake_replaces_a_pod_with_a_missed_deletion() -> None:
    cluster = Cluster()
    feed = ClusterUpdater(cluster)
    cluster.put(node("n"))
    feed.settle(old := feed.pod_changed(pod("q", on="n", cpu=1, uid="a")))

    feed.settle(new := feed.pod_changed(pod("q", cpu=1, uid="b")))

    assert new.replaced is old.after
    assert not cluster.placed
    assert feed.pod_gone(pod("q", uid="a")) == (None, None, None)
    assert list(feed.pods) == ["b"]


def test_a_pod_is_where_the_api_shows_it_once_it_is_settled() -> None:
    cluster = Cluster()
    feed = ClusterUpdater(cluster)
    cluster.put(node("n"))

    feed.settle(feed.pod_changed(pod("q", nominated="n")))
    assert cluster.nominations.node_of("default/q") == "n"
    feed.settle(feed.pod_changed(pod("q", on="n")))
    assert (cluster.nominations.node_of("default/q"), list(cluster.placed)) == ("", ["default/q"])
    feed.settle(feed.pod_gone(pod("q")))
    assert not cluster.placed


def test_an_object_change_includes_the_previous_state_if_kept() -> None:
    feed = ClusterUpdater(Cluster())
    first, second, space = node("n"), node("n", cpu=2), namespace("shop")

    assert feed.known_node("n") is None
    assert feed.update_object(first) == ObjectChange(None, first)
    assert feed.update_object(second) == ObjectChange(first, second)
    assert feed.known_node("n") is second
    assert feed.update_object(space) == feed.update_object(space) == ObjectChange(None, space)
    assert feed.delete_object(second) == ObjectChange(second, None)
    assert feed.delete_object(second) is None


NAMES, UIDS, NODES = st.sampled_from("ab"), st.sampled_from("uv"), st.sampled_from(("", "n", "m"))


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, Pod | Node]]:
    """Pods and nodes come, change and go; names are used again."""
    story: list[tuple[str, Pod | Node]] = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.integers(0, 3)) == 0:
            shown: Pod | Node = node(draw(st.sampled_from("nm")), cpu=draw(st.integers(1, 3)))
        else:
            name, on = draw(NAMES), draw(NODES)
            nominated = "" if on else draw(NODES)
            one = pod(name, uid=f"{name}{draw(UIDS)}", on=on, nominated=nominated, cpu=draw(st.integers(1, 2)))
            shown = ended(one) if draw(st.integers(0, 4)) == 0 else one
        story.append((draw(st.sampled_from(("changed", "changed", "gone"))), shown))
    return story


def reported(feed: ClusterUpdater, story: list[tuple[str, Any]]) -> None:
    for what, one in story:
        if isinstance(one, Pod):
            feed.settle(feed.pod_changed(one) if what == "changed" else feed.pod_gone(one))
        elif what == "changed":
            feed.update_object(one)
        else:
            feed.delete_object(one)


def end_of(story: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the same final state, built from the final objects only."""
    there: dict[tuple[str, str], Any] = {}
    for what, one in story:
        key = (type(one).__name__, one.key)
        known = there.get(key)
        if what == "changed" and not (isinstance(one, Pod) and one.is_terminal):
            there[key] = one
        elif known is not None and known.metadata.uid == one.metadata.uid:
            del there[key]
        elif what == "changed" and known is not None:
            # Another of that name has been there since, and has ended.
            del there[key]
    return [("changed", one) for one in there.values()]


def shown_in(cluster: Cluster) -> tuple[Any, ...]:
    rows = cluster.nodes.row_of
    return (
        sorted((one.uid, one.node_name) for one in cluster.placed.values()),
        sorted((one.uid, node_name) for one, node_name in cluster.nominations.all()),
        {name: int(cluster.nodes.requested[CPU, row]) for name, row in rows.items()},
        {name: cluster.nodes.node(row) for name, row in rows.items()},
    )


@given(stories())
def test_the_cluster_depends_only_on_the_last_state_of_each_object(story: list[tuple[str, Pod | Node]]) -> None:
    first, second = Cluster(), Cluster()
    # A pod leaves its node by going, never by being shown without one.
    bound: set[str] = set()
    possible = []
    for what, one in story:
        if isinstance(one, Pod) and one.metadata.uid in bound and not one.spec.node_name:
            continue
        if isinstance(one, Pod) and one.spec.node_name and what == "changed":
            bound.add(one.metadata.uid)
        possible.append((what, one))

    reported(ClusterUpdater(first), possible)
    reported(ClusterUpdater(second), end_of(possible))

    assert shown_in(first) == shown_in(second)
