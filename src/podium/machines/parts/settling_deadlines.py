"""Deadlines that tell what has yet to happen from what happens again and again."""

from __future__ import annotations

from typing import Generic, TypeVar

from podium.machines.parts.deadlines import Deadline, Deadlines

Key = TypeVar("Key")


class SettlingDeadlines(Generic[Key]):
    """One time for each key, and whether the key will be due again and again."""

    def __init__(self) -> None:
        self._deadlines: Deadlines[Key] = Deadlines()
        # Those that do not recur.
        self._once: set[Key] = set()

    def set(self, key: Key, time_ns: int | None, *, recurs: bool = False) -> None:
        """The key is due at that time and no other; None, and what comes after the last time that there is: never."""
        self._deadlines.set(key, time_ns)
        if recurs or key not in self._deadlines.times:
            self._once.discard(key)
        else:
            self._once.add(key)

    def deadline(self) -> Deadline:
        """When the first is due; what recurs is no news."""
        return self._deadlines.deadline(is_news=bool(self._once))

    def take_due(self, now: int) -> Key | None:
        """Remove and return the first key if its time has come, else None."""
        key = self._deadlines.take_due(now)
        if key is not None:
            self._once.discard(key)
        return key
