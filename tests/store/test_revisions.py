"""The namespaces in a store's revisions."""

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
