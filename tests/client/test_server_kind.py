"""The kind of API server, detected by its version."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from podium.api.versions.release import is_podium
from podium.client.credentials import ClusterAccess, Credentials
from podium.client.session import Session, server_version
from podium.store.api_resources import APIResources
from tests.waiting import GUARD_SECONDS


async def asked(url: str) -> bool:
    access = ClusterAccess(name="test", server=url)
    session = Session(access, Credentials(access, time.time_ns), APIResources(), timeout_s=GUARD_SECONDS)
    try:
        return is_podium(await server_version(session))
    finally:
        await session.close()


def reported(answer: web.Response) -> bool:
    """Return what is made of an answer to GET /version."""

    async def version(_request: web.Request) -> web.Response:
        return answer

    async def run() -> bool:
        app = web.Application()
        app.router.add_get("/version", version)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return await asked(f"http://127.0.0.1:{runner.addresses[0][1]}")
        finally:
            await runner.cleanup()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ({"gitVersion": "v1.36.2", "compiler": "podium 0.1.0"}, True),
        ({"gitVersion": "v1.36.2+podium.1"}, True),
        ({"gitVersion": "v1.36.2", "compiler": "gc"}, False),
        ({"gitVersion": "v1.36.2"}, False),
        ({"gitVersion": "v1.35.0+k3s1"}, False),
        ({"gitVersion": None}, False),
        ({}, False),
    ],
)
def test_podiums_server_is_recognized_by_its_version(version: dict[str, object], expected: bool) -> None:
    assert reported(web.json_response(version)) is expected


@pytest.mark.parametrize("code", [401, 403, 404, 500])
def test_a_server_without_version_is_not_podiums(code: int) -> None:
    assert reported(web.json_response({"kind": "Status", "code": code}, status=code)) is False


def test_a_server_that_is_not_there_is_another() -> None:
    assert asyncio.run(asked("http://127.0.0.1:1")) is False
