"""Authorization by roles and bindings."""

from __future__ import annotations

import pytest

from podium.apirequests.authorization import Attributes, Authorizer, User
from podium.store.store import Store
from tests.store.objects import Raw

RBAC = "rbac.authorization.k8s.io"
ANNA = User("anna", ("dev",))
PODS: Raw = {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}


def role(name: str, *rules: Raw, namespace: str = "") -> Raw:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": list(rules)}


def bound(name: str, subject: str, kind: str = "User", namespace: str = "", role_kind: str = "ClusterRole") -> Raw:
    metadata = {"name": f"{name}-{subject}", **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": role_kind, "name": name},
        "subjects": [{"kind": kind, "name": subject}],
    }


def store_with(*objects: Raw) -> Store:
    store = Store()
    for raw in objects:
        store.create(raw, now=0)
    return store


def allows(authorizer: Authorizer, verb: str = "get", resource: str = "pods", user: User = ANNA, **more: str) -> bool:
    return authorizer.allows(user, Attributes(verb, resource=resource, **more))


def test_a_cluster_role_binding_allows_in_every_namespace() -> None:
    authorizer = Authorizer(store_with(role("reader", PODS), bound("reader", "anna")))

    assert allows(authorizer, namespace="shop")
    assert allows(authorizer, "list")
    assert not allows(authorizer, "delete")
    assert not allows(authorizer, group="apps")
    assert not allows(authorizer, user=User("bob", ()))


@pytest.mark.parametrize(("role_kind", "role_namespace"), [("Role", "shop"), ("ClusterRole", "")])
def test_a_role_binding_allows_in_its_namespace_alone(role_kind: str, role_namespace: str) -> None:
    binding = bound("reader", "dev", "Group", "shop", role_kind)
    authorizer = Authorizer(store_with(role("reader", PODS, namespace=role_namespace), binding))

    assert allows(authorizer, namespace="shop")
    assert not allows(authorizer, namespace="other")
    assert not allows(authorizer)


def test_a_service_account_is_bound_by_its_name_and_namespace() -> None:
    binding = bound("reader", "robot", "ServiceAccount", "shop")
    authorizer = Authorizer(store_with(role("reader", PODS), binding))

    assert allows(authorizer, user=User("system:serviceaccount:shop:robot", ()), namespace="shop")
    assert not allows(authorizer, user=User("system:serviceaccount:other:robot", ()), namespace="shop")


def test_a_rule_names_subresources_and_objects() -> None:
    rules: list[Raw] = [
        {"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["update"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"], "verbs": ["get"]},
        PODS,
    ]
    authorizer = Authorizer(store_with(role("some", *rules), bound("some", "anna")))

    assert allows(authorizer, "update", "deployments", group="apps", subresource="scale")
    assert not allows(authorizer, "update", "deployments", group="apps")
    assert allows(authorizer, subresource="log")
    assert not allows(authorizer, subresource="exec")
    assert allows(authorizer, resource="secrets", name="mine")
    assert not allows(authorizer, resource="secrets", name="yours")


def test_paths_are_allowed_by_their_beginning() -> None:
    rule: Raw = {"nonResourceURLs": ["/healthz/*", "/metrics"], "verbs": ["get"]}
    authorizer = Authorizer(store_with(role("paths", rule), bound("paths", "anna")))

    found = [authorizer.allows(ANNA, Attributes("get", path=path)) for path in ("/healthz/etcd", "/metrics", "/other")]

    assert found == [True, True, False]


def test_what_is_allowed_follows_the_bindings() -> None:
    store = store_with(role("reader", PODS))
    authorizer = Authorizer(store)
    assert not allows(authorizer)

    store.create(bound("reader", "anna"), now=0)
    assert allows(authorizer)

    store.delete("ClusterRole", "reader", now=0)
    assert not allows(authorizer)


def test_masters_may_do_everything() -> None:
    assert allows(Authorizer(Store()), "delete", "nodes", User())
