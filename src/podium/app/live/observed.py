"""A scheduler that is looked at while it works: how long attempts take, what comes of them, and why."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from podium.app.live.metrics import Metrics
from podium.controllers.actions import Action, Bind, DeleteObject, Record, ReportStatus, ReportUnschedulable
from podium.controllers.deadlines import Deadline
from podium.controllers.observations import Answered, Observation, Tick
from podium.controllers.scheduling.queue.queue import ATTEMPT_FAILURE, POD_ADD
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.runner import Runner

_SECOND = 10**9
# A pod that goes on its way to a node is never bound.
_MOST_BINDING = 10_000


# The extension points that are asked as a whole; others are asked about the nodes that changed alone.
_POINTS = (("pre_enqueue", "PreEnqueue"), ("pre_filter", "PreFilter"), ("filter", "Filter"))


def _timed(ask: Callable[..., Any], observe: Callable[[float], None]) -> Callable[..., Any]:
    """The same, and how long it takes."""

    def asked(*arguments: Any) -> Any:
        began_s = time.perf_counter()
        try:
            return ask(*arguments)
        finally:
            observe(time.perf_counter() - began_s)

    return asked


@dataclass(slots=True)
class Attempt:
    """An attempt to schedule a pod, and when it began by a clock of its own."""

    uid: str
    key: str
    profile: str
    began_s: float
    since_ns: int
    number: int


class ObservedScheduler:
    """The scheduler as a machine, and beside it what is counted and written down of its attempts.

    ``on_attempt`` is shown each pod before its attempt, ``on_actions`` the attempt with all that came of it.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        metrics: Metrics,
        on_attempt: Callable[[QueuedPod, Runner, int], None] | None = None,
        on_actions: Callable[[Attempt, list[Action]], None] | None = None,
    ) -> None:
        self.scheduler = scheduler
        self._metrics = metrics
        self._on_attempt = on_attempt
        self._on_actions = on_actions
        self._attempt: Attempt | None = None
        # By uid, the attempts whose binding is awaited.
        self._binding: OrderedDict[str, Attempt] = OrderedDict()
        self._now = 0
        # Looked up once for each set of labels, of which there are few.
        self._incoming = cache(metrics.incoming.labels)
        self._attempts = cache(metrics.attempts.labels)
        self._seconds = cache(metrics.attempt_seconds.labels)
        scheduler.attempts.on_attempt = self._begin
        for profile, runner in scheduler.runners.items():
            for method, point in _POINTS:
                seconds = metrics.extension_point_seconds.labels(point, "Success", profile)
                setattr(runner, method, _timed(getattr(runner, method), seconds.observe))

    @property
    def watches(self) -> frozenset[str]:
        return self.scheduler.watches

    def deadline(self) -> Deadline:
        return self.scheduler.deadline()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        self._now, self._attempt = now, None
        actions = self.scheduler.handle(observation, now)
        if isinstance(observation, Answered):
            self._answered(observation, now)
        elif isinstance(observation, Tick):
            self._attempted(actions)
        return actions

    def _begin(self, queued: QueuedPod, runner: Runner) -> None:
        pod = queued.record
        since_ns = self._now if queued.first_attempt_ns is None else queued.first_attempt_ns
        self._incoming("active", queued.woken_by or POD_ADD).inc()
        if self._on_attempt is not None:
            self._on_attempt(queued, runner, self._now)
        self._attempt = Attempt(pod.uid, pod.key, pod.scheduler_name, time.perf_counter(), since_ns, queued.attempts)

    def _attempted(self, actions: list[Action]) -> None:
        attempt = self._attempt
        if attempt is not None:
            self._metrics.algorithm_seconds.observe(time.perf_counter() - attempt.began_s)
            if self._on_actions is not None:
                self._on_actions(attempt, actions)
        failed = {
            action.uid for action in actions if isinstance(action, Record) and action.reason == "FailedScheduling"
        }
        errors = {
            action.uid
            for action in actions
            if isinstance(action, ReportUnschedulable) and action.reason == "SchedulerError"
        }
        for uid in failed:
            self._count(uid, "error" if uid in errors else "unschedulable")
            self._binding.pop(uid, None)
            self._incoming("backoff" if uid in errors else "unschedulable", ATTEMPT_FAILURE).inc()
        if attempt is not None and attempt.uid not in failed:
            self._binding[attempt.uid] = attempt
            if len(self._binding) > _MOST_BINDING:
                self._binding.popitem(last=False)
        self._preemption(actions, attempts=len(failed - errors))

    def _count(self, uid: str, result: str) -> None:
        attempt = self._attempt
        if attempt is None or attempt.uid != uid:
            # It is known to end as another one has, and was not made.
            profile = next(iter(self.scheduler.runners)) if attempt is None else attempt.profile
            self._attempts(result, profile).inc()
            return
        self._attempts(result, attempt.profile).inc()
        self._seconds(result, attempt.profile).observe(time.perf_counter() - attempt.began_s)

    def _preemption(self, actions: list[Action], attempts: int) -> None:
        if attempts:
            self._metrics.preemption_attempts.inc(attempts)
        victims = {
            action.uid
            for action in actions
            if (
                isinstance(action, ReportStatus)
                and action.conditions
                and action.conditions[0].type == "DisruptionTarget"
            )
            or isinstance(action, DeleteObject)
        }
        if victims:
            self._metrics.preemption_victims.observe(len(victims))

    def _answered(self, answered: Answered, now: int) -> None:
        action = answered.action
        if not isinstance(action, Bind):
            return
        attempt = self._binding.pop(action.uid, None)
        if attempt is None:
            return
        result = "scheduled" if answered.problem is None else "error"
        self._attempts(result, attempt.profile).inc()
        self._seconds(result, attempt.profile).observe(time.perf_counter() - attempt.began_s)
        if answered.problem is None:
            self._metrics.scheduled(max(0, now - attempt.since_ns) / _SECOND, attempt.number)
