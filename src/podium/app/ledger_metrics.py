"""The metrics of disruptions, which all programs tell alike that keep account of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.controllers.ledger.disruption import DisruptionTotals


class LedgerMetrics:
    """Tells what was counted, by cause, whenever somebody asks."""

    def __init__(self, tallies: DisruptionTotals) -> None:
        self._tallies = tallies

    def collect(self) -> Iterator[Any]:
        """What is told, as prometheus_client asks for it."""
        from prometheus_client.core import CounterMetricFamily

        tallies = self._tallies
        for name, help_text, numbers in (
            ("podium_disruptions", "Pods that were made to end, by cause.", tallies.disruptions),
            ("podium_disruptions_in_vain", "Disruptions that turned out to be in vain, by cause.", tallies.in_vain),
            ("podium_disruption_lost_seconds", "Running time that disruptions lost, by cause.", tallies.lost_seconds),
        ):
            family = CounterMetricFamily(name, help_text, labels=["cause"])
            for cause, number in sorted(numbers.items()):
                family.add_metric([cause], number)
            yield family
