"""A gang's preemption, for people: the ways out side by side, and the victims on each node."""

from __future__ import annotations

from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, counted, names_of
from podium.app.explaining.preemption_text import HEADINGS, cost_text
from podium.cluster.pods import PodRecord
from podium.decide.preempting.gang.gang_plan import GangPlan, Way

_MOST_WAYS = 5
_MOST_VICTIMS = 20


def write_gang_plan(page: Page, plan: GangPlan, chosen: Way) -> None:
    """Write the way out that is taken and those beside it, and whom it takes on each node."""
    page.title("Preemption", _decision(plan, chosen))
    if not chosen.victims:
        return
    ways = (chosen, *plan.alternatives)
    has_domains = any(way.domain for way in ways)
    headings = [criterion.heading for criterion in plan.criteria] or HEADINGS
    head = ["", *(["domain"] if has_domains else []), *headings, ""]
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in head]]
    rows += [_way_row(plan, way, has_domains=has_domains) for way in ways[:_MOST_WAYS]]
    page.columns(rows, indent=2, right=tuple(range(1 + has_domains, len(head) - 1)))
    if len(ways) > _MOST_WAYS:
        page.line(Cell(f"and {len(ways) - _MOST_WAYS:,} more", "dim"), indent=2)
    _write_victims(page, chosen)


def _decision(plan: GangPlan, chosen: Way) -> str:
    if not chosen.victims:
        return "nobody has to go: all that are needed fit together in another way"
    members = counted(len(chosen.placements), "member")
    beside = f"; decided by the {plan.criterion}" if plan.criterion else ""
    return f"one plan for {members}{f' in {chosen.domain}' if chosen.domain else ''}{beside}"


def _way_row(plan: GangPlan, way: Way, *, has_domains: bool) -> list[Part]:
    is_chosen = way is plan.chosen
    if plan.criteria:
        costs = [cost_text(criterion, value) for criterion, value in zip(plan.criteria, way.cost, strict=True)]
    else:
        highest = max(victim.priority for victim in way.victims)
        costs = [str(way.budget_violations), str(highest), str(len(way.victims))]
    style = "good" if is_chosen else ""
    names = names_of([victim.key for victim in way.victims], PODS, "dim", most=1)
    domain: list[Part] = [Cell(way.domain, style)] if has_domains else []
    return [Cell("→" if is_chosen else "", style), *domain, *costs, names]


def _write_victims(page: Page, way: Way) -> None:
    by_node = way.victims_by_node
    page.title("Victims", f"{counted(len(way.victims), 'pod')} on {counted(len(by_node), 'node')}")
    comes_to: dict[str, list[str]] = {}
    for member, node_name in way.placements:
        comes_to.setdefault(node_name, []).append(member.key)
    rows = [
        _victim_row(name, victim, comes_to.get(name, []), way.depends_on.get(victim.uid, ""))
        for name, victims in by_node.items()
        for victim in victims
    ]
    page.columns(rows[:_MOST_VICTIMS], indent=2)
    if len(rows) > _MOST_VICTIMS:
        page.line(Cell(f"and {len(rows) - _MOST_VICTIMS:,} more", "dim"), indent=2)


def _victim_row(node_name: str, victim: PodRecord, members: list[str], other: str) -> list[Part]:
    """The victim on its node, and for whom it makes room there, or with which ``other`` victim it goes."""
    group = victim.pod_class.pod_group
    if other:
        why = f"requires to be near {other}"
    elif members:
        why = f"for {members[0]}" + (f" and {len(members) - 1:,} more" if len(members) > 1 else "")
    else:
        why = f"goes with its group, {group}" if group else "is in the way elsewhere"
    return [
        Name(node_name, NODES),
        Name(victim.key, PODS, "bad"),
        f"priority {victim.priority}",
        Cell(victim.pod_class.qos, "dim"),
        why + (" (terminating already)" if victim.terminating else ""),
    ]
