"""Evictions under way: which pods were asked to go, what was answered, and when to ask again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podium.machines.actions import Action, DeleteObject, Evict
from podium.machines.answers import Answer
from podium.machines.observations import Answered
from podium.machines.parts.backoff import Backoff

_SECOND = 10**9
_FIRST_BACKOFF_NS = _SECOND
_LONGEST_BACKOFF_NS = 60 * _SECOND
# A pod that was refused so often, with nothing new in between, is not expected to go by itself.
STUCK_AFTER = 2


@dataclass(frozen=True, slots=True)
class EvictionSettings:
    """How pods are evicted. ``component`` is whose cap on disruptions counts, and the cause.

    An eviction that a budget refuses is asked for again after ``retry_ns``, unless the answer names a time.
    ``grace_seconds`` None leaves each pod its own period. ``deletes`` deletes pods instead, past their budgets.
    """

    component: str
    retry_ns: int
    grace_seconds: int | None = None
    deletes: bool = False


@dataclass(slots=True)
class Attempts:
    """What was tried for one pod. ``refusals`` are those in a row since something new was seen.

    ``next_ns`` is when to try again, None while an answer is to come and once the pod was let go.
    """

    tries: int = 0
    refusals: int = 0
    message: str = ""
    next_ns: int | None = 0

    @property
    def is_stuck(self) -> bool:
        """Whether the same refusal has come several times."""
        return self.refusals >= STUCK_AFTER


class Evictions:
    """The pods that one component is evicting, by uid."""

    def __init__(self, settings: EvictionSettings) -> None:
        self._settings = settings
        self._attempts: dict[str, Attempts] = {}
        self._backoff: Backoff[str] = Backoff(_FIRST_BACKOFF_NS, _LONGEST_BACKOFF_NS)

    def ask(self, pod: str, uid: str, now: int, grace_seconds: int | None = None) -> list[Action]:
        """Evict the pod if it is time to; ``grace_seconds`` stands in for the settings' where those name none."""
        attempts = self._attempts.setdefault(uid, Attempts())
        if attempts.next_ns is None or attempts.next_ns > now:
            return []
        attempts.tries += 1
        attempts.next_ns = None
        settings = self._settings
        grace = grace_seconds if settings.grace_seconds is None else settings.grace_seconds
        if settings.deletes:
            return [DeleteObject("Pod", pod, uid, settings.component, grace)]
        return [Evict(pod, uid, settings.component, settings.component, grace)]

    def answered(self, answered: Answered, now: int) -> None:
        """Take in how an action of this component ended; others are passed over.

        A pod that is not found, or is another by now, is asked for again until the API shows the same.
        """
        action, problem = answered.action, answered.problem
        if not isinstance(action, Evict | DeleteObject):
            return
        attempts = self._attempts.get(action.uid)
        if attempts is None or problem is None or action.cause != self._settings.component:
            return
        attempts.refusals += 1
        attempts.message = problem.message
        if answered.answer is Answer.FULL:
            # An answer that asks for no wait at all knows no time: a server at hand would be asked without end.
            attempts.next_ns = now + (answered.wait_ns or self._settings.retry_ns)
        else:
            self._backoff.fail(action.uid, now)
            attempts.next_ns = now + answered.wait_ns if answered.wait_ns else self._backoff.until(action.uid, now)

    def of(self, uid: str) -> Attempts:
        """What was tried for a pod so far."""
        return self._attempts.get(uid) or Attempts()

    def forget_refusals(self) -> None:
        """Something was seen that may change the answers: refusals until now tell nothing about the next."""
        for attempts in self._attempts.values():
            attempts.refusals = 0
        self._backoff.clear()

    def forget(self, uids: Iterable[str]) -> None:
        """The pods are gone, or need not go any more."""
        for uid in uids:
            self._attempts.pop(uid, None)
            self._backoff.forget(uid)
