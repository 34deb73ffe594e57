"""Calls of webhooks over HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from podium.client.extenders import call_webhook
from podium.store.webhook_calls import WebhookAnswer, WebhookCall


def called(answer: web.StreamResponse | None, **more: Any) -> tuple[str, WebhookAnswer]:
    """Return the URL of a webhook, and the answer to a call of it."""

    async def story() -> tuple[str, WebhookAnswer]:
        never = asyncio.Event()

        async def handle(request: web.Request) -> web.StreamResponse:
            if answer is None:
                await never.wait()
            return answer or web.json_response(await request.json())

        app = web.Application()
        app.router.add_post("/hook", handle)
        runner = web.AppRunner(app, shutdown_timeout=0.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        try:
            return url, await call_webhook(WebhookCall(url=url, body={"a": 1}, **more))
        finally:
            never.set()
            await runner.cleanup()

    return asyncio.run(story())


def test_the_body_of_the_response_is_the_answer() -> None:
    assert called(web.json_response({"b": 2}))[1] == WebhookAnswer({"b": 2})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (web.Response(status=404), "the server answers with code 404"),
        (web.Response(status=302, headers={"Location": "/other"}), "the server answers with code 302"),
        (web.Response(body=b'{"a": "\xff"}'), "the answer is not JSON"),
        (None, "context deadline exceeded"),
    ],
)
def test_a_call_that_fails_is_a_problem_with_its_url(answer: web.StreamResponse | None, problem: str) -> None:
    url, found = called(answer, seconds=0.2 if answer is None else 30.0)
    assert found == WebhookAnswer(problem=f'Post "{url}": {problem}')


def test_nothing_at_the_address_is_a_problem() -> None:
    found = asyncio.run(call_webhook(WebhookCall(url="https://127.0.0.1:1/", body={}, authority="")))
    assert found.problem.startswith('Post "https://127.0.0.1:1/": Cannot connect')


def test_an_authority_that_is_none_is_a_problem() -> None:
    found = asyncio.run(call_webhook(WebhookCall(url="https://127.0.0.1:1/", body={}, authority="no PEM")))
    assert found.problem
