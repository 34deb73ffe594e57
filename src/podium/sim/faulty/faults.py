"""What may go wrong between the components of a cluster and its API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Protocol

from podium.machines.actions import (
    Action,
    Bind,
    BindClaim,
    CreateObject,
    DeleteObject,
    Evict,
    Record,
)
from podium.machines.observations import Problem

_SECOND = 10**9

NO_ANSWER = Problem(0, "Timeout", "no answer came")
STUMBLED = Problem(500, "InternalError", "the API server stumbled")
CONFLICT = Problem(409, "Conflict", "somebody else has changed it; read it and try again")
OVERLOADED = Problem(429, "TooManyRequests", "too many requests; try again later", retry_after_ns=_SECOND)


@dataclass(frozen=True, slots=True)
class Fate:
    """How an action fares: it is carried out so many ``times``, and answered ``delay_ns`` later.

    The answer is ``problem`` where there is one, and else what came of the first time.
    """

    times: int = 1
    problem: Problem | None = None
    delay_ns: int = 0


CARRIED_OUT = Fate()
REFUSED = Fate(0, STUMBLED)
LOST = Fate(0, NO_ANSWER)
ANSWER_LOST = Fate(1, NO_ANSWER)


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an event of a watch arrives.

    ``delay_ns`` late, and ``copies`` times. ``merges``: an earlier event of the same object that has not arrived yet is
    left out. ``breaks_ns``: the watch breaks here, and so long all is lost; then the kind is listed anew. None: it does
    not break.
    """

    delay_ns: int = 0
    copies: int = 1
    merges: bool = False
    breaks_ns: int | None = None


class Faults(Protocol):
    """Decides how what components do and see fares; ``component`` is the name of one, such as `kubelet`."""

    def fate(self, component: str, action: Action) -> Fate:
        """What becomes of an action that is about to be carried out."""
        ...

    def outage_ns(self, component: str, action: Action, *, is_done: bool) -> int | None:
        """How long the component is down when it crashes right before an action, or after it; None: it does not."""
        ...

    def delivery(self, component: str, kind: str) -> Delivery:
        """How the next event of its watch of a kind arrives at the component."""
        ...

    def list_lag(self, component: str) -> int:
        """How many versions old the lists are with which the component begins after a crash."""
        ...


class Fault(StrEnum):
    """The faults that `DrawnFaults` knows; the letters are those of the project's list of faults."""

    REQUEST_REFUSED = "a request is refused with a server's error (W2)"
    REQUEST_CONFLICT = "a request is refused with a conflict (W1)"
    REQUEST_THROTTLED = "a request is one too many (W2)"
    REQUEST_LOST = "a request is lost (W3)"
    ANSWER_LOST = "an answer is lost (W4)"
    ANSWER_LATE = "an answer comes late (W5)"
    REQUEST_TWICE = "a request arrives twice (W6)"
    WATCH_LATE = "a watch event comes late (E1)"
    WATCH_BREAKS = "a watch breaks, and events are lost (E2, E3)"
    WATCH_TWICE = "a watch event comes twice (E4)"
    WATCH_MERGES = "watch events are merged (E7)"
    CRASH_BEFORE = "a component crashes before an action (C1)"
    CRASH_AFTER = "a component crashes after an action (C1)"
    LIST_STALE = "a component begins with an old list (R1)"


_CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
# A proxy repeats what it takes to be the same in effect; and a conflict needs something that was there before.
_NEVER_TWICE = (CreateObject, BindClaim)
_NEVER_IN_CONFLICT = (CreateObject, Bind, BindClaim, Evict, DeleteObject)


@dataclass(slots=True)
class DrawnFaults:
    """Faults that happen by chance, each at its own rate (0 to 1; one that is left out never happens).

    They happen to the components in ``only``, or to all where it is empty. ``longest_delay_ns`` bounds what comes late,
    ``longest_outage_ns`` how long a component is down, and ``longest_lag`` by how many versions a list is old.
    ``fired`` counts what has happened. Nothing happens any more once ``stopped`` is set. All chance comes from
    ``seed``.
    """

    rates: Mapping[Fault, float]
    seed: int = 0
    only: frozenset[str] = frozenset()
    longest_delay_ns: int = 5 * _SECOND
    longest_outage_ns: int = 20 * _SECOND
    longest_lag: int = 20
    fired: Counter[Fault] = field(default_factory=Counter)
    stopped: bool = False
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = Random(f"faults:{self.seed}")

    def fate(self, component: str, action: Action) -> Fate:
        """See `Faults`. Events that are recorded never fail: nobody looks at the answer."""
        if isinstance(action, Record) or self._spares(component):
            return CARRIED_OUT
        if self.happens(Fault.REQUEST_REFUSED):
            return REFUSED
        if not isinstance(action, _NEVER_IN_CONFLICT) and self.happens(Fault.REQUEST_CONFLICT):
            return Fate(0, CONFLICT)
        if not isinstance(action, Bind | BindClaim) and self.happens(Fault.REQUEST_THROTTLED):
            return Fate(0, OVERLOADED)
        if self.happens(Fault.REQUEST_LOST):
            return LOST
        if self.happens(Fault.ANSWER_LOST):
            return ANSWER_LOST
        times = 2 if not isinstance(action, _NEVER_TWICE) and self.happens(Fault.REQUEST_TWICE) else 1
        return Fate(times, None, self._delay_ns(Fault.ANSWER_LATE))

    def outage_ns(self, component: str, action: Action, *, is_done: bool) -> int | None:
        """See `Faults`."""
        crashes = not self._spares(component) and self.happens(_CRASHES[is_done])
        return self._random.randint(1, self.longest_outage_ns) if crashes else None

    def delivery(self, component: str, kind: str) -> Delivery:
        """See `Faults`."""
        if self._spares(component):
            return Delivery()
        return Delivery(
            delay_ns=self._delay_ns(Fault.WATCH_LATE),
            copies=1 + self.happens(Fault.WATCH_TWICE),
            merges=self.happens(Fault.WATCH_MERGES),
            breaks_ns=self._delay_ns(Fault.WATCH_BREAKS) or None,
        )

    def list_lag(self, component: str) -> int:
        """See `Faults`."""
        return self._random.randint(1, self.longest_lag) if self.happens(Fault.LIST_STALE) else 0

    def _spares(self, component: str) -> bool:
        return bool(self.only) and component not in self.only

    def happens(self, fault: Fault) -> bool:
        """Draw whether a fault happens now."""
        rate = self.rates.get(fault, 0.0)
        happens = not self.stopped and rate > 0 and self._random.random() < rate
        self.fired[fault] += happens
        return happens

    def _delay_ns(self, fault: Fault) -> int:
        """Draw by how much something comes late; 0 where it does not."""
        return self._random.randint(1, self.longest_delay_ns) if self.happens(fault) else 0
