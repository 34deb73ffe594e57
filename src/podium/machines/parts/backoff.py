"""How long to leave something alone that keeps failing.

Source: k8s.io/client-go/util/flowcontrol (Backoff).
"""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")


class Backoff(Generic[Key]):
    """A wait for each key: ``first_ns`` after its first failure, twice as long after each further one.

    No wait is longer than ``longest_ns``. A key that has not failed for twice that time begins anew.
    """

    def __init__(self, first_ns: int, longest_ns: int) -> None:
        self._first_ns = first_ns
        self._longest_ns = longest_ns
        # By key, how long the last wait was, when it ends, and how many there were.
        self._waits: dict[Key, tuple[int, int, int]] = {}
        # The keys that failed again right after a wait as long as waits get.
        self._hopeless: set[Key] = set()

    def __bool__(self) -> bool:
        """Whether any key has failed."""
        return bool(self._waits)

    def fail(self, key: Key, now: int, least_ns: int = 0) -> None:
        """Begin the next wait, of ``least_ns`` or more; a failure during a wait changes nothing."""
        length_ns, end_ns, count = self._waits.get(key, (0, now, 0))
        if end_ns > now:
            return
        if length_ns and now - end_ns <= 2 * self._longest_ns:
            if length_ns == self._longest_ns:
                self._hopeless.add(key)
            length_ns = min(2 * length_ns, self._longest_ns)
        else:
            length_ns, count = self._first_ns, 0
            self._hopeless.discard(key)
        self._waits[key] = length_ns, now + max(length_ns, least_ns), count + 1

    def until(self, key: Key, now: int) -> int | None:
        """When the key's wait ends; None when it does not wait."""
        wait = self._waits.get(key)
        return wait[1] if wait is not None and wait[1] > now else None

    def failures(self, key: Key) -> int:
        """How often the key has failed in a row, but for failures during a wait."""
        return self._waits[key][2] if key in self._waits else 0

    def clear(self) -> None:
        """Whatever has failed may succeed now."""
        self._waits.clear()
        self._hopeless.clear()

    def forget(self, key: Key) -> None:
        """The key has not failed, or is no more."""
        self._waits.pop(key, None)
        self._hopeless.discard(key)

    def is_hopeless(self, key: Key) -> bool:
        """Whether the key has failed again after a wait as long as waits get, so that it is likely to go on failing."""
        return key in self._hopeless
