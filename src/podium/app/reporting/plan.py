"""The picture of a plan: its impact in words first, then the cluster without the plan beside that with it."""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.errors import escape
from podium.api.times import format_duration
from podium.app.console.cells import text_of
from podium.app.planning.answer import Finding, NodeImpact, PlanAnswer, Section, WorkloadImpact
from podium.app.reporting.picture import Picture, Table, told
from podium.app.reporting.runs import untold
from podium.app.reporting.story import story_of

_LONGEST = 2_000
_ANYWAY = {
    "pending": "waiting for a node at the end",
    "preempted": "preempted",
    "evicted": "evicted",
}
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
        rests_on=told(answer.rests_on),
    )


def _facts(answer: PlanAnswer) -> list[str]:
    """What happens without the plan, too, and what it changes in node-hours."""
    found = [f"{number:,} {_ANYWAY[what]}" for what, number in answer.anyway.items() if number]
    facts = [f"{answer.otherwise}, too: {', '.join(found)}"] if found else []
    if answer.node_hours is not None and answer.node_hours[0] != answer.node_hours[1]:
        facts.append(f"node-hours {answer.node_hours[0]:g}, {answer.node_hours[1]:g} {answer.otherwise}")
    return facts if answer.result is None else [*facts, *untold(answer.result)]


def _findings(findings: Sequence[Finding]) -> list[Table]:
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
        _lasting(workload.short_seconds),
        _lasting(workload.pending_seconds),
        ", ".join(f"{number:,} by {cause}" for cause, number in workload.disruptions.items()),
        "; ".join(f"by budget {held.budget} for {_lasting(held.seconds)}" for held in workload.held),
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


def _lasting(seconds: float) -> str:
    if not seconds:
        return ""
    return ("-" if seconds < 0 else "") + format_duration(round(abs(seconds) * 10**9))
