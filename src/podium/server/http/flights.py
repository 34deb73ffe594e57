"""How many requests are answered at a time.

Source: apiserver (pkg/server/filters/maxinflight.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from podium.store.errors import StoreError

READING, WRITING, WATCHING = "readOnly", "mutating", "watching"


class Flights:
    """The requests under way, of each sort at most as many as may be."""

    def __init__(self, most: dict[str, int]) -> None:
        self._most = most
        self.under_way = dict.fromkeys(most, 0)

    @contextmanager
    def flight(self, sort: str) -> Iterator[None]:
        """Count a request for as long as it is answered. Raises StoreError 429 where there are as many as may be."""
        under_way = self.under_way
        if under_way[sort] >= self._most[sort]:
            details = {"retryAfterSeconds": 1}
            raise StoreError(429, "TooManyRequests", "Too many requests, please try again later.", details)
        under_way[sort] += 1
        try:
            yield
        finally:
            under_way[sort] -= 1
