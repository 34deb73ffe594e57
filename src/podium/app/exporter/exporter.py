"""The exporter: follows a cluster by watches, evaluates it again and again, and serves the last evaluation.

The number of series does not grow with the nodes: single nodes and budgets have series only if they are among the
`MAX_NAMES` worst that fail the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from itertools import islice

import msgspec
from msgspec.structs import replace
from prometheus_client.core import Metric as Family

from podium.api.basis import Caveat
from podium.api.errors import PodiumError
from podium.api.times import SECOND, format_duration, format_time
from podium.app.console.cells import counted, listed
from podium.app.console.page import Section
from podium.app.exporter import evaluation
from podium.app.exporter.evaluation import GROUPS, NODE, Evaluation, EvaluationSettings, Group
from podium.app.exporter.failures import FATES, FITS, OUTCOMES, UNPLACED
from podium.app.forking import forked
from podium.app.live.followed_cluster import FollowedCluster, FollowingProgram
from podium.app.live.live_program import ProgramSettings
from podium.app.live.logs import Log
from podium.app.live.metrics import Documents, ProgramMetrics, gauges
from podium.app.planning.answer import PlanAnswer
from podium.client.credentials import ClusterAccess
from podium.client.live_cluster import LiveCluster
from podium.runtime.clock import SystemClock

MAX_NAMES = 50
_KINDS = (NODE, *GROUPS)
_CAVEATS = (
    "the pods of failed nodes are evicted one node of a zone after another; no autoscaler adds nodes",
    "pods of StatefulSets are held until their node is back or its Node object is deleted, and not placed again",
    "two nodes of a pool that fail are the two with the most pods, not every pair",
)
_HEADINGS = {"unplaced_alone": "without preemption", "first": "breaks first", "unplaced_by": "unplaced by workload"}
_MOST_SHOWN = 2
Metric = tuple[str, str, Iterable[tuple[tuple[str, ...], float]], str]
# Budgets with rates and caps change with time alone.
_MOST_SKIPPED = 10
# The most groups that a process evaluates at a time, after the first evaluation.
_MOST_GROUPS = 2


class ExporterSettings(ProgramSettings, frozen=True, kw_only=True):
    """The settings of an exporter.

    An evaluation begins ``interval_ns`` after the last one began, or when that one ends; ``processes`` share its work.
    """

    evaluation: EvaluationSettings = EvaluationSettings()
    interval_ns: int = 30 * SECOND
    processes: int = 2


class ExporterMetrics(ProgramMetrics):
    """The metrics and the report of the ``latest`` evaluation, None for none; ``now`` is the time in nanoseconds."""

    prefix = "podium_exporter"

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self.evaluations = self.counter("podium_evaluations", "Number of completed evaluations.")
        self.unchanged = self.counter("podium_evaluations_unchanged", "Number of evaluations that no change required.")
        self.failures = self.counter("podium_evaluation_failures", "Number of evaluations that failed.")
        self.latest: Evaluation | None = None
        self._now = now
        self.watch(self._collect)

    @property
    def documents(self) -> Documents:
        """The metrics, and the report as a page and as JSON."""
        return {
            **super().documents,
            "/report": lambda: (report_of(self.latest).html().encode(), "text/html; charset=utf-8"),
            "/report.json": lambda: (msgspec.json.encode(report_of(self.latest).to_dict()), "application/json"),
        }

    def _collect(self) -> Iterator[Family]:
        """Yield the metrics; none before the first evaluation, so that alerts on absence work."""
        if self.latest is not None:
            for name, labels, samples, what in _metrics(self.latest, self._now()):
                yield gauges(f"podium_{name}", what, labels.split(), samples)


def _metrics(found: Evaluation, now: int) -> Iterator[Metric]:
    """Yield the name, the labels, the samples and the help text of each metric."""
    failing = [each for each in found.of_kind(NODE) if each.outcome != FITS]
    shown = [*failing[:MAX_NAMES], *(each for kind in GROUPS for each in found.of_kind(kind))]
    unplaced = [((each.scope, each.name, "without"), each.unplaced_alone) for each in shown]
    unplaced += [((each.scope, each.name, "with"), each.unplaced) for each in shown]
    fates = [((each.scope, each.name, fate), getattr(each, fate)) for each in shown for fate in FATES]
    oldest = {NODE: found.at_ns}
    for (kind, _), (at_ns, _) in found.groups.items():
        if at_ns:
            oldest[kind] = min(at_ns, oldest.get(kind, at_ns))
    ages = {kind: max(0, now - at_ns) / SECOND for kind, at_ns in oldest.items()}
    yield "evaluation_age_seconds", "", [((), max(ages.values()))], "Age of the oldest answer."
    of_kinds = [((kind,), age_s) for kind, age_s in ages.items()]
    yield "answer_age_seconds", "scope", of_kinds, "Age of the oldest answer about nodes, zones, pools and racks."
    yield "evaluation_duration_seconds", "", [((), found.seconds)], "Duration of the last evaluation."
    counts = [((kind, outcome), found.counts[kind, outcome]) for kind in _KINDS for outcome in OUTCOMES]
    yield "failure_scopes", "scope outcome", counts, "Number of failures by outcome: fits, preempts or unplaced."
    skipped = [((kind,), number) for kind, number in found.skipped.items()]
    yield "failure_scopes_skipped", "scope", skipped, "Number of zones, pools and racks that are not evaluated."
    what = "Number of pods that find no place after a failure; of nodes only for the worst."
    yield "failure_unplaced_pods", "scope name preemption", unplaced, what
    yield "failure_evicted_pods", "scope name fate", fates, "Number of pods of a failure by what becomes of them."
    pools = [((each.pool,), each.tolerated) for each in found.pools]
    yield "pool_tolerated_node_failures", "pool", pools, "Number of nodes that may fail without preemption, 0 to 2."
    headroom = [((each.shape,), each.pods) for each in found.headroom]
    yield "headroom_pods", "shape", headroom, "Number of further pods of a shape that fit."
    shares = [((each.shape,), each.fragmentation) for each in found.headroom]
    yield "fragmentation_ratio", "shape", shares, "Share of the pods that fit in sum, and that fit on no node."
    pending = [((cause,), number) for cause, number in found.pending.items()]
    yield "pending_pods", "cause", pending, "Number of pods without a node by the kind of obstacle."
    yield "undrainable_nodes", "", [((), found.undrainable)], "Number of nodes that budgets keep from being drained."
    blocks = [((*budget.split("/"),), len(nodes)) for budget, nodes in islice(found.blocks.items(), MAX_NAMES)]
    yield "budget_blocked_nodes", "namespace poddisruptionbudget", blocks, "Number of nodes that a budget blocks."


def report_of(found: Evaluation | None) -> PlanAnswer:
    """Return the report of the last evaluation; None if there is none yet."""
    if found is None:
        return PlanAnswer("exporter", "the cluster has not been evaluated yet")
    failures = {kind: found.of_kind(kind) for kind in _KINDS}
    shown = {**failures, NODE: [each for each in failures[NODE] if each.outcome != FITS]}
    fitting = {NODE: f"the pods of {counted(len(failures[NODE]) - len(shown[NODE]), 'other node')} fit"}
    kinds = {kind: found.counts[kind, UNPLACED] for kind in _KINDS if failures[kind]}
    bad = ", ".join(f"{number:,} of {counted(len(failures[kind]), kind)}" for kind, number in kinds.items())
    facts = {"at": format_time(found.at_ns), "seconds": round(found.seconds, 1), "skipped": found.skipped}
    blocks = [{"budget": budget, "nodes": nodes} for budget, nodes in found.blocks.items()]
    pending = [{"cause": cause, "pods": number} for cause, number in found.pending.items()]
    drains = f"{counted(found.undrainable, 'node')} cannot be drained now"
    sections = (
        _section("evaluated", "Evaluated", [facts]),
        *(_section(f"failures/{kind}", f"If a {kind} fails", shown[kind], fitting.get(kind, "")) for kind in _KINDS),
        _section("pools", "Node pools", found.pools, "if one node or two fail"),
        _section("headroom", "Headroom", found.headroom, "further pods like these"),
        _section("pending", "Pending pods", pending, "by the kind of obstacle"),
        _section("budgets", "Budgets in the way of drains", blocks, drains),
    )
    caveats = tuple(Caveat("exporter", text, 0) for text in _CAVEATS)
    headline = f"pods find no place if one of these fails: {bad}"
    return PlanAnswer("exporter", headline, sections=sections, caveats=caveats)


def _section(name: str, title: str, records: Sequence[object], rest: str = "") -> Section:
    """Return a table of the records, with the first names of lists; the data has them in full."""
    data = msgspec.to_builtins(records)
    fields = [field for field in (data[0] if data else ()) if field != "scope"]
    rows = tuple(tuple(_shown(each[field]) for field in fields) for each in data)
    return Section(name, title, rows, tuple(_HEADINGS.get(field, field) for field in fields), rest, data)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        value = [
            f"{number:,} {name}"
            for name, number in sorted(value.items(), key=lambda item: (-item[1], item[0]))
            if number
        ]
    return (listed(value, _MOST_SHOWN) or "none") if isinstance(value, list | tuple) else f"{value}"


class LiveExporter(FollowingProgram):
    """The exporter as a program. It writes nothing."""

    user_agent = "podium-exporter"
    noun = "the exporter"
    metrics: ExporterMetrics
    _settings: ExporterSettings

    def __init__(self, access: ClusterAccess, settings: ExporterSettings, log: Log) -> None:
        super().__init__(access, settings, log, ExporterMetrics(SystemClock().now))

    def _ready(self) -> dict[str, str]:
        problem = {"evaluation": "the cluster has not been evaluated yet"} if self.metrics.latest is None else {}
        return super()._ready() | problem

    def on_started(self) -> None:
        self._log.info("evaluating", version=str(self.release), interval=format_duration(self._settings.interval_ns))

    async def open(self, cluster: LiveCluster, ending: AsyncExitStack) -> None:
        ending.callback(asyncio.ensure_future(self._evaluate_repeatedly()).cancel)

    async def _evaluate_repeatedly(self) -> None:
        evaluated: tuple[FollowedCluster, int] | None = None
        skipped = 0
        while True:
            cluster, began_ns, latest = await self.known(), self.now(), self.metrics.latest
            state = cluster, cluster.changes
            if evaluated is None or evaluated[0] is not cluster or skipped == _MOST_SKIPPED:
                latest = None
            # The groups that changed after their evaluation, the oldest first.
            old = [] if latest is None else sorted((at, key) for key, at in latest.groups.items() if at[1] != state[1])
            try:
                if latest is not None and state == evaluated and not old:
                    skipped += 1
                    groups = dict.fromkeys(latest.groups, (began_ns, state[1]))
                    self.metrics.latest = replace(latest, at_ns=began_ns, groups=groups)
                    self.metrics.unchanged.inc()
                else:
                    wanted = [key for _, key in old[: _MOST_GROUPS * self._settings.processes]]
                    await self._evaluate(cluster, began_ns, latest, None if latest is None else wanted)
                    evaluated, skipped = state, 0
            except PodiumError as error:
                self.metrics.failures.inc()
                self._log.error("the evaluation failed", problem=str(error))
            await asyncio.sleep(max((began_ns + self._settings.interval_ns - self.now()) / SECOND, 0))

    async def _evaluate(
        self, cluster: FollowedCluster, began_ns: int, before: Evaluation | None, groups: Collection[Group] | None
    ) -> None:
        """Evaluate the cluster as it is now in copies of this process; the other groups are as ``before``.

        Raises PodiumError if that fails.
        """
        settings, loop, changes = self._settings, asyncio.get_running_loop(), cluster.changes
        decisions = cluster.decisions(began_ns)
        tasks = evaluation.Tasks()

        def work(place: int, _: object) -> Evaluation | str:
            try:
                return evaluation.share_of(decisions, settings.evaluation, tasks, groups, is_first=place == 0)
            except Exception as error:  # The parent reports it
                return f"{type(error).__name__}: {error}"

        # All copies are forked before a thread exists, and end before the threads that wait for them.
        with ThreadPoolExecutor(settings.processes) as waiting, ExitStack() as copies:
            begin = [copies.enter_context(forked(work)) for _ in range(settings.processes)]
            running = [loop.run_in_executor(waiting, each(place), None) for place, each in enumerate(begin)]
            shares = await asyncio.gather(*running)
        for share in shares:
            if not isinstance(share, Evaluation):
                raise PodiumError(share or "a process ended")
        seconds = (self.now() - began_ns) / SECOND
        self.metrics.latest = replace(evaluation.combined(shares, before, began_ns, changes), seconds=seconds)
        self.metrics.evaluations.inc()
