"""What the server counts, under the names that kube-apiserver has for it.

Source: apiserver (pkg/endpoints/metrics/metrics.go).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from podium.server.http.flights import READING, WATCHING, WRITING

_BOUNDS: tuple[float, ...] = (
    0.005,
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
    15.0,
    20.0,
)
_BOUNDS += (30.0, 45.0, 60.0)
_METHODS = frozenset(("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"))
_COMPONENT = "apiserver"
_MOST_SERIES = 10_000


class Subject(NamedTuple):
    """What requests are told apart by: all of it comes from what is served, and nothing from clients."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""


_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")


def subject_of_method(method: str) -> Subject:
    """What a request is about that is about no object."""
    return Subject(method if method in _METHODS else "OTHER")


class Metrics:
    """Counts requests as they end."""

    def __init__(self, under_way: Mapping[str, int]) -> None:
        self._under_way = under_way
        self._codes: dict[tuple[Subject, int], int] = {}
        self._buckets: dict[Subject, list[int]] = {}
        self._seconds: dict[Subject, float] = {}

    def count(self, subject: Subject, code: int, seconds: float) -> None:
        """A request has ended."""
        codes = self._codes
        if len(codes) >= _MOST_SERIES and (subject, code) not in codes:
            return
        codes[subject, code] = codes.get((subject, code), 0) + 1
        buckets = self._buckets.get(subject)
        if buckets is None:
            buckets = self._buckets[subject] = [0] * (len(_BOUNDS) + 1)
            self._seconds[subject] = 0.0
        buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[subject] += seconds

    def text(self, *others: Any) -> bytes:
        """All of it, and what other collectors tell, in the text form of Prometheus."""
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - it takes a while, and few ask

        registry = CollectorRegistry(auto_describe=False)
        for collector in (self, *others):
            registry.register(collector)
        return generate_latest(registry)

    def collect(self) -> Iterator[Any]:
        """What is told, as prometheus_client asks for it."""
        from prometheus_client.core import (  # noqa: PLC0415 - it takes a while, and few ask
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        requests = CounterMetricFamily(
            "apiserver_request_total",
            "Requests by what they ask for, and the code of their reply.",
            labels=(*_LABELS, "code"),
        )
        for (subject, code), number in sorted(self._codes.items()):
            requests.add_metric((*subject, _COMPONENT, str(code)), number)
        yield requests
        seconds = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "How long requests took; watches are left out.", labels=_LABELS
        )
        for subject, buckets in sorted(self._buckets.items()):
            if subject.verb != "WATCH":
                seconds.add_metric((*subject, _COMPONENT), _cumulated(buckets), self._seconds[subject])
        yield seconds
        in_flight = GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests that are answered now.", labels=("request_kind",)
        )
        for sort in (WRITING, READING):
            in_flight.add_metric((sort,), self._under_way[sort])
        yield in_flight
        watches = GaugeMetricFamily("apiserver_longrunning_requests", "Watches that are open now.", labels=("verb",))
        watches.add_metric(("WATCH",), self._under_way[WATCHING])
        yield watches


def _cumulated(buckets: list[int]) -> list[tuple[str, float]]:
    """The buckets as Prometheus has them: each with what is below it."""
    found: list[tuple[str, float]] = []
    total = 0
    for bound, number in zip((*map(str, _BOUNDS), "+Inf"), buckets, strict=True):
        total += number
        found.append((bound, total))
    return found
