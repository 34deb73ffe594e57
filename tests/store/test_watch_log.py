"""The log of watch events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.store import watch_log as kind_log
from podium.store.errors import StoreError
from podium.store.listing import ListOptions, Watch
from podium.store.store import Store
from tests.store.objects import node, pod
from tests.store.refusals import answer, refusal


def watch_from(store: Store, kind: str, version: int) -> Watch:
    return store.watch(kind, options=ListOptions(resource_version=str(version)))


def test_the_log_contains_each_write_once_in_order_with_old_and_new_object() -> None:
    store = Store()
    created = store.create(pod("web"), now=0)
    bound = store.bind("default/web", "n1", now=0)
    store.delete("Pod", "default/web", now=0, grace_seconds=0)

    events = store.events_since(0)

    assert [(event.type, event.version) for event in events] == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 3)]
    assert [event.previous for event in events] == [None, created, bound]
    assert events[2].stored.raw["metadata"]["resourceVersion"] == "3"


def test_only_events_after_a_version_are_returned() -> None:
    store = Store()
    for name in ("a", "b", "c"):
        store.create(pod(name), now=0)

    assert [event.stored.key for event in store.events_since(2)] == ["default/c"]
    assert store.events_since(3) == []


def test_a_compacted_version_has_expired() -> None:
    store = Store(log_capacity=2)
    for name in ("a", "b", "c"):
        store.create(pod(name), now=0)

    assert len(store.events_since(1)) == 2
    with pytest.raises(StoreError) as caught:
        store.events_since(0)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_a_log_that_is_to_keep_fewer_events_drops_the_oldest() -> None:
    store = Store()
    for name in ("a", "b", "c"):
        store.create(pod(name), now=0)

    store.log.keep_at_most(2)

    assert [event.stored.key for event in store.events_since(1)] == ["default/b", "default/c"]
    store.create(pod("d"), now=0)
    assert [event.stored.key for event in store.events_since(2)] == ["default/c", "default/d"]
    assert refusal(store, lambda: store.events_since(1)).code == 410


def test_a_version_to_come_times_out() -> None:
    with pytest.raises(StoreError) as caught:
        Store().events_since(1)

    assert (caught.value.code, caught.value.reason) == (504, "Timeout")


def test_a_kind_is_known_further_back_than_all_kinds_where_it_is_quiet() -> None:
    store = Store(log_capacity=2)
    store.create(node("n1"), now=0)
    for name in ("a", "b", "c"):
        store.create(pod(name), now=0)

    watcher = store.watch("Node", options=ListOptions(resource_version="0", send_initial_events=None))
    assert [one.type for one in watcher.pull()] == ["ADDED"]
    exactly = ListOptions(resource_version="1", resource_version_match="Exact")
    assert [one.key for one in store.page("Node", options=exactly).items] == ["n1"]
    assert answer(refusal(store, lambda: store.page("Pod", options=exactly))) == (410, "Expired")
    assert answer(refusal(store, lambda: store.events_since(1))) == (410, "Expired")


def test_the_last_events_of_a_kind_outlast_those_of_others() -> None:
    store = Store(log_capacity=150)
    store.create(node("n0"), now=0)
    for number in range(1, 120):
        store.create(node(f"n{number}"), now=0)
    for number in range(200):
        store.create(pod(f"p{number}"), now=0)

    assert answer(refusal(store, lambda: watch_from(store, "Node", 19))) == (410, "Expired")
    assert len(watch_from(store, "Node", 20).pull()) == 100
    store.create(node("late"), now=0)
    assert len(watch_from(store, "Node", 20).pull()) == 101


def test_compaction_forgets_old_revisions_of_every_kind() -> None:
    store = Store()
    store.create(node("n1"), now=0)
    store.create(pod("a"), now=0)
    store.log.compact(2)

    for kind in ("Node", "Pod", "Service"):
        assert answer(refusal(store, lambda kind=kind: watch_from(store, kind, 1))) == (410, "Expired")  # type: ignore[misc]
        assert watch_from(store, kind, 2).pull() == []


KINDS = st.sampled_from(["Pod", "Node"])


@given(
    writes=st.lists(KINDS, max_size=40), capacity=st.integers(1, 12), least=st.integers(1, 4), back=st.integers(0, 40)
)
def test_the_log_of_a_kind_is_the_log_without_the_others(
    writes: list[str], capacity: int, least: int, back: int
) -> None:
    before, kind_log.LEAST_KEPT = kind_log.LEAST_KEPT, least
    try:
        store, whole = Store(log_capacity=capacity), []
        for number, kind in enumerate(writes):
            store.create(pod(f"p{number}") if kind == "Pod" else node(f"n{number}"), now=0)
            whole += store.events_since(store.version - 1)
        version = max(store.version - back, 0)
        for kind in ("Pod", "Node"):
            log, begin = store._revisions.log, store._revisions.log.of(kind).begin
            expected = [one for one in whole if one.stored.kind == kind and one.version > version]
            # What is still in the log as a whole is known of the kind, and so are its last events.
            if version >= log.oldest or len(expected) <= min(least, capacity):
                assert begin <= version
            if begin > version:
                with pytest.raises(StoreError, match="too old"):
                    log.since(version, kind)
            assert log.since(max(begin, version), kind) == [one for one in expected if one.version > begin]
    finally:
        kind_log.LEAST_KEPT = before
