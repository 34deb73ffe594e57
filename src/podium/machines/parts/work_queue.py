"""What a controller has yet to look at: now, at a time, or after a back-off when work on it failed.

Source: k8s.io/client-go/util/workqueue (a rate-limiting queue).
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, TypeVar

from podium.machines.observations import Answered
from podium.machines.parts.agenda import Agenda
from podium.machines.parts.backoff import Backoff
from podium.machines.parts.deadlines import AT_ONCE, NEVER, Deadline, Deadlines, earliest

Key = TypeVar("Key")

_SECOND = 10**9
_FIRST_BACKOFF_NS = _SECOND
_LONGEST_BACKOFF_NS = 300 * _SECOND
# What was refused so often in a row is not expected to be taken the next time.
_STUCK_AFTER = 2


class WorkQueue(Generic[Key]):
    """Keys in the order in which they were added; a key that waits already is not added again.

    All that fails is tried again: after 1 s, doubled with each failure since a success, at most 300 s. The queue tells
    failures that pass from refusals that will be repeated until somebody else changes something.
    """

    def __init__(self, first_wait_ns: int = _FIRST_BACKOFF_NS, longest_wait_ns: int = _LONGEST_BACKOFF_NS) -> None:
        self._ready: dict[Key, None] = {}
        self._later: Agenda[Key] = Agenda()
        self._retries: Deadlines[Key] = Deadlines()
        self._backoff: Backoff[Key] = Backoff(first_wait_ns, longest_wait_ns)
        # The lasting refusals of a key in a row; and the keys that wait for another try that may well succeed.
        self._refusals: Counter[Key] = Counter()
        self._passing: set[Key] = set()

    def add(self, key: Key) -> None:
        """Look at the key as soon as possible."""
        self._ready[key] = None

    def add_at(self, key: Key, time_ns: int) -> None:
        """Look at the key at a time."""
        self._later.add(time_ns, key)

    def answer(self, key: Key, answered: Answered, now: int) -> None:
        """A write for the key has ended; unless nothing is left to ask for, the key is looked at again."""
        answer = answered.answer
        if answer.is_over:
            self.succeed(key)
            return
        self._refusals[key] = self._refusals[key] + 1 if answer.lasts else 0
        self._backoff.fail(key, now, answered.wait_ns)
        self._retries.set(key, self._backoff.until(key, now))
        if self._refusals[key] < _STUCK_AFTER:
            self._passing.add(key)
        else:
            self._passing.discard(key)

    @property
    def has_failures(self) -> bool:
        """Whether work on any key has failed since it last succeeded."""
        return bool(self._refusals) or bool(self._backoff)

    def succeed(self, key: Key) -> None:
        """Work on the key was done; its next failure is its first. What else has failed for it is tried again still."""
        self._backoff.forget(key)
        self._refusals.pop(key, None)

    def forget(self, key: Key) -> None:
        """Nothing is to be done for the key."""
        self.succeed(key)
        self._ready.pop(key, None)
        self._retries.set(key, None)
        self._passing.discard(key)

    def take(self, now: int) -> Key | None:
        """Remove and return the next key whose time has come, None when there is none."""
        if self._later or self._retries.times:
            for source in (self._later, self._retries):
                while (due := source.take_due(now)) is not None:
                    self._ready[due] = None
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        self._retries.set(key, None)
        self._passing.discard(key)
        return key

    def deadline(self) -> Deadline:
        """When `take` next has something. That what was refused, and refused again, is tried once more is no news."""
        if self._ready:
            return AT_ONCE
        if not self._retries.times and not self._passing and not len(self._later):
            return NEVER
        later_ns, retry_ns = self._later.next_time(), self._retries.next_time()
        return Deadline(earliest((later_ns, retry_ns)), later_ns is not None or bool(self._passing))
