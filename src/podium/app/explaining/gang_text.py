"""The group of a pod, for people."""

from __future__ import annotations

from podium.app.console.cells import NODES, counted
from podium.app.console.page import Cell, Name, Page, Part
from podium.app.explaining.gang import GangDecision
from podium.app.explaining.gang_plan_text import write_gang_plan
from podium.decide.gangs.group_placement import MemberPlacement
from podium.machines.scheduling.fit_error import fit_error

_MOST_ROWS = 10


def write_gang(page: Page, decision: GangDecision) -> None:
    """Write how many of the group are there, where each would go, what lacks, and who would have to go."""
    placement = decision.placement
    page.title("Gang", f"{decision.key} {decision.headline}")
    there = f"{counted(decision.there, 'pod')}, {decision.placed:,} of them on nodes"
    page.paragraph(f"{there}; {decision.least:,} go together or none", indent=2)
    if placement.domains:
        shown = f"all in one of {placement.domains:,} domains; shown is {placement.domain}"
        page.paragraph(Cell(shown, "dim"), indent=2)
    if placement.is_arranged:
        page.paragraph(Cell("one by one too few fit; another arrangement was found", "dim"), indent=2)
    rows = [_row(decision, member) for member in placement.members[:_MOST_ROWS]]
    page.columns(rows, indent=2)
    further = len(placement.members) - len(rows)
    if further:
        page.paragraph(Cell(f"and {further:,} more", "dim"), indent=2)
    if decision.plan is not None and decision.plan.chosen is not None:
        write_gang_plan(page, decision.plan, decision.plan.chosen)
    elif decision.way_out is not None and decision.way_out.status.message:
        page.paragraph(decision.way_out.status.message, indent=2, hanging=2)


def _row(decision: GangDecision, member: MemberPlacement) -> list[Part]:
    pod, node_name = member.pod.key, decision.node_of(member.pod.uid)
    if node_name:
        return [pod, Name(node_name, NODES, "good"), ""]
    if member.fits:
        return [pod, "", Cell(f"would fit on {member.node_name}", "warn")]
    if not member.reserved.is_success:
        return [pod, "", Cell(member.reserved.message, "bad")]
    return [pod, "", Cell(fit_error(member.placement, decision.placement.node_count, ""), "bad")]
