"""Health checks and metrics of programs on a cluster: `/healthz`, `/livez`, `/readyz`, `/metrics`.

Metrics have kube-scheduler's names. Labels are profiles, results, queues and numbers of attempts: their number does
not grow with the cluster. Source: pkg/scheduler/metrics/metrics.go, cmd/kube-scheduler/app/server.go.
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podium.api.errors import InputError, shown
from podium.client.live_cluster import LiveCluster
from podium.client.transport import TransportCounts
from podium.controllers.ledger.disruption import DisruptionTotals
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.server.http.exchange import Pages
from podium.server.http.handler import health_text
from podium.server.http.security import TLS, is_foreign_host, is_loopback, read_token, ssl_context

_COUNTS = ("lists", "watches", "broken", "expired")
Documents = Mapping[str, Callable[[], tuple[bytes, str]]]
Posts = Mapping[str, Callable[[web.Request], Awaitable[web.Response]]]
"""The answers to POST requests by path, for clients without a token."""


class ProgramMetrics:
    """The metrics of a program; `text` returns a scrape. ``prefix`` starts the names of its own metrics."""

    prefix = "scheduler"

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leader = self.gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
            "name",
        )

    def counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(name, what, labels, registry=self.registry)

    def gauge(self, name: str, what: str, *labels: str) -> Gauge:
        return Gauge(name, what, labels, registry=self.registry)

    def histogram(self, name: str, what: str, *labels: str, buckets: Sequence[float]) -> Histogram:
        return Histogram(name, what, labels, buckets=buckets, registry=self.registry)

    def watch(self, collect: Callable[[], Iterator[Metric]]) -> None:
        """Register metrics that are collected at each scrape."""
        self.registry.register(MetricsCollector(collect))

    def watch_cluster(self, cluster: LiveCluster, sent: TransportCounts | None) -> None:
        """Register metrics of the watch caches and the requests."""
        self.watch(partial(_of_cluster, self.prefix, cluster, sent))

    @property
    def documents(self) -> Documents:
        """The contents and their types that the program serves to clients with the token, by path."""
        return {"/metrics": lambda: (self.text(), "text/plain; version=0.0.4; charset=utf-8")}

    def text(self) -> bytes:
        return generate_latest(self.registry)


class MetricsCollector(Collector):
    """Metrics that a function returns at each scrape."""

    def __init__(self, collect: Callable[[], Iterator[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterator[Metric]:
        return self._collect()


def _of_cluster(prefix: str, cluster: LiveCluster, sent: TransportCounts | None) -> Iterator[Metric]:
    """Yield the metrics of the watch caches and the requests."""
    sizes = (([f"{kind.lower()}s"], len(cluster.reflectors[kind].machine.known)) for kind in ("Node", "Pod"))
    yield gauges(f"{prefix}_cache_size", "Number of nodes and pods in the cache.", ["type"], sizes)
    machines = [reflector.machine for reflector in cluster.reflectors.values()]
    found = {name: sum(getattr(machine.counts, name) for machine in machines) for name in _COUNTS}
    yield _sums("podium_reflector", {**found, "unreadable": sum(machine.reader.failed for machine in machines)})
    if sent is not None:
        names = ("sent", "waited", "lost", "checked", "dropped_events")
        yield _sums("podium_requests", {name: getattr(sent, name) for name in names})


def of_ledger(tallies: DisruptionTotals) -> Iterator[Metric]:
    """Yield the metrics of disruptions by cause."""
    for name, help_text, numbers in (
        ("podium_disruptions", "Disrupted pods, by cause.", tallies.disruptions),
        ("podium_disruptions_in_vain", "Disruptions in vain, by cause.", tallies.in_vain),
        ("podium_disruption_lost_seconds", "Running time that disruptions lost, by cause.", tallies.lost_seconds),
    ):
        family = CounterMetricFamily(name, help_text, labels=["cause"])
        for cause, number in sorted(numbers.items()):
            family.add_metric([cause], number)
        yield family


def gauges(name: str, what: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float]]) -> Metric:
    """Return a metric of these numbers, each with the values of the labels."""
    family = GaugeMetricFamily(name, what, labels=labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _sums(name: str, values: Mapping[str, int]) -> Metric:
    samples = (([what], value) for what, value in values.items())
    return gauges(name, "How often something happened since the start.", ["what"], samples)


_MAX_ATTEMPTS = 15
_QUEUES = {
    "active": QueuePlace.ACTIVE,
    "backoff": QueuePlace.BACKOFF,
    "unschedulable": QueuePlace.UNSCHEDULABLE,
    "gated": QueuePlace.GATED,
}
_ATTEMPT_BUCKETS = tuple(0.001 * 2**power for power in range(15))


class Metrics(ProgramMetrics):
    """The metrics of a scheduler."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = self.counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, "
            "while 'error' means an internal scheduler problem.",
            "result",
            "profile",
        )
        self.attempt_seconds = self.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            "result",
            "profile",
            buckets=_ATTEMPT_BUCKETS,
        )
        self.algorithm_seconds = self.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            buckets=_ATTEMPT_BUCKETS,
        )
        self.sli_seconds = self.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might "
            "involve multiple scheduling attempts.",
            "attempts",
            buckets=tuple(0.01 * 2**power for power in range(20)),
        )
        self.pod_attempts = self.histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=(1, 2, 4, 8, 16),
        )
        self.preemption_attempts = self.counter(
            "scheduler_preemption_attempts", "Total preemption attempts in the cluster till now"
        )
        self.preemption_victims = self.histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            buckets=tuple(2**power for power in range(7)),
        )
        self.incoming = self.counter(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            "queue",
            "event",
        )
        self.extension_point_seconds = self.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            "extension_point",
            "status",
            "profile",
            buckets=tuple(0.0001 * 2**power for power in range(12)),
        )

    def watch_queue(self, queue: Callable[[], SchedulingQueue | None]) -> None:
        """Register the metric of the pending pods, collected at each scrape."""

        def pending() -> Iterator[Metric]:
            found = queue()
            samples = (([name], 0 if found is None else found.count(place)) for name, place in _QUEUES.items())
            yield gauges("scheduler_pending_pods", "Number of pending pods, by the queue type.", ["queue"], samples)

        self.watch(pending)

    def scheduled(self, seconds_since_queued: float, attempts: int) -> None:
        label = str(attempts) if attempts < _MAX_ATTEMPTS else f"{_MAX_ATTEMPTS}+"
        self.sli_seconds.labels(label).observe(seconds_since_queued)
        self.pod_attempts.observe(attempts)


_HEADERS = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """The address of health checks and metrics; ``port`` None does not listen, 0 takes any free port.

    ``token_file`` holds the token that `/metrics` requires. ``has_page`` also serves the web page, which requires the
    token in ``page_token_file``, "" for none.
    """

    host: str = "127.0.0.1"
    port: int | None = None
    certificate_file: str = ""
    key_file: str = ""
    token_file: str = ""
    has_page: bool = False
    page_token_file: str = ""

    def check(self) -> None:
        """Raise InputError for an address that other hosts reach without TLS or a token."""
        if self.has_page and self.port is None:
            raise InputError("--page needs a port: give it --port")
        if self.port is None or is_loopback(self.host):
            return
        where = f"--bind-address {shown(self.host)} can be reached by others"
        if not self.certificate_file or not self.key_file:
            raise InputError(f"{where}: give it --tls-cert-file and --tls-private-key-file, or listen on 127.0.0.1")
        if not self.token_file:
            raise InputError(f"{where}: give it --metrics-token-file, or listen on 127.0.0.1")
        if self.has_page and not self.page_token_file:
            raise InputError(f"{where}: give --page a --page-token-file, or listen on 127.0.0.1")


# How often the certificate's files are looked at.
_RELOADED_EACH_S = 10.0


@dataclass(slots=True)
class Health:
    """The HTTP server of health checks and metrics; ``ready`` returns the problems by check.

    A program that answers is alive: a leader that cannot renew its lease exits. A certificate that changes is loaded
    again; ``on_problem`` receives why it cannot be, "" if it can. The bodies of ``posts`` have at most ``body_bytes``.
    """

    settings: HealthSettings
    documents: Documents
    ready: Callable[[], dict[str, str]]
    pages: Pages | None = None
    posts: Posts = field(default_factory=dict)
    body_bytes: int = 1
    on_problem: Callable[[str, str], None] = lambda file, problem: None
    _reloading: asyncio.Task[None] | None = field(default=None, init=False)
    _runner: web.AppRunner | None = field(default=None, init=False)
    _token: bytes = field(default=b"", init=False)

    async def start(self) -> str:
        """Listen and return the URL, "" without a port. Raises InputError if it cannot listen."""
        settings = self.settings
        if settings.port is None:
            return ""
        settings.check()
        if settings.token_file:
            self._token = read_token(settings.token_file, is_shared=True).encode()
        app = web.Application(client_max_size=self.body_bytes)
        for path, answer in self.posts.items():
            app.router.add_post(path, answer)
        for path in self.documents:
            app.router.add_get(path, self._get_document)
        for path in ("/healthz", "/livez", "/readyz"):
            app.router.add_get(path, self._get_health)
        if self.pages is not None:
            from podium.app.serving.page.live_page import PageHandler

            file = self.settings.page_token_file
            aside = PageHandler(self.pages, self.settings.host, read_token(file) if file else "")
            app.router.add_route("*", "/ui{rest:(/.*)?}", aside.answer)
        certificate, key = settings.certificate_file, settings.key_file
        tls = TLS(certificate_file=certificate, key_file=key) if certificate else None
        context = ssl_context(tls)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, settings.host, settings.port, ssl_context=context).start()
        except OSError as error:
            await runner.cleanup()
            problem = f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}"
            raise InputError(problem) from None
        self._runner = runner
        if context is not None and tls is not None:
            self._reloading = asyncio.ensure_future(self._reload(context, tls))
        port = runner.addresses[0][1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"{'http' if context is None else 'https'}://{host}:{port}"

    async def _reload(self, context: ssl.SSLContext, tls: TLS) -> None:
        """Use the certificate and the key for new connections whenever their files have changed."""

        def times() -> list[int]:
            return [Path(file).stat().st_mtime_ns for file in (tls.certificate_file, tls.key_file) if file]

        known = times()
        while True:
            await asyncio.sleep(_RELOADED_EACH_S)
            try:
                found = times()
                if found == known:
                    continue
                # Both are checked first: a context with a certificate and another key refuses connections.
                ssl_context(tls)
                context.load_cert_chain(tls.certificate_file, tls.key_file or None)
            except (InputError, OSError) as error:
                self.on_problem(tls.certificate_file, str(error))
            else:
                known = found
                self.on_problem(tls.certificate_file, "")

    async def stop(self) -> None:
        if self._reloading is not None:
            self._reloading.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _get_health(self, request: web.Request) -> web.Response:
        self._check_host(request)
        problems = sorted(self.ready().items()) if request.path == "/readyz" else []
        is_verbose = "verbose" in request.query
        text, code = health_text(request.path.removeprefix("/"), problems, is_verbose=is_verbose, shows_reasons=True)
        return web.Response(text=text, status=code, headers=_HEADERS)

    async def _get_document(self, request: web.Request) -> web.Response:
        self._check_host(request)
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if self._token and not hmac.compare_digest(given, b"Bearer " + self._token):
            return web.Response(text="Unauthorized\n", status=401, headers=_HEADERS)
        body, content_type = self.documents[request.path]()
        return web.Response(body=body, headers={"Content-Type": content_type})

    def _check_host(self, request: web.Request) -> None:
        """Refuse requests with a foreign host name, which protects against DNS rebinding."""
        if is_foreign_host(request.headers.get("Host", ""), self.settings.host):
            raise web.HTTPForbidden(text="this host is not known here\n")
