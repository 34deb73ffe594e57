"""The answer to a plan: its headline and findings, what it does to workloads and nodes, and how it is printed.

For reviewers it is printed as Markdown for pull requests, and as annotations for GitHub.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec

from podium.api import basis, errors, meta, times
from podium.app.answers import Frame, Kind, Renderable, flat, kinds
from podium.app.console import cells
from podium.app.console.cells import agreeing, by_key
from podium.app.console.output import in_csv
from podium.app.console.page import Cell, Name, Names, Page, Part, Section, counted, listed, names_of
from podium.app.planning.constants import FINDING_CODES
from podium.app.planning.scenarios import Remedy
from podium.controllers.workloads.owned_pods import label_of

# Questions that are not played answer without loading the simulator.
if TYPE_CHECKING:
    from podium.api.input.codec import Document, Input
    from podium.app.planning.impact import NodeImpact, PlanFinding, WorkloadImpact
    from podium.app.simulating.simulation_result import SimulationResult
    from podium.sim.run_options import RunOptions

SCHEMA_VERSION = 1
"""The version of `PlanAnswer.to_dict`; it grows when a field is removed or changes its meaning."""

PlanProgress = Callable[[float, str], None]
"""Receives the share of the work that is done, from 0 to 1, and what is being done."""

TIMELINE, PODS, NODES = "timeline", "pods", "nodes"
"""The parts that are shown on request."""

_RUNS = ("without the plan", "with the plan")
_MAX_WORKLOADS = 20
_MAX_NODES = 12
_MAX_NAMES = 3
_HEADINGS = ("workload", "before", "lowest", "after", "wanted", "short for", "waits", "disrupted", "")
_STYLES = {"-": "bad", "!": "warn", "~": "", "+": "good"}
_ANYWAY = {"pending": "waiting for a node at the end", "preempted": "preempted", "evicted": "evicted"}

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


@dataclass(frozen=True, slots=True, repr=False)
class PlanAnswer(Renderable):
    """The answer to a question (drain, deploy, ...).

    ``headline`` is the answer in one line. ``impact`` are the workloads that the plan affects, ``nodes`` the nodes that
    it changes; ``node_hours`` are with the plan and without. ``result`` is the run with the plan and ``baseline`` the
    run without it; None for questions that are not played. ``anyway`` counts the pods that wait at the end, are
    preempted and are evicted in both runs; no other count contains them. ``scenario`` was played over ``read`` with
    ``options``, or reproduces the answer when it is played; ``remedy`` is the change that helps, for questions that
    look for one. ``sections`` are the question's own, ``further`` are shown on request, named like the options.
    ``table`` replaces the impact in spreadsheets for questions that are not played. ``runs`` are the names of baseline
    and result.
    """

    question: str
    headline: str
    findings: tuple[PlanFinding, ...] = ()
    impact: tuple[WorkloadImpact, ...] = ()
    nodes: tuple[NodeImpact, ...] = ()
    node_hours: tuple[float, float] | None = None
    caveats: tuple[basis.Caveat, ...] = ()
    result: SimulationResult | None = None
    baseline: SimulationResult | None = None
    anyway: Mapping[str, int] = field(default_factory=dict)
    read: Input | None = None
    scenario: meta.Raw | None = None
    options: RunOptions | None = None
    remedy: Remedy | None = None
    sections: tuple[Section, ...] = ()
    further: tuple[Section, ...] = ()
    table: Frame | None = None
    runs: tuple[str, str] = _RUNS

    def _in_a_line(self) -> str:
        return f"{self.question}: {self.headline}"

    def write(self, page: Page) -> None:
        """Write the first screen, as `podium plan` does."""
        write_answer(page, self)

    def _with_pictures(self) -> PlanAnswer:
        result, baseline = self.result, self.baseline
        return replace(
            self,
            result=None if result is None else result._with_pictures(),
            baseline=None if baseline is None else baseline._with_pictures(),
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
            return self.table
        if name in _COLUMNS:
            # The times for which budgets held a workload are in `to_dict` alone.
            rows = [
                {**row, "held": ", ".join(held["budget"] for held in row["held"])} if "held" in row else row
                for row in self.to_dict()[name]
            ]
            return Frame.of_rows(name, list(map(flat, rows)), _COLUMNS[name])
        if name in _RUN_TABLES and self.result is not None:
            from podium.app.simulating.simulation_result import frame_of

            return frame_of(self.result, _RUN_TABLES[name])
        own = [_TABLE] if self.table is not None else []
        known = [*_COLUMNS, *(_RUN_TABLES if self.result is not None else ()), *own]
        raise errors.PodiumError(f"the answer to {self.question} has no table {name}; it has: {', '.join(known)}")

    @property
    def summary(self) -> str:
        """The impact as sums in one line, without what happens anyway; "" for questions that are not played."""
        if self.result is None:
            return ""
        from podium.app.planning.impact import DELETION, PREEMPTION, counts_of

        impact, causes = self.impact, counts_of(self.impact)
        placed = sum(max(found.ready_after - found.ready_without_plan, 0) for found in impact)
        deleted, preempted = causes[DELETION], causes[PREEMPTION]
        evicted = causes.total() - deleted - preempted
        missing = sum(max(found.missing, found.stuck, 0) for found in impact)
        anyway = self.anyway.get("preempted", 0)
        too = f" ({anyway:,} {agreeing(anyway, 'happens')} anyway)" if anyway else ""
        too += f", {deleted:,} deleted" if deleted else ""
        sums = f"{placed:,} placed, {evicted:,} evicted, {preempted:,} preempted{too}, {missing:,} missing at the end"
        short = [found for found in impact if found.short_seconds > 0 and not found.is_new]
        if short:
            longest = max(short, key=lambda found: found.short_seconds)
            sums += f"; {counted(len(short), 'workload')} short, longest {lasting_text(longest)}"
        return f"Plan: {sums}"

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
        found = self.json_value()
        return found if self.result is None else found | {"result": self.result.to_dict()}

    def json_value(self) -> dict[str, Any]:
        """Return `to_dict` with the result as `Result.json_value`."""
        shown: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "question": self.question,
            "summary": self.summary,
            "headline": self.headline,
            "findings": msgspec.to_builtins(self.findings),
            "impact": [impact.to_dict() for impact in self.impact],
            "nodes": msgspec.to_builtins(self.nodes),
        }
        if self.baseline is not None:
            shown["anyway"] = dict(self.anyway)
        if self.node_hours is not None:
            shown["nodeHours"] = {"with": self.node_hours[0], "without": self.node_hours[1]}
        shown |= {section.name: section.data for section in self.sections if section.data is not None}
        shown["caveats"] = [caveat.to_dict() for caveat in self.caveats]
        if self.result is not None:
            shown["result"] = self.result.json_value()
        return shown

    def csv(self) -> str:
        """Return the impact by workload, or the answer's own table, as CSV."""
        if self.table is not None:
            return in_csv(self.table.columns, [list(row.values()) for row in self.table])
        columns = (*_COLUMNS["impact"], "disruptions", "why")
        rows = []
        for impact in self.impact:
            lasts = "true" if impact.short_lasts else "false"
            disruptions = "; ".join(f"{cause}: {number}" for cause, number in impact.disruptions.items())
            row = {**impact.to_dict(), "shortLasts": lasts, "disruptions": disruptions}
            rows.append([row[column] for column in columns])
        return in_csv(columns, rows)


def write_answer(page: Page, answer: PlanAnswer, parts: Collection[str] = ()) -> None:
    """Write the first screen, and further parts on request."""
    if answer.summary:
        page.paragraph(Cell(answer.summary, "bold"), hanging=2)
    page.paragraph(answer.headline if answer.summary else Cell(answer.headline, "bold"), hanging=2)
    page.sections(answer.sections)
    if answer.result is not None:
        page.sections(impact_sections(answer))
        if not answer.impact:
            page.title("Impact", f"none: every workload is as {answer.otherwise}")
        if anyway_text(answer):
            page.title("Anyway", anyway_text(answer))
        _write_held(page, answer)
        _write_nodes(page, answer)
        _write_parts(page, answer, answer.result, parts)
    page.sections(section for section in answer.further if section.name in parts)
    page.caveats(answer.caveats)


def impact_sections(answer: PlanAnswer) -> list[Section]:
    """Return the affected workloads, the most affected first, and the reasons of missing and waiting pods."""
    impact = answer.impact
    rows = list(map(_impact_row, impact))
    kept = [at for at in range(len(_HEADINGS)) if at < 5 or any(cells.text_of(row[at]) for row in rows)]
    headings = tuple(_HEADINGS[at] for at in kept)
    shown = tuple(tuple(row[at] for at in kept) for row in rows)
    on = f"on {counted(len(impact), 'workload')}: ready pods and disruptions"
    missing, stuck = sum(each.missing for each in impact), sum(each.stuck for each in impact)
    waits = f"{counted(stuck, 'pod')} of a rollout {agreeing(stuck, 'waits')} for a node at the end"
    return [
        Section("impact", "Impact", shown, headings, on, None, _MAX_WORKLOADS, "workload", (1, 2, 3, 4)),
        _reasons("Not back", f"{counted(missing, 'pod')} short at the end", [each for each in impact if each.missing]),
        _reasons("Stuck", waits, [each for each in impact if each.stuck]),
    ]


def _reasons(title: str, rest: str, workloads: Sequence[WorkloadImpact]) -> Section:
    """Return each reason once, with the workloads for which it holds."""
    reasons = by_key((workload.why, workload.workload) for workload in workloads if workload.why)
    rows = [(names_of(names, cells.WORKLOADS, "warn", _MAX_NAMES), why) for why, names in reasons.items()]
    return Section(title, title, tuple(rows[:_MAX_WORKLOADS]), rest=rest)


def anyway_text(answer: PlanAnswer) -> str:
    """Return the effects that also occur without the plan; "" for none."""
    found = [f"{counted(number, 'pod')} {_ANYWAY[what]}" for what, number in answer.anyway.items() if number]
    return f"{answer.otherwise}, too: {', '.join(found)}" if found else ""


def node_hours_text(answer: PlanAnswer) -> str:
    """Return the node-hours with and without the plan; "" if they are equal or unknown."""
    if answer.node_hours is None or answer.node_hours[0] == answer.node_hours[1]:
        return ""
    return f"node-hours {answer.node_hours[0]:g}, {answer.node_hours[1]:g} {answer.otherwise}"


def _impact_row(workload: WorkloadImpact) -> list[Part]:
    sign = _sign(workload)
    return [
        Name(workload.workload, cells.WORKLOADS, _STYLES[sign], before=f"{sign} "),
        "new" if workload.is_new else workload.ready_before,
        "" if workload.is_new else workload.lowest_ready,
        workload.ready_after,
        workload.wanted,
        lasting_text(workload),
        _duration_text(workload.pending_seconds),
        ", ".join(f"{number:,} by {cause}" for cause, number in workload.disruptions.items()),
        "; ".join(_held_texts(workload)),
    ]


def _held_texts(workload: WorkloadImpact) -> list[str]:
    return [f"held by budget {held.budget} for {_duration_text(held.seconds) or '0s'}" for held in workload.held]


def _sign(impact: WorkloadImpact) -> str:
    """Return the sign of a workload: - short at the end, ! short between, ~ disrupted or later, + all else."""
    if impact.missing > 0 or impact.stuck:
        return "-"
    if impact.is_new:
        return "+"
    if impact.short_seconds > 0:
        return "!"
    is_better = impact.ready_after > impact.ready_without_plan or impact.short_seconds < 0
    return "+" if is_better and not impact.disruptions else "~"


def lasting_text(impact: WorkloadImpact) -> str:
    """Return how long a workload is short of ready pods; "" if that does not differ."""
    return _duration_text(impact.short_seconds) + (" and on" if impact.short_lasts else "")


def _duration_text(seconds: float) -> str:
    return ("-" if seconds < 0 else "") + times.format_duration(round(abs(seconds) * times.SECOND)) if seconds else ""


def _write_held(page: Page, answer: PlanAnswer) -> None:
    """Write the refused evictions, and one line on the budgets with fewer healthy pods than they want."""
    # Drains have a section of their own.
    has_drains = any(section.name == "drains" for section in answer.sections)
    codes = () if has_drains else ("blocked", "timeout", "refused")
    refused = [finding for finding in answer.findings if finding.code in codes]
    budgets = [finding for finding in answer.findings if finding.code == "budget"]
    held = [*(finding for finding in budgets if len(finding.subjects) > 1), *refused]
    low = [finding.subjects[0] for finding in budgets if len(finding.subjects) == 1]
    if held or low:
        page.title("Held", "by budgets and refusals")
    for finding in held[:_MAX_NODES]:
        page.paragraph(Cell(finding.message, "warn"), indent=2, hanging=2)
    page.more(len(held) - _MAX_NODES)
    if low:
        text = f"{counted(len(low), 'budget', 'has')} for some time fewer healthy pods than wanted: "
        page.paragraph(text + listed(low, _MAX_NAMES), indent=2, hanging=2)


def _write_nodes(page: Page, answer: PlanAnswer) -> None:
    if not answer.nodes:
        return
    names = []
    for node in answer.nodes:
        before = "" if node.pods_before == node.pods_after else f"{node.pods_before:,} -> "
        after = f" ({before}{counted(node.pods_after, 'pod')})"
        names.append((node.change, Name(node.node, cells.NODES, after=after)))
    page.title("Nodes", node_hours_text(answer))
    page.table([(change, len(some), Names(tuple(some), most=_MAX_NAMES)) for change, some in by_key(names).items()])


def _write_parts(page: Page, answer: PlanAnswer, result: SimulationResult, parts: Collection[str]) -> None:
    if TIMELINE in parts:
        from podium.app.simulating.text import folded, write_timeline

        write_timeline(page, folded(result.events))
    if PODS in parts:
        labels = {workload.workload for workload in answer.impact}
        pods = [pod for pod in result.pods if pod["workload"] in labels]
        page.title("Pods", f"{counted(len(pods), 'pod')} of these workloads")
        rows = [
            (
                Name(pod["pod"], cells.PODS),
                pod["state"],
                Name(pod["node"] or "", cells.NODES),
                f"{pod['priority']}",
                pod["evictedBy"] or pod["disruption"] or "",
            )
            for pod in pods
        ]
        page.table(rows, ("pod", "state", "node", "priority", "why it ended"), right=(3,))
    if NODES in parts:
        page.title("All nodes", "pods before and at the end, without those of DaemonSets")
        nodes = [
            (Name(node.node, cells.NODES), node.pods_before, node.pods, ", ".join(node.marks)) for node in result.nodes
        ]
        page.table(nodes, ("node", "before", "after", ""))


MOST_BYTES = 60_000
"""The most bytes of Markdown; GitHub refuses comments of more than 65,536 characters."""

# The most bytes of the lines about workloads and of the caveats, and the most characters of the headline.
_MOST_OF_WORKLOADS, _MOST_OF_CAVEATS, _LONGEST_HEADLINE = 20_000, 6_000, 2_000
# Findings that are only worth a warning: the workloads are back at the end.
_WARNINGS = ("preempt", "evict", "budget", "short")
_FOLDED = "\n<details><summary>The whole answer</summary>\n\n```text\n{}\n```\n\n</details>\n"
_CUT = "(cut: podium plan -o text prints the whole answer)"


def plan_markdown(answer: PlanAnswer) -> str:
    """Return the plan for a pull request: the sums, a line for each affected workload, and the text folded away."""
    headline = _escaped(answer.headline[:_LONGEST_HEADLINE])
    lines = [f"**{_escaped(answer.summary)}**", "", headline, ""] if answer.summary else [f"**{headline}**", ""]
    if answer.impact:
        shown = _fitting(list(map(diff_line, answer.impact)), _MOST_OF_WORKLOADS)
        left = len(answer.impact) - len(shown)
        lines += ["```diff", *shown, *[f"  and {counted(left, 'more workload')}"] * bool(left), "```", ""]
    if anyway_text(answer):
        lines += [f"Not because of this change: {_escaped(anyway_text(answer))}.", ""]
    lines += _fitting([f"- {_escaped(caveat.message)}" for caveat in answer.caveats], _MOST_OF_CAVEATS)
    whole = "\n".join(lines) + "\n"
    text = answer.text.rstrip().replace("```", "'''").split("\n")
    shown = _fitting(text, MOST_BYTES - len((whole + _FOLDED + _CUT).encode()))
    return whole + _FOLDED.format("\n".join(shown if len(shown) == len(text) else [*shown, _CUT]))


def _fitting(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines that have at most so many bytes together."""
    sizes = accumulate(len(line.encode()) + 1 for line in lines)
    return [line for line, size in zip(lines, sizes, strict=True) if size <= most]


def workflow_commands(answer: PlanAnswer, documents: Iterable[Document], file: str) -> Iterator[str]:
    """Return a GitHub workflow command for each finding, on the file of ``documents`` that the finding is about.

    A finding about other objects is on ``file``, "" for none.
    """
    sources = {label_of(found.object): found.source for found in documents if found.object is not None}
    yield f"::notice title=podium plan {_property(answer.question)}::{_data(answer.summary or answer.headline)}"
    for finding in answer.findings:
        level = "warning" if finding.code in _WARNINGS else "error"
        found = next((sources[subject] for subject in finding.subjects if subject in sources), file)
        where = f"file={_property(found)}," if found else ""
        yield f"::{level} {where}title=podium {_property(finding.code)}::{_data(finding.message)}"


def diff_line(impact: WorkloadImpact) -> str:
    """Return a line that a diff colors: the workload's sign, its name, and what differs."""
    counts = [
        (impact.ready_after - impact.ready_without_plan, "more ready"),
        (impact.missing, "missing at the end"),
        (impact.stuck, f"of a rollout {agreeing(impact.stuck, 'waits')} for a node at the end"),
        *((number, f"disrupted by {cause}") for cause, number in impact.disruptions.items()),
    ]
    what = [f"{number:,} {said}" for number, said in counts if number > 0]
    lasts = f"short for {lasting_text(impact)}" if impact.short_seconds > 0 else ""
    what += filter(None, (lasts, *_held_texts(impact), impact.why if impact.missing or impact.stuck else ""))
    if not what:
        times = (("short", impact.short_seconds), ("waits", impact.pending_seconds))
        what = [f"{said} for {_duration_text(abs(by))} {'less' if by < 0 else 'longer'}" for said, by in times if by]
    return f"{_sign(impact)} {impact.workload}: {', '.join(what) or f'{impact.ready_after:,} ready'}"


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>#|~" else letter for letter in text)


def _data(text: str) -> str:
    """Return the message of a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Return the value of a property of a workflow command."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
