"""A scheduler that runs at a cluster until it is told to stop, or may not lead any more."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from podium.api.errors import InputError, PodiumError
from podium.app.live.caveats import caveats
from podium.app.live.decisions import DecisionFile, DecisionRecorder
from podium.app.live.health import Health
from podium.app.live.logs import Log
from podium.app.live.metrics import CONTENT_TYPE, Metrics
from podium.app.live.observed import ObservedScheduler
from podium.app.live.settings import LiveSettings
from podium.client.access.cluster_access import ClusterAccess
from podium.client.access.credentials import Credentials
from podium.client.dry_transport import DryTransport
from podium.client.extending.http_extenders import HTTPExtenders
from podium.client.leading.elector import Elector
from podium.client.leading.leader_election import LeaderElection, LeaseSettings
from podium.client.live_cluster import Answer, ClosableTransport, LiveCluster, Watched
from podium.client.server_kind import is_podiums
from podium.client.session import Session
from podium.client.transport import HTTPTransport
from podium.driver.clock import SystemClock
from podium.driver.component import Component
from podium.driver.transport import Asked
from podium.framework.extenders import Extenders
from podium.machines.actions import Record
from podium.machines.disruption.avoid_lists import AvoidLists
from podium.machines.disruption.disruption_counts import DisruptionCounts
from podium.machines.machine import Machine
from podium.machines.scheduling.queue.places import QueuePlaces
from podium.machines.scheduling.scheduler import Scheduler
from podium.plugins.default_preemption import DefaultPreemption
from podium.server.http.security import is_loopback
from podium.store.api_resources import APIResources
from podium.store.stored import Stored

# Kinds that a cluster may do without, or that a role for kube-scheduler does not let anybody see.
OPTIONAL = frozenset(("DisruptionPolicy", "DeviceTaintRule"))
_ENDED = "status.phase!=Succeeded,status.phase!=Failed"


def watched(settings: LiveSettings) -> Watched:
    """What a scheduler is shown. Pods that have ended concern only those who judge futile preemptions."""
    judges = settings.configuration.max_futile_preemptions > 0
    selectors = {} if judges else {"Pod": _ENDED}
    kinds = Scheduler.watches | (AvoidLists.watches if settings.trims_avoid_lists else frozenset())
    return Watched(kinds=kinds, field_selectors=selectors, optional=OPTIONAL, seed=settings.seed)


def check_settings(access: ClusterAccess, settings: LiveSettings) -> None:
    """Raise InputError for what is not to be run: where one cannot be sure of the API server, or not all is done here.

    Pods are deleted at a server whose certificate was checked, or on this machine, and nowhere else unless forced.
    """
    configuration = settings.configuration
    settings.health.check()
    HTTPExtenders(configuration.extenders, configuration.source, SystemClock().now)
    runners = Scheduler(configuration, feature_gates=settings.feature_gates).runners.values()
    preempts = any(isinstance(plugin, DefaultPreemption) for runner in runners for plugin in runner.profile.post_filter)
    is_unsure = access.is_insecure or (
        access.server.startswith("http://") and not is_loopback(urlsplit(access.server).hostname or "")
    )
    if is_unsure and preempts and not settings.dry_run and not settings.allows_insecure_preemption:
        problem = (
            "the API server's certificate is not checked, and this scheduler deletes pods to make room; have it "
            "checked (certificate-authority), disable DefaultPreemption, or force it with --allow-insecure-preemption"
        )
        raise InputError(problem, source=access.source, object=f"context {access.name}")


class LiveScheduler:
    """One life of the program; `run` returns its exit code: 0 when it was told to stop, 1 when it lost its lease."""

    def __init__(self, access: ClusterAccess, settings: LiveSettings, log: Log) -> None:
        """Raises InputError for what is not to be run so."""
        self._access = access
        self._settings = settings
        self._log = log
        self.now = SystemClock().now
        self._credentials = Credentials(access, self.now, allows_exec=settings.allows_exec)
        self.metrics = Metrics()
        self._recorder: DecisionRecorder | None = None
        self._stopping = asyncio.Event()
        self._problems: dict[str, str] = {}
        self._cluster: LiveCluster | None = None
        self._elector: Elector | None = None
        configuration = settings.configuration
        has_extenders = bool(configuration.extenders)
        self._extending = (
            HTTPExtenders(configuration.extenders, configuration.source, self.now) if has_extenders else None
        )
        self._extenders: Extenders | None = None
        self._observed: ObservedScheduler | None = None
        self.url = ""
        self.leads = asyncio.Event()

    def stop(self) -> None:
        """Let what is on its way end, give the lease back, and return."""
        self._stopping.set()

    def stop_on_signals(self) -> None:
        """SIGINT and SIGTERM end the program in order."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)

    async def run(self) -> int:
        """Run until something ends it. Raises PodiumError where it cannot begin."""
        settings = self._settings
        async with AsyncExitStack() as ending:
            session = self._session()
            ending.push_async_callback(session.close)
            if settings.decisions:
                file = DecisionFile(settings.decisions, on_problem=self._decisions_problem)
                ending.callback(file.close)
                self._recorder = DecisionRecorder(settings.identity, file.write)
            cluster = self._cluster = self._make_cluster(session)
            if self._extending is not None:
                self._extending.open()
                ending.push_async_callback(self._extending.close)
                self._extenders = self._extending.asked(cluster.find, asyncio.get_running_loop())
                for url in self._extending.unchecked:
                    self._log.warning("an extender's certificate is not checked", url=url)
            ending.push_async_callback(cluster.close)
            ending.push_async_callback(cluster.transport.close)
            health = Health(settings.health, self.metrics.text, self._alive, self._ready, CONTENT_TYPE)
            sent = getattr(cluster.transport, "counts", None)
            self.metrics.watch(self._queue, cluster, sent)
            self.url = await health.start()
            ending.push_async_callback(health.stop)
            if self.url:
                self._log.info("listening", url=self.url)
            cluster.reflect()
            return await self._lead(session, cluster, ending)

    # Beginning

    def _session(self) -> Session:
        settings = self._settings
        return Session(
            self._access,
            self._credentials,
            APIResources(),
            user_agent="podium-scheduler",
            timeout_s=settings.request_timeout_s,
            connections=settings.transport.concurrency + len(watched(settings).kinds) + 8,
        )

    def _make_cluster(self, session: Session) -> LiveCluster:
        return LiveCluster(
            session,
            watched(self._settings),
            self.now,
            lambda answer: self._make_transport(session, answer),
            on_problem=self._kind_problem,
            on_failure=self._machine_failed,
            in_thread=self._extending is not None,
        )

    def _make_transport(self, session: Session, answer: Answer) -> ClosableTransport:
        if self._settings.dry_run:
            return DryTransport(answer, self._would_do)
        transport = HTTPTransport(
            session,
            answer,
            self.now,
            self._settings.transport,
            seconds_to_write=self._seconds_to_write,
            may_disrupt=self._may_disrupt,
            on_fault=lambda error: self._log.error("a request failed unexpectedly", problem=repr(error)),
        )
        if self._extending is not None:
            transport.binder = self._extending.binder(self._find)
        return transport

    def _find(self, kind: str, key: str) -> Stored | None:
        return None if self._cluster is None else self._cluster.find(kind, key)

    def _make_machine(self) -> Machine:
        settings = self._settings
        scheduler = Scheduler(
            settings.configuration,
            seed=settings.seed,
            feature_gates=settings.feature_gates,
            extenders=self._extenders,
        )
        recorder = self._recorder
        self._observed = ObservedScheduler(
            scheduler,
            self.metrics,
            None if recorder is None else recorder.before,
            None if recorder is None else recorder.after,
        )
        return self._observed

    def _queue(self) -> QueuePlaces | None:
        return None if self._observed is None else self._observed.scheduler.queue

    def _seconds_to_write(self) -> float:
        return float("inf") if self._elector is None else self._elector.seconds_to_write()

    def _may_disrupt(self) -> bool:
        """Whether nobody has put the file there that keeps pods from being preempted."""
        file = self._settings.pause_file
        return not file or not Path(file).exists()

    # Running

    async def _lead(self, session: Session, cluster: LiveCluster, ending: AsyncExitStack) -> int:
        """Wait to lead where others may, then for all that there is to know; then decide until something ends it."""
        version = 0
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if self._settings.lease is not None:
            self._problems = {"leader-election": "somebody else leads"}
            elector = self._elector = await self._make_elector(self._settings.lease, ending)
            if not await self._before(elector.acquire(self._holder)):
                return 0
            version = elector.machine.version
            lost = asyncio.ensure_future(self._keep(elector))
        self._problems = {}
        ending.callback(lost.cancel)
        if not await self._before(cluster.synced(version), lost):
            return await self._end(cluster, lost)
        components = self._components(knows_ours=await self._say_caveats(session, cluster))
        running = asyncio.ensure_future(cluster.run(components))
        self.leads.set()
        self._log.info("scheduling", schedulers=", ".join(self._scheduler_names()))
        try:
            if await self._before(asyncio.shield(running), lost):
                raise PodiumError("the scheduler ended by itself")
        finally:
            cluster.stop()
        await running
        return await self._end(cluster, lost)

    def _components(self, *, knows_ours: bool) -> list[Component]:
        """What runs. Disruptions are counted by Podium's own API server, and here where it is another."""
        made = [] if knows_ours else [Component("disruption-counts", DisruptionCounts)]
        if self._settings.trims_avoid_lists:
            made.append(Component("avoid-list-controller", AvoidLists))
        name = self._settings.configuration.profiles[0].scheduler_name
        return [*made, Component(name, self._make_machine, waits=True)]

    async def _make_elector(self, lease: LeaseSettings, ending: AsyncExitStack) -> Elector:
        session = self._session()
        ending.push_async_callback(session.close)
        return Elector(LeaderElection(lease, self._settings.seed), session, self.now)

    async def _keep(self, elector: Elector) -> str:
        """Keep the lease; return why it is lost."""
        lease = elector.machine.settings
        self.metrics.leader.labels(lease.name).set(1)
        self._log.info("leading", lease=lease.key, identity=lease.identity)
        try:
            return await elector.keep()
        finally:
            self.metrics.leader.labels(lease.name).set(0)

    async def _before(self, work: Awaitable[object], *ends: asyncio.Future[str]) -> bool:
        """Whether something is done before the program is told to stop, or one of the ends has come."""
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stopping.wait())
        waited: tuple[asyncio.Future[Any], ...] = (task, stopping, *ends)
        done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if task in done:
            task.result()
            return True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return False

    async def _end(self, cluster: LiveCluster, lost: asyncio.Future[str]) -> int:
        """End in order where it is to stop; at once where the lease is lost, since nothing may be written any more."""
        if lost.done() and not self._stopping.is_set():
            self._log.error(lost.result())
            return 1
        self._problems["stopping"] = "it is about to end"
        if not await cluster.transport.drain(self._settings.drain_s):
            self._log.warning("not all requests were answered in time", seconds=self._settings.drain_s)
        lost.cancel()
        if self._elector is not None:
            await asyncio.gather(lost, return_exceptions=True)
            await self._elector.release()
            self._log.info("the lease is given back")
        self._log.info("stopped")
        return 0

    # Telling

    async def _say_caveats(self, session: Session, cluster: LiveCluster) -> bool:
        """Say what does not hold here; whether the API server is one of Podium's own."""
        knows_ours = await is_podiums(session)
        found = caveats(self._access, self._settings.configuration, cluster.absent, knows_ours=knows_ours)
        for caveat in found:
            self._log.warning(caveat.message, about=caveat.about, names=", ".join(caveat.names))
        return knows_ours

    def _scheduler_names(self) -> list[str]:
        return [profile.scheduler_name for profile in self._settings.configuration.profiles]

    def _holder(self, holder: str) -> None:
        if holder and self._settings.lease is not None and holder != self._settings.lease.identity:
            self._log.info("waiting to lead", holder=holder)

    def _kind_problem(self, kind: str, problem: str) -> None:
        cluster = self._cluster
        if cluster is not None and kind in OPTIONAL and cluster.reflectors[kind].machine.is_absent:
            self._log.info("the API server has no such kind", 1, kind=kind)
        elif problem:
            self._log.warning("cannot keep up with a kind", kind=kind, problem=problem)
        else:
            self._log.info("keeping up with a kind again", kind=kind)

    def _decisions_problem(self, problem: str) -> None:
        if problem:
            self._log.error("decisions cannot be written down", file=self._settings.decisions, problem=problem)
        else:
            self._log.info("decisions are written down again", file=self._settings.decisions)

    def _machine_failed(self, component: Component, error: Exception, restart_ns: int) -> None:
        seconds = max(0, restart_ns - self.now()) / 1e9
        self._log.error("the scheduler failed and begins anew", problem=repr(error), seconds=round(seconds, 1))

    def _would_do(self, asked: Asked) -> None:
        action = asked.action
        if not isinstance(action, Record):
            self._log.info("would do", action=type(action).__name__, what=repr(action))

    def _alive(self) -> dict[str, str]:
        """What is wrong with the program itself; that of a leader that cannot renew its lease ends it."""
        return {}

    def _ready(self) -> dict[str, str]:
        problems = dict(self._problems)
        if self._cluster is not None:
            if self._cluster.unsynced:
                problems["informer-sync"] = f"not all is known yet of {', '.join(self._cluster.unsynced)}"
            for name, problem in self._cluster.driver.failures.items():
                problems[name] = problem
        return problems
