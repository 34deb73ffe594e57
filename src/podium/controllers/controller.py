"""The interface of controllers, and the base of those that note which keys a change concerns, and reconcile each key.

Source: the controllers of kube-controller-manager, with k8s.io/client-go/util/workqueue (a rate-limiting queue).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar, get_args

from msgspec import Struct

from podium.api.kinds import KEPT_KINDS, KINDS
from podium.api.meta import Kubernetes
from podium.api.times import SECOND
from podium.cluster.devices import DeviceObject
from podium.cluster.storage import StorageObject
from podium.controllers.actions import Action, Record
from podium.controllers.deadlines import AT_ONCE, NEVER, Deadline, Deadlines, earliest, soonest
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation, Tick

CUSTOM_KINDS = "*"
NO_CHANGE: list[Action] = []
"""The result of `handle` for an observation that has no effect: no actions, and the deadline is as before.

The runtime compares by identity; any other empty list says nothing about the deadline.
"""
_KNOWN_KINDS = frozenset(kind.name for kind in (*KINDS.values(), *KEPT_KINDS))


class Controller(Protocol):
    """A component of the cluster without clock or connections.

    The runtime passes it the observations of the kinds that it ``watches``, carries out its actions in their order,
    passes back an `ActionFinished` for each of them but a `Record`, and a `Tick` when its ``deadline`` has come.

    Optional attributes: ``pod_aspects`` (see `needed_aspects`), ``idle_deferral`` and ``is_idle`` (see `IdleDeferral`),
    and ``pods_on``, a node: of the nodes and pods that exist when it begins, it needs only that one and those there.
    """

    @property
    def watches(self) -> frozenset[str]:
        """The kinds that it is shown and may read; `CUSTOM_KINDS` stands for all kinds of custom resources."""
        ...

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Handle an observation at ``now`` (nanoseconds); return the actions, or `NO_CHANGE`."""
        ...

    def deadline(self) -> Deadline:
        """Return when the controller next wants a `Tick`; only `handle` changes it."""
        ...


def is_watched_kind(kind: str, watches: frozenset[str]) -> bool:
    """Return whether ``watches`` contains the kind, by name or as a custom resource."""
    return kind in watches or (CUSTOM_KINDS in watches and kind not in _KNOWN_KINDS)


# The aspects of a change, as bits.
EVERY = 1
"""Set for every change."""
UNOWNED = 2
"""The pod has, or had, no controller."""
PLACED = 4
"""The pod has a node, or is being deleted."""
UNPLACED = 8
"""The pod is being deleted, and has no node."""
DISRUPTED = 16
"""The pod has, or had, the condition DisruptionTarget."""
CLAIMING = 32
"""The pod references ResourceClaims, PersistentVolumeClaims or a PodGroup, or has ephemeral volumes."""
ON_MISSING_NODE = 64
"""The pod has just been bound to a node that does not exist."""
OWNER_ASPECTS = {"ReplicaSet": 128, "ReplicationController": 128, "StatefulSet": 256, "DaemonSet": 512, "Job": 1024}
"""By kind: the pod has, or had, a controller of that kind."""
AVOIDED = 2048
"""The node has, or had, an avoid list."""
ADDED = 4096
"""The object was added."""
ANY = 4095
"""All aspects of a change whose aspects are unknown."""


class IdleDeferral(Struct, frozen=True):
    """The changes that can wait while a controller is idle: those of ``kinds``, except some aspects of pods and nodes.

    The runtime may deliver deferred changes at any time, but before anything else and in their order; of each object,
    it need only deliver the last change. A changed object of the kinds ``ahead``, or an answer to what the controller
    did about it, comes before deferred changes, which follow at once if the controller is not idle any more.
    """

    kinds: frozenset[str]
    unless: int = 0
    ahead: frozenset[str] = frozenset()

    def covers(self, kind: str, aspects: int) -> bool:
        """Return whether a change of an object of that kind can wait."""
        return is_watched_kind(kind, self.kinds) and not (kind in ("Node", "Pod") and self.unless & aspects)


def needed_aspects(controller: Controller, kind: str) -> int:
    """Return the aspects of which a change of a watched kind has one if it can concern the controller.

    A controller with ``pod_aspects`` needs only pods that have one of these aspects.
    """
    return int(getattr(controller, "pod_aspects", EVERY)) if kind == "Pod" else EVERY


def is_idle(controller: Controller) -> bool:
    """Return whether the controller, which has no deadline, is idle: deferrable changes have no effect on it now."""
    return bool(getattr(controller, "is_idle", False))


# The pods of workloads and Services are spread by default, and those of a PodGroup placed together.
_OTHERS = (
    "DisruptionPolicy Namespace Node PodDisruptionBudget PodGroup ReplicaSet ReplicationController Service StatefulSet"
)

PLACEMENT_KINDS = frozenset((*_OTHERS.split(), *(type_.__name__ for type_ in get_args(StorageObject | DeviceObject))))
"""The kinds on which placement depends besides pods: those that `Cluster.put` accepts."""


Key = TypeVar("Key")

# No wait is doubled more often than this.
_DOUBLINGS = 64
# After so many lasting refusals in a row, a retry is not expected to succeed.
_STUCK_AFTER = 2


class WorkQueue(Generic[Key]):
    """A queue of keys in the order in which they were added, each at most once.

    Failures are retried after 1 s, doubled with each failure since a success, up to 300 s. Retries after lasting
    refusals do not keep a simulation running.
    """

    def __init__(self, first_wait_ns: int = SECOND, longest_wait_ns: int = 300 * SECOND) -> None:
        self._ready: dict[Key, None] = {}
        self._timers: Deadlines[Key] = Deadlines()
        self._retries: Deadlines[Key] = Deadlines()
        self._backoff: Backoff[Key] = Backoff(first_wait_ns, longest_wait_ns)
        # By key, the lasting refusals in a row.
        self._refusals: Counter[Key] = Counter()

    def add(self, key: Key) -> None:
        """Process the key as soon as possible."""
        self._ready[key] = None

    def add_all(self, keys: Iterable[Key]) -> None:
        """Process the keys as soon as possible, in this order."""
        for key in keys:
            self._ready[key] = None

    def add_at(self, key: Key, time_ns: int | None, *, recurs: bool = False) -> None:
        """Process the key at a time, in place of the last such time; None: at no time.

        If it ``recurs``, that does not keep a simulation running.
        """
        self._timers.set(key, time_ns, recurs=recurs)

    def add_by(self, key: Key, time_ns: int | None) -> None:
        """Process the key at a time, or at the earlier one that was set before; None changes nothing."""
        self._timers.set(key, earliest((self._timers.times.get(key), time_ns)))

    def answer(self, key: Key, finished: ActionFinished, now: int) -> None:
        """Take in the answer to a write for the key; unless it is over, retry later."""
        answer = finished.answer
        if answer.is_over:
            self.succeed(key)
            return
        self._refusals[key] = self._refusals[key] + 1 if answer.lasts else 0
        self._backoff.fail(key, now, finished.wait_ns)
        self._retries.set(key, self._backoff.until(key, now), recurs=self._refusals[key] >= _STUCK_AFTER)

    @property
    def has_failures(self) -> bool:
        """Return whether any key has failed since it last succeeded."""
        return bool(self._refusals) or bool(self._backoff)

    def succeed(self, key: Key) -> None:
        """Reset the key's backoff. A retry that is already scheduled stays."""
        self._backoff.forget(key)
        self._refusals.pop(key, None)

    def forget(self, key: Key) -> None:
        self.succeed(key)
        self._ready.pop(key, None)
        self._timers.set(key, None)
        self._retries.set(key, None)

    def take(self, now: int) -> Key | None:
        """Remove and return the next due key, None if there is none."""
        for source in (self._timers, self._retries):
            if source.times:
                while (due := source.take_due(now)) is not None:
                    self._ready[due] = None
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        self._retries.set(key, None)
        return key

    def deadline(self) -> Deadline:
        """Return when `take` next has a key."""
        if self._ready:
            return AT_ONCE
        if not self._timers.times and not self._retries.times:
            return NEVER
        return soonest(self._timers.deadline(), self._retries.deadline())


class Backoff(Generic[Key]):
    """A wait for each key: ``first_ns`` after its first failure, doubled after each further one, up to ``longest_ns``.

    A key that has not failed for twice ``longest_ns`` starts over.
    """

    def __init__(self, first_ns: int, longest_ns: int) -> None:
        self._first_ns = first_ns
        self._longest_ns = longest_ns
        # By key, the length and the end of the last wait, and the number of failures.
        self._waits: dict[Key, tuple[int, int, int]] = {}

    def __bool__(self) -> bool:
        """Return whether any key has failed."""
        return bool(self._waits)

    def fail(self, key: Key, now: int, least_ns: int = 0) -> None:
        """Start the next wait, of at least ``least_ns``; a failure during a wait has no effect."""
        length_ns, end_ns, count = self._waits.get(key, (0, now, 0))
        if end_ns > now:
            return
        if length_ns and now - end_ns <= 2 * self._longest_ns:
            length_ns = min(2 * length_ns, self._longest_ns)
        else:
            length_ns, count = self._first_ns, 0
        self._waits[key] = length_ns, now + max(length_ns, least_ns), count + 1

    def until(self, key: Key, now: int) -> int | None:
        """Return when the key's wait ends; None if it does not wait."""
        wait = self._waits.get(key)
        return wait[1] if wait is not None and wait[1] > now else None

    def failures(self, key: Key) -> int:
        """Return the number of failures in a row, without those during a wait."""
        return self._waits[key][2] if key in self._waits else 0

    def clear(self) -> None:
        self._waits.clear()

    def forget(self, key: Key) -> None:
        self._waits.pop(key, None)

    def is_hopeless(self, key: Key) -> bool:
        """Return whether the key failed again after a wait of maximum length."""
        before = self.failures(key) - 2
        return before >= 0 and self._first_ns << min(before, _DOUBLINGS) >= self._longest_ns


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
        # By identity, the actions without an answer and their keys; by key, the identities of its actions.
        self._requested: dict[int, tuple[Action, Key]] = {}
        self._pending: dict[Key, set[int]] = {}
        # With `awaits_answers`, the pending keys that became due.
        self._overdue: set[Key] = set()

    @abstractmethod
    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        """Note an object, or forget it with None for `shown`; add the keys that it concerns to the queue.

        Return events, if there are any; `NO_CHANGE` if the object concerns no key.
        """

    @abstractmethod
    def _reconcile(self, key: Key, now: int) -> list[Action]:
        """Return the actions that bring a key closer to its wanted state, if it still exists."""

    def _on_finished(self, finished: ActionFinished, now: int) -> list[Action]:
        """Note the answer to an action; return events."""
        key = self._take_key(finished.action)
        return [] if key is None else self._handle_answer(key, finished, now)

    def _take_key(self, action: Action) -> Key | None:
        """End the wait for an action's answer; return the key for which it was requested, None if that is gone."""
        _, key = self._requested.pop(id(action), (None, None))
        if key is not None:
            pending = self._pending[key]
            pending.discard(id(action))
            if not pending:
                del self._pending[key]
                if key in self._overdue:
                    self._overdue.discard(key)
                    self._queue.add(key)
        return key

    def _handle_answer(self, key: Key, finished: ActionFinished, now: int) -> list[Action]:
        """Handle the answer to an action for a key that is not gone; return events."""
        self._queue.answer(key, finished, now)
        return []

    def _on_other(self, observation: Observation) -> None:
        """Note an observation of another type."""

    def _forget(self, key: Key) -> None:
        """Drop a key that is gone, with its pending answers."""
        self._queue.forget(key)
        for identity in self._pending.pop(key, ()):
            del self._requested[identity]
        self._overdue.discard(key)

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Note a change or an answer; at a `Tick`, reconcile the keys that are due."""
        if type(observation) is Changed:
            return self._observe(observation.object, observation, now)
        if type(observation) is Deleted:
            return self._observe(observation.object, None, now)
        if type(observation) is ActionFinished:
            return self._on_finished(observation, now)
        if type(observation) is Tick:
            return self._reconcile_due(now)
        self._on_other(observation)
        return []

    def deadline(self) -> Deadline:
        """Return when a key is due."""
        return self._queue.deadline()

    def _reconcile_due(self, now: int) -> list[Action]:
        actions: list[Action] = []
        while (key := self._queue.take(now)) is not None:
            if self.awaits_answers and key in self._pending:
                self._overdue.add(key)
                continue
            found = self._reconcile(key, now)
            requested = {id(action): (action, key) for action in found if type(action) is not Record}
            if requested:
                self._requested |= requested
                self._pending.setdefault(key, set()).update(requested)
            actions += found
        return actions
