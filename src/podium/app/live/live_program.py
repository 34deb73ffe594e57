"""A program that runs machines at a cluster until it is told to stop, or may not lead any more."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from podium.api.basis import Caveat
from podium.api.collector import settle_collector
from podium.api.errors import InputError, PodiumError, shown
from podium.api.times import parse_duration
from podium.api.versions.choice import CLUSTER_RELEASE, ReleaseChoice
from podium.api.versions.release import DEFAULT_RELEASE, is_podium
from podium.app.live.logs import Format, Log
from podium.app.live.metrics import CONTENT_TYPE, Health, HealthSettings, ProgramMetrics
from podium.app.live.options import LeaseOptions
from podium.client.credentials import ClusterAccess, Credentials
from podium.client.leader_election import Elector, LeaderElection, LeaseSettings
from podium.client.live_cluster import Answer, ClosableTransport, LiveCluster, Watched
from podium.client.session import Session, server_version
from podium.client.transport import DryTransport, HTTPTransport, TransportSettings
from podium.controllers.actions import Record
from podium.controllers.controller import Controller
from podium.controlplane.ledger_file import KEPT_SECONDS
from podium.framework.settings.configuration import Configuration
from podium.runtime.clock import SystemClock
from podium.runtime.component import Component, RequestedAction
from podium.server.http import loops
from podium.server.http.security import is_loopback
from podium.store.api_resources import APIResources

if TYPE_CHECKING:
    from podium.app.live.accounting import LiveAccount
    from podium.app.serving.page.live_page import LivePage
    from podium.sim.run_options import RunOptions

# Kinds that a cluster may do without, or that a role for kube-scheduler does not let anybody see.
OPTIONAL = frozenset(("DisruptionPolicy", "DeviceTaintRule", "PodGroup"))
# How long, in the end, the last deletions are waited for to be seen, and how often they are looked for.
_LAST_SEEN_S, _LOOKED_EACH_S = 1.0, 0.02


def is_unsure(access: ClusterAccess) -> bool:
    """Whether somebody else could answer in the API server's place: no certificate is checked, on the way elsewhere."""
    return access.is_insecure or (
        access.server.startswith("http://") and not is_loopback(urlsplit(access.server).hostname or "")
    )


def run_program(settings: ProgramSettings, make: Callable[[Log], LiveProgram]) -> int:
    """Make a program and run it until it ends; return its exit code."""

    async def main() -> int:
        program = make(Log(SystemClock().now, settings.log_format, settings.verbosity))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, program.stop)
        settle_collector()
        return await program.run()

    return loops.run_client(main())


class LiveProgram(ABC):
    """One life of a program; `run` returns its exit code: 0 when it was told to stop, 1 when it lost its lease.

    ``user_agent`` is how it calls itself to API servers, ``noun`` to people. ``runs_in_thread``: its machines wait for
    somebody, and run beside the event loop.
    """

    user_agent = "podium"
    noun = "the program"
    runs_in_thread = False

    def __init__(self, access: ClusterAccess, settings: ProgramSettings, log: Log, metrics: ProgramMetrics) -> None:
        self._access = access
        self._program = settings
        self._log = log
        self._told = metrics
        self.now = SystemClock().now
        self._credentials = Credentials(access, self.now, allows_exec=settings.allows_exec)
        self._stopping = asyncio.Event()
        self._problems: dict[str, str] = {}
        self._cluster: LiveCluster | None = None
        self._leadership: Leadership | None = None
        self._account: LiveAccount | None = None
        self.release = DEFAULT_RELEASE
        self.url = ""
        self.leads = asyncio.Event()

    # What a program is

    @abstractmethod
    def watched(self) -> Watched:
        """What its machines are shown."""

    @abstractmethod
    def components(self, *, knows_ours: bool) -> list[Component]:
        """What runs; ``knows_ours``: the API server is one of Podium's own."""

    @abstractmethod
    def caveats(self, absent: Sequence[str], hidden: Sequence[str], *, knows_ours: bool) -> list[Caveat]:
        """Return what does not hold here.

        ``absent`` are the kinds that the API server does not serve, or does not show; ``hidden`` are the latter.
        """

    @abstractmethod
    def begun(self) -> None:
        """Say that all is known, and that it works."""

    @abstractmethod
    async def open(self, cluster: LiveCluster, ending: AsyncExitStack) -> None:
        """Open what is needed beside the API server, and have it closed in the end."""

    # Running

    def stop(self) -> None:
        """Let what is on its way end, give the lease back, and return."""
        self._stopping.set()

    async def run(self) -> int:
        """Run until something ends it. Raises PodiumError where it cannot begin."""
        async with AsyncExitStack() as ending:
            session = self._session()
            ending.push_async_callback(session.close)
            cluster = self._cluster = self._make_cluster(session)
            await self.open(cluster, ending)
            if self._program.ledger and not self._program.dry_run:
                from podium.app.live.accounting import LiveAccount

                settings = self._program
                self._account = LiveAccount(
                    settings.ledger, settings.ledger_kept_seconds, cluster.find, self._ledger_problem
                )
                ending.callback(self._account.close)
                self._told.tell_disruptions(self._account.tallies)
            ending.push_async_callback(cluster.close)
            ending.push_async_callback(cluster.transport.close)
            page = self._page(cluster) if self._program.health.has_page else None
            health = Health(self._program.health, self._told.text, self._alive, self._ready, CONTENT_TYPE, page)
            self._told.watch(cluster, getattr(cluster.transport, "counts", None))
            self.url = await health.start()
            ending.push_async_callback(health.stop)
            if page is not None:
                ending.push_async_callback(page.close)
            if self.url:
                self._log.info("listening", url=self.url)
            cluster.reflect()
            return await self._lead(session, cluster, ending)

    def accounted(self, machine: Controller, name: str) -> Controller:
        """The machine, with what it disrupts accounted for where that is wanted."""
        return machine if self._account is None else self._account.of(machine, name)

    def _page(self, cluster: LiveCluster) -> LivePage:
        # Few want one.
        from podium.app.serving.page.live_page import cluster_page

        return cluster_page(cluster, f"podium {self.noun.removeprefix('the ')}", self.now, self.played_as)

    def played_as(self) -> RunOptions:
        """How questions are played that are asked by the page: with which configuration of the schedulers."""
        from podium.sim.run_options import RunOptions

        return RunOptions(ignore_extenders=True, release=ReleaseChoice.exactly(self.release))

    def _session(self) -> Session:
        settings = self._program
        return Session(
            self._access,
            self._credentials,
            APIResources(),
            user_agent=self.user_agent,
            timeout_s=settings.request_timeout_s,
            connections=settings.transport.concurrency + len(self.watched().kinds) + 8,
        )

    def _make_cluster(self, session: Session) -> LiveCluster:
        return LiveCluster(
            session,
            self.watched(),
            self.now,
            lambda answer: self.make_transport(session, answer),
            on_problem=self._kind_problem,
            on_failure=self._machine_failed,
            in_thread=self.runs_in_thread,
        )

    def make_transport(self, session: Session, answer: Answer) -> ClosableTransport:
        """What carries out what the machines ask for."""
        if self._program.dry_run:
            return DryTransport(answer, self.would_do)
        return self.writing_transport(session, answer)

    def writing_transport(self, session: Session, answer: Answer) -> HTTPTransport:
        return HTTPTransport(
            session,
            answer,
            self.now,
            self._program.transport,
            seconds_to_write=self._seconds_to_write,
            may_disrupt=self.may_disrupt,
            on_fault=lambda error: self._log.error("a request failed unexpectedly", problem=repr(error)),
        )

    def _seconds_to_write(self) -> float:
        return float("inf") if self._leadership is None else self._leadership.seconds_to_write()

    def may_disrupt(self) -> bool:
        """Whether nobody has put the file there that keeps pods from being disrupted."""
        file = self._program.pause_file
        return not file or not Path(file).exists()

    # Leading

    async def _lead(self, session: Session, cluster: LiveCluster, ending: AsyncExitStack) -> int:
        """Wait to lead where others may, then for all that there is to know; then decide until something ends it."""
        version = 0
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if self._program.lease is not None:
            self._problems = {"leader-election": "somebody else leads"}
            leadership = self._leadership = self._make_leadership(self._program.lease, ending)
            acquired = asyncio.ensure_future(leadership.acquire())
            if not await self._before(acquired):
                return 0
            version = acquired.result()
            lost = asyncio.ensure_future(leadership.keep())
        self._problems = {}
        ending.callback(lost.cancel)
        if not await self._before(cluster.synced(version), lost):
            return await self._end(cluster, lost)
        self._log.info("all is known of what is watched")
        knows_ours = self._say_caveats(await server_version(session), cluster)
        if isinstance(cluster.transport, HTTPTransport):
            cluster.transport.knows_ours = knows_ours
        components = self.components(knows_ours=knows_ours)
        running = asyncio.ensure_future(cluster.run(components))
        self.leads.set()
        self.begun()
        try:
            if await self._before(asyncio.shield(running), lost):
                raise PodiumError(f"{self.noun} ended by itself")
        finally:
            cluster.stop()
        await running
        return await self._end(cluster, lost)

    def _make_leadership(self, lease: LeaseSettings, ending: AsyncExitStack) -> Leadership:
        session = self._session()
        ending.push_async_callback(session.close)
        return Leadership(LeaderElection(lease, self._program.seed), session, self.now, self._log, self._told)

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
        if not await cluster.transport.drain(self._program.drain_s):
            self._log.warning("not all requests were answered in time", seconds=self._program.drain_s)
        if self._account is not None:
            await self._account_for_the_last(cluster, self._account)
        lost.cancel()
        if self._leadership is not None:
            await asyncio.gather(lost, return_exceptions=True)
            await self._leadership.release()
        self._log.info("stopped")
        return 0

    async def _account_for_the_last(self, cluster: LiveCluster, account: LiveAccount) -> None:
        """Give what was asked for in the end a short while to be seen: nobody else knows who disrupted whom."""
        cluster.settle()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SEEN_S):
                while account.expects_ends:
                    await asyncio.sleep(_LOOKED_EACH_S)
                    cluster.settle()

    # Telling

    def _say_caveats(self, version: str, cluster: LiveCluster) -> bool:
        """Choose the version that decides, and log what does not hold at this API server.

        Return whether it is Podium's own. Raises InputError for feature gates that the version refuses.
        """
        knows_ours = is_podium(version)
        self.release, found = self._program.release.for_server(version)
        for caveat in (*found, *self.caveats(cluster.absent, cluster.hidden, knows_ours=knows_ours)):
            self._log.warning(caveat.message, about=caveat.about, names=", ".join(caveat.names))
        return knows_ours

    def _kind_problem(self, kind: str, problem: str) -> None:
        cluster = self._cluster
        if cluster is not None and kind in self.watched().optional and cluster.reflectors[kind].machine.is_absent:
            self._log.info("the API server does not serve or show a kind", 1, kind=kind, problem=problem)
        elif problem:
            self._log.warning("cannot keep up with a kind", kind=kind, problem=problem)
        else:
            self._log.info("keeping up with a kind again", kind=kind)

    def _ledger_problem(self, problem: str) -> None:
        if problem:
            self._log.error("the ledger cannot be written", file=self._program.ledger, problem=problem)
        else:
            self._log.info("the ledger is written again", file=self._program.ledger)

    def _machine_failed(self, component: Component, error: Exception, restart_ns: int) -> None:
        seconds = max(0, restart_ns - self.now()) / 1e9
        self._log.error(f"{self.noun} failed and begins anew", problem=repr(error), seconds=round(seconds, 1))

    def would_do(self, asked: RequestedAction) -> None:
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


class Leadership:
    """Waits for a lease, keeps it and gives it back; people see in log and metrics who leads."""

    def __init__(
        self, machine: LeaderElection, session: Session, now: Callable[[], int], log: Log, metrics: ProgramMetrics
    ) -> None:
        self._elector = Elector(machine, session, now)
        self._lease = machine.settings
        self._log = log
        self._metrics = metrics

    def seconds_to_write(self) -> float:
        """How long something may still be written in the leader's name."""
        return self._elector.seconds_to_write()

    async def acquire(self) -> int:
        """Return the version of the lease once it is held."""
        return await self._elector.acquire(self._tell_holder)

    async def keep(self) -> str:
        """Keep the lease; return why it is lost."""
        is_leader = self._metrics.leader.labels(self._lease.name)
        is_leader.set(1)
        self._log.info("leading", lease=self._lease.key, identity=self._lease.identity)
        try:
            return await self._elector.keep()
        finally:
            is_leader.set(0)

    async def release(self) -> None:
        """Give the lease back, so that somebody else need not wait for its end."""
        await self._elector.release()
        self._log.info("the lease is given back")

    def _tell_holder(self, holder: str) -> None:
        if holder and holder != self._lease.identity:
            self._log.info("waiting to lead", holder=holder)


class ProgramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What every program at a cluster has.

    ``lease`` None: nobody else runs, so that nobody is elected. With ``dry_run`` nothing is written. ``drain_s`` is how
    long a program that stops waits for answers. While there is a file ``pause_file`` ("" for none), no pod is
    disrupted. ``release`` is the version that decides, by default the API server's. ``ledger`` is a file for an account
    of disruptions, "" for none, that are kept for so long (0: always).
    """

    identity: str = "podium"
    lease: LeaseSettings | None = None
    release: ReleaseChoice = CLUSTER_RELEASE
    dry_run: bool = False
    allows_exec: bool = False
    health: HealthSettings = HealthSettings()
    transport: TransportSettings = TransportSettings()
    request_timeout_s: float = 30.0
    pause_file: str = ""
    ledger: str = ""
    ledger_kept_seconds: float = KEPT_SECONDS
    drain_s: float = 10.0
    seed: int = 0
    log_format: Format = "text"
    verbosity: int = 0


class LiveSettings(ProgramSettings, frozen=True, kw_only=True):
    """How a scheduler is to run.

    ``trims_avoid_lists``: whoever leads takes off the nodes' avoid lists what is over. ``decisions`` is a file for
    them, "" for none.
    """

    configuration: Configuration
    trims_avoid_lists: bool = False
    allows_insecure_preemption: bool = False
    decisions: str = ""


_USUAL = LeaseSettings(identity="")
# The durations of a Lease, and their fields in a configuration.
_TIMES = {
    "duration_ns": "lease_duration",
    "renew_deadline_ns": "renew_deadline",
    "retry_period_ns": "retry_period",
}


def own_identity() -> str:
    """Return an identity of this process in kube-scheduler's form, different from all others."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def lease_of(
    identity: str, options: LeaseOptions, configuration: Configuration, usual_name: str = _USUAL.name
) -> LeaseSettings | None:
    """Return the Lease, None if no leader is to be elected. Raises InputError for what does not go together."""
    said = configuration.leader_election
    elects = said.leader_elect if options.elects is None else options.elects
    if said.resource_lock not in ("", "leases"):
        raise _wrong(configuration, "resourceLock", f"{shown(said.resource_lock)} is not served any more; write leases")
    if elects is False:
        return None
    lease = LeaseSettings(
        identity=identity,
        namespace=options.namespace or said.resource_namespace or _USUAL.namespace,
        name=options.name or said.resource_name or usual_name,
        **{name: _time(name, field, options, configuration) for name, field in _TIMES.items()},
    )
    if lease.problem():
        raise InputError(f"leader election: {lease.problem()}", source=configuration.source)
    return lease


def _time(name: str, field: str, options: LeaseOptions, configuration: Configuration) -> int:
    """Return a duration of the Lease: of the options, the configuration, or kube-scheduler's default."""
    option, text = getattr(options, name), getattr(configuration.leader_election, field)
    if option is not None or not text:
        return int(option or getattr(_USUAL, name))
    try:
        return parse_duration(text) or int(getattr(_USUAL, name))
    except ValueError as error:
        camel = re.sub("_(.)", lambda found: found[1].upper(), field)
        raise _wrong(configuration, camel, str(error)) from None


def _wrong(configuration: Configuration, field: str, problem: str) -> InputError:
    return InputError(problem, path=f".leaderElection.{field}", source=configuration.source)
