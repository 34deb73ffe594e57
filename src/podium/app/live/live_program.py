"""The base of programs that run controllers on a cluster until they are stopped or lose their lease."""

from __future__ import annotations

import asyncio
import re
import signal
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
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
from podium.app.live.metrics import Health, HealthSettings, Posts, ProgramMetrics, of_ledger
from podium.client.credentials import ClusterAccess, Credentials
from podium.client.leader_election import Elector, LeaderElection, LeaseSettings
from podium.client.live_cluster import Answer, LiveCluster, Watched
from podium.client.session import Session, server_version
from podium.client.transport import DryTransport, HTTPTransport, TransportSettings
from podium.controllers.actions import Record
from podium.controllers.controller import Controller
from podium.controlplane.ledger_file import KEPT_SECONDS
from podium.framework.settings.configuration import Configuration
from podium.runtime.clock import SystemClock
from podium.runtime.runtime import Component, RequestedAction
from podium.server.http import server as http_server
from podium.server.http.security import is_loopback
from podium.store.api_resources import APIResources

if TYPE_CHECKING:
    from podium.app.live.accounting import LiveAccount
    from podium.sim.run_options import RunOptions

# Kinds that a cluster may lack, or that a role for kube-scheduler does not allow to list.
OPTIONAL = frozenset(("DisruptionPolicy", "DeviceTaintRule", "PodGroup"))
ACTIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"
# How long a stopping program waits until it observes its last deletions, and how often it checks.
_LAST_SEEN_S, _LOOKED_EACH_S = 1.0, 0.02


def is_unsure(access: ClusterAccess) -> bool:
    """Return whether the API server's certificate is unchecked and the connection leaves the host."""
    return access.is_insecure or (
        access.server.startswith("http://") and not is_loopback(urlsplit(access.server).hostname or "")
    )


def run_program(settings: ProgramSettings, make: Callable[[Log], LiveProgram]) -> int:
    """Create a program and run it until it ends; return its exit code."""

    async def main() -> int:
        program = make(Log(SystemClock().now, settings.log_format, settings.verbosity))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, program.stop)
        settle_collector()
        return await program.run()

    return http_server.run_client(main())


class LiveProgram(ABC):
    """One run of a program; `run` returns its exit code: 0 after a stop signal, 1 after it lost its lease.

    ``user_agent`` names it in requests, ``noun`` in messages. ``runs_in_thread``: its controllers make blocking calls,
    and run in a thread beside the event loop. ``posts`` answers POST requests with bodies of at most ``body_bytes``.
    """

    user_agent = "podium"
    noun = "the program"
    runs_in_thread = False
    posts: Posts = MappingProxyType({})
    body_bytes = 1

    def __init__(self, access: ClusterAccess, settings: ProgramSettings, log: Log, metrics: ProgramMetrics) -> None:
        self._access = access
        self._settings = settings
        self._log = log
        self.metrics = metrics
        self.now = SystemClock().now
        self._credentials = Credentials(access, self.now, allows_exec=settings.allows_exec)
        self._stopping = asyncio.Event()
        self._problems: dict[str, str] = {}
        self._cluster: LiveCluster | None = None
        self._elector: Elector | None = None
        self._account: LiveAccount | None = None
        self.release = DEFAULT_RELEASE
        self.url = ""
        self.leads = asyncio.Event()

    # Hooks of the programs

    @abstractmethod
    def watched(self) -> Watched:
        """Return the kinds and selectors that its controllers watch."""

    def components(self, *, is_podium_server: bool) -> list[Component]:
        """Return the components to run, none by default; ``is_podium_server``: the API server is Podium's own."""
        return []

    def caveats(self, absent: Sequence[str], hidden: Sequence[str], *, is_podium_server: bool) -> list[Caveat]:
        """Return the caveats for this API server, by default those that concern every program.

        ``absent`` are the kinds that it does not serve or does not allow to list; ``hidden`` are the latter.
        """
        found, access = list[Caveat](), self._access
        if access.is_insecure:
            message = (
                "the API server's certificate is not checked (insecure-skip-tls-verify): attackers on the network can "
                "read the credentials and impersonate the server"
            )
            found.append(Caveat("insecure", message, 1, (access.name,)))
        elif access.server.startswith("http://"):
            message = "the connection to the API server is not encrypted"
            found.append(Caveat("plain-http", message, 1, (access.server,)))
        if hidden:
            # Kinds that it does not serve have no objects.
            message = "the API server does not allow this program to list these kinds; it runs as if there were no such"
            found.append(Caveat("hidden-kinds", f"{message} objects", len(hidden), tuple(sorted(hidden))))
        return found

    @abstractmethod
    def on_started(self) -> None:
        """Log that the watch caches are synced and the program works."""

    async def open(self, cluster: LiveCluster, ending: AsyncExitStack) -> None:  # noqa: B027 - most have none
        """Open resources besides the API server; ``ending`` closes them."""

    # Running

    def stop(self) -> None:
        """Request a graceful stop: finish pending requests, release the lease, and return from `run`."""
        self._stopping.set()

    async def run(self) -> int:
        """Run until the program stops or fails; return the exit code. Raises PodiumError if it cannot start."""
        async with AsyncExitStack() as ending:
            session = self._session = self._connect(ending)
            cluster = self._cluster = LiveCluster(
                session,
                self.watched(),
                self.now,
                self._transport,
                on_problem=self._on_kind_problem,
                on_failure=self._controller_failed,
                in_thread=self.runs_in_thread,
            )
            await self.open(cluster, ending)
            settings = self._settings
            if settings.ledger and not settings.dry_run:
                from podium.app.live.accounting import LiveAccount

                on_problem = partial(self.file_problem, "write the ledger", settings.ledger)
                self._account = LiveAccount(settings.ledger, settings.ledger_kept_seconds, cluster.find, on_problem)
                ending.callback(self._account.close)
                self.metrics.watch(partial(of_ledger, self._account.tallies))
            ending.push_async_callback(cluster.close)
            ending.push_async_callback(cluster.transport.close)
            page = None
            if settings.health.has_page:
                # Imported only if the page is enabled.
                from podium.app.serving.page.live_page import cluster_page

                page = cluster_page(cluster, f"podium {self.noun.removeprefix('the ')}", self.now, self.run_options)
            health = Health(
                settings.health,
                self.metrics.documents,
                self._ready,
                page,
                posts=self.posts,
                body_bytes=self.body_bytes,
                on_problem=partial(self.file_problem, "use the changed certificate"),
            )
            self.metrics.watch_cluster(cluster, getattr(cluster.transport, "counts", None))
            self.url = await health.start()
            ending.push_async_callback(health.stop)
            if page is not None:
                ending.push_async_callback(page.close)
            if self.url:
                self._log.info("listening", url=self.url)
            cluster.reflect()
            return await self._lead(session, cluster, ending)

    def accounted(self, controller: Controller, name: str) -> Controller:
        """Return the controller, wrapped so that a ledger, if any, records its disruptions."""
        return controller if self._account is None else self._account.of(controller, name)

    def run_options(self) -> RunOptions:
        """Return the options with which the page simulates questions."""
        from podium.sim.run_options import RunOptions

        release = ReleaseChoice.exactly(self.release)
        return RunOptions(configuration=self._settings.configuration, ignore_extenders=True, release=release)

    def _connect(self, ending: AsyncExitStack) -> Session:
        """Return a session with the API server; ``ending`` closes it."""
        settings = self._settings
        session = Session(
            self._access,
            self._credentials,
            APIResources(),
            user_agent=self.user_agent,
            timeout_s=settings.request_timeout_s,
            connections=settings.transport.concurrency + len(self.watched().kinds) + 8,
        )
        ending.push_async_callback(session.close)
        return session

    def _transport(self, answer: Answer) -> HTTPTransport | DryTransport:
        if self._settings.dry_run:
            return DryTransport(answer, self.log_dry_run)
        return self.writing_transport(answer)

    def writing_transport(self, answer: Answer) -> HTTPTransport:
        """Return the transport that executes the controllers' actions."""
        return HTTPTransport(
            self._session,
            answer,
            self.now,
            self._settings.transport,
            seconds_to_write=lambda: float("inf") if self._elector is None else self._elector.seconds_to_write(),
            may_disrupt=self.may_disrupt,
            on_fault=lambda error: self._log.error("a request failed unexpectedly", problem=repr(error)),
        )

    def may_disrupt(self) -> bool:
        """Return whether the pause file is absent."""
        file = self._settings.pause_file
        return not file or not Path(file).exists()

    # Leading

    async def _lead(self, session: Session, cluster: LiveCluster, ending: AsyncExitStack) -> int:
        """Acquire the lease, if there is one; sync the watch caches; run the components until the program ends."""
        version = 0
        lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if self._settings.lease is not None:
            lease = self._settings.lease
            self._problems = {"leader-election": "another instance holds the lease"}
            machine = LeaderElection(lease, self._settings.seed)
            # Renewals do not queue behind other requests.
            elector = self._elector = Elector(machine, self._connect(ending), self.now)
            if not await self._before(elector.acquire(self._log_holder)):
                await elector.release()
                return 0
            version = machine.version
            is_leader = self.metrics.leader.labels(lease.name)
            is_leader.set(1)
            self._log.info("acquired the lease", lease=lease.key, identity=lease.identity)
            lost = asyncio.ensure_future(elector.keep())
            lost.add_done_callback(lambda _: is_leader.set(0))
        self._problems = {}
        ending.callback(lost.cancel)
        if not await self._before(cluster.wait_synced(version), lost):
            return await self._end(cluster, lost)
        self._log.info("watch caches are synced")
        is_podium_server = self._log_caveats(await server_version(session), cluster)
        if isinstance(cluster.transport, HTTPTransport):
            cluster.transport.is_podium_server = is_podium_server
        running = asyncio.ensure_future(cluster.run(self.components(is_podium_server=is_podium_server)))
        self.leads.set()
        self.on_started()
        try:
            if await self._before(asyncio.shield(running), lost):
                raise PodiumError(f"{self.noun} ended unexpectedly")
        finally:
            cluster.stop()
        await running
        return await self._end(cluster, lost)

    async def _before(self, work: Awaitable[object], *ends: asyncio.Future[str]) -> bool:
        """Return whether the work completes before the program is stopped or one of ``ends`` completes."""
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
        """Shut down gracefully after a stop signal; exit at once if the lease is lost, as writes are unsafe."""
        if lost.done() and not self._stopping.is_set():
            self._log.error(lost.result())
            return 1
        self._problems["stopping"] = "shutting down"
        if not await cluster.transport.drain(self._settings.drain_s):
            self._log.warning("not all requests were answered in time", seconds=self._settings.drain_s)
        if self._account is not None:
            # A brief wait for the last disruptions: no other program can attribute them.
            cluster.settle()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SEEN_S):
                    while self._account.expects_ends:
                        await asyncio.sleep(_LOOKED_EACH_S)
                        cluster.settle()
        lost.cancel()
        if self._elector is not None:
            await asyncio.gather(lost, return_exceptions=True)
            # Another instance can acquire it at once.
            await self._elector.release()
            self._log.info("released the lease")
        self._log.info("stopped")
        return 0

    # Logging

    def _log_caveats(self, version: str, cluster: LiveCluster) -> bool:
        """Choose the Kubernetes version to follow, and log the caveats of this API server.

        Return whether the server is Podium's own. Raises InputError for feature gates that the version refuses.
        """
        is_podium_server = is_podium(version)
        self.release, found = self._settings.release.for_server(version)
        for caveat in (*found, *self.caveats(cluster.absent, cluster.hidden, is_podium_server=is_podium_server)):
            self._log.warning(caveat.message, about=caveat.about, names=", ".join(caveat.names))
        return is_podium_server

    def _on_kind_problem(self, kind: str, problem: str) -> None:
        cluster = self._cluster
        if cluster is not None and kind in self.watched().optional and cluster.reflectors[kind].machine.is_absent:
            self._log.info(
                "the API server does not serve a kind or does not allow to list it", 1, kind=kind, problem=problem
            )
        elif problem:
            self._log.warning("cannot list or watch a kind", kind=kind, problem=problem)
        else:
            self._log.info("watching a kind again", kind=kind)

    def _log_holder(self, holder: str) -> None:
        if self._settings.lease is not None and holder not in ("", self._settings.lease.identity):
            self._log.info("waiting for the lease", holder=holder)

    def file_problem(self, action: str, file: str, problem: str) -> None:
        """Log that an action on a file fails, or succeeds again if the problem is ""."""
        if problem:
            self._log.error(f"cannot {action}", file=file, problem=problem)
        else:
            self._log.info(f"can {action} again", file=file)

    def _controller_failed(self, component: Component, error: Exception, restart_ns: int) -> None:
        seconds = max(0, restart_ns - self.now()) / 1e9
        self._log.error(f"{self.noun} failed and restarts", problem=repr(error), seconds=round(seconds, 1))

    def log_dry_run(self, requested: RequestedAction) -> None:
        action = requested.action
        if not isinstance(action, Record):
            self._log.info("would do", action=type(action).__name__, what=repr(action))

    def _ready(self) -> dict[str, str]:
        problems = dict(self._problems)
        if self._cluster is not None:
            if self._cluster.unsynced:
                problems["informer-sync"] = f"watch caches are not synced: {', '.join(self._cluster.unsynced)}"
            problems |= self._cluster.runtime.failures
        return problems


class ProgramSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of every program on a cluster; ``configuration`` is that of the cluster's schedulers.

    ``lease`` None disables leader election. With ``dry_run`` nothing is written. ``drain_s`` is how long a stopping
    program waits for responses. While the file ``pause_file`` ("" for none) exists, no pod is disrupted. ``release`` is
    the Kubernetes version to follow, by default the API server's. ``ledger`` is the file of the disruption ledger, ""
    for none; it keeps records for ``ledger_kept_seconds`` (0: always).
    """

    configuration: Configuration
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
    """The settings of a scheduler on a cluster.

    ``trims_avoid_lists``: the leader removes expired entries of the nodes' avoid lists. ``decisions`` is the file of
    the decision log, "" for none.
    """

    trims_avoid_lists: bool = False
    allows_insecure_preemption: bool = False
    decisions: str = ""


_USUAL = LeaseSettings(identity="")
# The durations of a Lease, and their fields in a configuration.
_TIMES = {"duration_ns": "lease_duration", "renew_deadline_ns": "renew_deadline", "retry_period_ns": "retry_period"}


def lease_of(
    identity: str, options: Mapping[str, Any], configuration: Configuration, usual_name: str = _USUAL.name
) -> LeaseSettings | None:
    """Return the settings of the Lease, None without leader election. Raises InputError for invalid combinations.

    The ``options`` are by the fields of `LeaseSettings`, and whether the program ``elects`` a leader; None for missing
    ones.
    """
    configured, source = configuration.leader_election, configuration.source
    if configured.resource_lock not in ("", "leases"):
        problem = f"{shown(configured.resource_lock)} is no longer supported; use leases"
        raise InputError(problem, path=".leaderElection.resourceLock", source=source)
    elects = options.get("elects")
    if (configured.leader_elect if elects is None else elects) is False:
        return None
    times: dict[str, int] = {}
    for name, field in _TIMES.items():
        option, text = options.get(name), getattr(configured, field)
        try:
            times[name] = (parse_duration(text) if option is None and text else option) or getattr(_USUAL, name)
        except ValueError as error:
            camel = re.sub("_(.)", lambda found: found[1].upper(), field)
            raise InputError(str(error), path=f".leaderElection.{camel}", source=source) from None
    lease = LeaseSettings(
        identity=identity,
        namespace=options.get("namespace") or configured.resource_namespace or _USUAL.namespace,
        name=options.get("name") or configured.resource_name or usual_name,
        **times,
    )
    if lease.problem():
        raise InputError(f"leader election: {lease.problem()}", source=source)
    return lease
