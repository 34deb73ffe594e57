"""A control plane served over HTTP on its own thread."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from podium.app.serving.serving import write_kubeconfig
from podium.controlplane.control_plane import ControlPlaneRunner, EmbeddedControlPlane
from podium.runtime.clock import Clock
from podium.server.http.server import Server

Result = TypeVar("Result")


class Served:
    """A server on loopback until it is stopped; ``url`` is its address, ``kubeconfig`` a file for clients.

    The control plane belongs to the server's thread; `call` runs functions there.
    """

    def __init__(self, plane: EmbeddedControlPlane, pace: Clock) -> None:
        """Start the server; return when it accepts clients."""
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
            write_kubeconfig(self.kubeconfig, self.url)
        except BaseException:
            self._end_loop()
            raise

    @property
    def is_here(self) -> bool:
        """Return whether the caller is on the server's thread."""
        return threading.current_thread() is self._thread

    def call(self, work: Callable[[], Result]) -> Result:
        """Run a function on the server's thread, and return its result or raise its error."""

        async def done() -> Result:
            await self._plane.idle()
            return work()

        return self._await(done())

    def stop(self) -> None:
        """Stop the server and its thread. Raises the control plane's error if it has failed."""
        try:
            self._await(self._stop())
        finally:
            self._end_loop()

    async def _start(self) -> tuple[Server, asyncio.Task[None]]:
        server = Server(self._plane)
        await server.start()
        return server, asyncio.ensure_future(ControlPlaneRunner(self._plane, self._pace).run())

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
