"""Several reflectors that somebody relies on: none of them may end unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from podium.client.reflecting.reflector import Reflector

Result = TypeVar("Result")


class Reflectors:
    """Runs reflectors. What one of them fails with ends the work that is done meanwhile.

    Refusals and connections that break are their daily business. What they fail with is a full disk of whoever they
    tell, or a mistake: what is known would be old from then on, and nobody would be told.
    """

    def __init__(self, reflectors: Sequence[Reflector]) -> None:
        self._reflectors = reflectors
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Begin to keep up."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(reflector.run()) for reflector in self._reflectors]

    async def during(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What comes of some work; raises what a reflector fails with before that is done."""
        working = asyncio.ensure_future(work)
        try:
            await asyncio.wait((working, *self._tasks), return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done() and not task.cancelled():
                    task.result()
            return await working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def close(self) -> None:
        """Keep up no longer."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
