"""A work queue that knows why work on its keys failed."""

from __future__ import annotations

from typing import TypeVar

from podium.machines.observations import Problem
from podium.machines.work_queue import WorkQueue

Key = TypeVar("Key")

_REFUSALS = frozenset((400, 403, 422))


class RetryQueue(WorkQueue[Key]):
    """Tells failures that pass, such as conflicts and a server's errors, from refusals that will be repeated.

    All are tried again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passing: dict[Key, None] = {}

    def answer(self, key: Key, problem: Problem | None, now: int) -> None:
        """A write for the key has ended; after a problem the key is looked at again, as `fail` says."""
        if problem is None:
            self.succeed(key)
            return
        self.fail(key, now)
        if problem.code in _REFUSALS:
            self._passing.pop(key, None)
        else:
            self._passing[key] = None

    def succeed(self, key: Key) -> None:
        super().succeed(key)
        self._passing.pop(key, None)

    def is_settled(self) -> bool:
        """Whether no key waits but for what was refused."""
        return self.next_time() != 0 and not self._passing
