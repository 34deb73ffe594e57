"""Which events wake a pod, given the plugins that turned it down.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing, isEventOfInterest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from weakref import WeakValueDictionary

from podium.cluster.pods import PodRecord
from podium.framework.errors import is_failure
from podium.framework.events import ActionType, ClusterEvent, EventResource, EventToRegister, QueueingHint
from podium.machines.scheduling.queue.queued_pod import QueuedPod

# The events that each plugin waits for, by scheduler name and plugin name.
Registrations = Mapping[str, Mapping[str, Sequence[EventToRegister]]]
Kind = tuple[EventResource, ActionType]
# Scheduler name, the plugins that rejected, those that answered Pending, and the gate.
RejectionKey = tuple[str, tuple[str, ...], tuple[str, ...], str]


class Wake(IntEnum):
    """Whether an event makes a pod worth another attempt, and when."""

    NO = 0
    AFTER_BACKOFF = 1
    AT_ONCE = 2


NO, AFTER_BACKOFF, AT_ONCE = Wake
"""At hand, as asking an enumeration for a member takes longer than calling a function does."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Whom to ask about an event of one kind. None among them wakes without being asked."""

    at_once: tuple[QueueingHint | None, ...]
    after_backoff: tuple[QueueingHint | None, ...]

    def ask(self, pod: PodRecord, event: ClusterEvent) -> Wake:
        """What the event means to a pod."""
        for hint in self.at_once:
            if _wakes(hint, pod, event):
                return AT_ONCE
        for hint in self.after_backoff:
            if _wakes(hint, pod, event):
                return AFTER_BACKOFF
        return NO


def _wakes(hint: QueueingHint | None, pod: PodRecord, event: ClusterEvent) -> bool:
    """What a hint says. One that raises wakes the pod: an attempt in vain is better than a pod that hangs."""
    try:
        return hint is None or hint(pod, event)
    except BaseException as error:
        if not is_failure(error):
            raise
        return True


EVERYBODY = Hints((), (None,))
_UNKNOWN = Hints((), ())
FEW = 16
"""So many sets of plugins are known on although they hold nobody any more."""


class _Waits:
    """What the plugins of a profile wait for."""

    def __init__(self, registered: Mapping[str, Sequence[EventToRegister]]) -> None:
        self._registered = registered
        self._hints: dict[tuple[str, Kind], tuple[QueueingHint | None, ...]] = {}

    def hints(self, plugins: Iterable[str], event: ClusterEvent) -> tuple[QueueingHint | None, ...]:
        """Whom to ask about an event among some plugins."""
        found: tuple[QueueingHint | None, ...] = ()
        for plugin in plugins:
            if plugin in self._registered:
                key = (plugin, (event.resource, event.action))
                known = self._hints.get(key)
                if known is None:
                    known = self._hints[key] = _concerned(self._registered[plugin], event)
                found += known
        return found


class Rejection:
    """The plugins that hold some pods back, shared by all pods which the same ones do.

    A plugin that answered Pending skips the pod's backoff when it wakes the pod; others wake it into its backoff. With
    a gate only events that the gating plugin waits for count, whoever's hint is then the one that wakes. A wildcard
    event wakes all. So does any event where no plugin rejected (``by_nobody``): something went wrong instead.
    """

    __slots__ = ("__weakref__", "_gate", "_hints", "_pending", "_unschedulable", "_waits", "by_nobody")

    def __init__(self, waits: _Waits, unschedulable: Sequence[str], pending: Sequence[str], gate: str) -> None:
        """The names of the plugins that rejected, of those that answered Pending, and of the gate, "" without one."""
        self._waits = waits
        self._unschedulable = unschedulable
        self._pending = pending
        self._gate = gate
        self._hints: dict[Kind, Hints | None] = {}
        self.by_nobody = not (unschedulable or pending or gate)

    @property
    def is_gated(self) -> bool:
        """Whether a gate is among the plugins."""
        return bool(self._gate)

    def hints(self, event: ClusterEvent) -> Hints | None:
        """Whom to ask about an event; None if it can wake none of the pods."""
        kind = (event.resource, event.action)
        known = self._hints.get(kind, _UNKNOWN)
        if known is _UNKNOWN:
            known = self._hints[kind] = self._whom_to_ask(event)
        return known

    def wake(self, pod: PodRecord, event: ClusterEvent) -> Wake:
        """What an event means to one of the pods."""
        hints = self.hints(event)
        return NO if hints is None else hints.ask(pod, event)

    def _whom_to_ask(self, event: ClusterEvent) -> Hints | None:
        if self.by_nobody or event.resource is EventResource.WILDCARD:
            return EVERYBODY
        gate = self._waits.hints((self._gate,), event) if self._gate else ()
        if self._gate and not gate:
            return None
        at_once = self._waits.hints(self._pending, event)
        after_backoff = self._waits.hints(self._unschedulable, event) + gate
        return Hints(at_once, after_backoff) if at_once or after_backoff else None


class Rejections:
    """One `Rejection` for each set of plugins that turns pods down, as long as somebody holds on to it.

    The few that were made last are held here: most pods are turned down by the same plugins as others before, which may
    not wait any more. A plugin that registered nothing, or that is not known, wakes no pod.
    """

    def __init__(self, registrations: Registrations) -> None:
        self._registrations = registrations
        self._waits = {name: _Waits(profile) for name, profile in registrations.items()}
        self._known: WeakValueDictionary[RejectionKey, Rejection] = WeakValueDictionary()
        self._newest: dict[RejectionKey, Rejection] = {}
        self._of_interest: dict[Kind, bool] = {}

    def of(self, queued: QueuedPod, gate: str) -> Rejection:
        """Who holds the pod back: the plugins that rejected its last attempt, and a gate; "" leaves its gate aside."""
        unschedulable, pending = queued.unschedulable_plugins, queued.pending_plugins
        key = (queued.record.scheduler_name, unschedulable, pending, gate)
        found = self._newest.get(key) or self._known.get(key)
        if found is None:
            waits = self._waits.get(key[0]) or _Waits({})
            found = self._known[key] = self._newest[key] = Rejection(waits, unschedulable, pending, gate)
            if len(self._newest) > FEW:
                del self._newest[next(iter(self._newest))]
        return found

    def concern(self, event: ClusterEvent) -> bool:
        """Whether any plugin waits for such an event; all do for a wildcard event."""
        kind = (event.resource, event.action)
        known = self._of_interest.get(kind)
        if known is None:
            known = self._of_interest[kind] = event.resource is EventResource.WILDCARD or any(
                _concerned(registered, event)
                for profile in self._registrations.values()
                for registered in profile.values()
            )
        return known


def _concerned(registered: Iterable[EventToRegister], event: ClusterEvent) -> tuple[QueueingHint | None, ...]:
    """The hints of those registrations that wait for an event."""
    return tuple(some.hint for some in registered if event.concerns(ClusterEvent(some.resource, some.action)))
