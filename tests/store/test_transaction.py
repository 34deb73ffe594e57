"""Transactions and dry runs."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podium.store.errors import StoreError
from podium.store.revisions import Identities, JournalContent
from podium.store.store import Store
from podium.store.watch_log import WatchEvent
from tests.pod_statuses import set_pod_status
from tests.store.objects import node, pod, priority_class, quota
from tests.store.refusals import everything


def stocked() -> Store:
    store = Store()
    store.create(quota("all", {"pods": 5, "count/pods": 5}), now=0)
    store.create(pod("web"), now=0)
    store.create(pod("bound", node="n1", metadata={"finalizers": ["example.com/a"]}), now=0)
    store.create(node("n1"), now=0)
    return store


WRITES: dict[str, Callable[[Store], Any]] = {
    "create": lambda store: store.create({**pod(""), "metadata": {"generateName": "web-"}}, now=0),
    "create with a uid": lambda store: store.create(pod("new", metadata={"uid": "u1"}), now=0),
    "create a class": lambda store: store.create(priority_class("high", 1), now=0),
    "update": lambda store: store.update(node("n1", zone="b")),
    "update status": lambda store: store.update_status(node("n1", cpu=20)),
    "patch": lambda store: store.patch("Node", "n1", {"metadata": {"labels": {"a": "b"}}}, "merge"),
    "patch status": lambda store: set_pod_status(store, "default/web", {"nominatedNodeName": "n1"}, [], now=0),
    "delete": lambda store: store.delete("Pod", "default/web", now=0),
    "delete gracefully": lambda store: store.delete("Pod", "default/bound", now=0),
    "bind": lambda store: store.bind("default/web", "n1", now=0),
    "update a quota": lambda store: store.update(quota("all", {"pods": 9})),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a12_a_dry_run_answers_as_the_write_would_and_leaves_no_trace(write: Callable[[Store], Any]) -> None:
    store, twin = stocked(), stocked()
    before = everything(store)
    watcher = store.watch("Pod")
    watcher.pull()

    with store.transaction(dry_run=True):
        answer = write(store)
        assert everything(store) != before

    assert everything(store) == before
    assert watcher.pull() == []
    # Not even in what the next writes make: the same write gives the same answer now, and in a store without dry runs.
    assert answer == write(store) == write(twin)
    assert everything(store) == everything(twin)


def test_a_dry_run_of_a_refused_write_is_refused() -> None:
    store = stocked()
    before = everything(store)

    with pytest.raises(StoreError) as caught, store.transaction(dry_run=True):
        store.create(pod("web"), now=0)

    assert caught.value.code == 409
    assert everything(store) == before


def test_the_writes_of_a_transaction_become_known_together() -> None:
    store = Store()
    watcher = store.watch("Pod")

    with store.transaction():
        store.create(pod("a"), now=0)
        assert store.find("Pod", "default/a") is not None
        assert watcher.pull() == []
        store.create(pod("b"), now=0)

    assert [one.version for one in watcher.pull()] == [1, 2]


def test_after_an_error_none_of_the_writes_has_taken_place() -> None:
    store = stocked()
    before = everything(store)

    def fail_at_the_end() -> None:
        with store.transaction():
            store.delete("Node", "n1", now=0)
            store.create(pod("new"), now=0)
            store.create(pod("web"), now=0)

    with pytest.raises(StoreError, match="already exists"):
        fail_at_the_end()
    assert everything(store) == before


def test_a_dry_run_within_a_transaction_undoes_its_own_writes_alone() -> None:
    store = Store()

    with store.transaction():
        store.create(pod("a"), now=0)
        with store.transaction(dry_run=True):
            store.create(pod("b"), now=0)
        store.create(pod("c"), now=0)

    assert [stored.key for stored in store.objects("Pod")] == ["default/a", "default/c"]
    assert store.version == 2


def test_an_error_that_is_caught_within_a_transaction_undoes_the_failed_write_alone() -> None:
    store = Store()

    with store.transaction():
        store.create(pod("a"), now=0)
        with pytest.raises(StoreError):
            store.create(pod("a"), now=0)

    assert [stored.key for stored in store.objects("Pod")] == ["default/a"]


class FailingJournal:
    """A journal whose disk is full."""

    def load(self) -> JournalContent:
        return JournalContent(0, [], [], 0, [])

    def append(self, events: Sequence[WatchEvent], identities: Identities) -> None:
        raise OSError("no space left")


def test_a_transaction_that_the_journal_rejects_has_no_effect() -> None:
    store = Store(journal=FailingJournal())

    def create_two() -> None:
        with store.transaction():
            store.create(pod("a"), now=0)
            store.create(pod("b"), now=0)

    with pytest.raises(OSError, match="no space"):
        store.create(pod("a"), now=0)
    with pytest.raises(OSError, match="no space"):
        create_two()
    assert everything(store)[1] == 0
    assert store.objects("Pod") == []
    assert store.events_since(0) == []
