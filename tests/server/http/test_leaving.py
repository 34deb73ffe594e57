"""Clients that come and go leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

from tests.server.serving import PODS, RUN, Client, served
from tests.store.objects import pod
from tests.waiting import GUARD_SECONDS

ROUNDS = 40


def test_nothing_is_left_of_connections_requests_and_watches() -> None:
    async def come_and_go(client: Client) -> Counter[str]:
        """Clients come and go, one after the other; what there is afterwards, by type."""
        for _ in range(ROUNDS):
            # For each as long, so that it is no matter how slow the machine is, or how many they are.
            async with asyncio.timeout(GUARD_SECONDS):
                await ask_in_many_ways(client)
        async with asyncio.timeout(GUARD_SECONDS):
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others)
        gc.collect()
        return Counter(type(each).__name__ for each in gc.get_objects())

    async def check() -> None:
        async with served(pod("a")) as client:
            await come_and_go(client)
            before = await come_and_go(client)
            after = await come_and_go(client)
        assert {name: after[name] - before[name] for name in after if after[name] - before[name] >= ROUNDS // 2} == {}

    # What tests before this one have left takes long to look through, and is none of this.
    gc.freeze()
    RUN(check())


async def ask_in_many_ways(client: Client) -> None:
    """Each time over a connection of its own; the last one goes in the middle of its request."""
    async with client.watch(f"{PODS}?watch=1", Connection="close") as watcher:
        await watcher.names(1)
    for path in (PODS, f"{PODS}/none", "/healthz", "/nothing", f"{PODS}?labelSelector=a+in+("):
        await client.ask("GET", path, headers={"Connection": "close"})
    _, writer = await asyncio.open_connection("127.0.0.1", client.server.port)
    writer.write(b"GET /half")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
