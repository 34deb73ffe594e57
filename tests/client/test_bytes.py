"""Bytes that are not what they should be."""

import asyncio
import time

import pytest
from aiohttp import web

from podium.apirequests.request import Request
from podium.client.credentials import ClusterAccess, Credentials
from podium.client.session import NoAnswerError, Session
from podium.store.api_resources import APIResources
from tests.client.api_server import APIServer


@pytest.mark.parametrize("body", [b'{"kind": "\xff"}', b"\xff", b"[" * 100_000])
def test_an_answer_that_is_no_json_counts_as_none(body: bytes) -> None:
    async def answer(_: Request) -> web.StreamResponse:
        return web.Response(body=body, content_type="application/json")

    async def asked() -> None:
        async with APIServer() as server:
            server.before = answer
            access = ClusterAccess(name="test", server=server.url)
            session = Session(access, Credentials(access, time.time_ns), APIResources())
            try:
                with pytest.raises(NoAnswerError):
                    await session.answer(Request(verb="get", kind="Node", key="a"))
            finally:
                await session.close()

    asyncio.run(asked())
