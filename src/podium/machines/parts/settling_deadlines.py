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
        self._deadlines.set(key, time_ns)
        if recurs or self._recurring:
            self._note(key, recurs=recurs)

    def set_last(self, key: Key, time_ns: int | None, *, recurs: bool = False) -> None:
        """The same, and the key is the last of those that are due then, even where it was due then before."""
        self._deadlines.set_last(key, time_ns)
        if recurs or self._recurring:
            self._note(key, recurs=recurs)

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

    def _note(self, key: Key, *, recurs: bool) -> None:
        if recurs and key in self._deadlines.times:
            self._recurring.add(key)
        else:
            self._recurring.discard(key)
