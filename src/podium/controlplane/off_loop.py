"""Work that takes too long for the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class OffLoop:
    """Runs work that uses other threads, one piece at a time.

    While a piece runs, it alone may use the data that it works on. Code on the event loop waits for `idle` first, and
    may then use the data until it awaits something.
    """

    def __init__(self) -> None:
        self._running: asyncio.Task[Any] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a piece of work runs."""
        return self._running is not None

    async def idle(self) -> None:
        """Wait until no work runs."""
        while self._running is not None:
            await asyncio.wait((self._running,))

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of the work, which goes on if the caller is cancelled. Raises what it raises."""
        await self.idle()
        task = self._running = asyncio.ensure_future(work)
        task.add_done_callback(self._end)
        return await asyncio.shield(task)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._running = None
        if not task.cancelled():
            # Mark the exception as retrieved: the caller may be gone.
            task.exception()
