"""Preemption as text: candidates with their victims, nodes that are no candidates, and plans for gangs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podium.api.quantity import format_quantity
from podium.app.console.cells import NODES, PODS, by_key
from podium.app.console.page import Cell, Name, Page, Part, counted, fitted, listed, names_of
from podium.app.explaining import explanation, gang, remedies
from podium.app.explaining.obstacles import RESOURCES, NodeObstacles
from podium.cluster.cluster import Cluster
from podium.cluster.matchers import SelectedByTerms
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.pod_reports import fit_error
from podium.decide.preempting.criteria import CostColumn
from podium.decide.preempting.preemption_plan import GangCandidate, GangPlan, Plan, PreemptionCandidate, PreemptionPlan
from podium.framework.plugin import PostFilterResult
from podium.framework.verdicts import Status
from podium.plugins.pod_topology_spread import own_constraints

_MAX_NODES = 5
_MAX_VICTIMS = 20
_FITS = "fits"
_HOUR = 3_600
# The columns of a candidate without stated costs.
_HEADINGS = ("violations", "priority", "victims")


def write_by_reason(page: Page, statuses: Mapping[str, Status]) -> None:
    """Write a row for each message: the number of nodes, the message, and their names; nodes that fit come first."""
    alike = by_key((_FITS if status.is_success else status.message, node) for node, status in sorted(statuses.items()))
    rows = [
        (counted(len(nodes), "node"), Cell(reason, "good" if reason == _FITS else ""), names_of(nodes, NODES, "dim"))
        for reason, nodes in sorted(alike.items(), key=lambda item: (item[0] != _FITS, -len(item[1]), item[0]))
    ]
    page.columns(rows, indent=2, right=(0,))


def write_preemption(
    page: Page, decision: explanation.Explanation, plan: PreemptionPlan, obstacles: Mapping[str, NodeObstacles]
) -> None:
    """Write the candidates, the victims on the chosen node, and the nodes where preemption does not help."""
    if plan.chosen is None:
        page.title("Preemption", _no_way(decision, plan))
    else:
        name = plan.chosen.node_name
        page.title("Preemption", _decision(page, plan))
        order = sorted(plan.candidates.values(), key=lambda each: (each.cost, each.node_name != name, each.node_name))
        places: list[Part] = [Name(each.node_name, NODES, "good" if each.node_name == name else "") for each in order]
        _write_ways(page, plan, order, "node", places)
        _write_victims(page, decision, plan.chosen, obstacles.get(name))
    if plan.rejected:
        page.title("Not candidates")
        write_by_reason(page, plan.rejected)


def write_proposal(page: Page, proposal: PostFilterResult) -> None:
    """Write the answer of each PostFilter plugin, and the victims that one of them proposes."""
    page.title("PostFilter", "the plugins in the scheduler's order")
    for answer in proposal.answers:
        message = answer.message or ("success" if answer.is_success else answer.code.value)
        page.paragraph(f"{answer.plugin}  {message}", indent=2, hanging=2)
    if proposal.victims and not isinstance(proposal.plan, PreemptionPlan):
        page.title("Victims", f"that {proposal.status.plugin} proposes")
        rows = [_victim_cells(victim, Name(victim.node_name, NODES)) for victim in proposal.victims]
        page.table(rows, most=_MAX_VICTIMS)


def _no_way(decision: explanation.Explanation, plan: PreemptionPlan) -> str:
    """Return why no pod is preempted: because of a cap or of pods' policies, or because it would not help."""
    if plan.put_off is not None:
        return f"put off: {plan.put_off}"
    if plan.held_back is not None:
        return f"no way: {plan.held_back}"
    protected = [pod.key for pod in remedies.protected_pods(decision)]
    text = "no way: on no node would removing pods of lower priority be enough"
    if not protected:
        return text
    forbids = ", whose preemptionPolicy forbids it" if len(protected) > 1 else ": its policy forbids it"
    return f"{text}, without {listed(protected, 1)}{forbids}"


def _decision(page: Page, plan: PreemptionPlan) -> str:
    parts = ["of pods of its own priority, for fairer shares"] if plan.is_exchange else []
    if len(plan.candidates) == 1:
        return "; ".join([*parts, "the only candidate"])
    parts.append(counted(len(plan.candidates), "candidate"))
    if plan.criterion:
        parts.append(f"decided by the {plan.criterion}")
    if len(plan.selected) > 1:
        parts.append(f"{len(plan.selected):,} are equal: {fitted(plan.selected, page.names_width)}")
    return "; ".join(parts)


def costs_of(plan: Plan, way: PreemptionCandidate | GangCandidate) -> list[str]:
    """Return the cost of a way to preempt, a text for each heading."""
    if not plan.criteria:
        return [str(way.budget_violations), str(max(victim.priority for victim in way.victims)), str(len(way.victims))]
    return [_cost_text(criterion, value) for criterion, value in zip(plan.criteria, way.cost, strict=True)]


def _write_ways(
    page: Page,
    plan: Plan,
    ways: Sequence[PreemptionCandidate | GangCandidate],
    place: str = "",
    places: Sequence[Part] = (),
) -> None:
    """Write the first ways to preempt with their costs, the chosen one first, and their ``places`` if they have any."""
    headings = [criterion.heading for criterion in plan.criteria] or _HEADINGS
    head = ["", *([place] if places else []), *headings, ""]
    rows: list[list[Part]] = [
        [
            Cell("" if number else "→", "" if number else "good"),
            *places[number : number + 1],
            *costs_of(plan, way),
            names_of([victim.key for victim in way.victims], PODS, "dim", most=1),
        ]
        for number, way in enumerate(ways)
    ]
    page.table(rows, head, most=_MAX_NODES, right=range(1 + bool(places), len(head) - 1))


def _cost_text(criterion: CostColumn, value: int) -> str:
    found = criterion.shown(value)
    if found is None:
        return "none"
    if criterion.unit == "node-seconds" and isinstance(found, float):
        return f"{found / _HOUR:,.1f} node-hours" if found >= _HOUR else f"{found:,.0f} node-seconds"
    number = found if isinstance(found, str) else f"{found:,.1f}" if isinstance(found, float) else f"{found:,}"
    return f"{number} {criterion.unit}" if len(criterion.unit) > 1 else f"{number}{criterion.unit}"


def _write_victims(
    page: Page, decision: explanation.Explanation, chosen: PreemptionCandidate, obstacles: NodeObstacles | None
) -> None:
    nodes = {victim.node_name for victim in chosen.victims}
    where = f"on {chosen.node_name}" if nodes == {chosen.node_name} else f"for {chosen.node_name}"
    page.title("Victims", f"{where}, the most important first")
    rows = []
    for victim in chosen.victims:
        reason = chosen.reasons.get(victim.uid, "")
        facts = []
        if victim.node_name == chosen.node_name:
            facts = victim_facts(decision.runner.cluster, decision.record, victim, obstacles)
            reason = reason if reason.startswith("requires") else ""
        on_node = [Name(victim.node_name, NODES)] if chosen.elsewhere else []
        rows.append(_victim_cells(victim, *on_node, why=", ".join(filter(None, (*facts, reason)))))
    page.table(rows, most=_MAX_VICTIMS)
    budgets = decision.runner.cluster.budgets.covering(victim.pod_class for victim in chosen.victims)
    for budget in budgets:
        allowed = f"allows {counted(budget.disruptions_allowed, 'disruption')}"
        covered = sum(budget.covers(victim.pod_class) for victim in chosen.victims)
        page.paragraph(f"budget {budget.key} {allowed}, and covers {counted(covered, 'victim')}", indent=2, hanging=2)


def _victim_cells(victim: PodRecord, *where: Part, why: str = "") -> list[Part]:
    """Return the victim, its node if that is not known, and why it is one."""
    ending = " (terminating already)" if victim.terminating else ""
    pod = (Name(victim.key, PODS, "bad"), *where, f"priority {victim.priority}", Cell(victim.pod_class.qos, "dim"))
    return [*pod, why + ending]


def victim_facts(cluster: Cluster, pod: PodRecord, victim: PodRecord, obstacles: NodeObstacles | None) -> list[str]:
    """Return the victim's resources that the pod needs on its node, in words; [] if no known filter shows any."""
    refusing = {status.plugin: status for status in obstacles.refusals} if obstacles else {}
    names = cluster.nodes.resources
    short = {shortage.resource for shortage in obstacles.shortages} if obstacles else set()
    if obstacles and obstacles.nominated:
        short |= {names[index] for index in pod.pod_class.requests}
    freed = ((names[index], amount) for index, amount in sorted(victim.pod_class.requests.items()))
    found = [f"frees {format_quantity(amount, name)} {name}" for name, amount in freed if name in short]
    if RESOURCES in refusing and "Too many pods" in refusing[RESOURCES].reasons:
        found.append("frees a place")
    if "NodePorts" in refusing:
        found += [
            f"holds port {held.port}/{held.protocol}"
            for held in victim.pod_class.host_ports
            if any(held.conflicts(wanted) for wanted in pod.pod_class.host_ports)
        ]

    def avoids(one: PodRecord, other: PodRecord) -> bool:
        terms = one.pod_class.required_anti_affinity if "InterPodAffinity" in refusing else ()
        return any(SelectedByTerms((term,)).matches(other.pod_class, cluster.namespaces) for term in terms)

    if avoids(pod, victim):
        found.append("is one that its anti-affinity avoids")
    if avoids(victim, pod):
        found.append("avoids it by anti-affinity")
    hard = own_constraints(pod.pod_class, "DoNotSchedule").constraints if "PodTopologySpread" in refusing else ()
    if any(constraint.predicate.matches(victim.pod_class, cluster.namespaces) for constraint in hard):
        found.append("counts for its spread")
    return found


def write_gang(page: Page, decision: gang.GangDecision) -> None:
    """Write the size of the group, the node of each member, what is missing, and the plan of its preemption."""
    placement = decision.placement
    page.title("Gang", f"{decision.key} {decision.headline}")
    there = f"{counted(decision.there, 'pod')}, {decision.placed:,} of them on nodes"
    page.paragraph(f"{there}; at least {decision.least:,} are placed together or none", indent=2)
    if placement.domains:
        page.paragraph(Cell(f"all in one of {placement.domains:,} domains, here {placement.domain}", "dim"), indent=2)
    if placement.is_arranged:
        page.paragraph(Cell("one by one too few fit; another arrangement was found", "dim"), indent=2)
    rows: list[tuple[Part, ...]] = []
    for member in placement.members:
        node_name = decision.node_of(member.pod.uid)
        if node_name:
            rows.append((member.pod.key, Name(node_name, NODES, "good"), ""))
        elif member.fits:
            rows.append((member.pod.key, "", Cell(f"would fit on {member.node_name}", "warn")))
        else:
            reserved = "" if member.reserved.is_success else member.reserved.message
            why = reserved or fit_error(member.placement, placement.node_count, "")
            rows.append((member.pod.key, "", Cell(why, "bad")))
    page.table(rows, most=10)
    if decision.plan is not None and decision.plan.chosen is not None:
        _write_gang_plan(page, decision.plan, decision.plan.chosen)
    elif decision.way_out is not None and decision.way_out.status.message:
        page.paragraph(decision.way_out.status.message, indent=2, hanging=2)


def _write_gang_plan(page: Page, plan: GangPlan, chosen: GangCandidate) -> None:
    """Write the chosen alternative and the others, and the victims on each node."""
    if not chosen.victims:
        page.title("Preemption", "no victims: the members that are needed fit together in another arrangement")
        return
    members = counted(len(chosen.placements), "member")
    decided = f"; decided by the {plan.criterion}" if plan.criterion else ""
    page.title("Preemption", f"one plan for {members}{f' in {chosen.domain}' if chosen.domain else ''}{decided}")
    ways = (chosen, *plan.alternatives)
    domains: list[Part] = [Cell(way.domain, "good" if way is chosen else "") for way in ways]
    _write_ways(page, plan, ways, "domain", domains if any(way.domain for way in ways) else ())
    by_node = chosen.victims_by_node
    page.title("Victims", f"{counted(len(chosen.victims), 'pod')} on {counted(len(by_node), 'node')}")
    comes_to = by_key((node_name, member.key) for member, node_name in chosen.placements)
    rows: list[list[Part]] = []
    for name, victim in ((name, victim) for name, victims in by_node.items() for victim in victims):
        group, other = victim.pod_class.pod_group, chosen.depends_on.get(victim.uid, "")
        why = f"goes with its group, {group}" if group else "is in the way elsewhere"
        if other:
            why = f"requires to be near {other}"
        elif name in comes_to:
            why = f"for {listed(comes_to[name], 1)}"
        rows.append([Name(name, NODES), *_victim_cells(victim, why=why)])
    page.table(rows, most=_MAX_VICTIMS)
