"""Objects as JSON, encoded once."""

import json

import pytest

from podium.store import watch_log as kind_log
from podium.store.listing import ListOptions
from podium.store.store import Store
from tests.store.objects import pod


def store_of(count: int) -> Store:
    store = Store()
    for number in range(count):
        store.create(pod(f"p{number}", annotations={"says": 'a "quoted" 猫'}), now=0)
    return store


def test_the_events_of_a_watch_in_bytes_are_the_events() -> None:
    store = store_of(1)
    initial = ListOptions(send_initial_events=True, resource_version_match="NotOlderThan", label_selector="a!=b")
    watcher = store.watch("Pod", options=initial)
    store.patch("Pod", "default/p0", {"metadata": {"labels": {"a": "b"}}}, "merge")
    store.create(pod("late"), now=0)
    store.delete("Pod", "default/late", now=0)

    notices = watcher.pull()

    assert [one.type for one in notices] == ["ADDED", "BOOKMARK", "DELETED", "ADDED", "DELETED"]
    assert [json.loads(one.encoded()) for one in notices] == [{"type": one.type, "object": one.raw} for one in notices]


def test_the_bytes_of_an_object_are_made_once_for_everyone() -> None:
    store = store_of(1)
    watcher = store.watch("Pod")
    (notice,) = watcher.pull()
    stored = store.get("Pod", "default/p0")
    assert notice.stored is not None

    assert stored.encoded is notice.stored.encoded
    assert store.page("Pod").items[0].encoded is stored.encoded


def test_the_bytes_of_old_versions_are_kept_for_the_last_of_them_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_log, "LEFT_ENCODED", 3)
    store = Store()
    versions = [store.create(pod("web"), now=0)]
    for number in range(4):
        assert versions[-1].encoded is versions[-1].encoded
        versions.append(store.patch("Pod", "default/web", {"metadata": {"labels": {"n": str(number)}}}, "merge"))

    def kept() -> list[bool]:
        return [one._encoded is not None for one in versions]

    assert kept() == [False, True, True, True, False]
    # One that is asked for again takes the place of the one that has kept its bytes longest; the newest keeps its own.
    assert json.loads(versions[0].encoded) == versions[0].raw
    assert json.loads(versions[4].encoded) == versions[4].raw
    assert kept() == [True, False, True, True, True]


def test_half_a_surrogate_pair_is_written_as_an_escape() -> None:
    store = Store()
    stored = store.create(pod("web", spec={"dnsConfig": {"searches": ["\ud800"]}}), now=0)

    assert json.loads(stored.encoded) == stored.raw
