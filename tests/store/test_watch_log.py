"""The log of what happened."""

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import pod


def test_the_log_tells_each_write_once_in_order_with_the_object_before_and_after() -> None:
    store = Store()
    created = store.create(pod("web"), now=0)
    bound = store.bind("default/web", "n1", now=0)
    store.delete("Pod", "default/web", now=0, grace_seconds=0)

    events = store.events_since(0)

    assert [(event.type, event.version) for event in events] == [("ADDED", 1), ("MODIFIED", 2), ("DELETED", 3)]
    assert [event.previous for event in events] == [None, created, bound]
    assert events[2].stored.raw["metadata"]["resourceVersion"] == "3"


def test_only_what_came_after_a_version_is_told() -> None:
    store = Store()
    for name in ("a", "b", "c"):
        store.create(pod(name), now=0)

    assert [event.stored.key for event in store.events_since(2)] == ["default/c"]
    assert store.events_since(3) == []


def test_a_version_that_is_no_longer_kept_has_expired() -> None:
    store = Store(log_capacity=2)
    for name in ("a", "b", "c"):
        store.create(pod(name), now=0)

    assert len(store.events_since(1)) == 2
    with pytest.raises(StoreError) as caught:
        store.events_since(0)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_a_version_to_come_times_out() -> None:
    with pytest.raises(StoreError) as caught:
        Store().events_since(1)

    assert (caught.value.code, caught.value.reason) == (504, "Timeout")
