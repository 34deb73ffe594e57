"""What was written and is taken in later, by those whom nobody asks before the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.store.log.watch_event import WatchEvent

Write = tuple[WatchEvent, int, str, str]
"""A write, when it was made and by whom, and a message for people."""

MOST = 256
"""So many writes wait at most."""


class Backlog:
    """Writes that wait to be taken in, many at a time, by all who record and measure.

    What is recorded and measured of a write is little. Done each time between all else that follows from the write, it
    takes half as long again as many times in a row, when the processor's caches hold what it takes. Whoever is asked
    for what comes of the writes has those taken in first that wait.
    """

    __slots__ = ("_takers", "_waiting")

    def __init__(self) -> None:
        self._takers: list[Callable[[Sequence[Write]], None]] = []
        self._waiting: list[Write] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, take_in: Callable[[Sequence[Write]], None]) -> None:
        """Have somebody take in all writes from now on, after those who have joined before."""
        self._takers.append(take_in)

    def put(self, event: WatchEvent, now: int, by: str, message: str) -> None:
        """Let a write be taken in after all before it."""
        self._waiting.append((event, now, by, message))
        if len(self._waiting) >= MOST:
            self.clear()

    def clear(self) -> None:
        """Have all writes taken in that wait."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for take_in in self._takers:
                take_in(waiting)
