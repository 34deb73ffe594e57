"""Pictures of runs: one, or those of a sweep with some of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.api.errors import escape
from podium.api.times import format_duration
from podium.app.console.cells import text_of
from podium.app.console.page import counted
from podium.app.planning.answer import ANYWAY, PlanAnswer, Section, duration_text
from podium.app.planning.impact import NodeImpact, PlanFinding, WorkloadImpact
from podium.app.reporting.picture import Picture, Runs, Table, told
from podium.app.reporting.story import story_of
from podium.app.sweeping.sweep import Combination, Played, caveats_of
from podium.app.sweeping.sweep_result import Row, rows_of
from podium.sim.results.result import Result

_LONGEST = 500
_NOT_FIGURES = frozenset(("seed", "error"))


@dataclass(frozen=True, slots=True)
class SweepAnswer:
    """The runs of a sweep, and by the words for their settings the results of some that are to be seen."""

    played: Sequence[Played]
    results: Sequence[tuple[str, Result]]


def picture_of_result(result: Result) -> Picture:
    """A run."""
    summary = result.summary
    waiting = f"{counted(summary['pods']['pending'], 'pod')} waiting at the end"
    done = f"{summary['bindings']:,} bound, {summary['preempted']:,} preempted, {waiting}"
    return Picture(
        command="simulate",
        headline=f"{format_duration(round(summary['end'] * 10**9))}: {done}",
        facts=untold(result),
        stories=[story_of(result, "")],
        more=summary_tables(result),
        caveats=told(result.caveats),
    )


def untold(result: Result) -> list[str]:
    """What is to be said of the pods of which it is not told why they are where they are."""
    left_out = result.placements_left_out
    if not left_out:
        return []
    told = f"why pods are where they are is told of the first {counted(len(result.placements), 'placement')}"
    return [f"{told}; of {counted(left_out, 'later attempt')} it was not taken down"]


def picture_of_sweep(answer: SweepAnswer) -> Picture:
    """The figures of all runs, and some of them side by side."""
    played = answer.played
    settings = list(dict.fromkeys(in_words(run.combination) for run in played))
    rows = rows_of(played)
    return Picture(
        command="sweep",
        headline=f"{counted(len(played), 'run')} of {counted(len(settings), 'combination')} of settings",
        tables=[_table(played, rows)],
        runs=_runs(played, rows, settings),
        stories=[story_of(result, name) for name, result in answer.results],
        caveats=told(caveats_of(played)),
    )


def in_words(combination: Combination) -> str:
    """The settings of a run, in a line."""
    text = ", ".join(f"{name}={value}" for name, value in combination.items())
    return escape(text, _LONGEST) or "as given"


def _table(played: Sequence[Played], rows: Sequence[Row]) -> Table:
    """A row for each run: its settings, its seed, and what differs."""
    names = list(played[0].combination)
    kept = [name for name in rows[0] if name in (*names, "seed") or len({row[name] for row in rows}) > 1]
    return Table(
        "Runs",
        kept,
        [[_cell(row[name]) for name in kept] for row in rows],
        note="what differs between them" if len(rows) > 1 else "",
    )


def _cell(value: str | float | None) -> str | float | None:
    return escape(value, _LONGEST) if isinstance(value, str) else value


def _runs(played: Sequence[Played], rows: Sequence[Row], settings: list[str]) -> Runs:
    varied = set(played[0].combination)
    figures = [
        name
        for name in rows[0]
        if name not in varied | _NOT_FIGURES and any(isinstance(row[name], int | float) for row in rows)
    ]
    differing = [name for name in figures if len({row[name] for row in rows}) > 1]
    return Runs(
        settings,
        differing,
        [settings.index(in_words(run.combination)) for run in played],
        [run.seed for run in played],
        [[_figure(row[name]) for name in differing] for row in rows],
    )


def _figure(value: str | float | None) -> float | None:
    return None if isinstance(value, str) else value


_TIMES = ("mean", "p50", "p95", "max")


def summary_tables(result: Result) -> list[Table]:
    """The tables that there is something to put into."""
    found = (_waits(result), _requested(result), _drains(result), _short(result), _recorded(result))
    return [table for table in found if table.rows]


def _waits(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = [
        [waits["priority"], waits["count"], *(_duration(waits[name]) for name in _TIMES)]
        for waits in result.summary["waiting"]
    ]
    headings = ["priority", "pods", "mean", "median", "95%", "longest"]
    return Table("Waits", headings, rows, note="for a node, of the pods that got one")


def _requested(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = [
        [name, f"{shares['average']:.1%}", f"{shares['final']:.1%}"] for name, shares in result.summary["use"].items()
    ]
    return Table("Requested", ["", "on average", "at the end"], rows, note="of what the nodes offer")


def _drains(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = [
        [drain["node"], drain["state"], sum(pod["state"] == "gone" for pod in drain["pods"]), _text(drain["message"])]
        for drain in result.summary["drains"]
    ]
    subjects = [f"node {drain['node']}" for drain in result.summary["drains"]]
    return Table("Drains", ["node", "state", "gone", ""], rows, subjects=subjects)


def _short(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = [
        [_text(short["workload"]), short["wants"], short["has"], _text(short["reason"])]
        for short in result.summary["short"]
    ]
    return Table("Short of pods", ["workload", "wants", "has", "why"], rows)


def _recorded(result: Result) -> Table:
    rows: list[list[str | int | float | None]] = []
    if result.recorded is not None:
        pairs = (("recorded", result.recorded.recorded), ("simulated", result.recorded.simulated))
        rows = [[name, sums.bindings, sums.preempted, sums.evicted] for name, sums in pairs]
    same = "" if result.recorded is None else f"{result.recorded.same:,} pods on the same node"
    return Table("Recorded and simulated", ["", "bound", "preempted", "evicted"], rows, note=same)


def _text(text: str | None) -> str:
    return escape(text or "", _LONGEST)


def _duration(seconds: float) -> str:
    return format_duration(round(seconds * 10**9))


_IMPACT = ("workload", "before", "lowest", "after", "wanted", "short for", "waits", "disrupted", "held", "why")
_NODES = ("node", "change", "pods before", "pods after")
_POD = "Pod "


def picture_of_plan(answer: PlanAnswer) -> Picture:
    """A plan, and what would happen without it."""
    runs = zip(answer.runs, (answer.baseline, answer.result), strict=True)
    return Picture(
        command=f"plan {answer.question}",
        headline=escape(answer.headline, _LONGEST),
        facts=_facts(answer),
        tables=[*_sections(answer.sections), *_impact(answer.impact)],
        more=[*_nodes(answer.nodes), *_findings(answer.findings)],
        stories=[story_of(result, escape(name, _LONGEST)) for name, result in runs if result is not None],
        caveats=told(answer.caveats),
    )


def _facts(answer: PlanAnswer) -> list[str]:
    """What happens without the plan, too, and what it changes in node-hours."""
    found = [f"{number:,} {ANYWAY[what]}" for what, number in answer.anyway.items() if number]
    facts = [f"{answer.otherwise}, too: {', '.join(found)}"] if found else []
    if answer.node_hours is not None and answer.node_hours[0] != answer.node_hours[1]:
        facts.append(f"node-hours {answer.node_hours[0]:g}, {answer.node_hours[1]:g} {answer.otherwise}")
    return facts if answer.result is None else [*facts, *untold(answer.result)]


def _findings(findings: Sequence[PlanFinding]) -> list[Table]:
    rows: list[list[str | int | float | None]] = [
        [finding.code, escape(finding.message, _LONGEST)] for finding in findings
    ]
    return [Table("Found", ["", "what"], rows, note="as --fail-on names it")] if rows else []


def _sections(sections: Sequence[Section]) -> list[Table]:
    return [_section(section) for section in sections if section.rows]


def _section(section: Section) -> Table:
    rows = [[escape(text_of(cell), _LONGEST) for cell in row] for row in section.rows]
    widest = max((len(row) for row in rows), default=0)
    headings = list(section.headings) or [""] * widest
    return Table(section.title, headings, [[*row, *[""] * (widest - len(row))] for row in rows], note=section.rest)


def _impact(impact: Sequence[WorkloadImpact]) -> list[Table]:
    """The workloads to which something happens, the hardest hit first."""
    if not impact:
        return []
    rows = [_impact_row(workload) for workload in impact]
    kept = [column for column in range(len(_IMPACT)) if column < 5 or any(row[column] for row in rows)]
    return [
        Table(
            "Impact",
            [_IMPACT[column] for column in kept],
            [[row[column] for column in kept] for row in rows],
            note=f"on {len(impact):,} workload{'' if len(impact) == 1 else 's'}: ready pods, and what they go through",
            subjects=[_subject(workload.workload) for workload in impact],
        )
    ]


def _impact_row(workload: WorkloadImpact) -> list[str | int | float | None]:
    return [
        escape(workload.workload, _LONGEST),
        "new" if workload.is_new else workload.ready_before,
        "" if workload.is_new else workload.lowest,
        workload.ready_after,
        workload.wanted,
        duration_text(workload.short_seconds) + (" and on" if workload.short_lasts else ""),
        duration_text(workload.pending_seconds),
        ", ".join(f"{number:,} by {cause}" for cause, number in workload.disruptions.items()),
        "; ".join(f"by budget {held.budget} for {duration_text(held.seconds)}" for held in workload.held),
        escape(workload.why, _LONGEST) if workload.missing else "",
    ]


def _subject(workload: str) -> str:
    """What a click on the row selects; a pod that nobody controls is a workload of its own."""
    label = escape(workload, _LONGEST)
    return f"pod {label.removeprefix(_POD)}" if label.startswith(_POD) else f"workload {label}"


def _nodes(nodes: Sequence[NodeImpact]) -> list[Table]:
    if not nodes:
        return []
    return [
        Table(
            "Nodes",
            list(_NODES),
            [[node.node, node.change, node.pods_before, node.pods_after] for node in nodes],
            subjects=[f"node {node.node}" for node in nodes],
        )
    ]
