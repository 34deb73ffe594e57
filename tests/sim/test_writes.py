"""The writers of a simulation's writes."""

from typing import Any

import pytest

from podium.apirequests.request import Request, Response
from podium.apirequests.router import Router
from tests.sim.objects import budget, job, scenario, workload
from tests.sim.played import simulation_of
from tests.store.objects import Raw, node, pod

NAMESPACE: Raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
SHOP = pod("shop", namespace="shop")
STEPS: list[dict[str, Any]] = [
    {"at": "1s", "apply": [workload("Deployment", "web", 3), {**node("n1"), "status": {"allocatable": {"cpu": "9"}}}]},
    {"at": "2s", "patch": {"kind": "Node", "name": "n1", "patch": {"metadata": {"labels": {"zone": "a"}}}}},
    {"at": "3s", "scale": {"name": "web", "replicas": 1}},
    {"at": "4s", "evict": {"name": "a"}},
    {"at": "5s", "drain": {"name": "n2"}},
    {"at": "6s", "delete": {"kind": "Deployment", "name": "web"}},
    {"at": "7s", "delete": {"kind": "Namespace", "name": "shop"}},
    {"at": "8s", "cordon": {"name": "n1"}},
]


def test_simulations_write_only_through_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, int] = {}
    answer = Router.answer

    def counted(router: Router, request: Request, now: int) -> Response:
        version = router.store.version
        response = answer(router, request, now)
        what = " ".join(filter(None, (request.verb, request.kind, request.subresource)))
        written[what] = written.get(what, 0) + router.store.version - version
        return response

    monkeypatch.setattr(Router, "answer", counted)
    simulation = simulation_of(
        node("n1"), node("n2"), NAMESPACE, SHOP, pod("a"), job("j"), workload("Deployment", "web", 2),
        budget("all", maxUnavailable=1), scenario(*STEPS, until="15m"),
    )  # fmt: skip
    began = simulation.store.version - sum(written.values())
    while simulation.step():
        pass

    assert simulation.store.version == began + sum(written.values())
    asked = {what for what, count in written.items() if count}
    # Of steps, of garbage collection, and of a namespace that goes.
    assert {"update Deployment", "update Node status", "patch Node", "delete ReplicaSet"} <= asked
    assert {"delete Pod", "update Namespace finalize"} <= asked
    assert simulation.store.find("Namespace", "shop") is None
    assert simulation.store.objects("ReplicaSet") == []
