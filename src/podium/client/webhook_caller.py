"""Calls of webhooks over HTTPS."""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
import msgspec

from podium.store.webhook_calls import WebhookAnswer, WebhookCall

_MOST_BYTES = 10 * 1024 * 1024


async def call_webhook(call: WebhookCall) -> WebhookAnswer:
    """Call a webhook; a call that fails is an answer with a problem.

    As kube-apiserver, it follows no redirects, and verifies the certificate by the webhook's own authority, if any.
    """
    where = f'Post "{call.url}"'
    try:
        context = ssl.create_default_context(cadata=call.authority or None)
        async with (
            asyncio.timeout(call.seconds),
            aiohttp.ClientSession() as session,
            session.post(
                call.url,
                data=msgspec.json.encode(call.body),
                headers={"Content-Type": "application/json", "Accept": "application/json"},
                ssl=context,
                server_hostname=call.server_name or None,
                allow_redirects=False,
            ) as response,
        ):
            body = await response.content.read(_MOST_BYTES)
            if response.status != 200:
                return WebhookAnswer(problem=f"{where}: the server answers with code {response.status}")
            return WebhookAnswer(msgspec.json.decode(body))
    except TimeoutError:
        return WebhookAnswer(problem=f"{where}: context deadline exceeded")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return WebhookAnswer(problem=f"{where}: the answer is no JSON")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return WebhookAnswer(problem=f"{where}: {error}")
