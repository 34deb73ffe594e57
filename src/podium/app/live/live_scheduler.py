"""The scheduler that runs on a cluster until it is stopped or loses its lease."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from podium.api.basis import Caveat
from podium.api.errors import InputError
from podium.api.times import SECOND
from podium.app.live.live_program import ACTIVE_PODS, OPTIONAL, LiveProgram, LiveSettings, is_unsure
from podium.app.live.logs import Log
from podium.app.live.metrics import Metrics
from podium.client.credentials import ClusterAccess
from podium.client.extenders import HTTPExtenders
from podium.client.live_cluster import Answer, LiveCluster, Watched
from podium.client.transport import HTTPTransport
from podium.controllers.actions import Action, Bind, DeleteObject, Record, ReportStatus, ReportUnschedulable
from podium.controllers.controller import Controller
from podium.controllers.disruption.avoid_lists import AvoidListController
from podium.controllers.disruption.disruption_counts import DisruptionCounter
from podium.controllers.observations import ActionFinished, Observation, Tick
from podium.controllers.scheduling.queue.queue import ATTEMPT_FAILURE, POD_ADD
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.controllers.scheduling.scheduler import Scheduler
from podium.framework.extenders import Extenders
from podium.framework.runner import Runner
from podium.framework.settings.configuration import upstream_departures
from podium.plugins.default_preemption import DefaultPreemption
from podium.runtime.clock import SystemClock
from podium.runtime.runtime import Component

if TYPE_CHECKING:
    from podium.app.live.decisions import DecisionRecorder

_POLICY = "DisruptionPolicy"


def check_settings(access: ClusterAccess, settings: LiveSettings) -> None:
    """Raise InputError for invalid settings, and for preemption on an API server that is not authenticated.

    Pods are deleted only at a server whose certificate is checked, or on this host, unless the user forces it.
    """
    configuration = settings.configuration
    settings.health.check()
    HTTPExtenders(configuration.extenders, configuration.source, SystemClock().now)
    runners = Scheduler(configuration, release=settings.release.of()).runners.values()
    preempts = any(isinstance(plugin, DefaultPreemption) for runner in runners for plugin in runner.profile.post_filter)
    if is_unsure(access) and preempts and not settings.dry_run and not settings.allows_insecure_preemption:
        problem = (
            "the API server's certificate is not checked, and this scheduler deletes pods to make room; have it "
            "checked (certificate-authority), disable DefaultPreemption, or force it with --allow-insecure-preemption"
        )
        raise InputError(problem, source=access.source, object=f"context {access.name}")


_FOREIGN_SERVER = {
    "preemption-policies": "preemption policies beyond Never and PreemptLowerPriority are refused by this API server; "
    "set them in a pod's annotation podium.dev/preemption-policy",
    "budgets": "budgets are counted by the cluster's own disruption controller, which does not know of a preemption "
    "before the victim is gone; a pod with several budgets cannot be evicted",
    "rates": "rates of budgets are counted by the leader here, in the budgets' annotation podium.dev/disruption-rate; "
    "the API server ignores them when it decides an eviction",
}
_NO_POLICY = "there is no DisruptionPolicy here (its definition is not installed): no caps, bounds or default budgets"
_CAPS = (
    "caps of the DisruptionPolicy apply only to preemptions by this scheduler; its levels create no PriorityClasses, "
    "its priority rules are not applied to pods, and its default budgets and bounds need Podium's controllers"
)


class LiveScheduler(LiveProgram):
    """The scheduler as a program."""

    user_agent = "podium-scheduler"
    noun = "the scheduler"
    metrics: Metrics
    _settings: LiveSettings

    def __init__(self, access: ClusterAccess, settings: LiveSettings, log: Log) -> None:
        super().__init__(access, settings, log, Metrics())
        self._recorder: DecisionRecorder | None = None
        configuration = settings.configuration
        has_extenders = self.runs_in_thread = bool(configuration.extenders)
        self._extending = (
            HTTPExtenders(configuration.extenders, configuration.source, self.now) if has_extenders else None
        )
        self._extenders: Extenders | None = None
        self._observed: ObservedScheduler | None = None

    def watched(self) -> Watched:
        """See `LiveProgram`; a scheduler needs ended pods only to detect futile preemptions."""
        settings = self._settings
        selectors = {} if settings.configuration.max_futile_preemptions else {"Pod": ACTIVE_PODS}
        kinds = Scheduler.watches | (AvoidListController.watches if settings.trims_avoid_lists else frozenset())
        return Watched(kinds=kinds, field_selectors=selectors, optional=OPTIONAL, seed=settings.seed)

    def caveats(self, absent: Sequence[str], hidden: Sequence[str], *, is_podium_server: bool) -> list[Caveat]:
        common = super().caveats(absent, hidden, is_podium_server=is_podium_server)
        found = [*upstream_departures(self._settings.configuration), *common]
        if not is_podium_server:
            found += [Caveat(about, message, 0) for about, message in _FOREIGN_SERVER.items()]
            found.append(
                Caveat("no-policy", _NO_POLICY, 1, (_POLICY,)) if _POLICY in absent else Caveat("caps", _CAPS, 0)
            )
        return found

    def on_started(self) -> None:
        names = (profile.scheduler_name for profile in self._settings.configuration.profiles)
        self._log.info("scheduling", version=str(self.release), schedulers=", ".join(names))

    def components(self, *, is_podium_server: bool) -> list[Component]:
        """Return the components. On API servers other than Podium's own, one of them counts disruptions.

        Raises InputError for a configuration that the API server's version refuses.
        """
        Scheduler(self._settings.configuration, release=self.release)
        made = [] if is_podium_server else [Component("disruption-counts", DisruptionCounter)]
        if self._settings.trims_avoid_lists:
            made.append(Component("avoid-list-controller", AvoidListController))
        name = self._settings.configuration.profiles[0].scheduler_name
        return [*made, Component(name, self._make_controller, waits=True)]

    async def open(self, cluster: LiveCluster, ending: AsyncExitStack) -> None:
        settings = self._settings
        if settings.decisions:
            # Explanations are slow to import.
            from podium.app.live.decisions import DecisionFile, DecisionRecorder

            on_problem = partial(self.file_problem, "write the decision log", settings.decisions)
            file = DecisionFile(settings.decisions, on_problem=on_problem)
            ending.callback(file.close)
            self._recorder = DecisionRecorder(settings.identity, file.write)
        if self._extending is not None:
            self._extending.open(cluster.find)
            ending.push_async_callback(self._extending.close)
            self._extenders = self._extending.asked
            for url in self._extending.unchecked:
                self._log.warning("an extender's certificate is not checked", url=url)
        self.metrics.watch_queue(lambda: None if self._observed is None else self._observed.scheduler.queue)

    def writing_transport(self, answer: Answer) -> HTTPTransport:
        """See `LiveProgram`; extenders may bind."""
        transport = super().writing_transport(answer)
        if self._extending is not None:
            transport.binder = self._extending.binder
        return transport

    def _make_controller(self) -> Controller:
        settings = self._settings
        scheduler = Scheduler(
            settings.configuration, seed=settings.seed, release=self.release, extenders=self._extenders
        )
        scheduler.bindings.refused.on_refused = lambda pod, problem: self._log.error(
            "the binding of a pod is refused; the pod preempts no pods until this changes", pod=pod.key, problem=problem
        )
        self._observed = ObservedScheduler(scheduler, self.metrics, self._recorder)
        return self.accounted(self._observed, settings.configuration.profiles[0].scheduler_name)


# Attempts of pods that are deleted before their binding is answered are never removed; the oldest are dropped.
_MAX_BINDING = 10_000


# The extension points that run for a whole attempt; others run only for the nodes that changed.
_POINTS = (("pre_enqueue", "PreEnqueue"), ("pre_filter", "PreFilter"), ("filter", "Filter"))


def _timed(call: Callable[..., Any], observe: Callable[[float], None]) -> Callable[..., Any]:
    """Return the function, with its duration in seconds passed to ``observe``."""

    def timed(*arguments: Any) -> Any:
        began_s = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            observe(time.perf_counter() - began_s)

    return timed


@dataclass(slots=True)
class Attempt:
    """An attempt to schedule a pod; ``began_s`` is by the performance counter, ``since_ns`` by the system clock."""

    uid: str
    profile: str
    began_s: float
    since_ns: int
    number: int


class ObservedScheduler:
    """A scheduler whose attempts are counted in metrics, and recorded if there is a ``recorder``."""

    def __init__(self, scheduler: Scheduler, metrics: Metrics, recorder: DecisionRecorder | None = None) -> None:
        self.scheduler = scheduler
        self.watches, self.deadline = scheduler.watches, scheduler.deadline
        self._metrics = metrics
        self._recorder = recorder
        self._attempt: Attempt | None = None
        # By uid, the attempts whose binding is pending.
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

    def handle(self, observation: Observation, now: int) -> list[Action]:
        self._now, self._attempt = now, None
        actions = self.scheduler.handle(observation, now)
        if isinstance(observation, ActionFinished):
            self._on_finished(observation, now)
        elif isinstance(observation, Tick):
            self._on_attempts(actions)
        return actions

    def _begin(self, queued: QueuedPod, runner: Runner) -> None:
        pod = queued.record
        since_ns = self._now if queued.first_attempt_ns is None else queued.first_attempt_ns
        self._incoming("active", queued.woken_by or POD_ADD).inc()
        if self._recorder is not None:
            self._recorder.before(queued, runner, self._now)
        self._attempt = Attempt(pod.uid, pod.scheduler_name, time.perf_counter(), since_ns, queued.attempts)

    def _on_attempts(self, actions: list[Action]) -> None:
        attempt = self._attempt
        if attempt is not None:
            self._metrics.algorithm_seconds.observe(time.perf_counter() - attempt.began_s)
            if self._recorder is not None:
                self._recorder.after(attempt.uid, actions)
        failed = {each.uid for each in actions if isinstance(each, Record) and each.reason == "FailedScheduling"}
        reports = [each for each in actions if isinstance(each, ReportUnschedulable)]
        errors = {report.uid for report in reports if report.reason == "SchedulerError"}
        for uid in failed:
            result = "error" if uid in errors else "unschedulable"
            if attempt is not None and attempt.uid == uid:
                self._count(attempt, result)
            else:
                # The scheduler reused the result of an equal pod, without an attempt.
                profile = next(iter(self.scheduler.runners)) if attempt is None else attempt.profile
                self._attempts(result, profile).inc()
            self._binding.pop(uid, None)
            self._incoming("backoff" if uid in errors else "unschedulable", ATTEMPT_FAILURE).inc()
        if attempt is not None and attempt.uid not in failed:
            self._binding[attempt.uid] = attempt
            if len(self._binding) > _MAX_BINDING:
                self._binding.popitem(last=False)
        self._metrics.preemption_attempts.inc(len(failed - errors))
        marks = [each for each in actions if isinstance(each, ReportStatus) and each.conditions]
        victims = {mark.uid for mark in marks if mark.conditions[0].type == "DisruptionTarget"}
        victims |= {each.uid for each in actions if isinstance(each, DeleteObject)}
        if victims:
            self._metrics.preemption_victims.observe(len(victims))

    def _count(self, attempt: Attempt, result: str) -> None:
        self._attempts(result, attempt.profile).inc()
        self._seconds(result, attempt.profile).observe(time.perf_counter() - attempt.began_s)

    def _on_finished(self, finished: ActionFinished, now: int) -> None:
        action = finished.action
        attempt = self._binding.pop(action.uid, None) if isinstance(action, Bind) else None
        if attempt is not None:
            self._count(attempt, "scheduled" if finished.problem is None else "error")
            if finished.problem is None:
                self._metrics.scheduled(max(0, now - attempt.since_ns) / SECOND, attempt.number)
