"""Users grant only rights that they hold: roles and bindings under RBAC."""

from __future__ import annotations

from typing import Literal

import pytest

from podium.apirequests.authorization import Authorizer, User
from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from podium.store.store import Store
from tests.apirequests.test_authorization import PODS, RBAC, bound, role, store_with
from tests.store.objects import Raw

ANNA = User("anna", ("dev", "system:authenticated"))
DEPLOYMENTS: Raw = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "delete"]}
EVERYTHING: list[Raw] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]


def verb_on(verb: str, resource: str, name: str = "") -> Raw:
    named = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [RBAC], "resources": [resource], "verbs": [verb], **named}


def store_of(*rules: Raw) -> Store:
    """Return a store in which anna has these rights and may read pods."""
    return store_with(role("anna", PODS, *rules), bound("anna", "anna"))


def write(store: Store, raw: Raw, *, verb: Literal["create", "update"] = "create", user: User = ANNA) -> Response:
    metadata = raw["metadata"]
    namespace = metadata.get("namespace", "")
    key = f"{namespace}/{metadata['name']}".removeprefix("/") if verb != "create" else ""
    request = Request(verb=verb, kind=raw["kind"], key=key, namespace=namespace, body=raw, identity=user)
    return Router(store, authorizer=Authorizer(store)).answer(request, 0)


def test_a_role_grants_no_more_than_its_author_holds() -> None:
    store = store_of()

    granted = write(store, role("mine", {**PODS, "verbs": ["list"]}, namespace="shop"))
    refused = write(store, role("more", PODS, DEPLOYMENTS, namespace="shop"))

    assert granted.code == 201
    assert refused.code == 403
    assert refused.error is not None
    assert refused.error.status_message == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "anna" (groups=["dev" "system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "delete"]}'
    )
    assert store.find("Role", "shop/more") is None


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, '{NonResourceURLs:["/metrics"], Verbs:["get"]}'),
        (
            {**PODS, "resources": ["pods/exec"], "resourceNames": ["a"], "verbs": ["create"]},
            '{APIGroups:[""], Resources:["pods/exec"], ResourceNames:["a"], Verbs:["create"]}',
        ),
        ({**PODS, "resources": ["*"], "verbs": ["get"]}, '{APIGroups:[""], Resources:["*"], Verbs:["get"]}'),
    ],
)
def test_the_refusal_lists_what_is_missing(rule: Raw, text: str) -> None:
    refused = write(store_of(), role("more", rule))

    assert refused.error is not None
    assert refused.error.status_message.endswith(f"held:\n{text}")


def test_rights_on_one_object_do_not_cover_all_objects() -> None:
    secrets: Raw = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    store = store_of({**secrets, "resourceNames": ["mine"]})

    assert write(store, role("one", {**secrets, "resourceNames": ["mine"]})).code == 201
    assert write(store, role("all", secrets)).code == 403


def test_rights_in_a_namespace_do_not_cover_the_cluster() -> None:
    store = store_with(role("reader", PODS), bound("reader", "anna", namespace="shop"))

    assert write(store, role("here", PODS, namespace="shop")).code == 201
    assert write(store, role("there", PODS, namespace="other")).code == 403
    assert write(store, role("everywhere", PODS)).code == 403


def test_the_verb_escalate_permits_more() -> None:
    store = store_of(verb_on("escalate", "clusterroles", "more"))

    assert write(store, role("more", DEPLOYMENTS)).code == 201
    assert write(store, role("other", DEPLOYMENTS)).code == 403


def test_a_binding_grants_no_more_than_its_author_holds() -> None:
    store = store_of()
    store.create(role("deployer", DEPLOYMENTS), now=0)

    granted = write(store, bound("anna", "bob"))
    refused = write(store, bound("deployer", "anna"))

    assert granted.code == 201
    assert refused.code == 403
    assert store.find("ClusterRoleBinding", "deployer-anna") is None


def test_the_verb_bind_permits_the_binding_of_a_role() -> None:
    store = store_of(verb_on("bind", "clusterroles", "deployer"))
    store.create(role("deployer", DEPLOYMENTS), now=0)
    store.create(role("other", DEPLOYMENTS), now=0)

    assert write(store, bound("deployer", "bob")).code == 201
    assert write(store, bound("other", "bob")).code == 403


def test_a_role_that_does_not_exist_cannot_be_bound_without_the_verb() -> None:
    assert write(store_of(), bound("none", "bob")).code == 404
    assert write(store_of(verb_on("bind", "clusterroles")), bound("none", "bob")).code == 201


def test_a_role_that_aggregates_others_takes_all_rights() -> None:
    rule = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    aggregating: Raw = {**role("all"), "aggregationRule": rule}

    refused = write(store_of(), aggregating)

    assert refused.code == 403
    assert refused.error is not None
    assert "must have cluster-admin privileges to use the aggregationRule" in refused.error.status_message
    assert write(store_of(*EVERYTHING), aggregating).code == 201


def test_owners_and_finalizers_of_a_role_with_more_rights_may_change_but_not_its_labels() -> None:
    store = store_of()
    known = store.create(role("more", DEPLOYMENTS), now=0).raw

    finalized = {**known, "metadata": {**known["metadata"], "finalizers": ["example.com/done"]}}
    assert write(store, finalized, verb="update").code == 200
    current = store.get("ClusterRole", "more").raw
    labelled = {**current, "metadata": {**current["metadata"], "labels": {"a": "b"}}}
    assert write(store, labelled, verb="update").code == 403


def test_masters_and_servers_without_roles_grant_everything() -> None:
    store = store_of()

    assert write(store, role("more", *EVERYTHING), user=User()).code == 201
    request = Request(verb="create", kind="ClusterRole", body=role("other", *EVERYTHING), identity=ANNA)
    assert Router(store).answer(request, 0).code == 201
