"""The metrics of a scheduler, by kube-scheduler's names.

Source: pkg/scheduler/metrics/metrics.go. Labels are profiles, results, queues and counts of attempts: nothing that
grows with a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from podium.app.live.program_metrics import ProgramMetrics
from podium.machines.scheduling.queue.places import QueuePlaces
from podium.machines.scheduling.queue.queued_pod import Place

_MOST_ATTEMPTS = 15
_QUEUES = {
    "active": Place.ACTIVE,
    "backoff": Place.BACKOFF,
    "unschedulable": Place.UNSCHEDULABLE,
    "gated": Place.GATED,
}
_ATTEMPT_BUCKETS = tuple(0.001 * 2**power for power in range(15))
_SLI_BUCKETS = tuple(0.01 * 2**power for power in range(20))


class Metrics(ProgramMetrics):
    """Counts what a scheduler does."""

    def __init__(self) -> None:
        super().__init__()
        registry = self.registry
        self.attempts = Counter(
            "scheduler_schedule_attempts",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, "
            "while 'error' means an internal scheduler problem.",
            ["result", "profile"],
            registry=registry,
        )
        self.attempt_seconds = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            ["result", "profile"],
            buckets=_ATTEMPT_BUCKETS,
            registry=registry,
        )
        self.algorithm_seconds = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            buckets=_ATTEMPT_BUCKETS,
            registry=registry,
        )
        self.sli_seconds = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from the time the pod enters the scheduling queue and might "
            "involve multiple scheduling attempts.",
            ["attempts"],
            buckets=_SLI_BUCKETS,
            registry=registry,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=(1, 2, 4, 8, 16),
            registry=registry,
        )
        self.preemption_attempts = Counter(
            "scheduler_preemption_attempts",
            "Total preemption attempts in the cluster till now",
            registry=registry,
        )
        self.preemption_victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            buckets=tuple(2**power for power in range(7)),
            registry=registry,
        )
        self.incoming = Counter(
            "scheduler_queue_incoming_pods",
            "Number of pods added to scheduling queues by event and queue type.",
            ["queue", "event"],
            registry=registry,
        )
        self.extension_point_seconds = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            ["extension_point", "status", "profile"],
            buckets=tuple(0.0001 * 2**power for power in range(12)),
            registry=registry,
        )

    def watch_queue(self, queue: Callable[[], QueuePlaces | None]) -> None:
        """Tell also how a queue stands, whenever somebody asks."""
        self.registry.register(_Queue(queue))

    def scheduled(self, seconds_since_queued: float, attempts: int) -> None:
        """A pod was bound."""
        label = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
        self.sli_seconds.labels(label).observe(seconds_since_queued)
        self.pod_attempts.observe(attempts)


class _Queue(Collector):
    """How a scheduler's queue stands, when somebody asks."""

    def __init__(self, queue: Callable[[], QueuePlaces | None]) -> None:
        self._queue = queue

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """How many pods wait where."""
        pending = GaugeMetricFamily(
            "scheduler_pending_pods", "Number of pending pods, by the queue type.", labels=["queue"]
        )
        queue = self._queue()
        for name, place in _QUEUES.items():
            pending.add_metric([name], 0 if queue is None else queue.count(place))
        yield pending
