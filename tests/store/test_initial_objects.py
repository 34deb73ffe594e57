"""The objects of every new cluster and namespace."""

from __future__ import annotations

from podium.store.initial_objects import NAMESPACES, create_initial_objects, initial_objects
from podium.store.store import Store
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


def test_a_cluster_has_the_endpoints_of_its_own_service() -> None:
    store = cluster()

    subset = store.get("Endpoints", "default/kubernetes").raw["subsets"][0]
    endpoint_slice = store.get("EndpointSlice", "default/kubernetes").raw

    assert endpoint_slice["endpoints"][0]["addresses"] == [subset["addresses"][0]["ip"]]
    assert [port["port"] for port in subset["ports"]] == [port["port"] for port in endpoint_slice["ports"]]
    assert endpoint_slice["metadata"]["labels"]["kubernetes.io/service-name"] == "kubernetes"
    assert store.get("ServiceCIDR", "kubernetes").raw["spec"]["cidrs"] == ["10.96.0.0/16"]


def test_every_binding_of_a_default_role_names_an_existing_role() -> None:
    store = cluster()

    roles = {stored.raw["roleRef"]["name"] for stored in store.objects("ClusterRoleBinding")}

    assert roles <= {stored.key for stored in store.objects("ClusterRole")}


def test_each_controller_has_a_role_that_is_bound_to_its_service_account() -> None:
    store, prefix = cluster(), "system:controller:"

    roles = [stored.key.removeprefix(prefix) for stored in store.objects("ClusterRole") if prefix in stored.key]
    subjects = [store.get("ClusterRoleBinding", f"{prefix}{name}").raw["subjects"] for name in roles]

    assert {"deployment-controller", "generic-garbage-collector", "node-controller"} <= set(roles)
    assert [found[0]["name"] for found in subjects] == roles
    assert {(found[0]["kind"], found[0]["namespace"]) for found in subjects} == {("ServiceAccount", "kube-system")}
    rules = store.get("ClusterRole", f"{prefix}replicaset-controller").raw["rules"]
    assert {"verbs": ["create", "patch", "update"], "apiGroups": [""], "resources": ["events"]} in rules
    assert "events" not in str(store.get("ClusterRole", f"{prefix}namespace-controller").raw["rules"])


def test_initial_objects_are_valid_as_new_objects() -> None:
    store = Store(require_namespaces=True)
    for raw in initial_objects():
        store.create(raw, now=0, is_new=True)


def test_every_system_flow_schema_names_an_existing_priority_level() -> None:
    store = cluster()

    flows = [stored.raw for stored in store.objects("FlowSchema")]
    levels = {stored.key for stored in store.objects("PriorityLevelConfiguration")}

    assert {flow["spec"]["priorityLevelConfiguration"]["name"] for flow in flows} == levels
    assert [flow["metadata"]["name"] for flow in flows if flow["spec"]["matchingPrecedence"] == 1] == ["exempt"]


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
