"""The scheduler program, run by a test at an API server over HTTP."""

from __future__ import annotations

import asyncio
import io
import json
import urllib.request
from collections.abc import Callable
from typing import Any

from podium.app.live.live_program import LiveSettings
from podium.app.live.live_scheduler import LiveScheduler
from podium.app.live.logs import Log
from podium.app.live.metrics import HealthSettings
from podium.client.credentials import ClusterAccess
from podium.client.leader_election import LeaseSettings
from podium.framework.settings.configuration import default_configuration
from tests.client.api_server import NOW, APIServer
from tests.store.objects import SECOND, node
from tests.waiting import GUARD_SECONDS

# Renewed often, and long enough for a slow machine, which would lose a shorter one.
LEASE = LeaseSettings(
    identity="me", duration_ns=600 * SECOND, renew_deadline_ns=500 * SECOND, retry_period_ns=SECOND // 10
)
ACCESS = ClusterAccess(name="test", server="https://10.0.0.1")
SETTINGS = LiveSettings(configuration=default_configuration(), identity="me", health=HealthSettings(port=0))


class Running:
    """The program while it runs; `log` is what it has said."""

    def __init__(self, server: APIServer, settings: LiveSettings = SETTINGS) -> None:
        self.text = io.StringIO()
        access = ClusterAccess(name="test", server=server.url)
        self.program = LiveScheduler(access, settings, Log(lambda: NOW, "json", stream=self.text))

    async def __aenter__(self) -> Running:
        self.task = asyncio.ensure_future(self.program.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.program.stop()
        async with asyncio.timeout(GUARD_SECONDS):
            self.code = await self.task

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.getvalue().splitlines()]

    def said(self, message: str) -> bool:
        return any(message in line["msg"] for line in self.log)

    async def read(self, path: str) -> tuple[int, str]:
        return await asyncio.to_thread(_read, f"{self.program.url}{path}")


def _read(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=GUARD_SECONDS) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def node_of(server: APIServer, name: str) -> str:
    stored = server.store.find("Pod", f"default/{name}")
    return "" if stored is None else str(stored.raw["spec"].get("nodeName", ""))


def is_going(server: APIServer, name: str) -> bool:
    stored = server.store.find("Pod", f"default/{name}")
    return stored is None or "deletionTimestamp" in stored.raw["metadata"]


def play(story: Callable[[APIServer], Any]) -> None:
    """Play a story at an API server with the node n1."""

    async def run() -> None:
        async with APIServer() as server:
            server.add(node("n1"))
            await story(server)

    asyncio.run(run())
