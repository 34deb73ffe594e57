"""A rescheduler that runs at a cluster until it is told to stop, or may not lead any more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack

import click

from podium.api.basis import Caveat
from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.app.console.output import in_json_line, new_page
from podium.app.live.live_program import OPTIONAL, LiveProgram, is_unsure
from podium.app.live.logs import Log
from podium.app.rescheduling.caveats import live_caveats
from podium.app.rescheduling.heeding import as_they_are
from podium.app.rescheduling.metrics import ReschedulerMetrics
from podium.app.rescheduling.observed import ObservedRescheduler
from podium.app.rescheduling.plan_report import PlanReport, same_moves
from podium.app.rescheduling.plan_text import write_plan
from podium.app.rescheduling.settings import ReschedulingSettings
from podium.client.access.cluster_access import ClusterAccess
from podium.client.live_cluster import LiveCluster, Watched
from podium.client.measuring import Measuring
from podium.client.session import Session
from podium.decide.rescheduling.plan import Plan
from podium.decide.rescheduling.untouched import NOBODY
from podium.driver.component import Component
from podium.machines.actions import Record
from podium.machines.disruption.disruption_counts import DisruptionCounts
from podium.machines.machine import Machine
from podium.machines.observations import Measured
from podium.machines.rescheduling.rescheduler import Rescheduler
from podium.machines.rescheduling.settings_map import CONFIG_MAP, READ, REFUSED

COMPONENT = "rescheduler"
_PODS = "status.phase!=Succeeded"


def check_settings(access: ClusterAccess, settings: ReschedulingSettings) -> None:
    """Raise InputError for what is not to be run: settings that cannot be, and servers of which one cannot be sure."""
    settings.health.check()
    try:
        _machine(settings, heeds_avoid_lists=True)
    except InputError as error:
        raise error.located(source=settings.rescheduling.source) from None
    if is_unsure(access) and not settings.dry_run:
        problem = (
            "the API server's certificate is not checked, and --evict has pods go; have it checked "
            "(certificate-authority), or leave --evict out"
        )
        raise InputError(problem, source=access.source, object=f"context {access.name}")


def _machine(settings: ReschedulingSettings, *, heeds_avoid_lists: bool) -> Rescheduler:
    return Rescheduler(
        settings.rescheduling.settings,
        as_they_are(settings.configuration, heeds_avoid_lists=heeds_avoid_lists),
        config_map=settings.config_map,
        seed=settings.seed,
        only_plans=settings.dry_run,
    )


class LiveRescheduler(LiveProgram):
    """The rescheduler as a program."""

    user_agent = "podium-rescheduler"
    noun = "the rescheduler"

    def __init__(self, access: ClusterAccess, settings: ReschedulingSettings, log: Log) -> None:
        """Raises InputError for what is not to be run so."""
        self.metrics = ReschedulerMetrics()
        super().__init__(access, settings, log, self.metrics)
        self._settings = settings
        self._kinds = _machine(settings, heeds_avoid_lists=True).watches
        self._component: Component | None = None
        self._machine: Rescheduler | None = None
        self._shown: Plan | None = None
        self._heeds = False
        self._caveats: tuple[Caveat, ...] = ()

    def watched(self) -> Watched:
        """See `LiveProgram`."""
        namespace, _, name = self._settings.config_map.partition("/")
        return Watched(
            kinds=self._kinds,
            field_selectors={"Pod": _PODS, CONFIG_MAP: f"metadata.name={name}"},
            namespaces={CONFIG_MAP: namespace},
            optional=OPTIONAL,
            seed=self._settings.seed,
        )

    def caveats(self, absent: Sequence[str], *, knows_ours: bool) -> list[Caveat]:
        """See `LiveProgram`."""
        settings = self._settings
        self._heeds = knows_ours if settings.heeds_avoid_lists is None else settings.heeds_avoid_lists
        schedulers = as_they_are(settings.configuration, heeds_avoid_lists=self._heeds)
        found = live_caveats(self._access, settings, schedulers, absent, self._pods(), knows_ours=knows_ours)
        self._caveats = tuple(found)
        return found

    def components(self, *, knows_ours: bool) -> list[Component]:
        """What runs. Disruptions are counted by Podium's own API server, and here where it is another."""
        counts = self._settings.counts_disruptions and not self._settings.dry_run and not knows_ours
        made = [Component("disruption-counts", DisruptionCounts)] if counts else []
        self._component = Component(COMPONENT, self._make_machine, waits=True)
        return [*made, self._component]

    def begun(self) -> None:
        """See `LiveProgram`."""
        settings = self._settings
        policies = ", ".join(policy.name for policy in settings.rescheduling.settings.policies)
        what = "looking for moves, and making none" if settings.dry_run else "moving pods"
        self._log.info(what, policies=policies)
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

        measuring = Measuring(self._asked, self._needs_use, tell, problem, interval_s=self._settings.measure_s)
        running = asyncio.ensure_future(measuring.run())
        ending.callback(running.cancel)

    def _make_cluster(self, session: Session) -> LiveCluster:
        self._asked = session
        return super()._make_cluster(session)

    def _needs_use(self) -> bool:
        return self._machine is not None and self._machine.needs_use

    def _make_machine(self) -> Machine:
        machine = self._machine = _machine(self._settings, heeds_avoid_lists=self._heeds)
        observed = ObservedRescheduler(machine, self.metrics)
        observed.on_plan, observed.on_rest, observed.on_record = self._planned, self._rested, self._recorded
        return self.accounted(observed, COMPONENT)

    def _pods(self) -> Iterator[Pod]:
        cluster = self._cluster
        known = {} if cluster is None else cluster.reflectors["Pod"].machine.known
        return (stored.object for stored in known.values() if isinstance(stored.object, Pod))

    # Telling

    def _planned(self, plan: Plan, now: int) -> None:
        for problem in plan.errors:
            self._log.error("a policy failed", problem=problem)
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
        """Say also here what becomes of the ConfigMap."""
        if record.reason == REFUSED:
            self._log.error("the ConfigMap is refused", config_map=self._settings.config_map, problem=record.message)
        elif record.reason == READ:
            self._log.info("the ConfigMap was read", config_map=self._settings.config_map, state=record.message)

    def _show(self, plan: Plan, now: int) -> None:
        """Print a plan that says something else than the one before."""
        if self._shown is not None and same_moves(self._shown, plan):
            return
        self._shown = plan
        settings = self._settings
        untouched = NOBODY if self._machine is None else self._machine.untouched(now)
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
