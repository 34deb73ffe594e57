"""The metrics and the report of the exporter, made from the last evaluation at each request.

The number of series does not grow with the nodes: single nodes and budgets have series only if they are among the
`MAX_NAMES` worst that fail the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from prometheus_client.core import GaugeMetricFamily

from podium.api.basis import Caveat
from podium.api.times import format_exact_time
from podium.app.console.cells import counted
from podium.app.console.page import Section
from podium.app.exporter.evaluation import Evaluation
from podium.app.exporter.failures import FITS, GROUPS, NODE, OUTCOMES, UNPLACED, FailureOutcome
from podium.app.live.metrics import Documents, MetricsCollector, ProgramMetrics
from podium.app.planning.answer import PlanAnswer

MAX_NAMES = 50
"""The most nodes and budgets with series of their own."""

_SECOND = 10**9
_KINDS = (NODE, *GROUPS)
_CAVEATS = (
    "the pods of each failure are evicted at once and placed in order of priority; no autoscaler adds nodes",
    "pods of StatefulSets are held until their node is back or its Node object is deleted, and not placed again",
    "two nodes of a pool that fail are the two with the most pods, not every pair",
)
Metric = tuple[str, str, str, Iterable[tuple[tuple[str, ...], float]]]


class ExporterMetrics(ProgramMetrics):
    """The metrics of the exporter; ``now`` is the time in nanoseconds, ``latest`` the last evaluation or None."""

    prefix = "podium_exporter"

    def __init__(self, now: Callable[[], int], latest: Callable[[], Evaluation | None]) -> None:
        super().__init__()
        self.evaluations = self.counter("podium_evaluations", "Number of completed evaluations.")
        self.failures = self.counter("podium_evaluation_failures", "Number of evaluations that failed.")
        self._now, self._latest = now, latest
        self.registry.register(MetricsCollector(self._collect))

    @property
    def documents(self) -> Documents:
        """The metrics, and the report as a page and as JSON."""
        return {
            **super().documents,
            "/report": lambda: (report_of(self._latest()).html().encode(), "text/html; charset=utf-8"),
            "/report.json": lambda: (msgspec.json.encode(report_of(self._latest()).to_dict()), "application/json"),
        }

    def _collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics; none before the first evaluation, so that alerts on absence work."""
        found = self._latest()
        if found is not None:
            for name, what, labels, samples in _metrics(found, max(0, self._now() - found.at_ns) / _SECOND):
                family = GaugeMetricFamily(f"podium_{name}", what, labels=labels.split())
                for values, number in samples:
                    family.add_metric(values, number)
                yield family


def _metrics(found: Evaluation, age_s: float) -> Iterator[Metric]:
    """Yield the name, the help text, the labels and the samples of each metric."""
    yield "evaluation_age_seconds", "Age of the cluster's state that was evaluated.", "", [((), age_s)]
    yield "evaluation_duration_seconds", "Duration of the last evaluation.", "", [((), found.seconds)]
    counts = (((kind, outcome), found.counts[kind, outcome]) for kind in _KINDS for outcome in OUTCOMES)
    what = "Number of failures by outcome: all pods fit, they fit if they preempt, or some are unplaced."
    yield "failure_scopes", what, "scope outcome", counts
    what = "Number of zones, pools and racks beyond the limit, which are not evaluated."
    yield "failure_scopes_skipped", what, "scope", (((kind,), number) for kind, number in found.skipped.items())
    failing = [each for each in found.of_kind(NODE) if each.outcome != FITS]
    shown = [*failing[:MAX_NAMES], *(each for kind in GROUPS for each in found.of_kind(kind))]
    what = "Number of pods without a place after a failure; of nodes only the worst that lack places."
    unplaced = ((each, {"without": each.unplaced_without_preemption, "with": each.unplaced}) for each in shown)
    yield "failure_unplaced_pods", what, "scope name preemption", _by_name(unplaced)
    what = "Number of pods of failing nodes that are replaced, held until their node is back, or have no controller."
    fates = ((each, {"replaced": each.replaced, "held": each.held, "unmanaged": each.unmanaged}) for each in shown)
    yield "failure_pods", what, "scope name fate", _by_name(fates)
    what = "Number of nodes of a pool that may fail, 0 to 2, so that all pods fit without preemption."
    yield "pool_tolerated_node_failures", what, "pool", (((each.pool,), each.tolerated) for each in found.pools)
    what = "Number of further pods of a shape that fit."
    yield "headroom_pods", what, "shape", (((each.shape,), each.pods) for each in found.headroom)
    what = "Share of the pods of a shape that the free capacity makes in sum, and that fit on no node."
    yield "fragmentation_ratio", what, "shape", (((each.shape,), each.fragmentation) for each in found.headroom)
    what = "Number of pods without a node by the kind of obstacle."
    yield "pending_pods", what, "cause", (((each.cause,), each.pods) for each in found.pending)
    what = "Number of nodes that cannot be drained now because of budgets."
    yield "undrainable_nodes", what, "", [((), found.undrainable)]
    what = "Number of nodes that a budget keeps from being drained; of the budgets with the most nodes."
    blocks = ((tuple(each.budget.split("/")), len(each.nodes)) for each in found.blocks[:MAX_NAMES])
    yield "budget_blocked_nodes", what, "namespace poddisruptionbudget", blocks


def _by_name(numbers: Iterable[tuple[FailureOutcome, dict[str, int]]]) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield samples by scope, name and a third label."""
    return (((each.scope, each.name, value), number) for each, by in numbers for value, number in by.items())


def report_of(found: Evaluation | None) -> PlanAnswer:
    """Return the report of the last evaluation; None if there is none yet."""
    if found is None:
        return PlanAnswer("exporter", "the cluster has not been evaluated yet")
    totals = {kind: len(found.of_kind(kind)) for kind in _KINDS}
    bad = [f"{found.counts[kind, UNPLACED]:,} of {counted(totals[kind], kind)}" for kind in _KINDS if totals[kind]]
    facts = {"at": format_exact_time(found.at_ns), "seconds": round(found.seconds, 1), "skipped": found.skipped}
    sections = [_section("evaluated", "Evaluated", [{**facts, "nodes": found.nodes, "pods": found.pods}])]
    for kind in _KINDS:
        shown = [each for each in found.of_kind(kind) if kind != NODE or each.outcome != FITS]
        rest = f"{totals[kind] - len(shown):,} more fit" if kind == NODE else ""
        sections.append(_section(f"{kind}s", f"If a {kind} fails", shown, rest))
    drains = f"{counted(found.undrainable, 'node')} cannot be drained now"
    for name, title, records, rest in (
        ("pools", "Node pools", found.pools, "if one node or two fail"),
        ("headroom", "Headroom", found.headroom, "further pods like these"),
        ("pending", "Pending pods", found.pending, "by the kind of obstacle"),
        ("budgets", "Budgets in the way of drains", found.blocks, drains),
    ):
        sections.append(_section(name, title, records, rest))
    caveats = tuple(Caveat("exporter", text, 0) for text in _CAVEATS)
    headline = f"pods find no place if one of these fails: {', '.join(bad) or 'no node'}"
    return PlanAnswer("exporter", headline, sections=tuple(sections), caveats=caveats)


def _section(name: str, title: str, records: Iterable[object], rest: str = "") -> Section:
    """Return a table of the records' texts and numbers, and the length of lists; the data has them in full."""
    data = msgspec.to_builtins(list(records))
    rows = tuple(tuple(f"{len(v) if isinstance(v, list | dict) else v}" for v in each.values()) for each in data)
    return Section(name, title, rows, tuple(data[0]) if data else (), rest, data)
