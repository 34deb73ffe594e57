"""The objects of every new cluster and namespace."""

from __future__ import annotations

from podium.store.store import NAMESPACES, Store, create_initial_objects
from tests.store.objects import Raw


def cluster() -> Store:
    store = Store(require_namespaces=True)
    create_initial_objects(store, now=0)
    return store


def test_a_cluster_has_its_namespaces_classes_and_service() -> None:
    store = cluster()

    assert tuple(stored.key for stored in store.objects("Namespace")) == NAMESPACES
    assert [stored.key for stored in store.objects("PriorityClass")] == [
        "system-cluster-critical",
        "system-node-critical",
    ]
    assert store.get("Service", "default/kubernetes").raw["spec"]["clusterIP"] == "10.96.0.1"


def test_every_namespace_is_active_and_has_an_account_and_its_name_as_a_label() -> None:
    store = cluster()
    raw: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}

    shop = store.create(raw, now=0, is_new=True).raw

    assert shop["status"] == {"phase": "Active"}
    assert shop["spec"] == {"finalizers": ["kubernetes"]}
    assert shop["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    accounts = [stored.key for stored in store.objects("ServiceAccount")]
    assert accounts == sorted(f"{name}/default" for name in (*NAMESPACES, "shop"))


def test_existing_initial_objects_are_kept() -> None:
    store = cluster()
    version = store.version

    create_initial_objects(store, now=1)

    assert store.version == version
