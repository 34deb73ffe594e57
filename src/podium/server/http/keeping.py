"""Nobody is told of what may yet be lost: replies wait until it is kept, those of one turn of the loop together."""

from __future__ import annotations

import asyncio

from podium.server.backend import Backend


class Keeping:
    """Has the backend keep what it has answered.

    Requests that come in the same turn of the loop are answered one after the other, and kept in the next turn at once:
    a disk takes about as long for one write as for a hundred.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._waiting: asyncio.Future[None] | None = None

    def keep(self) -> None:
        """Return when everything is kept. Raises what the backend does."""
        if not self._backend.is_kept:
            self._backend.keep()

    async def kept(self) -> None:
        """Wait until everything is kept. Raises what the backend does."""
        if self._backend.is_kept:
            return
        if self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            loop.call_soon(self._keep, self._waiting)
        # Whoever goes away takes nothing from the others.
        await asyncio.shield(self._waiting)

    def _keep(self, waiting: asyncio.Future[None]) -> None:
        self._waiting = None
        try:
            self.keep()
        except Exception as error:
            waiting.set_exception(error)
            # That nobody may be left who waits is no mishap.
            waiting.exception()
        else:
            waiting.set_result(None)
