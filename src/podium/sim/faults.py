"""What may go wrong between a machine and the API server."""

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
    ClearNomination,
    DeletePod,
    MarkDisruption,
    Nominate,
    Record,
    ReportUnschedulable,
)
from podium.machines.observations import Problem

_SECOND = 10**9

NO_ANSWER = Problem(0, "Timeout", "no answer came")
STUMBLED = Problem(500, "InternalError", "the API server stumbled")


@dataclass(frozen=True, slots=True)
class Unsent:
    """An action is lost on its way and not carried out; whoever asked for it sees no more than that no answer comes."""


class Faults(Protocol):
    """Decides how each action of a machine fares."""

    def answer(self, action: Action, rng: Random) -> Problem | Unsent | int | None:
        """What becomes of an action that is about to be carried out; all chance comes from `rng`.

        None: nothing unusual. A Problem that is not ambiguous: the action is refused with it and not carried out. An
        ambiguous one: it is carried out, and the answer lost. `Unsent`: neither. A number: it is carried out at once,
        and answered that many nanoseconds later.
        """
        ...


class Fault(StrEnum):
    """The faults that `DrawnFaults` knows."""

    BIND_REFUSED = "a binding is refused"
    DELETE_REFUSED = "a deletion is refused"
    STATUS_REFUSED = "a status patch is refused"
    REQUEST_LOST = "a request is lost"
    ANSWER_LOST = "an answer is lost"
    ANSWER_LATE = "an answer comes late"
    WATCH_LATE = "a watch event comes late"
    WATCH_TWICE = "a watch event comes twice"


_REFUSED: Mapping[Fault, tuple[type[Action], ...]] = {
    Fault.BIND_REFUSED: (Bind, BindClaim),
    Fault.DELETE_REFUSED: (DeletePod,),
    Fault.STATUS_REFUSED: (ReportUnschedulable, Nominate, ClearNomination, MarkDisruption),
}


@dataclass(slots=True)
class DrawnFaults:
    """Faults that happen by chance, each at its own rate (0 to 1; one that is left out never happens).

    ``longest_delay_ns`` bounds what comes late. ``fired`` counts what has happened. Nothing happens any more once
    ``stopped`` is set.
    """

    rates: Mapping[Fault, float]
    longest_delay_ns: int = 5 * _SECOND
    fired: Counter[Fault] = field(default_factory=Counter)
    stopped: bool = False

    def answer(self, action: Action, rng: Random) -> Problem | Unsent | int | None:
        """See `Faults`. Events that are recorded never fail: nobody looks at the answer."""
        if isinstance(action, Record):
            return None
        for fault, actions in _REFUSED.items():
            if isinstance(action, actions) and self.happens(fault, rng):
                return STUMBLED
        if self.happens(Fault.REQUEST_LOST, rng):
            return Unsent()
        if self.happens(Fault.ANSWER_LOST, rng):
            return NO_ANSWER
        return self.delay_ns(Fault.ANSWER_LATE, rng) or None

    def happens(self, fault: Fault, rng: Random) -> bool:
        """Draw whether a fault happens now."""
        rate = self.rates.get(fault, 0.0)
        happens = not self.stopped and rate > 0 and rng.random() < rate
        self.fired[fault] += happens
        return happens

    def delay_ns(self, fault: Fault, rng: Random) -> int:
        """Draw by how much something comes late; 0 where it does not."""
        return rng.randint(1, self.longest_delay_ns) if self.happens(fault, rng) else 0
