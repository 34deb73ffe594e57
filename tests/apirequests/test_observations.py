"""The events that a watcher receives."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.apirequests.observations import (
    ObjectObservation,
    arrived,
    aspects_of,
    differences,
    first_seen,
    observation_of,
    received,
)
from podium.controllers.controller import (
    ADDED,
    ANY,
    AVOIDED,
    CLAIMING,
    DISRUPTED,
    EVERY,
    ON_MISSING_NODE,
    OWNER_ASPECTS,
    PLACED,
    UNOWNED,
    UNPLACED,
)
from podium.controllers.observations import Changed, Deleted
from podium.store.api_resources import POD
from podium.store.store import Store
from podium.store.stored import Stored
from tests.store.objects import Raw, node, pod, priority_class

History = list[tuple[str, str]]

NAMES = ("a", "b", "c")
TARGET: Raw = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
CLAIMS: Raw = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
OWNER: Raw = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}


def labelled(store: Store, name: str) -> None:
    version = str(store.version)
    store.patch("Pod", f"default/{name}", {"metadata": {"labels": {"at": version}}}, "merge")


CHANGES: dict[str, Callable[[Store, str], object]] = {
    "create": lambda store, name: store.create(pod(name), now=0),
    "change": labelled,
    "delete": lambda store, name: store.delete("Pod", f"default/{name}", now=0),
}
histories = st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.sampled_from(NAMES)), max_size=12)


def play(store: Store, history: History) -> None:
    for what, name in history:
        if (what == "create") is (store.find("Pod", f"default/{name}") is None):
            CHANGES[what](store, name)


def there(store: Store) -> dict[str, Stored]:
    return {stored.key: stored for stored in store.objects("Pod")}


def reported(seen: ObjectObservation) -> tuple[str, str, str]:
    metadata = seen.object.metadata
    return type(seen).__name__, metadata.uid, metadata.resource_version if isinstance(seen, Changed) else ""


@given(histories, histories)
def test_a_list_after_a_broken_watch_reports_every_difference(
    before: list[tuple[str, str]], missed: list[tuple[str, str]]
) -> None:
    store = Store()
    play(store, before)
    known = there(store)
    play(store, missed)

    events = differences(known, there(store))
    seen = [arrived(known, type_, stored) for type_, stored in events]

    assert known == there(store)
    assert len({stored.key for _, stored in events}) == len(events)
    assert [type(one) for one in seen] == sorted((type(one) for one in seen), key=[Deleted, Changed].index)


@given(histories)
def test_watch_events_reproduce_the_store(history: History) -> None:
    store, known = Store(), dict[str, Stored]()
    play(store, history)

    for event in store.events_since(0):
        assert reported(arrived(known, event.type, event.stored)) == reported(observation_of(event))

    assert known == there(store)


@given(histories)
def test_objects_in_wire_form_are_observed_like_stored_ones(history: History) -> None:
    store = Store()
    play(store, history)

    for stored in store.objects("Pod"):
        assert first_seen(received(POD, stored.raw)) == first_seen(stored)


def test_a_deleted_object_is_the_observed_one_though_a_namesake_exists() -> None:
    store = Store()
    shown = store.create(pod("a"), now=0)
    store.delete("Pod", "default/a", now=0)
    namesake = store.create(pod("a"), now=0)
    known = {shown.key: shown}

    seen = arrived(known, "DELETED", namesake)

    assert isinstance(seen, Deleted)
    assert seen.object.metadata.uid == shown.uid
    assert known == {}


def test_a_change_of_a_pod_says_what_it_is_about() -> None:
    store = Store()
    store.create(node("n1"), now=0)

    def about(write: Callable[[], object]) -> int:
        version = store.version
        write()
        [event] = store.events_since(version)
        return aspects_of(event, store)

    bare = EVERY | UNOWNED
    assert about(lambda: store.create(pod("a"), now=0)) == bare | ADDED
    assert about(lambda: store.bind("default/a", "n1", now=0)) == bare | PLACED
    assert about(lambda: store.create(pod("b"), now=0)) == bare | ADDED
    assert about(lambda: store.bind("default/b", "gone", now=0)) == bare | PLACED | ON_MISSING_NODE
    assert about(lambda: store.patch("Pod", "default/b", {"status": TARGET}, "merge", "status")) & DISRUPTED
    assert about(lambda: store.delete("Pod", "default/b", now=0)) == bare | PLACED | DISRUPTED
    assert about(lambda: store.create(pod("c", node="gone", spec=CLAIMS), now=0)) == (
        bare | ADDED | PLACED | ON_MISSING_NODE | CLAIMING
    )
    owned = EVERY | OWNER_ASPECTS["ReplicaSet"]
    assert about(lambda: store.create(pod("d", metadata={"ownerReferences": [OWNER]}), now=0)) == owned | ADDED
    released = {"metadata": {"ownerReferences": None}}
    assert about(lambda: store.patch("Pod", "default/d", released, "merge", "")) == owned | UNOWNED
    store.create(pod("e", metadata={"finalizers": ["test/held"]}), now=0)
    assert about(lambda: store.delete("Pod", "default/e", now=0)) == bare | PLACED | UNPLACED
    assert about(lambda: store.create(node("n2"), now=0)) == EVERY | ADDED
    avoided = {"metadata": {"annotations": {PREFER_AVOID_PODS: "{}"}}}
    assert about(lambda: store.patch("Node", "n2", avoided, "merge", "")) == EVERY | AVOIDED
    assert about(lambda: store.delete("Node", "n2", now=0)) == EVERY | AVOIDED
    assert about(lambda: store.create(priority_class("high", 1), now=0)) == ANY | ADDED
