"""An answer for people: its headline, the impact by workload, the nodes, what it rests on; the rest on request."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podium.api.times import format_duration
from podium.app.console import cells
from podium.app.console.basis_text import write_basis
from podium.app.console.page import Cell, Name, Names, Page, Part, counted, listed, names_of
from podium.app.planning.answer import NodeImpact, PlanAnswer, Section, WorkloadImpact
from podium.app.simulating.timeline import folded, write_timeline

_MOST_WORKLOADS = 20
_MOST_NODES = 12
_MOST_NAMES = 3
_HEADINGS = ("workload", "before", "lowest", "after", "wanted", "short for", "waits", "disrupted", "")
_POD_HEADINGS = ("pod", "state", "node", "priority", "why it ended")
_SECOND = 10**9

_REFUSALS = ("blocked", "timeout", "refused")
_DRAINS = "drains"

TIMELINE, PODS, NODES = "timeline", "pods", "nodes"
"""What is shown on request."""


def write_answer(page: Page, answer: PlanAnswer, shown: Collection[str] = ()) -> None:
    """Write the first screen, and the parts that are to be `shown`."""
    page.paragraph(Cell(answer.headline, "bold"), hanging=2)
    _write_sections(page, answer.sections)
    if answer.result is not None:
        _write_impact(page, answer.impact, answer.otherwise)
        _write_anyway(page, answer)
        _write_held(page, answer)
        _write_nodes(page, answer)
    if answer.result is not None and TIMELINE in shown:
        write_timeline(page, folded(answer.result.events))
    if answer.result is not None and PODS in shown:
        _write_pods(page, answer)
    if answer.result is not None and NODES in shown:
        _write_all_nodes(page, answer)
    _write_sections(page, [section for section in answer.further if section.name in shown])
    write_basis(page, answer.rests_on)


def _write_sections(page: Page, sections: Sequence[Section]) -> None:
    for section in sections:
        if not section.rows:
            continue
        page.title(section.title, section.rest)
        rows: list[list[Part]] = [[Cell(heading, "dim") for heading in section.headings]] if section.headings else []
        page.columns([*rows, *([*row] for row in section.rows)], indent=2)


def _write_impact(page: Page, impact: Sequence[WorkloadImpact], otherwise: str) -> None:
    if not impact:
        page.title("Impact", f"none: every workload fares as it would {otherwise}")
        return
    page.title("Impact", f"on {counted(len(impact), 'workload')}: ready pods, and what they go through")
    shown = impact[:_MOST_WORKLOADS]
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _HEADINGS]]
    rows += [_impact_row(workload) for workload in shown]
    kept = [
        column for column in range(len(_HEADINGS)) if column < 5 or any(cells.text_of(row[column]) for row in rows[1:])
    ]
    page.columns([[row[column] for column in kept] for row in rows], indent=2, right=range(1, 5))
    if len(impact) > len(shown):
        page.line(Cell(f"and {counted(len(impact) - len(shown), 'more workload')}", "dim"), indent=2)
    missing = [workload for workload in impact if workload.missing and workload.why]
    _write_reasons(page, "Not back", f"{_pods(sum(workload.missing for workload in impact))} short at the end", missing)
    stuck = [workload for workload in impact if workload.stuck]
    waiting = sum(workload.stuck for workload in stuck)
    verb = "waits" if waiting == 1 else "wait"
    _write_reasons(page, "Stuck", f"{_pods(waiting)} of a rollout {verb} for a node at the end", stuck)


def _write_reasons(page: Page, title: str, rest: str, workloads: Sequence[WorkloadImpact]) -> None:
    """Write each reason once, with the workloads for which it holds; nothing where there are none."""
    if not workloads:
        return
    page.title(title, rest)
    reasons: dict[str, list[str]] = {}
    for workload in workloads:
        reasons.setdefault(workload.why, []).append(workload.workload)
    rows = list(reasons.items())[:_MOST_WORKLOADS]
    page.columns([[names_of(names, cells.WORKLOADS, "warn", _MOST_NAMES), why] for why, names in rows], indent=2)


def _pods(number: int) -> str:
    return counted(number, "pod")


def _write_anyway(page: Page, answer: PlanAnswer) -> None:
    """Write what the impact leaves out because it happens without the plan, too."""
    words = {"pending": "waiting for a node at the end", "preempted": "preempted", "evicted": "evicted"}
    found = [f"{counted(number, 'pod')} {words[what]}" for what, number in answer.anyway.items() if number]
    if found:
        page.title("Anyway", f"{answer.otherwise}, too: {', '.join(found)}")


def _impact_row(workload: WorkloadImpact) -> list[Part]:
    disrupted = ", ".join(f"{number:,} by {cause}" for cause, number in workload.disruptions.items())
    style = "bad" if workload.missing else "warn" if workload.short_seconds > 0 else ""
    return [
        Name(workload.workload, cells.WORKLOADS, style),
        "new" if workload.is_new else f"{workload.ready_before:,}",
        "" if workload.is_new else f"{workload.lowest:,}",
        f"{workload.ready_after:,}",
        f"{workload.wanted:,}",
        _gained(workload.short_seconds) + (" and on" if workload.missing and workload.short_seconds else ""),
        _gained(workload.pending_seconds),
        disrupted,
        "; ".join(f"held by budget {held.budget} {_for(held.seconds)}" for held in workload.held),
    ]


def _write_held(page: Page, answer: PlanAnswer) -> None:
    """Write what was refused, and one line on the budgets that got less than they want."""
    # What drains have to say stands in a section of its own.
    is_told = any(section.name == _DRAINS for section in answer.sections)
    found = [] if is_told else [finding for finding in answer.findings if finding.code in _REFUSALS]
    low = [
        finding.subjects[0] for finding in answer.findings if finding.code == "budget" and len(finding.subjects) == 1
    ]
    held = [finding for finding in answer.findings if finding.code == "budget" and len(finding.subjects) > 1]
    if not found and not low and not held:
        return
    page.title("Held", "by budgets and refusals")
    for finding in [*held, *found][:_MOST_NODES]:
        page.paragraph(Cell(finding.message, "warn"), indent=2, hanging=2)
    if len(found) + len(held) > _MOST_NODES:
        page.line(Cell(f"and {len(found) + len(held) - _MOST_NODES:,} more", "dim"), indent=2)
    if low:
        verb = "has" if len(low) == 1 else "have"
        text = f"{counted(len(low), 'budget')} {verb} for some time fewer healthy pods than wanted: "
        page.paragraph(text + listed(low, _MOST_NAMES), indent=2, hanging=2)


def _write_nodes(page: Page, answer: PlanAnswer) -> None:
    if not answer.nodes:
        return
    by_change: dict[str, list[NodeImpact]] = {}
    for node in answer.nodes:
        by_change.setdefault(node.change, []).append(node)
    rest = ""
    if answer.node_hours is not None and answer.node_hours[0] != answer.node_hours[1]:
        rest = f"node-hours {answer.node_hours[0]:g}, {answer.node_hours[1]:g} {answer.otherwise}"
    page.title("Nodes", rest)
    rows: list[list[Part]] = [
        [
            change,
            f"{len(nodes):,}",
            Names(tuple(map(_node, nodes)), most=_MOST_NAMES),
        ]
        for change, nodes in by_change.items()
    ]
    page.columns(rows, indent=2, right=(1,))


def _node(node: NodeImpact) -> Name:
    before = "" if node.pods_before == node.pods_after else f"{node.pods_before:,} -> "
    return Name(node.node, cells.NODES, after=f" ({before}{counted(node.pods_after, 'pod')})")


def _write_pods(page: Page, answer: PlanAnswer) -> None:
    """Write the pods of the workloads with an impact."""
    if answer.result is None:
        return
    whose = {workload.workload for workload in answer.impact}
    pods = [pod for pod in answer.result.pods if pod["workload"] in whose]
    page.title("Pods", f"{counted(len(pods), 'pod')} of these workloads")
    rows: list[list[Part]] = [
        [Cell(heading, "dim") for heading in ("pod", "state", "node", "priority", "why it ended")]
    ]
    rows += [
        [
            Name(pod["pod"], cells.PODS),
            pod["state"],
            Name(pod["node"] or "", cells.NODES),
            f"{pod['priority']}",
            pod["evictedBy"] or pod["disruption"] or "",
        ]
        for pod in pods
    ]
    page.columns(rows, indent=2, right=(3,))


def _write_all_nodes(page: Page, answer: PlanAnswer) -> None:
    if answer.result is None:
        return
    page.title("All nodes", "pods before and at the end, without those of DaemonSets")
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in ("node", "before", "after", "")]]
    rows += [
        [Name(node.name, cells.NODES), f"{node.pods_before:,}", f"{node.pods:,}", ", ".join(node.marks)]
        for node in answer.result.nodes
    ]
    page.columns(rows, indent=2, right=(1, 2))


def _for(seconds: float) -> str:
    return f"for {format_duration(round(seconds * _SECOND))}"


def _gained(seconds: float) -> str:
    """A time that is more than without the plan; with a minus, one that is less."""
    if not seconds:
        return ""
    return ("-" if seconds < 0 else "") + format_duration(round(abs(seconds) * _SECOND))
