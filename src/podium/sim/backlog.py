"""What has happened and is taken in later, by those whom nobody asks before the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVarTuple

Arguments = TypeVarTuple("Arguments")

MOST = 256
"""So many entries wait at most."""


class Backlog(Generic[*Arguments]):
    """Calls that are made in their order, many at a time.

    What is recorded and measured of a write is little. Done each time between all else that follows from the write, it
    takes half as long again as many times in a row, when the processor's caches hold what it takes. Whoever is asked
    for what comes of the calls has those made first that wait.
    """

    __slots__ = ("_call", "_waiting")

    def __init__(self, call: Callable[[*Arguments], None]) -> None:
        self._call = call
        self._waiting: list[tuple[*Arguments]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, *arguments: *Arguments) -> None:
        """Let the call be made after all before it."""
        waiting = self._waiting
        waiting.append(arguments)
        if len(waiting) >= MOST:
            self.clear()

    def clear(self) -> None:
        """Make all calls that wait."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            call = self._call
            for arguments in waiting:
                call(*arguments)
