"""The store as simulated components reach it."""

from typing import Any

from podium.apirequests.request import Request
from podium.controllers.ledger.ledger import DisruptionLedger
from podium.sim.api_server import APIServer
from podium.sim.history import Backlog, EventHistory
from podium.store.store import Store
from tests.store.objects import pod

MANY = 2_100
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "owner"}


def server_of(store: Store) -> APIServer:
    history = EventHistory(0, Backlog())
    ledger = DisruptionLedger(history.keep, lambda kind, key: None)
    return APIServer(store, history, lambda *report: None, ledger)


def create(server: APIServer, *objects: dict[str, Any]) -> None:
    for raw in objects:
        ask(server, Request(verb="create", kind=raw["kind"], body=raw))


def ask(server: APIServer, request: Request) -> None:
    assert server.ask(request, "scenario", 0).error is None


def test_dependents_are_deleted_with_their_owner_after_many_writes() -> None:
    store = Store()
    server = server_of(store)
    owned = {**pod("owned"), "metadata": {"name": "owned", "ownerReferences": [OWNER]}}
    create(server, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "uid": "owner"}}, owned)
    for number in range(MANY):
        create(server, pod(f"plain-{number}"))
        assert not server.collect_garbage(0)

    ask(server, Request(verb="delete", kind="ConfigMap", key="default/owner"))

    assert server.collect_garbage(0)
    assert store.find("Pod", "default/owned") is None
    assert store.count() == MANY


def test_a_namespace_that_goes_takes_along_what_comes_in_it_meanwhile() -> None:
    store = Store()
    server = server_of(store)
    create(server, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    create(server, {**pod("a"), "metadata": {"name": "a", "namespace": "n", "finalizers": ["podium.dev/test"]}})
    ask(server, Request(verb="delete", kind="Namespace", key="n"))
    assert server.collect_garbage(0)
    assert store.find("Namespace", "n") is not None

    held = store.get("Pod", "n/a")
    freed = {**held.raw, "metadata": {**held.raw["metadata"], "finalizers": []}}
    ask(server, Request(verb="update", kind="Pod", key="n/a", body=freed))
    while server.collect_garbage(0):
        pass

    assert store.count() == 0
