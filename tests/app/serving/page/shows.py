"""A page in front of a store, and its requests."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from podium.api.kinds import KINDS
from podium.app.serving.page.answering import Answering
from podium.app.serving.page.live_page import HEADER, LivePage
from podium.app.serving.page.watching import ShownCluster, StoreWatching, always_idle
from podium.sim.run_options import RunOptions
from podium.store.api_resources import BUILT_IN
from podium.store.stored import Stored
from tests.app.forked_workers import fork_workers
from tests.server.serving import NOW, Client, LocalBackend, with_server
from tests.store.objects import Raw

OURS = {HEADER: "1"}


def shown_of(backend: LocalBackend) -> ShownCluster:
    def objects() -> list[Stored]:
        return [stored for of in KINDS if BUILT_IN[of].served_versions for stored in backend.store.objects(of[1])]

    return ShownCluster(
        mode="control-plane",
        title="a store",
        objects=objects,
        events=lambda: backend.store.objects("Event"),
        now=lambda: NOW,
        options=RunOptions(ignore_extenders=True),
    )


def with_page(
    check: Callable[[Client], Awaitable[None]],
    *objects: Raw,
    answering: Answering | None = None,
    backend: LocalBackend | None = None,
    real: bool = False,
    **more: Any,
) -> None:
    """Run a check against a server with these objects, or with a store, and a page.

    The server forks the processes that answer, or starts ``real`` ones.
    """
    backend = backend or LocalBackend(*objects)

    async def checked(client: Client) -> None:
        try:
            await check(client)
        finally:
            await page.close()

    watching = StoreWatching(backend.store, always_idle)
    page = LivePage(lambda: shown_of(backend), watching, answering or Answering())
    with pytest.MonkeyPatch.context() as patched:
        if not real:
            fork_workers(patched.setattr)
        with_server(checked, backend=backend, pages=page, **more)


async def reported(client: Client, question: str, **values: Any) -> list[Raw]:
    """Return what comes of a question, line by line."""
    body = {"question": question, "values": values}
    response, data = await client.reply("POST", "/ui/ask", body, headers=OURS)
    assert response.status == 200, data
    return [json.loads(line) for line in data.splitlines()]
