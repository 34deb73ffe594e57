"""A rescheduler that is looked at while it works: what it plans, how long that takes, and what comes of evictions."""

from __future__ import annotations

import time
from collections.abc import Callable

from podium.app.rescheduling.metrics import ReschedulerMetrics
from podium.decide.rescheduling.plan import Plan
from podium.machines.actions import Action, Evict, Record
from podium.machines.answers import Answer
from podium.machines.observations import Answered, Observation
from podium.machines.parts.deadlines import Deadline
from podium.machines.rescheduling.rescheduler import Rescheduler

_RESULTS = {
    Answer.DONE: "evicted",
    Answer.GONE: "gone",
    Answer.REPLACED: "gone",
    Answer.FULL: "refused",
    Answer.REFUSED: "refused",
    Answer.UNKNOWN: "unknown",
}


class ObservedRescheduler:
    """The rescheduler as a machine, and beside it what is counted and told of its plans.

    ``on_plan`` is shown each plan with its time, ``on_record`` what is to be told of other things than pods, and
    ``on_rest`` is called when a plan was carried out as far as it goes.
    """

    def __init__(self, rescheduler: Rescheduler, metrics: ReschedulerMetrics) -> None:
        self.rescheduler = rescheduler
        self.on_plan: Callable[[Plan, int], None] = lambda plan, now: None
        self.on_record: Callable[[Record], None] = lambda record: None
        self.on_rest: Callable[[], None] = lambda: None
        self._metrics = metrics
        self._policy_of: dict[str, str] = {}
        self._plans: list[tuple[Plan, int]] = []
        self._is_at_work = False
        rescheduler.on_plan = self._planned

    @property
    def watches(self) -> frozenset[str]:
        """See `Machine`."""
        return self.rescheduler.watches

    def deadline(self) -> Deadline:
        """See `Machine`."""
        return self.rescheduler.deadline()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """See `Machine`."""
        self._plans.clear()
        began_s = time.perf_counter()
        actions = self.rescheduler.handle(observation, now)
        for plan, planned_ns in self._plans:
            self._metrics.planned_once(plan, time.perf_counter() - began_s)
            self.on_plan(plan, planned_ns)
        for action in actions:
            if isinstance(action, Record) and not action.pod:
                self.on_record(action)
        if isinstance(observation, Answered) and isinstance(observation.action, Evict):
            self._answered(observation, observation.action)
        self._metrics.under_way.set(self.rescheduler.moves_under_way)
        if self._is_at_work and not self.rescheduler.is_at_work:
            self._is_at_work = False
            self.on_rest()
        return actions

    def _planned(self, plan: Plan, now: int) -> None:
        self._plans.append((plan, now))
        self._is_at_work = True
        self._policy_of = {move.pod.uid: planned.policy for planned in plan.planned for move in planned.moves}

    def _answered(self, answered: Answered, evict: Evict) -> None:
        policy = self._policy_of.get(evict.uid, "")
        self._metrics.evictions.labels(policy, _RESULTS.get(answered.answer, "failed")).inc()
