"""The base of controllers that note which keys a change concerns, and reconcile one key after the other.

Source: the controllers of kube-controller-manager, with k8s.io/client-go/util/workqueue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import Generic, TypeVar

from podium.api.meta import Kubernetes, Raw
from podium.controllers.actions import Action, Record
from podium.controllers.deadlines import Deadline
from podium.controllers.observations import Answered, Changed, Gone, Observation, Tick
from podium.controllers.work_queue import WorkQueue

Key = TypeVar("Key")


class Reconciler(ABC, Generic[Key]):
    """A controller with a queue of keys.

    A subclass defines `watches` and the abstract methods. A failed action is retried: its key is reconciled again after
    a backoff. The queue also has the times at which only time makes a key due.
    """

    watches: frozenset[str]
    awaits_answers = False
    """Whether a key is reconciled only when all of its actions were answered."""

    def __init__(self) -> None:
        self._queue: WorkQueue[Key] = WorkQueue()
        # With `awaits_answers`, the number of pending answers by key, and the keys that became due meanwhile.
        self._pending: Counter[Key] = Counter()
        self._overdue: set[Key] = set()

    @abstractmethod
    def _changed(self, object_: Kubernetes, raw: Raw, now: int) -> list[Action]:
        """Note an object, and add the keys that it concerns to the queue.

        Return events, if there are any; `NO_CHANGE` if the object concerns no key.
        """

    @abstractmethod
    def _gone(self, object_: Kubernetes, now: int) -> list[Action]:
        """Forget a deleted object, of which this is the last state; otherwise as `_changed`."""

    @abstractmethod
    def _reconcile(self, key: Key, now: int) -> list[Action]:
        """Return the actions that bring a key closer to its wanted state, if it still exists."""

    @abstractmethod
    def _key_of(self, action: Action) -> Key | None:
        """Return the key for which an action was requested; None if it is gone."""

    def _answered(self, answered: Answered, now: int) -> list[Action]:
        """Note the answer to an action; return events."""
        key = self._key_of(answered.action)
        if key is None:
            return []
        if key in self._pending:
            self._pending[key] -= 1
            if not self._pending[key]:
                del self._pending[key]
                if key in self._overdue:
                    self._overdue.discard(key)
                    self._queue.add(key)
        self._queue.answer(key, answered, now)
        return []

    def _happened(self, observation: Observation) -> None:
        """Note an observation of another type."""

    def _forget(self, key: Key) -> None:
        """Drop a key that is gone, with its pending answers."""
        self._queue.forget(key)
        self._pending.pop(key, None)
        self._overdue.discard(key)

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Note a change or an answer; at a `Tick`, reconcile the keys that are due."""
        if type(observation) is Changed:
            return self._changed(observation.object, observation.raw, now)
        if type(observation) is Gone:
            return self._gone(observation.object, now)
        if type(observation) is Answered:
            return self._answered(observation, now)
        if type(observation) is Tick:
            return self._reconcile_due(now)
        self._happened(observation)
        return []

    def deadline(self) -> Deadline:
        """Return when a key is due."""
        return self._queue.deadline()

    def _reconcile_due(self, now: int) -> list[Action]:
        actions: list[Action] = []
        while (key := self._queue.take(now)) is not None:
            if key in self._pending:
                self._overdue.add(key)
                continue
            found = self._reconcile(key, now)
            if self.awaits_answers and (count := sum(type(action) is not Record for action in found)):
                self._pending[key] = count
            actions += found
        return actions
