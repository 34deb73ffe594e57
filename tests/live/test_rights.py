"""With how few rights a scheduler does with."""

import asyncio

from podium.server.http.settings import Token
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
            # The kubelets and the controllers write, and nobody else does.
            told = {raw["source"]["component"] for raw in written if raw["kind"] == "Event"}
            assert "default-scheduler" not in told
            assert cluster.node_of("fits") == ""
            assert TOKEN not in instance.text.getvalue()

    asyncio.run(story())


def test_a_token_that_is_not_known_is_told_and_keeps_the_scheduler_from_being_ready() -> None:
    async def story() -> None:
        async with Cluster(tokens=(Token(text=TOKEN),)) as cluster:
            instance = Instance(cluster, token="another-token-that-is-wrong")
            await until(lambda: instance.said("cannot keep up with a kind"))
            assert any("401 Unauthorized" in line.get("problem", "") for line in instance.log)
            assert "another-token" not in instance.text.getvalue()
            assert await instance.stop() == 0

    asyncio.run(story())
