"""A rescheduler that runs at a cluster until it is told to stop, or may not lead any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Literal

import click

from podium.api.basis import Caveat
from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.api.versions.release import Release
from podium.app.console.output import in_json_line, new_page
from podium.app.live.live_program import OPTIONAL, LiveProgram, ProgramSettings, is_unsure
from podium.app.live.logs import Log
from podium.app.live.metrics import ProgramMetrics
from podium.app.rescheduling.offline import PlanReport, as_they_are, live_caveats, same_moves, write_plan
from podium.client.credentials import ClusterAccess
from podium.client.live_cluster import LiveCluster, Watched
from podium.client.session import Session
from podium.client.usage_poller import UsagePoller
from podium.controllers.actions import Action, Evict, Record
from podium.controllers.controller import Controller
from podium.controllers.deadlines import Deadline
from podium.controllers.disruption.disruption_counts import DisruptionCounter
from podium.controllers.observations import Answer, Answered, Measured, Observation
from podium.controllers.rescheduling.planning import CONFIG_MAP, READ, REFUSED
from podium.controllers.rescheduling.rescheduler import POLICY_FAILED, Rescheduler
from podium.decide.rescheduling.round_robin import NONE_EXCLUDED, ReschedulingPlan
from podium.framework.rescheduling.configuration import ReschedulerConfiguration
from podium.framework.settings.configuration import Configuration
from podium.runtime.component import Component

PlanForm = Literal["text", "json"]


class ReschedulingSettings(ProgramSettings, frozen=True, kw_only=True):
    """``rescheduling`` is how pods are moved, ``configuration`` that of the cluster's schedulers.

    They are read of the ConfigMap ``config_map`` (`namespace/name`, "" for none) while it runs.
    With ``dry_run`` each plan that says something else than the one before is printed in ``plan_form``, and nobody is
    evicted. With ``is_once`` the program ends after one plan. ``counts_disruptions``: at API servers that know no rates
    of budgets it counts what they limit. ``heeds_avoid_lists``: whether the schedulers heed avoid lists; None: those at
    Podium's own API server do, and no others. Every ``measure_s`` seconds it asks what pods and nodes use, where that
    matters.
    """

    rescheduling: ReschedulerConfiguration
    configuration: Configuration
    plan_form: PlanForm = "text"
    is_once: bool = False
    config_map: str = ""
    counts_disruptions: bool = True
    heeds_avoid_lists: bool | None = None
    measure_s: float = 30.0


COMPONENT = "rescheduler"
_PODS = "status.phase!=Succeeded"


def check_settings(access: ClusterAccess, settings: ReschedulingSettings) -> None:
    """Raise InputError for what is not to be run: settings that cannot be, and servers of which one cannot be sure."""
    settings.health.check()
    try:
        _machine(settings, settings.release.of(), heeds_avoid_lists=True)
    except InputError as error:
        raise error.located(source=settings.rescheduling.source) from None
    if is_unsure(access) and not settings.dry_run:
        problem = (
            "the API server's certificate is not checked, and --evict has pods go; have it checked "
            "(certificate-authority), or leave --evict out"
        )
        raise InputError(problem, source=access.source, object=f"context {access.name}")


def _machine(settings: ReschedulingSettings, release: Release, *, heeds_avoid_lists: bool) -> Rescheduler:
    return Rescheduler(
        settings.rescheduling.settings,
        as_they_are(settings.configuration, heeds_avoid_lists=heeds_avoid_lists),
        release=release,
        config_map=settings.config_map,
        seed=settings.seed,
        only_plans=settings.dry_run,
    )


class LiveRescheduler(LiveProgram):
    """The rescheduler as a program."""

    user_agent = "podium-rescheduler"
    noun = "the rescheduler"

    def __init__(self, access: ClusterAccess, settings: ReschedulingSettings, log: Log) -> None:
        self.metrics = ReschedulerMetrics()
        super().__init__(access, settings, log, self.metrics)
        self._settings = settings
        self._kinds = _machine(settings, self.release, heeds_avoid_lists=True).watches
        self._component: Component | None = None
        self._machine: Rescheduler | None = None
        self._shown: ReschedulingPlan | None = None
        self._heeds = False
        self._caveats: tuple[Caveat, ...] = ()

    def watched(self) -> Watched:
        namespace, _, name = self._settings.config_map.partition("/")
        return Watched(
            kinds=self._kinds,
            field_selectors={"Pod": _PODS, CONFIG_MAP: f"metadata.name={name}"},
            namespaces={CONFIG_MAP: namespace},
            optional=OPTIONAL,
            seed=self._settings.seed,
        )

    def caveats(self, absent: Sequence[str], hidden: Sequence[str], *, knows_ours: bool) -> list[Caveat]:
        settings = self._settings
        self._heeds = knows_ours if settings.heeds_avoid_lists is None else settings.heeds_avoid_lists
        schedulers = as_they_are(settings.configuration, heeds_avoid_lists=self._heeds)
        found = live_caveats(self._access, settings, schedulers, hidden, self._pods(), knows_ours=knows_ours)
        self._caveats = tuple(found)
        return found

    def components(self, *, knows_ours: bool) -> list[Component]:
        """What runs. Disruptions are counted by Podium's own API server, and here where it is another."""
        counts = self._settings.counts_disruptions and not self._settings.dry_run and not knows_ours
        made = [Component("disruption-counts", DisruptionCounter)] if counts else []
        self._component = Component(COMPONENT, self._make_machine, waits=True)
        return [*made, self._component]

    def begun(self) -> None:
        settings = self._settings
        policies = ", ".join(policy.name for policy in settings.rescheduling.settings.policies)
        what = "looking for moves, and making none" if settings.dry_run else "moving pods"
        self._log.info(what, version=str(self.release), policies=policies)
        if settings.rescheduling.settings.is_paused and not settings.config_map:
            self._log.warning("it is paused by its configuration")
            if settings.is_once:
                # There will be no plan after which it could end.
                self.stop()

    async def open(self, cluster: LiveCluster, ending: AsyncExitStack) -> None:
        """Measure what pods and nodes use, while some policy asks for it."""

        def tell(measured: Measured) -> None:
            if self._component is not None:
                cluster.driver.tell(self._component, measured)

        def problem(told: str) -> None:
            self._log.warning("what pods and nodes use is not known", problem=told)

        measuring = UsagePoller(self._asked, self._needs_use, tell, problem, interval_s=self._settings.measure_s)
        running = asyncio.ensure_future(measuring.run())
        ending.callback(running.cancel)

    def _make_cluster(self, session: Session) -> LiveCluster:
        self._asked = session
        return super()._make_cluster(session)

    def _needs_use(self) -> bool:
        return self._machine is not None and self._machine.needs_use

    def _make_machine(self) -> Controller:
        machine = self._machine = _machine(self._settings, self.release, heeds_avoid_lists=self._heeds)
        observed = ObservedRescheduler(machine, self.metrics)
        observed.on_plan, observed.on_rest, observed.on_record = self._planned, self._rested, self._recorded
        return self.accounted(observed, COMPONENT)

    def _pods(self) -> Iterator[Pod]:
        cluster = self._cluster
        known = {} if cluster is None else cluster.reflectors["Pod"].machine.known
        return (stored.object for stored in known.values() if isinstance(stored.object, Pod))

    # Telling

    def _planned(self, plan: ReschedulingPlan, now: int) -> None:
        if self._settings.dry_run:
            self._show(plan, now)
            return
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
            self._log.info("a pod is left alone", 2, pod=left.pod, policy=left.policy, why=left.why)

    def _recorded(self, record: Record) -> None:
        """Log what becomes of the ConfigMap, and policies that fail: once, until they work again."""
        if record.reason == POLICY_FAILED:
            self._log.error("a policy failed", problem=record.message)
        elif record.reason == REFUSED:
            self._log.error("the ConfigMap is refused", config_map=self._settings.config_map, problem=record.message)
        elif record.reason == READ:
            self._log.info("the ConfigMap was read", config_map=self._settings.config_map, state=record.message)

    def _show(self, plan: ReschedulingPlan, now: int) -> None:
        """Print a plan that says something else than the one before."""
        if self._shown is not None and same_moves(self._shown, plan):
            return
        self._shown = plan
        settings = self._settings
        untouched = NONE_EXCLUDED if self._machine is None else self._machine.untouched(now)
        report = PlanReport(plan, settings.rescheduling.settings, now, self._access.name, self._caveats, untouched)
        if settings.plan_form == "json":
            click.echo(in_json_line(report.to_dict()))
            return
        page = new_page()
        write_plan(page, report)
        click.echo(page.text, color=True)

    def _rested(self) -> None:
        """A plan was carried out as far as it goes."""
        if self._settings.is_once:
            self.stop()


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
        self.on_plan: Callable[[ReschedulingPlan, int], None] = lambda plan, now: None
        self.on_record: Callable[[Record], None] = lambda record: None
        self.on_rest: Callable[[], None] = lambda: None
        self._metrics = metrics
        self._policy_of: dict[str, str] = {}
        self._plans: list[tuple[ReschedulingPlan, int]] = []
        self._is_at_work = False
        rescheduler.on_plan = self._planned

    @property
    def watches(self) -> frozenset[str]:
        return self.rescheduler.watches

    def deadline(self) -> Deadline:
        return self.rescheduler.deadline()

    def handle(self, observation: Observation, now: int) -> list[Action]:
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
            policy = self._policy_of.get(observation.action.uid, "")
            self._metrics.evictions.labels(policy, _RESULTS.get(observation.answer, "failed")).inc()
        self._metrics.under_way.set(self.rescheduler.moves_under_way)
        if self._is_at_work and not self.rescheduler.is_at_work:
            self._is_at_work = False
            self.on_rest()
        return actions

    def _planned(self, plan: ReschedulingPlan, now: int) -> None:
        self._plans.append((plan, now))
        self._is_at_work = True
        self._policy_of = {move.pod.uid: planned.policy for planned in plan.planned for move in planned.moves}


class ReschedulerMetrics(ProgramMetrics):
    """Counts what a rescheduler finds and does."""

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
            "Number of evictions asked for, by the policy and by what came of them: 'evicted', 'refused', 'gone', "
            "'failed', or 'unknown' where no answer came.",
            *("policy", "result"),
        )
        self.objective = self.gauge(
            "podium_rescheduler_objective",
            "How bad each policy finds the placement at the last plan: 1 is one pod in quite the wrong place.",
            "policy",
        )
        self.planned = self.gauge("podium_rescheduler_planned_moves", "Moves in the last plan.")
        self.left_alone = self.gauge("podium_rescheduler_left_alone", "Proposals that the last plan left alone.")
        self.policy_errors = self.counter("podium_rescheduler_policy_errors", "Number of times that a policy failed.")
        self.under_way = self.gauge("podium_rescheduler_moves_under_way", "Moves whose replacement is not ready yet.")

    def planned_once(self, plan: ReschedulingPlan, seconds: float) -> None:
        self.plans.inc()
        self.plan_seconds.observe(seconds)
        for policy, objective in plan.before.items():
            self.objective.labels(policy).set(objective)
        self.planned.set(sum(len(planned.moves) for planned in plan.planned))
        self.left_alone.set(len(plan.left_alone))
        self.policy_errors.inc(len(plan.errors))
