"""Requests are classified by FlowSchemas, and responses name what they were classified as."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podium.apirequests import authorization
from podium.apirequests.authorization import Attributes, FlowControl, User
from podium.server.http.security import ServerSettings
from podium.store.initial_objects import create_initial_objects
from podium.store.store import Store
from tests.server.serving import PODS, LocalBackend, served
from tests.store.objects import Raw

FLOW, LEVEL = "FlowSchema", "PriorityLevelConfiguration"
EVERYTHING = {"verbs": ["*"], "nonResourceURLs": ["*"]}
VERSION = Attributes("get", path="/version")
ME = User("me", ("system:authenticated",))


def flow(name: str, *, precedence: int = 500, level: str = "system", user: str = "me", **rules: Any) -> Raw:
    subject = {"kind": "User", "user": {"name": user}}
    spec = {
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": level},
        "rules": [{"subjects": [subject], **(rules or {"nonResourceRules": [EVERYTHING]})}],
    }
    version = "flowcontrol.apiserver.k8s.io/v1"
    return {"apiVersion": version, "kind": FLOW, "metadata": {"name": name}, "spec": spec}


def filled(*flows: Raw) -> Store:
    store = Store()
    create_initial_objects(store, now=0)
    for raw in flows:
        store.create(raw, now=0)
    return store


def classified(store: Store, user: User, attributes: Attributes = VERSION) -> tuple[str, str]:
    """Return the names of the FlowSchema and the priority level in the response headers of a request."""
    headers = FlowControl(store).headers(user, attributes)
    names = {stored.uid: stored.key for kind in (FLOW, LEVEL) for stored in store.objects(kind)}
    return names[headers["X-Kubernetes-PF-FlowSchema-UID"]], names[headers["X-Kubernetes-PF-PriorityLevel-UID"]]


def account(name: str) -> User:
    user = f"system:serviceaccount:{name}"
    namespace = name.partition(":")[0]
    return User(user, ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"))


@pytest.mark.parametrize(
    ("user", "attributes", "name", "level"),
    [
        (User(), VERSION, "exempt", "exempt"),
        (ME, VERSION, "global-default", "global-default"),
        (ME, Attributes("get", path="/healthz"), "probes", "exempt"),
        (account("x:a"), VERSION, "service-accounts", "workload-low"),
        (account("kube-system:a"), VERSION, "kube-system-service-accounts", "workload-high"),
        (
            account("kube-system:a"),
            Attributes("update", "coordination.k8s.io", "leases", "", "kube-system", "a"),
            "system-leader-election",
            "leader-election",
        ),
        (
            User("system:kube-scheduler", ("system:authenticated",)),
            Attributes("list", "", "pods"),
            "kube-scheduler",
            "workload-high",
        ),
    ],
)
def test_the_flow_schemas_of_a_cluster_classify_requests(
    user: User, attributes: Attributes, name: str, level: str
) -> None:
    assert classified(filled(), user, attributes) == (name, level)


def test_the_lowest_precedence_that_matches_counts_then_the_name() -> None:
    store = filled(flow("b"), flow("a", level="node-high"), flow("c", precedence=400, user="you"))
    assert classified(store, ME) == ("a", "node-high")


def test_what_is_known_of_requests_is_bounded_and_does_not_depend_on_names() -> None:
    control, most = FlowControl(filled()), authorization._MOST_KNOWN
    for name in ("a", "b"):
        control.headers(ME, Attributes("get", "", "pods", namespace="default", name=name))
    assert len(control._known) == 1

    found = [control.headers(User(f"user-{number}"), VERSION) for number in range(most + 1)]

    assert len(control._known) <= most
    assert found == [found[0]] * (most + 1)


def test_a_flow_schema_without_its_priority_level_matches_nothing() -> None:
    store = filled(flow("a", level="absent"))
    assert classified(store, ME)[0] == "global-default"


def test_rules_for_resources_say_in_which_namespaces() -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["*"], "namespaces": ["red"]}
    store = filled(flow("a", resourceRules=[rule]), flow("b", resourceRules=[{**rule, "clusterScope": True}]))
    assert classified(store, ME, Attributes("get", "", "pods", "", "red", "x"))[0] == "a"
    assert classified(store, ME, Attributes("get", "", "pods", "", "blue", "x"))[0] == "global-default"
    assert classified(store, ME, Attributes("get", "", "nodes", "", "", "n"))[0] == "b"


def test_changes_of_flow_schemas_count_at_once() -> None:
    store = filled()
    flows = FlowControl(store)
    before = flows.headers(ME, VERSION)
    created = store.create(flow("a"), now=0)
    assert flows.headers(ME, VERSION)["X-Kubernetes-PF-FlowSchema-UID"] == created.uid
    store.delete(FLOW, "a", now=0)
    assert flows.headers(ME, VERSION) == before


def test_responses_name_the_flow_also_those_that_refuse() -> None:
    async def story() -> None:
        backend = LocalBackend()
        create_initial_objects(backend.store, now=0)
        settings = ServerSettings(flows=FlowControl(backend.store))
        async with served(backend=backend, settings=settings) as client:
            for path, code in (("/version", 200), (PODS, 200), (f"{PODS}/none", 404)):
                response, _ = await client.reply("GET", path)
                assert response.status == code
                assert response.headers["X-Kubernetes-PF-FlowSchema-UID"]
                assert response.headers["X-Kubernetes-PF-PriorityLevel-UID"]

    asyncio.run(story())
