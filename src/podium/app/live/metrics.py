"""The metrics of a scheduler, by kube-scheduler's names.

Source: pkg/scheduler/metrics/metrics.go. Labels are profiles, results, queues and counts of attempts: nothing that
grows with a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from podium.app.ledger_metrics import LedgerMetrics
from podium.client.live_cluster import LiveCluster
from podium.client.transport import TransportCounts
from podium.controllers.ledger.disruption import DisruptionTotals
from podium.controllers.scheduling.queue.queue import SchedulingQueue
from podium.controllers.scheduling.queue.queued_pod import QueuePlace

_COUNTS = ("lists", "watches", "broken", "expired")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ProgramMetrics:
    """Counts what a program does; `text` is what a scrape gets. ``prefix`` begins the names of what is its own."""

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

    def watch(self, cluster: LiveCluster, sent: TransportCounts | None) -> None:
        """Tell also how it goes with what is watched and sent, whenever somebody asks."""
        self.registry.register(_Standing(self.prefix, cluster, sent))

    def tell_disruptions(self, tallies: DisruptionTotals) -> None:
        """Tell also who was disrupted, as far as that is accounted for."""
        self.registry.register(LedgerMetrics(tallies))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Standing(Collector):
    """What is counted when it is asked for."""

    def __init__(self, prefix: str, cluster: LiveCluster, sent: TransportCounts | None) -> None:
        self._prefix = prefix
        self._cluster = cluster
        self._sent = sent

    def collect(self) -> Iterator[GaugeMetricFamily]:
        cache = GaugeMetricFamily(
            f"{self._prefix}_cache_size", "Number of nodes and pods in the cache.", labels=["type"]
        )
        for name, kind in (("nodes", "Node"), ("pods", "Pod")):
            cache.add_metric([name], len(self._cluster.reflectors[kind].machine.known))
        yield cache
        reflectors = self._cluster.reflectors.values()
        yield from _sums(
            "podium_reflector",
            {
                **{name: sum(getattr(each.machine.counts, name) for each in reflectors) for name in _COUNTS},
                "unreadable": sum(reflector.machine.reader.failed for reflector in reflectors),
            },
        )
        if self._sent is not None:
            sent = self._sent
            yield from _sums(
                "podium_requests",
                {name: getattr(sent, name) for name in ("sent", "waited", "lost", "looked", "dropped_events")},
            )


def _sums(name: str, values: Mapping[str, int]) -> Iterator[GaugeMetricFamily]:
    family = GaugeMetricFamily(name, "How often something happened since the start.", labels=["what"])
    for what, value in values.items():
        family.add_metric([what], value)
    yield family


_MOST_ATTEMPTS = 15
_QUEUES = {
    "active": QueuePlace.ACTIVE,
    "backoff": QueuePlace.BACKOFF,
    "unschedulable": QueuePlace.UNSCHEDULABLE,
    "gated": QueuePlace.GATED,
}
_ATTEMPT_BUCKETS = tuple(0.001 * 2**power for power in range(15))


class Metrics(ProgramMetrics):
    """Counts what a scheduler does."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = self.counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, "
            "while 'error' means an internal scheduler problem.",
            *("result", "profile"),
        )
        self.attempt_seconds = self.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            *("result", "profile"),
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
            *("queue", "event"),
        )
        self.extension_point_seconds = self.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            *("extension_point", "status", "profile"),
            buckets=tuple(0.0001 * 2**power for power in range(12)),
        )

    def watch_queue(self, queue: Callable[[], SchedulingQueue | None]) -> None:
        """Tell also how a queue stands, whenever somebody asks."""
        self.registry.register(_Queue(queue))

    def scheduled(self, seconds_since_queued: float, attempts: int) -> None:
        label = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
        self.sli_seconds.labels(label).observe(seconds_since_queued)
        self.pod_attempts.observe(attempts)


class _Queue(Collector):
    """How a scheduler's queue stands, when somebody asks."""

    def __init__(self, queue: Callable[[], SchedulingQueue | None]) -> None:
        self._queue = queue

    def collect(self) -> Iterator[GaugeMetricFamily]:
        pending = GaugeMetricFamily(
            "scheduler_pending_pods", "Number of pending pods, by the queue type.", labels=["queue"]
        )
        queue = self._queue()
        for name, place in _QUEUES.items():
            pending.add_metric([name], 0 if queue is None else queue.count(place))
        yield pending
