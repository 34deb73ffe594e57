"""The live scheduler at an API server that serves or shows less than Podium's own."""

import asyncio

import pytest

from podium.apirequests.request import Request, Response
from podium.server.http.security import Token
from podium.store.errors import StoreError
from tests.live.cluster import Cluster, Instance
from tests.store.objects import node, pod, priority_class
from tests.waiting import until

TOKEN = "0123456789abcdef"


def test_a_dry_run_does_with_the_rights_to_read() -> None:
    async def story() -> None:
        async with Cluster(tokens=(Token(text=TOKEN, reads_only=True),)) as cluster:
            low = pod("low", cpu=4, node="n1", priority=0)
            cluster.add(priority_class("high", 1_000), node("n1", cpu=4), node("n2", cpu=1), low, pod("fits", cpu=1))
            cluster.add(pod("preempts", cpu=4, spec={"priorityClassName": "high"}))
            version = cluster.plane.store.version
            instance = Instance(cluster, token=TOKEN, dry_run=True)
            await until(lambda: {"Bind", "DeleteObject"} <= {line.get("action") for line in instance.log})
            assert await instance.stop() == 0
            written = [event.stored.raw for event in cluster.plane.store.events_since(version)]
            # Only the kubelets and the controllers write.
            report = {raw["source"]["component"] for raw in written if raw["kind"] == "Event"}
            assert "default-scheduler" not in report
            assert cluster.node_of("fits") == ""
            assert TOKEN not in instance.text.getvalue()

    asyncio.run(story())


def test_an_unknown_token_is_reported_and_makes_the_scheduler_unready() -> None:
    async def story() -> None:
        async with Cluster(tokens=(Token(text=TOKEN),)) as cluster:
            instance = Instance(cluster, token="another-token-that-is-wrong")
            await until(lambda: instance.said("cannot list or watch a kind"))
            assert any("401 Unauthorized" in line.get("problem", "") for line in instance.log)
            assert "another-token" not in instance.text.getvalue()
            assert await instance.stop() == 0

    asyncio.run(story())


@pytest.mark.parametrize(("code", "reason", "warns"), [(404, "NotFound", False), (403, "Forbidden", True)])
def test_the_scheduler_warns_of_unlistable_optional_kinds_but_not_of_unserved_ones(
    code: int, reason: str, warns: bool
) -> None:
    """A standard Kubernetes 1.36 serves neither PodGroups nor DeviceTaintRules, unless alpha APIs are switched on."""

    async def story() -> None:
        async with Cluster() as cluster:
            served = cluster.backend.answer

            def answer(request: Request) -> Response:
                if request.kind in ("PodGroup", "DeviceTaintRule"):
                    return Response(code=code, error=StoreError(code, reason, "by way of a test"))
                return served(request)

            cluster.backend.answer = answer  # type: ignore[method-assign]
            instance = Instance(cluster)
            await until(instance.program.leads.is_set)
            assert await instance.stop() == 0
            warnings = [line for line in instance.log if line["level"] == "warning"]
            assert any("PodGroup" in str(line) for line in warnings) == warns
            assert not any("cannot list or watch a kind" in line["msg"] for line in warnings)

    asyncio.run(story())
