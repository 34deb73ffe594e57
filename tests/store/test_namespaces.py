"""Namespaces, in a store that requires them."""

from podium.store.resource import Resource
from podium.store.resources import Resources
from podium.store.store import Store
from tests.store.objects import Raw, node, pod
from tests.store.refusals import answer, refusal


def namespace(name: str, **metadata: object) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def strict() -> Store:
    widget = Resource(group="example.com", kind="Widget", plural="widgets", namespaced=True, is_custom=True)
    store = Store(require_namespaces=True, resources=Resources([widget]))
    store.create(namespace("default"), now=0)
    return store


def test_b39_nothing_is_created_in_a_namespace_that_does_not_exist() -> None:
    store = strict()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "shop"}}

    for raw in (pod("web", namespace="shop"), widget):
        error = refusal(store, lambda raw=raw: store.create(raw, now=0))  # type: ignore[misc]
        assert answer(error) == (404, "NotFound")
        assert error.details == {"name": "shop", "group": "", "kind": "namespaces"}

    store.create(node("n1"), now=0)
    store.create(pod("web"), now=0)


def test_b39_nothing_is_created_in_a_namespace_that_is_going() -> None:
    store = strict()
    store.create(namespace("shop", finalizers=["example.com/a"]), now=0)
    store.delete("Namespace", "shop", now=0)

    error = refusal(store, lambda: store.create(pod("web", namespace="shop"), now=0))

    assert answer(error) == (403, "Forbidden")
    assert error.details["causes"][0]["reason"] == "NamespaceTerminating"


def test_the_namespaces_that_every_cluster_has_stay() -> None:
    store = strict()

    assert answer(refusal(store, lambda: store.delete("Namespace", "default", now=0))) == (403, "Forbidden")


def test_a_simulated_cluster_needs_none() -> None:
    assert Store().create(pod("web", namespace="shop"), now=0).key == "shop/web"
