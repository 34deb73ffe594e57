"""The rescheduler that runs on a cluster until it is stopped or loses its lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Literal

import click

from podium.api import basis, errors, pod
from podium.api.versions.release import Release
from podium.app.console.output import in_json_line, new_page
from podium.app.live.live_program import OPTIONAL, LiveProgram, ProgramSettings, is_unsure
from podium.app.live.logs import Log
from podium.app.live.metrics import ProgramMetrics
from podium.app.rescheduling.certificates import PlanCertificate, certified, lower_bounds_of
from podium.app.rescheduling.offline import PlanReport, effective_schedulers, of_schedulers, same_moves, write_plan
from podium.client import credentials, live_cluster
from podium.controllers.actions import Action, Evict, Record
from podium.controllers.controller import Controller
from podium.controllers.disruption.disruption_counts import DisruptionCounter
from podium.controllers.observations import ActionFinished, Answer, Measured, Observation
from podium.controllers.rescheduling.planning import CONFIG_MAP, READ, REFUSED
from podium.controllers.rescheduling.rescheduler import POLICY_FAILED, Rescheduler
from podium.decide.rescheduling.round_robin import NONE_EXCLUDED, ReschedulingPlan
from podium.framework.rescheduling.configuration import ReschedulerConfiguration
from podium.framework.settings.configuration import upstream_departures
from podium.runtime.runtime import Component


class ReschedulingSettings(ProgramSettings, frozen=True, kw_only=True):
    """The settings of a rescheduler on a cluster.

    ``rescheduling`` is its configuration. The ConfigMap ``config_map`` (`namespace/name`, "" for none) replaces
    ``rescheduling`` while it runs. With ``dry_run`` no pod is
    evicted and each plan that differs from the last one is printed in ``plan_form``. With ``is_once`` the program ends
    after one plan. ``counts_disruptions``: count disruptions for rates of budgets on API servers that do not.
    ``honors_avoid_lists``: whether the schedulers honor avoid lists; None: only those of Podium's own API server do.
    Resource usage is polled every ``measure_s`` seconds, if a policy needs it.
    """

    rescheduling: ReschedulerConfiguration
    plan_form: Literal["text", "json"] = "text"
    is_once: bool = False
    config_map: str = ""
    counts_disruptions: bool = True
    honors_avoid_lists: bool | None = None
    measure_s: float = 30.0


COMPONENT = "rescheduler"
_PODS = "status.phase!=Succeeded"
_CERTIFY_NS = 3_600 * 10**9


def check_settings(access: credentials.ClusterAccess, settings: ReschedulingSettings) -> None:
    """Raise InputError for invalid settings, and for evictions on an API server that is not authenticated."""
    settings.health.check()
    with errors.locating(source=settings.rescheduling.source):
        _rescheduler(settings, settings.release.of(), honors_avoid_lists=True)
    if is_unsure(access) and not settings.dry_run:
        problem = (
            "the API server's certificate is not checked, and --evict evicts pods; have it checked "
            "(certificate-authority), or leave --evict out"
        )
        raise errors.InputError(problem, source=access.source, object=f"context {access.name}")


def _rescheduler(settings: ReschedulingSettings, release: Release, *, honors_avoid_lists: bool) -> Rescheduler:
    return Rescheduler(
        settings.rescheduling.settings,
        effective_schedulers(settings.configuration, honors_avoid_lists=honors_avoid_lists),
        release=release,
        config_map=settings.config_map,
        seed=settings.seed,
        only_plans=settings.dry_run,
    )


class LiveRescheduler(LiveProgram):
    """The rescheduler as a program."""

    user_agent = "podium-rescheduler"
    noun = "the rescheduler"
    metrics: ReschedulerMetrics
    _settings: ReschedulingSettings

    def __init__(self, access: credentials.ClusterAccess, settings: ReschedulingSettings, log: Log) -> None:
        super().__init__(access, settings, log, ReschedulerMetrics())
        self._kinds = _rescheduler(settings, self.release, honors_avoid_lists=True).watches
        self._component: Component | None = None
        self._rescheduler: Rescheduler | None = None
        self._shown: ReschedulingPlan | None = None
        self._honors_avoid_lists = False
        self._caveats: tuple[basis.Caveat, ...] = ()
        self._certified_ns: int | None = None

    def watched(self) -> live_cluster.Watched:
        namespace, _, name = self._settings.config_map.partition("/")
        return live_cluster.Watched(
            kinds=self._kinds,
            field_selectors={"Pod": _PODS, CONFIG_MAP: f"metadata.name={name}"},
            namespaces={CONFIG_MAP: namespace},
            optional=OPTIONAL,
            seed=self._settings.seed,
        )

    def caveats(self, absent: Sequence[str], hidden: Sequence[str], *, is_podium_server: bool) -> list[basis.Caveat]:
        settings = self._settings
        self._honors_avoid_lists = (
            is_podium_server if settings.honors_avoid_lists is None else settings.honors_avoid_lists
        )
        schedulers = effective_schedulers(settings.configuration, honors_avoid_lists=self._honors_avoid_lists)
        known = {} if self._cluster is None else self._cluster.reflectors["Pod"].machine.known
        pods = [stored.object for stored in known.values() if isinstance(stored.object, pod.Pod)]
        found = [
            *settings.rescheduling.caveats,
            *upstream_departures(schedulers),
            *super().caveats(absent, hidden, is_podium_server=is_podium_server),
            *of_schedulers(settings.rescheduling.settings, schedulers, pods),
        ]
        if not is_podium_server and settings.counts_disruptions and not settings.dry_run:
            message = (
                "rates of budgets are counted here, in the budgets' annotation podium.dev/disruption-rate; if podium "
                "scheduler counts them already, use --no-count-disruptions"
            )
            found.append(basis.Caveat("rates", message, 0))
        self._caveats = tuple(found)
        return found

    def components(self, *, is_podium_server: bool) -> list[Component]:
        """Return the components. On API servers other than Podium's own, one of them counts disruptions."""
        counts = self._settings.counts_disruptions and not self._settings.dry_run and not is_podium_server
        made = [Component("disruption-counts", DisruptionCounter)] if counts else []
        self._component = Component(COMPONENT, self._make_controller, waits=True)
        return [*made, self._component]

    def on_started(self) -> None:
        settings = self._settings
        policies = ", ".join(policy.name for policy in settings.rescheduling.settings.policies)
        what = "planning moves without evicting pods" if settings.dry_run else "moving pods"
        self._log.info(what, version=str(self.release), policies=policies)
        if settings.rescheduling.settings.is_paused and not settings.config_map:
            self._log.warning("the configuration pauses the rescheduler")
            if settings.is_once:
                # No plan will be made, after which the program would end.
                self.stop()

    async def open(self, cluster: live_cluster.LiveCluster, ending: AsyncExitStack) -> None:
        """Poll the resource usage of pods and nodes while a policy needs it."""

        def report(measured: Measured) -> None:
            if self._component is not None:
                cluster.runtime.enqueue(self._component, measured)

        measuring = live_cluster.UsagePoller(
            self._session,
            lambda: self._rescheduler is not None and self._rescheduler.needs_use,
            report,
            lambda problem: self._log.warning("the resource usage of pods and nodes is unknown", problem=problem),
            interval_s=self._settings.measure_s,
        )
        ending.callback(asyncio.ensure_future(measuring.run()).cancel)

    def _make_controller(self) -> Controller:
        controller = self._rescheduler = _rescheduler(
            self._settings, self.release, honors_avoid_lists=self._honors_avoid_lists
        )
        observed = ObservedRescheduler(controller, self.metrics)
        observed.on_plan, observed.on_record = self._on_plan, self._on_records
        if self._settings.is_once:
            # The moves of the plan have ended.
            observed.on_rest = self.stop
        return self.accounted(observed, COMPONENT)

    # Reporting

    def _on_plan(self, plan: ReschedulingPlan, now: int) -> None:
        if self._settings.dry_run:
            self._show(plan, now)
            return
        if self._certified_ns is None or now - self._certified_ns >= _CERTIFY_NS:
            self._certify(plan, now)
        for planned in plan.planned:
            for move in planned.moves:
                self._log.info(
                    "moving a pod",
                    pod=move.pod.key,
                    source=move.source,
                    target=move.target or "",
                    policy=planned.policy,
                    reason=planned.reason,
                )
        for left in plan.left_alone:
            self._log.info("a pod is not moved", 2, pod=left.pod, policy=left.policy, why=left.why)

    def _certify(self, plan: ReschedulingPlan, now: int) -> PlanCertificate | None:
        """Return the certificate of a plan, and show it in log and metrics.

        That takes far longer than a plan in large clusters, and so is done once an hour.
        """
        if self._rescheduler is None:
            return None
        self._certified_ns = now
        found = certified(plan, lower_bounds_of(self._rescheduler, now))
        ever = found.ever
        self.metrics.certified.labels("now").set(ever.now)
        self.metrics.certified.labels("after_plan").set(ever.after)
        self.metrics.certified.labels("bound").set(ever.bound)
        self._log.info("certificate", now=ever.now, after_plan=ever.after, bound=ever.bound, gap=f"{ever.gap:.1%}")
        return found

    def _on_records(self, record: Record) -> None:
        """Log the state of the ConfigMap, and each policy that starts to fail."""
        if record.reason == POLICY_FAILED:
            self._log.error("a policy failed", problem=record.message)
        elif record.reason == REFUSED:
            self._log.error("the ConfigMap is refused", config_map=self._settings.config_map, problem=record.message)
        elif record.reason == READ:
            self._log.info("the ConfigMap was read", config_map=self._settings.config_map, state=record.message)

    def _show(self, plan: ReschedulingPlan, now: int) -> None:
        """Print a plan, if it differs from the last one."""
        if self._shown is not None and same_moves(self._shown, plan):
            return
        self._shown = plan
        settings = self._settings
        untouched = NONE_EXCLUDED if self._rescheduler is None else self._rescheduler.untouched(now)
        certificate = self._certify(plan, now)
        report = PlanReport(
            plan, settings.rescheduling.settings, now, self._access.name, self._caveats, untouched, certificate
        )
        if settings.plan_form == "json":
            click.echo(in_json_line(report.to_dict()))
            return
        page = new_page()
        write_plan(page, report)
        click.echo(page.text, color=True)


_RESULTS = {
    Answer.DONE: "evicted",
    Answer.GONE: "gone",
    Answer.REPLACED: "gone",
    Answer.FULL: "refused",
    Answer.REFUSED: "refused",
    Answer.UNKNOWN: "unknown",
}


class ObservedRescheduler:
    """A rescheduler whose plans are counted in metrics and reported.

    ``on_plan`` is called with each plan and its time, ``on_record`` with Events that are not about pods, and
    ``on_rest`` when the moves of a plan have ended.
    """

    def __init__(self, rescheduler: Rescheduler, metrics: ReschedulerMetrics) -> None:
        self.rescheduler = rescheduler
        self.watches, self.deadline = rescheduler.watches, rescheduler.deadline
        self.on_plan: Callable[[ReschedulingPlan, int], None] = lambda plan, now: None
        self.on_record: Callable[[Record], None] = lambda record: None
        self.on_rest: Callable[[], None] = lambda: None
        self._metrics = metrics
        self._policy_of: dict[str, str] = {}
        self._began_s = 0.0
        self._is_at_work = False
        rescheduler.on_plan = self._on_plan

    def handle(self, observation: Observation, now: int) -> list[Action]:
        self._began_s = time.perf_counter()
        actions = self.rescheduler.handle(observation, now)
        for action in actions:
            if isinstance(action, Record) and not action.pod:
                self.on_record(action)
        if isinstance(observation, ActionFinished) and isinstance(observation.action, Evict):
            policy = self._policy_of.get(observation.action.uid, "")
            self._metrics.evictions.labels(policy, _RESULTS.get(observation.answer, "failed")).inc()
        self._metrics.under_way.set(self.rescheduler.moves_under_way)
        if self._is_at_work and not self.rescheduler.is_at_work:
            self._is_at_work = False
            self.on_rest()
        return actions

    def _on_plan(self, plan: ReschedulingPlan, now: int) -> None:
        self._is_at_work = True
        self._policy_of = {move.pod.uid: planned.policy for planned in plan.planned for move in planned.moves}
        self._metrics.plans.inc()
        self._metrics.plan_seconds.observe(time.perf_counter() - self._began_s)
        for policy, objective in plan.before.items():
            self._metrics.objective.labels(policy).set(objective)
        self._metrics.planned.set(len(self._policy_of))
        self._metrics.left_alone.set(len(plan.left_alone))
        self._metrics.policy_errors.inc(len(plan.errors))
        self.on_plan(plan, now)


class ReschedulerMetrics(ProgramMetrics):
    """The metrics of a rescheduler."""

    prefix = "podium_rescheduler"

    def __init__(self) -> None:
        super().__init__()
        self.plans = self.counter("podium_rescheduler_plans", "Number of plans made.")
        self.plan_seconds = self.histogram(
            "podium_rescheduler_plan_duration_seconds",
            "How long a plan takes, in seconds.",
            buckets=tuple(0.001 * 2**power for power in range(15)),
        )
        self.evictions = self.counter(
            "podium_rescheduler_evictions",
            "Number of requested evictions, by policy and result: 'evicted', 'refused', 'gone', 'failed', or 'unknown' "
            "if there was no response.",
            "policy",
            "result",
        )
        self.objective = self.gauge(
            "podium_rescheduler_objective",
            "The objective of each policy at the last plan; 1 is the cost of one badly placed pod.",
            "policy",
        )
        self.certified = self.gauge(
            "podium_rescheduler_certificate",
            "The weighted sum of the objectives with a bound, plus the threshold for each moved pod, at the last "
            "certificate: 'now', 'after_plan', and the 'bound' that no order of evictions can beat.",
            "value",
        )
        self.planned = self.gauge("podium_rescheduler_planned_moves", "Moves in the last plan.")
        self.left_alone = self.gauge("podium_rescheduler_left_alone", "Proposals that the last plan rejected.")
        self.policy_errors = self.counter("podium_rescheduler_policy_errors", "Number of times that a policy failed.")
        self.under_way = self.gauge("podium_rescheduler_moves_under_way", "Moves whose replacement is not ready yet.")
