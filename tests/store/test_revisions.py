"""The namespaces in a store's revisions."""

import pytest

from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import budget, pod


def keys(store: Store, namespace: str) -> list[str]:
    return [one.key for one in store._revisions.in_namespace("PodDisruptionBudget", namespace)]


def test_objects_of_a_namespace_are_found_by_key_after_other_changes() -> None:
    store = Store()
    for namespace in ("a", "ab", "default"):
        for name in ("y", "x"):
            raw = budget(name)
            store.create({**raw, "metadata": {**raw["metadata"], "namespace": namespace}}, now=0)
    assert keys(store, "a") == ["a/x", "a/y"]

    store.delete("PodDisruptionBudget", "a/x", now=0)
    store.create({**budget("z"), "metadata": {"name": "z", "namespace": "a"}}, now=0)
    store.create(pod("x", namespace="a"), now=0)

    assert keys(store, "a") == ["a/y", "a/z"]
    assert keys(store, "nowhere") == []


def test_a_rolled_back_transaction_leaves_no_trace() -> None:
    store = Store()
    store.create(budget("a"), now=0)
    assert keys(store, "default") == ["default/a"]

    with store.transaction(dry_run=True):
        store.delete("PodDisruptionBudget", "default/a", now=0)
        store.create(budget("b"), now=0)
        assert keys(store, "default") == ["default/b"]

    assert keys(store, "default") == ["default/a"]


def listed(store: Store) -> list[tuple[str, int]]:
    return [(one.key, one.version) for kind in ("Pod", "PodDisruptionBudget") for one in store.objects(kind)]


def test_a_restored_store_goes_on_as_the_first_did_and_neither_sees_the_writes_of_the_other() -> None:
    first, second = Store(seed=3), Store(seed=3)
    first.create(pod("given", metadata={"uid": "known"}), now=0)
    for name in ("a", "b"):
        first.create(budget(name), now=0)
    first.delete("PodDisruptionBudget", "default/a", now=0)
    state = first.state()
    assert state is not None
    later = first.create(pod("later"), now=0)

    second.restore(state)

    assert listed(second) == [one for one in listed(first) if one[0] != "default/later"]
    assert second.events_since(0) == first.events_since(0)[:-1]
    assert second.create(pod("later"), now=0) == later
    with pytest.raises(StoreError, match="was used before"):
        second.create(pod("again", metadata={"uid": "known"}), now=0)
    second.delete("PodDisruptionBudget", "default/b", now=0)
    assert first.find("PodDisruptionBudget", "default/b") is not None
    with pytest.raises(ValueError, match="writes already"):
        second.restore(state)


def test_a_store_whose_log_lost_a_write_has_no_state_to_restore() -> None:
    store = Store(log_capacity=1)
    store.create(pod("a"), now=0)
    assert store.state() is not None
    store.create(pod("b"), now=0)
    assert store.state() is None
