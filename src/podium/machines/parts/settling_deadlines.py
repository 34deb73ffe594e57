"""Deadlines that tell what has yet to happen from what happens again and again."""

from __future__ import annotations

from typing import Generic, TypeVar

from podium.machines.parts.deadlines import Deadline, Deadlines

Key = TypeVar("Key")


class SettlingDeadlines(Generic[Key]):
    """One time for each key, and whether the key will be due again and again."""

    def __init__(self) -> None:
        self._deadlines: Deadlines[Key] = Deadlines()
        # Those of the keys with a time that recur.
        self._recurring: set[Key] = set()

    def set(self, key: Key, time_ns: int | None, *, recurs: bool = False) -> None:
        """The key is due at that time and no other; None, and what comes after the last time that there is: never."""
        deadlines = self._deadlines
        deadlines.set(key, time_ns)
        if recurs and key in deadlines.times:
            self._recurring.add(key)
        elif self._recurring:
            self._recurring.discard(key)

    def deadline(self) -> Deadline:
        """When the first is due; what recurs is no news."""
        deadlines = self._deadlines
        return deadlines.deadline(is_news=len(self._recurring) < len(deadlines.times))

    def take_due(self, now: int) -> Key | None:
        """Remove and return the first key if its time has come, else None."""
        key = self._deadlines.take_due(now)
        if key is not None and self._recurring:
            self._recurring.discard(key)
        return key
