"""The metrics that every program at a cluster has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from podium.app.ledger_metrics import LedgerMetrics
from podium.client.live_cluster import LiveCluster
from podium.client.transport import TransportCounts
from podium.machines.ledger.tallies import Tallies

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ProgramMetrics:
    """Counts what a program does; `text` is what a scrape gets. ``prefix`` begins the names of what is its own."""

    prefix = "scheduler"

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leader = Gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.",
            ["name"],
            registry=self.registry,
        )

    def watch(self, cluster: LiveCluster, sent: TransportCounts | None) -> None:
        """Tell also how it goes with what is watched and sent, whenever somebody asks."""
        self.registry.register(_Standing(self.prefix, cluster, sent))

    def tell_disruptions(self, tallies: Tallies) -> None:
        """Tell also who was disrupted, as far as that is accounted for."""
        self.registry.register(_Disruptions(tallies))

    def text(self) -> bytes:
        """All metrics, as Prometheus reads them."""
        return generate_latest(self.registry)


class _Disruptions(Collector):
    """What there is in a ledger."""

    def __init__(self, tallies: Tallies) -> None:
        self._metrics = LedgerMetrics(tallies)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counters."""
        return self._metrics.collect()


class _Standing(Collector):
    """What is counted when it is asked for."""

    def __init__(self, prefix: str, cluster: LiveCluster, sent: TransportCounts | None) -> None:
        self._prefix = prefix
        self._cluster = cluster
        self._sent = sent

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """How things stand."""
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
                "lists": sum(reflector.machine.counts.lists for reflector in reflectors),
                "watches": sum(reflector.machine.counts.watches for reflector in reflectors),
                "broken": sum(reflector.machine.counts.broken for reflector in reflectors),
                "expired": sum(reflector.machine.counts.expired for reflector in reflectors),
                "unreadable": sum(reflector.machine.reader.failed for reflector in reflectors),
            },
        )
        if self._sent is not None:
            sent = self._sent
            yield from _sums(
                "podium_requests",
                {
                    "sent": sent.sent,
                    "waited": sent.waited,
                    "lost": sent.lost,
                    "looked": sent.looked,
                    "dropped_events": sent.dropped_events,
                },
            )


def _sums(name: str, values: Mapping[str, int]) -> Iterator[GaugeMetricFamily]:
    family = GaugeMetricFamily(name, "How often something happened since the start.", labels=["what"])
    for what, value in values.items():
        family.add_metric([what], value)
    yield family
