"""The scheduler against an API server over HTTP."""

import asyncio
import time

import pytest

from podium.client.credentials import ClusterAccess, Credentials
from podium.client.live_cluster import LiveCluster, Watched
from podium.client.reflector_state import ReflectorState
from podium.client.session import Session
from podium.client.transport import HTTPTransport
from podium.controllers.scheduling.scheduler import Scheduler
from podium.runtime.runtime import Component
from podium.store.api_resources import APIResources
from tests.client.api_server import APIServer
from tests.store.objects import node, pod
from tests.waiting import GUARD_SECONDS, until


class Live:
    def __init__(self, server: APIServer) -> None:
        access = ClusterAccess(name="test", server=server.url)
        self.session = Session(access, Credentials(access, time.time_ns), APIResources())
        self.cluster = LiveCluster(
            self.session,
            Watched(kinds=Scheduler.watches),
            time.time_ns,
            lambda answer: HTTPTransport(self.session, answer, time.time_ns),
        )
        self.component = Component("default-scheduler", Scheduler, waits=True)

    async def __aenter__(self) -> "Live":
        self.cluster.reflect()
        await self.cluster.wait_synced()
        self.run = asyncio.ensure_future(self.cluster.run([self.component]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cluster.stop()
        await self.run
        await self.cluster.transport.close()
        await self.cluster.close()
        await self.session.close()


def test_pods_are_bound_over_http() -> None:
    async def story() -> None:
        async with APIServer() as server:
            server.add(node("n1"), node("n2"), pod("a"))
            async with Live(server):
                await until(lambda: bool(server.store.get("Pod", "default/a").raw["spec"].get("nodeName")))
                server.add(pod("b"), pod("c", cpu=100))
                await until(lambda: bool(server.store.get("Pod", "default/b").raw["spec"].get("nodeName")))
                await until(lambda: "status" in server.store.get("Pod", "default/c").raw)
                await until(lambda: any(r.kind == "Event" for r in server.sent))

    asyncio.run(story())


def test_a_failing_reflector_ends_the_run_and_its_waiters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(machine: ReflectorState, *_: object) -> None:
        raise LookupError(f"by way of a test, {machine.resource.name}")

    async def story() -> None:
        async with APIServer() as server, asyncio.timeout(GUARD_SECONDS):
            server.add(node("n1"))
            live = await Live(server).__aenter__()
            monkeypatch.setattr(ReflectorState, "events", fail)
            server.add(node("n2"))
            with pytest.raises(LookupError, match="Node"):
                await live.run
            await live.cluster.close()
            live.cluster.reflect()
            with pytest.raises(LookupError):
                await live.cluster.wait_synced(server.store.version)
            await live.cluster.close()
            await live.cluster.transport.close()
            await live.session.close()

    asyncio.run(story())
