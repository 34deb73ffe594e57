"""Clients that come and go leave nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

from tests.server.serving import PODS, Client, with_server
from tests.store.objects import pod

ROUNDS = 40


def test_nothing_is_left_of_connections_requests_and_watches() -> None:
    async def come_and_go(client: Client) -> Counter[str]:
        """Ask in many ways, each time over a connection of its own; what there is afterwards, by type."""
        for _ in range(ROUNDS):
            async with client.watch(f"{PODS}?watch=1", Connection="close") as watcher:
                await watcher.names(1)
            for path in (PODS, f"{PODS}/none", "/healthz", "/nothing", f"{PODS}?labelSelector=a+in+("):
                await client.ask("GET", path, headers={"Connection": "close"})
            _, writer = await asyncio.open_connection("127.0.0.1", client.server.port)
            writer.write(b"GET /half")
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0.001)
        gc.collect()
        return Counter(type(each).__name__ for each in gc.get_objects())

    async def check(client: Client) -> None:
        await come_and_go(client)
        before = await come_and_go(client)
        after = await come_and_go(client)
        assert {name: after[name] - before[name] for name in after if after[name] - before[name] >= ROUNDS // 2} == {}

    with_server(check, pod("a"))
