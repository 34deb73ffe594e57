"""The server's metrics, named as in kube-apiserver.

Source: apiserver (pkg/endpoints/metrics/metrics.go).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

from podium.store.errors import StoreError

_BOUNDS: tuple[float, ...] = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
_BOUNDS += (10.0, 15.0, 20.0, 30.0, 45.0, 60.0)
_METHODS = frozenset(("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"))
_COMPONENT = "apiserver"
_MOST_SERIES = 10_000
_LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component")

READING, WRITING, WATCHING = "readOnly", "mutating", "watching"


class Subject(NamedTuple):
    """The labels of a request; their values come from the served API, never from clients."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""


def subject_of_method(method: str) -> Subject:
    """Return the labels of a request that does not concern an object."""
    return Subject(method if method in _METHODS else "OTHER")


class RequestMetrics:
    """Counters of completed requests."""

    def __init__(self, in_flight: Mapping[str, int]) -> None:
        self._in_flight = in_flight
        self._codes: dict[tuple[Subject, int], int] = {}
        self._buckets: dict[Subject, list[int]] = {}
        self._seconds: dict[Subject, float] = {}

    def count(self, subject: Subject, code: int, seconds: float) -> None:
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
        """Return all metrics, including those of other collectors, in Prometheus' text format."""
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - it takes a while, and few ask

        registry = CollectorRegistry(auto_describe=False)
        for collector in (self, *others):
            registry.register(collector)
        return generate_latest(registry)

    def collect(self) -> Iterator[Any]:
        """Yield the metrics in the form of prometheus_client."""
        from prometheus_client import core  # noqa: PLC0415 - it takes a while, and few ask

        requests = core.CounterMetricFamily(
            "apiserver_request_total",
            "Requests by what they ask for, and the code of their reply.",
            labels=(*_LABELS, "code"),
        )
        for (subject, code), number in sorted(self._codes.items()):
            requests.add_metric((*subject, _COMPONENT, str(code)), number)
        yield requests
        seconds = core.HistogramMetricFamily(
            "apiserver_request_duration_seconds", "How long requests took; watches are left out.", labels=_LABELS
        )
        for subject, buckets in sorted(self._buckets.items()):
            if subject.verb != "WATCH":
                # Buckets are cumulative in Prometheus.
                named = zip((*map(str, _BOUNDS), "+Inf"), accumulate(buckets), strict=True)
                seconds.add_metric((*subject, _COMPONENT), list(named), self._seconds[subject])
        yield seconds
        for name, what, label, sorts in (
            ("current_inflight_requests", "Requests that are answered now.", "request_kind", (WRITING, READING)),
            ("longrunning_requests", "Watches that are open now.", "verb", (WATCHING,)),
        ):
            gauge = core.GaugeMetricFamily(f"apiserver_{name}", what, labels=(label,))
            for sort in sorts:
                gauge.add_metric(("WATCH" if sort == WATCHING else sort,), self._in_flight[sort])
            yield gauge


class InFlightLimits:
    """The requests in flight, with a maximum for each type."""

    def __init__(self, most: dict[str, int]) -> None:
        self._most = most
        self.in_flight = dict.fromkeys(most, 0)

    @contextmanager
    def flight(self, sort: str) -> Iterator[None]:
        """Count a request while it is processed. Raises StoreError 429 at the limit."""
        in_flight = self.in_flight
        if in_flight[sort] >= self._most[sort]:
            details = {"retryAfterSeconds": 1}
            raise StoreError(429, "TooManyRequests", "Too many requests, please try again later.", details)
        in_flight[sort] += 1
        try:
            yield
        finally:
            in_flight[sort] -= 1
