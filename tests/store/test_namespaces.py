"""Namespaces, in a store that requires them."""

from podium.store.api_resources import APIResource
from podium.store.cleanup import NamespaceCleaner
from podium.store.store import Store
from tests.store.collecting import steps_at
from tests.store.objects import Raw, node, pod, serving
from tests.store.refusals import answer, refusal


def namespace(name: str, **metadata: object) -> Raw:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **metadata}}


def strict() -> Store:
    widget = APIResource(group="example.com", kind="Widget", plural="widgets", namespaced=True, is_custom=True)
    store = Store(require_namespaces=True, resources=serving(widget))
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


SECOND = 10**9


def shop() -> Store:
    """Return a namespace with a pod that runs, one that does not, and a workload."""
    store = Store()
    store.create(namespace("shop"), now=0)
    store.create(pod("runs", namespace="shop", node="n1", status={"phase": "Running"}), now=0)
    store.create(pod("waits", namespace="shop"), now=0)
    store.create(pod("elsewhere"), now=0)
    selector = {"matchLabels": {"app": "web"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("")["spec"]}
    metadata = {"name": "web", "namespace": "shop"}
    spec = {"replicas": 1, "selector": selector, "template": template}
    store.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}, now=0)
    return store


def keys(store: Store) -> list[str]:
    return [one.key for kind in ("Namespace", "Deployment", "Pod") for one in store.objects(kind)]


def test_a_namespace_that_is_deleted_takes_with_it_what_is_in_it_the_pods_first() -> None:
    store = shop()
    cleaner = NamespaceCleaner(store, steps_at(store))

    store.delete("Namespace", "shop", now=0)
    cleaner.collect(0)

    assert store.get("Namespace", "shop").raw["status"]["phase"] == "Terminating"
    assert keys(store) == ["shop", "shop/web", "default/elsewhere", "shop/runs"]
    assert store.get("Pod", "shop/runs").object.metadata.deletion_timestamp is not None
    assert cleaner.collect(SECOND) == 0

    store.delete("Pod", "shop/runs", now=30 * SECOND, grace_seconds=0)
    cleaner.collect(30 * SECOND)

    assert keys(store) == ["default/elsewhere"]


def test_nothing_is_created_in_a_namespace_that_is_being_emptied() -> None:
    store = shop()
    store.delete("Namespace", "shop", now=0)

    error = refusal(store, lambda: store.create(pod("more", namespace="shop"), now=0))

    assert answer(error) == (403, "Forbidden")


def test_a_finalizer_in_a_namespace_holds_it() -> None:
    store = Store()
    store.create(namespace("shop"), now=0)
    store.create(pod("held", namespace="shop", metadata={"finalizers": ["example.com/a"]}), now=0)
    cleaner = NamespaceCleaner(store, steps_at(store))
    store.delete("Namespace", "shop", now=0)
    cleaner.collect(0)
    assert keys(store) == ["shop", "shop/held"]

    store.patch("Pod", "shop/held", {"metadata": {"finalizers": None}}, "merge")
    cleaner.collect(0)

    assert keys(store) == []


def test_an_empty_namespace_goes_at_once() -> None:
    store = Store()
    store.create({**namespace("shop"), "spec": {"finalizers": ["kubernetes"]}}, now=0)

    store.delete("Namespace", "shop", now=0)

    assert keys(store) == []


def test_a_namespace_that_others_hold_stays_though_it_is_empty() -> None:
    store = Store()
    store.create({**namespace("shop"), "spec": {"finalizers": ["example.com/a", "kubernetes"]}}, now=0)
    store.delete("Namespace", "shop", now=0)

    assert NamespaceCleaner(store, steps_at(store)).collect(0) == 0
    assert keys(store) == ["shop"]


def test_a_cleaner_that_fell_behind_looks_at_all_namespaces() -> None:
    store = Store(log_capacity=2)
    cleaner = NamespaceCleaner(store, steps_at(store))
    store.create(namespace("shop"), now=0)
    for name in "abc":
        store.create(pod(name, namespace="shop"), now=0)
    store.delete("Namespace", "shop", now=0)
    for name in "def":
        store.create(pod(name), now=0)

    cleaner.collect(0)

    assert keys(store) == ["default/d", "default/e", "default/f"]


def conditions(store: Store, name: str) -> dict[str, tuple[str, str, str]]:
    """Return status, reason and message of a namespace's conditions by type."""
    listed = store.get("Namespace", name).raw["status"].get("conditions", [])
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in listed}


def test_a_terminating_namespace_says_what_remains_and_which_finalizers_hold_it() -> None:
    store = Store()
    store.create(namespace("shop"), now=0)
    for name in ("a", "b"):
        metadata = {"name": name, "namespace": "shop", "finalizers": ["example.com/hold"]}
        store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, now=0)
    cleaner = NamespaceCleaner(store, steps_at(store))
    store.delete("Namespace", "shop", now=SECOND)

    cleaner.collect(SECOND)

    found = conditions(store, "shop")
    assert found["NamespaceContentRemaining"] == (
        *("True", "SomeResourcesRemain"),
        "Some resources are remaining: configmaps. has 2 resource instances",
    )
    assert found["NamespaceFinalizersRemaining"] == (
        *("True", "SomeFinalizersRemain"),
        "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances",
    )
    assert found["NamespaceDeletionContentFailure"] == (
        *("False", "ContentDeleted"),
        "All content successfully deleted, may be waiting on finalization",
    )
    assert len(found) == 5

    store.update({**store.get("ConfigMap", "shop/a").raw, "metadata": {"name": "a", "namespace": "shop"}})
    cleaner.collect(2 * SECOND)
    assert conditions(store, "shop")["NamespaceContentRemaining"][2].endswith("configmaps. has 1 resource instances")
    store.update({**store.get("ConfigMap", "shop/b").raw, "metadata": {"name": "b", "namespace": "shop"}})
    cleaner.collect(3 * SECOND)
    assert store.find("Namespace", "shop") is None


def test_while_pods_remain_the_conditions_say_that_nothing_failed_and_the_rest_stays() -> None:
    store = shop()
    store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}, now=0)
    cleaner = NamespaceCleaner(store, steps_at(store))
    store.delete("Namespace", "shop", now=SECOND)

    cleaner.collect(SECOND)

    assert {status for status, _, _ in conditions(store, "shop").values()} == {"False"}
    assert "NamespaceDeletionContentFailure" in conditions(store, "shop")
    assert store.find("ConfigMap", "shop/a") is not None


def test_a_namespace_that_another_finalizer_holds_has_no_remaining_contents() -> None:
    store = shop()
    store.update({**store.get("Namespace", "shop").raw, "spec": {"finalizers": ["kubernetes", "example.com/last"]}})
    cleaner = NamespaceCleaner(store, steps_at(store))
    store.delete("Namespace", "shop", now=SECOND)
    cleaner.collect(SECOND)
    store.delete("Pod", "shop/runs", grace_seconds=0, now=SECOND)

    cleaner.collect(2 * SECOND)

    assert {status for status, _, _ in conditions(store, "shop").values()} <= {"False"}
