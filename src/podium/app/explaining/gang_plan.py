"""What a gang's preemption comes to, as plain values: the ways out, whom each takes and at what cost."""

from __future__ import annotations

from typing import Any

from podium.api.basis import Caveat
from podium.decide.gangs.group_placement import GroupPlacement
from podium.decide.preempting.gang.gang_plan import GangPlan, Way


def gang_plan_values(plan: GangPlan) -> dict[str, Any]:
    """The plan as plain values; ``ways`` begins with the one that is chosen."""
    ways = () if plan.chosen is None else (plan.chosen, *plan.alternatives)
    found: dict[str, Any] = {"eligible": plan.eligible, "ways": [_way(plan, way) for way in ways]}
    if plan.criterion:
        found["decidedBy"] = plan.criterion
    if plan.reason:
        found["reason"] = plan.reason
    if plan.put_off is not None:
        found["putOff"] = plan.put_off.to_dict()
    if plan.search is not None:
        found["search"] = {
            "steps": plan.search.steps,
            "maxSteps": plan.search.most_steps,
            "domainsLeftOut": plan.search.left_out,
            "isComplete": plan.search.is_complete,
        }
    return found


def gang_caveat(plan: GangPlan) -> Caveat | None:
    """What was not looked at; None where everything was."""
    search = plan.search
    if search is None or search.is_complete or (plan.chosen is None and not plan.message):
        return None
    what = f"{search.left_out:,} domains were not looked at" if search.left_out else "there may be cheaper ones"
    if search.steps >= search.most_steps:
        return Caveat(
            "search-cut",
            f"the search for a gang's victims was cut at maxSearchSteps, {search.most_steps:,}: {what}",
            search.left_out,
        )
    message = f"of the victims that a gang may take not all sets were tried: {what}"
    return Caveat("search-cut", message, search.left_out)


def arrangement_caveat(placement: GroupPlacement) -> Caveat | None:
    """That no arrangement of a group was found, and not all were tried; None where that is not so."""
    if not placement.is_cut:
        return None
    return Caveat("search-cut", "the search for another arrangement of a gang was cut at maxArrangementSteps", 1)


def _way(plan: GangPlan, way: Way) -> dict[str, Any]:
    found: dict[str, Any] = {
        "members": {member.key: node_name for member, node_name in way.placements},
        "victims": {name: [victim.key for victim in pods] for name, pods in way.victims_by_node.items()},
        "pdbViolations": way.budget_violations,
    }
    if way.domain:
        found["domain"] = way.domain
    if way.depends_on:
        found["dependsOn"] = {
            victim.key: way.depends_on[victim.uid] for victim in way.victims if victim.uid in way.depends_on
        }
    if plan.criteria and way.cost:
        costs = zip(plan.criteria, way.cost, strict=True)
        found["costs"] = {criterion.name: criterion.shown(value) for criterion, value in costs}
    return found
