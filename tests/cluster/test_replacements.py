"""Matching replacements to the hints of evictions against a plain loop, for any order of events."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.avoid_list import Replacement
from podium.api.node import Node
from podium.api.pod import Pod
from podium.cluster.cluster import Cluster, ClusterUpdater
from tests.builders import DAY_ONE_NS, left, node, pod

SECOND = 10**9


def with_list(name: str, *replacements: Replacement) -> Node:
    return node(name, leaves=replacements)


def made(name: str, seconds: int = 0, *, owner: str = "ReplicaSet/web", on: str = "", uid: str = "") -> Pod:
    return pod(name, created=seconds, on=on, uid=uid or name, owner=owner)


def shown(*objects: Node | Pod) -> ClusterUpdater:
    feed = ClusterUpdater(Cluster())
    for one in objects:
        show(feed, one)
    return feed


def show(feed: ClusterUpdater, one: Node | Pod) -> None:
    if isinstance(one, Pod):
        feed.settle(feed.pod_changed(one))
    else:
        feed.update_object(one)


def first(feed: ClusterUpdater) -> list[str]:
    return sorted(feed._cluster.replacements.first)


def test_the_first_pod_that_the_controller_creates_from_then_on_is_the_replacement() -> None:
    feed = shown(with_list("n1", left("gone", 60)), made("old", 59), made("next", 61), made("later", 62))

    assert first(feed) == ["next"]


def test_the_pod_with_the_first_key_replaces_among_pods_of_one_second() -> None:
    feed = shown(with_list("n1", left("gone", 60)), made("b", 60), made("a", 60))

    assert first(feed) == ["a"]


def test_pods_of_others_are_no_replacements() -> None:
    feed = shown(with_list("n1", left("gone")), made("other", owner="ReplicaSet/db"), pod("bare", created=0))

    assert first(feed) == []


def test_replacements_number_as_many_as_evictions_despite_a_scale_up() -> None:
    lists = with_list("n1", left("gone-1"), left("gone-2", 1)), with_list("n2", left("gone-3", 2))

    feed = shown(*lists, *(made(f"p{number}", 2) for number in range(8)))

    assert first(feed) == ["p0", "p1", "p2"]


def test_only_a_placed_pod_uses_up_a_hint() -> None:
    feed = shown(with_list("n1", left("gone")), made("a", 1), made("b", 2))

    show(feed, made("a", 1, on="n2"))
    assert "b" not in first(feed)

    feed.settle(feed.pod_gone(made("a", 1, on="n2")))
    assert "b" not in first(feed)


def test_the_next_pod_has_what_one_does_not_need_that_went_without_a_node() -> None:
    feed = shown(with_list("n1", left("gone")), made("a", 1), made("b", 2))

    feed.settle(feed.pod_gone(made("a", 1)))

    assert first(feed) == ["b"]


def test_the_evicted_pod_is_no_replacement_of_itself() -> None:
    feed = shown(with_list("n1", left("gone")), made("gone", 0, on="n1"), made("new", 0))

    assert first(feed) == ["new"]


def test_a_pod_of_a_stateful_set_is_replaced_by_one_of_its_name() -> None:
    owner = "StatefulSet/db"
    lists = with_list("n1", left("db-1", owner=owner, uid="before"))

    feed = shown(lists, made("db-0", 1, owner=owner), made("db-1", 2, owner=owner), made("db-2", 3, owner=owner))

    assert first(feed) == ["db-1"]


def test_the_hint_is_for_the_replacement_alone() -> None:
    feed = shown(with_list("n1", left("gone", first=False, hint="n7")), made("a"), made("b"))

    assert first(feed) == []
    assert [feed._cluster.replacements.hint(uid) for uid in ("a", "b")] == ["n7", ""]


def test_pods_that_were_there_before_the_list_was_seen_are_found() -> None:
    feed = shown(made("old", 1), made("next", 6), with_list("n1", left("gone", 5)))
    assert first(feed) == ["next"]

    show(feed, with_list("n2", left("gone before", 0)))

    assert first(feed) == ["next", "old"]


def test_a_pod_that_has_ended_on_a_node_was_the_replacement() -> None:
    ended = made("a", 1, on="n2")
    ended = replace(ended, status=replace(ended.status, phase="Failed"))

    feed = shown(with_list("n1", left("gone")), ended, made("b", 2))

    assert "b" not in first(feed)


def test_hints_end_with_their_list_and_their_node() -> None:
    feed = shown(with_list("n1", left("gone")), with_list("n2", left("other")), made("a"), made("b"))
    assert first(feed) == ["a", "b"]

    show(feed, with_list("n1"))
    assert first(feed) == ["a"]

    feed.delete_object(node("n2"))
    assert first(feed) == []


def test_nothing_is_kept_when_nothing_is_left() -> None:
    feed = shown(with_list("n1", left("gone")), made("a"), made("b", on="n2"), made("c", 10**6))
    assert feed._cluster.replacements.awaited

    show(feed, with_list("n1"))

    kept = vars(feed._cluster.replacements)
    assert not any(kept[name] for name in kept if name != "version")


# Against a plain loop


@dataclass(frozen=True)
class Story:
    """The objects at the end, and the order in which their versions are shown; the last version of each stays."""

    shown: tuple[Node | Pod, ...]

    @property
    def last(self) -> dict[str, Node | Pod]:
        return {f"{type(one).__name__} {one.metadata.name}": one for one in self.shown}


def expected(story: Story) -> dict[str, str]:
    """By pod, for which evicted pod it comes: each in order takes the first that is left."""
    objects = story.last.values()
    owed = sorted(
        (one.eviction_ns, name, one.evicted_pod.uid, one)
        for name, found in LISTS.items()
        if f"Node {name}" in story.last
        for one in found[int(story.last[f"Node {name}"].metadata.labels["version"])]
    )
    pods = sorted((one.metadata.creation_timestamp or "", one.key, one) for one in objects if isinstance(one, Pod))
    found: dict[str, str] = {}
    for _, _, one in pods:
        controller = one.metadata.controller
        assert controller is not None
        for place in owed:
            created_ns = DAY_ONE_NS + int(one.metadata.labels["created"]) * SECOND
            is_owed = place[3].controller.uid == controller.uid
            if is_owed and place[3].serves(one.metadata.name, one.metadata.uid, created_ns):
                found[one.metadata.uid] = place[2]
                owed.remove(place)
                break
    return found


OWNERS = ("ReplicaSet/web", "StatefulSet/db")
# What was left on each node, by the version of its list.
LISTS: dict[str, tuple[tuple[Replacement, ...], ...]] = {
    "n1": (
        (left("a", 3), left("b", 1), left("p1", 5, owner=OWNERS[1])),
        (left("b", 1),),
        (),
    ),
    "n2": ((), (left("c", 1), left("d", 9)), (left("d", 9), left("p2", 0, owner=OWNERS[1], grace=0))),
}


@st.composite
def stories(draw: st.DrawFn) -> Story:
    found: list[Node | Pod] = []
    for name, lists in LISTS.items():
        for version in draw(st.lists(st.integers(0, len(lists) - 1), max_size=3)):
            listed = with_list(name, *lists[version])
            found.append(replace(listed, metadata=replace(listed.metadata, labels={"version": str(version)})))
    for number in range(draw(st.integers(0, 7))):
        seconds = draw(st.sampled_from((0, 1, 2, 3, 5, 9, 12, 640)))
        one = made(f"p{number}", seconds, owner=draw(st.sampled_from(OWNERS)), uid=f"uid-{number}")
        one = replace(one, metadata=replace(one.metadata, labels={"created": str(seconds)}))
        placed = replace(one, spec=replace(one.spec, node_name="n9"))
        found += draw(st.sampled_from(((one,), (one, placed), (placed,))))
    order = draw(st.permutations(range(len(found))))
    return Story(tuple(found[index] for index in order))


@given(stories())
def test_pods_take_what_is_left_as_a_plain_loop_says(story: Story) -> None:
    feed = shown(*story.shown)

    replacements = feed._cluster.replacements
    found = {uid: one.evicted_pod.uid for uid, one in replacements.by_pod.items()}
    assert found == expected(story)
    assert replacements.first == set(found)
    assert bool(replacements.awaited) == any(
        LISTS[one.metadata.name][int(one.metadata.labels["version"])]
        for one in story.last.values()
        if isinstance(one, Node)
    )
