"""A control plane that clients reach over HTTP, on a thread of its own, beside the test that looks at it."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from podium.app.serving.kubeconfig import Access, write_kubeconfig
from podium.plane.control_plane import ControlPlane
from podium.plane.runner import Pace, Runner
from podium.server.http.server import Server
from podium.server.http.settings import Settings
from podium.server.kubernetes_documents import KubernetesDocuments

Result = TypeVar("Result")


class Served:
    """A server that listens on loopback until it is stopped. ``url`` is where, ``kubeconfig`` a file that says so.

    The plane belongs to the server's thread: `call` has something done there.
    """

    def __init__(self, plane: ControlPlane, pace: Pace) -> None:
        """Begin to listen; returns when clients can come."""
        self._plane = plane
        self._pace = pace
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="podium-server", daemon=True)
        self._folder = tempfile.TemporaryDirectory(prefix="podium-")
        self.kubeconfig = Path(self._folder.name) / "kubeconfig"
        self._thread.start()
        try:
            self._server, self._running = self._await(self._start())
            self.url = self._server.address
            write_kubeconfig(self.kubeconfig, Access(self.url))
        except BaseException:
            self._end_loop()
            raise

    @property
    def is_here(self) -> bool:
        """Whether it is asked from the server's own thread."""
        return threading.current_thread() is self._thread

    def call(self, work: Callable[[], Result]) -> Result:
        """Do something on the server's thread, and give what comes of it. Raises what that raises."""

        async def done() -> Result:
            return work()

        return self._await(done())

    def stop(self) -> None:
        """End: watches, connections, and the thread. Raises what the control plane has ended with, if it has."""
        try:
            self._await(self._stop())
        finally:
            self._end_loop()

    async def _start(self) -> tuple[Server, asyncio.Task[None]]:
        server = Server(self._plane, KubernetesDocuments(self._plane), Settings())
        await server.start()
        return server, asyncio.ensure_future(Runner(self._plane, self._pace).run())

    async def _stop(self) -> None:
        await self._server.stop()
        has_failed = self._running.done()
        self._running.cancel()
        found = await asyncio.gather(self._running, return_exceptions=True)
        if has_failed and isinstance(found[0], BaseException):
            raise found[0]

    def _await(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()
