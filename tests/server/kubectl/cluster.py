"""A control plane for kubectl, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from podium.controlplane.assembly import InitialContent, assemble, open_store
from podium.controlplane.components import ControlPlaneSettings
from podium.controlplane.control_plane import ControlPlaneRunner
from podium.runtime.clock import SystemClock
from podium.server.http.server import Server
from podium.server.kubernetes_documents import KubernetesDocuments
from tests.store.objects import Raw
from tests.waiting import GUARD_SECONDS


class Cluster:
    """A cluster at a URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, method: str, path: str, body: Any = None) -> Raw:
        """Return the answer to a request, without kubectl."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=GUARD_SECONDS) as response:
            raw: Raw = json.load(response)
        return raw

    def create(self, path: str, raw: Raw) -> None:
        """Create an object."""
        self.ask("POST", path, raw)


@contextmanager
def running_cluster(nodes: int) -> Iterator[Cluster]:
    """Provide a cluster with so many nodes, until the block ends."""
    ready: threading.Event = threading.Event()
    found: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        clock = SystemClock()
        plane = assemble(open_store(seed=0), clock, ControlPlaneSettings(), InitialContent(nodes=nodes)).plane
        server = Server(plane, KubernetesDocuments(plane))
        await server.start()
        ended = asyncio.Event()
        running = asyncio.ensure_future(ControlPlaneRunner(plane, clock).run())
        found.append((server.address, asyncio.get_running_loop(), ended))
        ready.set()
        await ended.wait()
        await server.stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        plane.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="cluster", daemon=True)
    thread.start()
    assert ready.wait(GUARD_SECONDS)
    url, loop, ended = found[0]
    try:
        yield Cluster(url)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(GUARD_SECONDS)
        assert not thread.is_alive()
