"""The answer to a plan: its headline and findings, what it does to workloads and nodes, and how it is printed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from podium.api.basis import Caveat
from podium.api.errors import PodiumError
from podium.api.meta import Raw
from podium.api.times import format_duration
from podium.app.answers import Frame, Kind, Shown, flat, kinds
from podium.app.console import cells
from podium.app.console.output import in_csv
from podium.app.console.page import Cell, Name, Names, Page, Part, counted, listed, names_of
from podium.app.planning.constants import FINDING_CODES
from podium.app.planning.impact import NodeImpact, PlanFinding, WorkloadImpact
from podium.app.planning.scenarios import Remedy
from podium.app.simulating.timeline import folded, write_timeline

# Questions that are not played answer without loading the simulator.
if TYPE_CHECKING:
    from podium.api.input.codec import Input
    from podium.app.simulating.simulation_result import SimulationResult
    from podium.sim.run_options import RunOptions

SCHEMA_VERSION = 1
"""The version of `PlanAnswer.to_dict`; it grows when a field is removed or changes its meaning."""

TIMELINE, PODS, NODES = "timeline", "pods", "nodes"
"""The parts that are shown on request."""

_RUNS = ("without the plan", "with the plan")
_SECOND = 10**9
_MAX_WORKLOADS = 20
_MAX_NODES = 12
_MAX_NAMES = 3
_HEADINGS = ("workload", "before", "lowest", "after", "wanted", "short for", "waits", "disrupted", "")
ANYWAY = {"pending": "waiting for a node at the end", "preempted": "preempted", "evicted": "evicted"}
"""What becomes of the pods that an answer counts as `anyway`."""


_COLUMNS: Mapping[str, Mapping[str, Kind]] = {
    "impact": {
        **kinds("workload", "readyBefore lowestReady readyAfter readyWithoutPlan wanted missing pending stuck"),
        **kinds(number="shortSeconds"),
        "shortLasts": "bool",
        **kinds(number="pendingSeconds"),
    },
    "nodes": kinds("node change", "podsBefore podsAfter"),
    "findings": kinds("code message subjects"),
}
# The tables of the run with the plan, by the names that the answer gives them.
_RUN_TABLES = {name: name for name in ("events", "pods", "series", "workloads", "readiness")} | {"all_nodes": "nodes"}
_TABLE = "table"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an answer that only some questions have: a title and rows of cells as text, and ``data`` for JSON.

    The last column of the rows may be long. ``headings`` may be empty. Names in a row (`podium.app.console.cells`) are
    shortened on a narrow terminal.
    """

    name: str
    title: str
    rows: tuple[tuple[Part, ...], ...]
    headings: tuple[str, ...] = ()
    rest: str = ""
    data: Any = None


@dataclass(frozen=True, slots=True)
class PlanTable:
    """The rows for spreadsheets of questions without an impact by workload.

    ``numbers`` are the headings of whole numbers; all others are of text.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]
    numbers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, repr=False)
class PlanAnswer(Shown):
    """The answer to a question (drain, deploy, ...).

    ``headline`` is the answer in one line. ``impact`` are the workloads that the plan affects, ``nodes`` the nodes that
    it changes; ``node_hours`` are with the plan and without. ``result`` is the run with the plan and ``baseline`` the
    run without it; None for questions that are not played. ``anyway`` counts the pods that wait at the end, are
    preempted and are evicted in both runs; no other count contains them. ``scenario`` was played over ``read`` with
    ``options``, or reproduces the answer when it is played; ``remedy`` is the change that helps, for questions that
    look for one. ``sections`` are the question's own, ``further`` are shown on request, named like the options.
    ``table`` replaces the impact for questions that are not played. ``runs`` are the names of baseline and result.
    """

    question: str
    headline: str
    findings: tuple[PlanFinding, ...] = ()
    impact: tuple[WorkloadImpact, ...] = ()
    nodes: tuple[NodeImpact, ...] = ()
    node_hours: tuple[float, float] | None = None
    caveats: tuple[Caveat, ...] = ()
    result: SimulationResult | None = None
    baseline: SimulationResult | None = None
    anyway: Mapping[str, int] = field(default_factory=dict)
    read: Input | None = None
    scenario: Raw | None = None
    options: RunOptions | None = None
    remedy: Remedy | None = None
    sections: tuple[Section, ...] = ()
    further: tuple[Section, ...] = ()
    table: PlanTable | None = None
    runs: tuple[str, str] = _RUNS

    def _in_a_line(self) -> str:
        return f"{self.question}: {self.headline}"

    def write(self, page: Page) -> None:
        """Write the first screen, as `podium plan` does."""
        write_answer(page, self)

    def _pictured(self) -> PlanAnswer:
        result, baseline = self.result, self.baseline
        return replace(
            self,
            result=None if result is None else result._pictured(),
            baseline=None if baseline is None else baseline._pictured(),
        )

    def frame(self, name: str = "") -> Frame:
        """Return a table of the answer. Raises PodiumError for one that it does not have.

        Without a name it is the one that `-o csv` prints: `table` of pending, fit and survive, `impact` of all others.
        `impact` has a row for each affected workload, `nodes` for each affected node, `findings` for each finding, with
        the names of `to_dict`; the number of disruptions by a cause is in `disruptions.CAUSE`, seconds are differences
        to the run without the plan. `events`, `pods`, `series`, `workloads` and `readiness` are those of the run with
        the plan (`SimulationResult.frame`), `all_nodes` its nodes.
        """
        name = name or ("impact" if self.table is None else _TABLE)
        if name == _TABLE and self.table is not None:
            headings = self.table.headings
            columns: dict[str, Kind] = {
                heading: "int64" if heading in self.table.numbers else "string" for heading in headings
            }
            return Frame.of_rows(name, [dict(zip(headings, row, strict=True)) for row in self.table.rows], columns)
        if name in _COLUMNS:
            rows = [entry.to_dict() for entry in getattr(self, name)]
            # The times for which budgets held a workload are in `to_dict` alone.
            rows = [
                {**row, "held": ", ".join(held["budget"] for held in row["held"])} if "held" in row else row
                for row in rows
            ]
            return Frame.of_rows(name, list(map(flat, rows)), _COLUMNS[name])
        if name in _RUN_TABLES and self.result is not None:
            from podium.app.simulating.simulation_result import frame_of

            return frame_of(self.result, _RUN_TABLES[name])
        known = (*_COLUMNS, *(_RUN_TABLES if self.result is not None else ()), *((_TABLE,) if self.table else ()))
        raise PodiumError(f"the answer to {self.question} has no table {name}; it has: {', '.join(known)}")

    @property
    def otherwise(self) -> str:
        """The run that the impact is compared with, in words: `without the plan`, or with which setting."""
        return self.runs[0] if self.runs == _RUNS else f"with {self.runs[0]}"

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the findings, each once, in the order of `FINDING_CODES`."""
        found = {finding.code for finding in self.findings}
        return tuple(code for code in FINDING_CODES if code in found)

    def to_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "question": self.question,
            "headline": self.headline,
            "findings": [finding.to_dict() for finding in self.findings],
            "impact": [impact.to_dict() for impact in self.impact],
            "nodes": [node.to_dict() for node in self.nodes],
        }
        if self.baseline is not None:
            shown["anyway"] = dict(self.anyway)
        if self.node_hours is not None:
            shown["nodeHours"] = {"with": self.node_hours[0], "without": self.node_hours[1]}
        shown |= {section.name: section.data for section in self.sections}
        shown["caveats"] = [caveat.to_dict() for caveat in self.caveats]
        if self.result is not None:
            shown["result"] = self.result.to_dict()
        return shown


def plan_csv(answer: PlanAnswer) -> str:
    """Return the impact by workload as CSV, or the answer's own table."""
    if answer.table is not None:
        return in_csv(answer.table.headings, answer.table.rows)
    columns = (*_COLUMNS["impact"], "disruptions", "why")
    rows = []
    for impact in answer.impact:
        row = impact.to_dict()
        row["shortLasts"] = "true" if impact.short_lasts else "false"
        row["disruptions"] = "; ".join(f"{cause}: {number}" for cause, number in impact.disruptions.items())
        rows.append([row[column] for column in columns])
    return in_csv(columns, rows)


def write_answer(page: Page, answer: PlanAnswer, parts: Collection[str] = ()) -> None:
    """Write the first screen, and further parts on request."""
    page.paragraph(Cell(answer.headline, "bold"), hanging=2)
    _write_sections(page, answer.sections)
    if answer.result is not None:
        _write_impact(page, answer)
        _write_held(page, answer)
        _write_nodes(page, answer)
        _write_parts(page, answer, answer.result, parts)
    _write_sections(page, [section for section in answer.further if section.name in parts])
    page.caveats(answer.caveats)


def _write_sections(page: Page, sections: Sequence[Section]) -> None:
    for section in sections:
        if section.rows:
            page.title(section.title, section.rest)
            _write_table(page, section.headings, [list(row) for row in section.rows])


def _write_table(page: Page, headings: Sequence[str], rows: list[list[Part]], right: Sequence[int] = ()) -> None:
    head: list[list[Part]] = [[Cell(heading, "dim") for heading in headings]] if headings else []
    page.columns([*head, *rows], indent=2, right=right)


def _write_impact(page: Page, answer: PlanAnswer) -> None:
    impact = answer.impact
    if impact:
        page.title("Impact", f"on {counted(len(impact), 'workload')}: ready pods, and what they go through")
        rows = [_impact_row(workload) for workload in impact[:_MAX_WORKLOADS]]
        kept = [
            column for column in range(len(_HEADINGS)) if column < 5 or any(cells.text_of(row[column]) for row in rows)
        ]
        headings = [_HEADINGS[column] for column in kept]
        _write_table(page, headings, [[row[column] for column in kept] for row in rows], right=range(1, 5))
        if len(impact) > len(rows):
            page.line(Cell(f"and {counted(len(impact) - len(rows), 'more workload')}", "dim"), indent=2)
        missing = [workload for workload in impact if workload.missing and workload.why]
        short = counted(sum(workload.missing for workload in impact), "pod")
        _write_reasons(page, "Not back", f"{short} short at the end", missing)
        stuck = [workload for workload in impact if workload.stuck]
        waiting = sum(workload.stuck for workload in stuck)
        verb = "waits" if waiting == 1 else "wait"
        _write_reasons(page, "Stuck", f"{counted(waiting, 'pod')} of a rollout {verb} for a node at the end", stuck)
    else:
        page.title("Impact", f"none: every workload fares as it would {answer.otherwise}")
    found = [f"{counted(number, 'pod')} {ANYWAY[what]}" for what, number in answer.anyway.items() if number]
    if found:
        page.title("Anyway", f"{answer.otherwise}, too: {', '.join(found)}")


def _impact_row(workload: WorkloadImpact) -> list[Part]:
    style = "bad" if workload.missing else "warn" if workload.short_seconds > 0 else ""
    return [
        Name(workload.workload, cells.WORKLOADS, style),
        "new" if workload.is_new else f"{workload.ready_before:,}",
        "" if workload.is_new else f"{workload.lowest:,}",
        f"{workload.ready_after:,}",
        f"{workload.wanted:,}",
        duration_text(workload.short_seconds) + (" and on" if workload.short_lasts else ""),
        duration_text(workload.pending_seconds),
        ", ".join(f"{number:,} by {cause}" for cause, number in workload.disruptions.items()),
        "; ".join(f"held by budget {held.budget} for {duration_text(held.seconds) or '0s'}" for held in workload.held),
    ]


def duration_text(seconds: float) -> str:
    """Return a difference of times, with a minus if it is less; "" for none."""
    return ("-" if seconds < 0 else "") + format_duration(round(abs(seconds) * _SECOND)) if seconds else ""


def _write_reasons(page: Page, title: str, rest: str, workloads: Sequence[WorkloadImpact]) -> None:
    """Write each reason once, with the workloads for which it holds."""
    if not workloads:
        return
    page.title(title, rest)
    reasons: dict[str, list[str]] = {}
    for workload in workloads:
        reasons.setdefault(workload.why, []).append(workload.workload)
    rows = list(reasons.items())[:_MAX_WORKLOADS]
    page.columns([[names_of(names, cells.WORKLOADS, "warn", _MAX_NAMES), why] for why, names in rows], indent=2)


def _write_held(page: Page, answer: PlanAnswer) -> None:
    """Write what was refused, and one line on the budgets with fewer healthy pods than they want."""
    # Drains have a section of their own.
    has_drains = any(section.name == "drains" for section in answer.sections)
    codes = () if has_drains else ("blocked", "timeout", "refused")
    refused = [finding for finding in answer.findings if finding.code in codes]
    budgets = [finding for finding in answer.findings if finding.code == "budget"]
    held = [*(finding for finding in budgets if len(finding.subjects) > 1), *refused]
    low = [finding.subjects[0] for finding in budgets if len(finding.subjects) == 1]
    if not held and not low:
        return
    page.title("Held", "by budgets and refusals")
    for finding in held[:_MAX_NODES]:
        page.paragraph(Cell(finding.message, "warn"), indent=2, hanging=2)
    if len(held) > _MAX_NODES:
        page.line(Cell(f"and {len(held) - _MAX_NODES:,} more", "dim"), indent=2)
    if low:
        verb = "has" if len(low) == 1 else "have"
        text = f"{counted(len(low), 'budget')} {verb} for some time fewer healthy pods than wanted: "
        page.paragraph(text + listed(low, _MAX_NAMES), indent=2, hanging=2)


def _write_nodes(page: Page, answer: PlanAnswer) -> None:
    if not answer.nodes:
        return
    by_change: dict[str, list[Name]] = {}
    for node in answer.nodes:
        before = "" if node.pods_before == node.pods_after else f"{node.pods_before:,} -> "
        name = Name(node.node, cells.NODES, after=f" ({before}{counted(node.pods_after, 'pod')})")
        by_change.setdefault(node.change, []).append(name)
    rest = ""
    if answer.node_hours is not None and answer.node_hours[0] != answer.node_hours[1]:
        rest = f"node-hours {answer.node_hours[0]:g}, {answer.node_hours[1]:g} {answer.otherwise}"
    page.title("Nodes", rest)
    rows: list[list[Part]] = [
        [change, f"{len(nodes):,}", Names(tuple(nodes), most=_MAX_NAMES)] for change, nodes in by_change.items()
    ]
    page.columns(rows, indent=2, right=(1,))


def _write_parts(page: Page, answer: PlanAnswer, result: SimulationResult, parts: Collection[str]) -> None:
    if TIMELINE in parts:
        write_timeline(page, folded(result.events))
    if PODS in parts:
        labels = {workload.workload for workload in answer.impact}
        pods = [pod for pod in result.pods if pod["workload"] in labels]
        page.title("Pods", f"{counted(len(pods), 'pod')} of these workloads")
        rows: list[list[Part]] = [
            [
                Name(pod["pod"], cells.PODS),
                pod["state"],
                Name(pod["node"] or "", cells.NODES),
                f"{pod['priority']}",
                pod["evictedBy"] or pod["disruption"] or "",
            ]
            for pod in pods
        ]
        _write_table(page, ("pod", "state", "node", "priority", "why it ended"), rows, right=(3,))
    if NODES in parts:
        page.title("All nodes", "pods before and at the end, without those of DaemonSets")
        rows = [
            [Name(node.name, cells.NODES), f"{node.pods_before:,}", f"{node.pods:,}", ", ".join(node.marks)]
            for node in result.nodes
        ]
        _write_table(page, ("node", "before", "after", ""), rows, right=(1, 2))
