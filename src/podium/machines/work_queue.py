"""What a controller has yet to look at: now, at a time, or after a back-off when work on it failed.

Source: k8s.io/client-go/util/workqueue (a rate-limiting queue).
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, TypeVar

from podium.machines.agenda import Agenda

Key = TypeVar("Key")

_SECOND = 10**9
_FIRST_BACKOFF_NS = _SECOND
_LONGEST_BACKOFF_NS = 300 * _SECOND


class WorkQueue(Generic[Key]):
    """Keys in the order in which they were added; a key that waits already is not added again."""

    def __init__(self) -> None:
        self._ready: dict[Key, None] = {}
        self._later: Agenda[Key] = Agenda()
        self._failures: Counter[Key] = Counter()

    def add(self, key: Key) -> None:
        """Look at the key as soon as possible."""
        self._ready[key] = None

    def add_at(self, key: Key, time_ns: int) -> None:
        """Look at the key at a time."""
        self._later.add(time_ns, key)

    def fail(self, key: Key, now: int) -> None:
        """Look at the key again after a back-off: 1 s, doubled with each failure since a success, at most 300 s."""
        backoff_ns = min(_FIRST_BACKOFF_NS << min(self._failures[key], 16), _LONGEST_BACKOFF_NS)
        self._failures[key] += 1
        self._later.add(now + backoff_ns, key)

    def succeed(self, key: Key) -> None:
        """Work on the key was done; its next failure is its first."""
        self._failures.pop(key, None)

    def take(self, now: int) -> Key | None:
        """Remove and return the next key whose time has come, None when there is none."""
        while (due := self._later.take_due(now)) is not None:
            self._ready[due] = None
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        return key

    def next_time(self) -> int | None:
        """When `take` next has something: 0 for at once, None for never."""
        return 0 if self._ready else self._later.next_time()
