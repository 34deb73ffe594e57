"""A decision as text: the outcome, then its reasons, then the remedies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.api.avoid_list import gets_in_words
from podium.api.policy import PRIORITY_RULE_ANNOTATION
from podium.api.quantity import format_quantity
from podium.api.times import format_time
from podium.app.console.cells import NODES, PODS, counted
from podium.app.console.disruptions_text import write_disruptions
from podium.app.console.page import Cell, Name, Page, Part, fitted, listed
from podium.app.explaining.gang import gang_plugin
from podium.app.explaining.obstacles import find_obstacles
from podium.app.explaining.outcomes import write_outcomes
from podium.app.explaining.pod_decision import Claims, PlacedPodFacts, PodDecision
from podium.app.explaining.preemption_text import write_by_reason, write_gang, write_preemption, write_proposal
from podium.app.explaining.remedies import write_remedies
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.plugins.dynamic_resources.fitting import IN_MEMORY

_MAX_PREEMPTORS = 5
_MAX_VICTIMS = 3
_MAX_ROWS = 5
_STYLES = {
    "schedulable": "good",
    "preempts": "warn",
    "unschedulable": "bad",
    "not-eligible": "bad",
    "gated": "warn",
    "error": "bad",
    "placed": "good",
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[^A-Za-z0-9]+")


def write_explanation(page: Page, decision: PodDecision, *, all_nodes: bool = False, outcomes: bool = False) -> None:
    """Write the whole decision; with ``all_nodes`` a line for each node, with ``outcomes`` all equal outcomes."""
    _write_decision(page, decision, all_nodes=all_nodes)
    if outcomes:
        write_outcomes(page, decision)
    write_disruptions(page, decision.disruptions)
    page.caveats(decision.caveats)


def _write_decision(page: Page, decision: PodDecision, *, all_nodes: bool) -> None:
    page.paragraph(Cell(headline_of(decision), _STYLES[decision.outcome]), hanging=2)
    for fact in facts_of(decision):
        page.paragraph(fact, indent=2, hanging=2)
    if decision.gang is not None:
        write_gang(page, decision.gang)
    if decision.placed is not None:
        _write_placed(page, decision, decision.placed)
    before = _before_any_node(decision)
    if before is not None:
        title, plugin, message = before
        page.title(title, plugin)
        page.paragraph(message, indent=2)
        return
    _write_nodes(page, decision, all_nodes=all_nodes)
    devices = decision.devices
    claims = devices.claims.get(decision.pending_node)
    if claims:
        page.title("Devices", f"that its claims get on {decision.pending_node}")
        page.columns(_device_rows(claims), indent=2)
    elif devices.releases:
        page.title("Devices", "deallocated from a claim, which may get others elsewhere")
        for claim in devices.releases:
            page.paragraph(claim, indent=2)
    if decision.scores:
        _write_scores(page, decision)
    _write_preemption_and_remedies(page, decision)


def _before_any_node(decision: PodDecision) -> tuple[str, str, str] | None:
    """Return the rejection before nodes are examined: a heading, the plugin and its message; else None."""
    if decision.pre_enqueue is not None:
        return "Not in the queue", decision.pre_enqueue.plugin, decision.pre_enqueue.message
    if decision.error:
        return "A plugin failed", "", decision.error
    if decision.pre_filter is not None:
        return "Before any node was examined", decision.pre_filter.plugin, decision.pre_filter.message
    return None


def _write_preemption_and_remedies(page: Page, decision: PodDecision) -> None:
    """Write the preemption and the remedies for a pod without a feasible node."""
    if decision.pending_outcome == "schedulable" or not decision.nodes or decision.awaits_others:
        return
    with decision.as_decided():
        obstacles = find_obstacles(decision.runner, decision.record)
        if decision.plan is not None and decision.plan.eligible:
            write_preemption(page, decision, decision.plan, {obstacle.node: obstacle for obstacle in obstacles})
        if decision.proposal is not None:
            write_proposal(page, decision.proposal)
        write_remedies(page, decision, obstacles)


def headline_of(decision: PodDecision) -> str:
    """Return the outcome in one line."""
    pod, plan = decision.pod, decision.plan
    if decision.outcome == "placed":
        return f"{pod} is on node {decision.node}"
    if decision.outcome == "gated":
        return f"{pod} is gated: it is not attempted"
    if decision.outcome == "error":
        return f"{pod} is not scheduled: the attempt fails"
    if decision.gang is not None:
        if decision.outcome == "schedulable":
            return f"{decision.pod} fits with its gang: node {decision.node}"
        if decision.outcome == "preempts":
            return f"{decision.pod} preempts with its gang: it is to go to {decision.node}"
        if decision.awaits_others:
            return f"{decision.pod} would fit, and waits for its gang"
        return f"{decision.pod} is unschedulable"
    return _fits_or_not(decision, pod, plan)


def _fits_or_not(decision: PodDecision, pod: str, plan: PreemptionPlan | None) -> str:
    if decision.outcome == "schedulable":
        return f"{pod} fits: node {decision.node}"
    if decision.is_bound_early:
        return f"{pod} is bound to {decision.node} at once: its kubelet waits for pods that terminate there"
    if decision.victims:
        victims = [victim.key for victim in decision.victims]
        noun = "victim" if len(victims) == 1 else "victims"
        return f"{pod} preempts on {decision.node}: {noun} {listed(victims, _MAX_VICTIMS)}"
    if decision.proposal is not None and decision.node:
        return f"{pod} fits nowhere, and {decision.proposal.status.plugin} nominates it to {decision.node}"
    if plan is not None and plan.put_off is not None:
        return f"{pod} is unschedulable for now: {plan.put_off}"
    if plan is not None and plan.held_back is not None:
        return f"{pod} is unschedulable: {plan.held_back}"
    if plan is not None and not plan.eligible:
        return f"{pod} is unschedulable, and {plan.reason.removesuffix('.')}"
    return f"{pod} is unschedulable"


def facts_of(decision: PodDecision) -> list[str]:
    """Return facts about the pod itself."""
    with decision.as_decided():
        return list(_facts(decision))


def _facts(decision: PodDecision) -> Iterator[str]:
    pod, names = decision.record, decision.runner.cluster.nodes.resources
    asked = {names[index]: amount for index, amount in pod.pod_class.requests.items()}
    amounts = ", ".join(f"{format_quantity(amount, name)} {name}" for name, amount in sorted(asked.items()))
    rule = pod.annotations.get(PRIORITY_RULE_ANNOTATION)
    by_rule = f" by priority rule {rule}" if rule else ""
    yield f"priority {pod.priority}{by_rule}, {pod.pod_class.qos}, asks for {amounts or 'no resources'}"
    if pod.nominated_node_name:
        yield f"is nominated to {pod.nominated_node_name}"
    group = decision.runner.cluster.pod_groups.of(pod)
    if group is not None and decision.gang is None:
        there = counted(decision.runner.cluster.pod_groups.live(group.key), "pod")
        places = "are placed" if gang_plugin(decision.runner) else "would be placed, if its profile placed gangs,"
        least = f"{group.min_count:,} {places} together or none"
        yield f"belongs to PodGroup {group.key}, which has {there}; {least}"
    left = decision.runner.cluster.replacements.by_pod.get(pod.uid)
    if left is not None:
        gets = gets_in_words(left)
        yield f"replaces pod {left.evicted_pod.name}{gets and f', whose eviction left it {gets}'}"
    if pod.gates:
        yield f"is not attempted before its scheduling gates are removed: {', '.join(pod.gates)}"
    if pod.terminating:
        yield "is being deleted, and so not attempted"


def _write_nodes(page: Page, decision: PodDecision, *, all_nodes: bool) -> None:
    fitting = sum(status.is_success for status in decision.nodes.values())
    if not decision.nodes:
        page.title("Nodes", "there are none")
        return
    page.title("Nodes", f"{fitting:,} of {len(decision.nodes):,} can take it")
    if all_nodes:
        _write_each_node(page, decision)
    else:
        write_by_reason(page, decision.nodes)


def _write_each_node(page: Page, decision: PodDecision) -> None:
    totals = decision.totals
    order = sorted(decision.nodes, key=lambda name: (name not in totals, -totals.get(name, 0), name))
    rows: list[list[Part]] = []
    for name in order:
        status = decision.nodes[name]
        plugin, verdict = Cell(status.plugin, "dim"), Cell(status.message)
        if status.is_success:
            plugin, verdict = Cell(""), Cell("fits", "good")
        rows.append([Name(name, NODES), str(totals.get(name, "")), plugin, verdict])
    page.columns(rows, indent=2, right=(1,))


def _write_scores(page: Page, decision: PodDecision) -> None:
    taken = decision.pending_node
    totals, own = decision.totals, decision.node
    order = sorted(totals, key=lambda name: (name != taken, name != own, -totals[name], name))
    best = sorted(order[:_MAX_ROWS], key=lambda name: (-totals[name], name != taken, name))
    page.title("Scores", _scores_note(page, decision, len(best)))
    columns = list(decision.scores[taken])
    plain = [column for column in columns if len({scores[column] for scores in decision.scores.values()}) > 1]
    if len(best) > 1 and plain:
        same = [f"{column} {decision.scores[taken][column]}" for column in columns if column not in plain]
    else:
        plain, same = columns, []
    page.columns(_score_rows(decision, best, plain), indent=2, right=range(2, len(plain) + 3))
    if same:
        page.paragraph(Cell(f"the same on every node: {', '.join(same)}", "dim"), indent=2, hanging=2)


def _scores_note(page: Page, decision: PodDecision, shown: int) -> str:
    if len(decision.scores) == 1:
        return "the only node that fits"
    of = f"the best {shown} of {len(decision.scores):,}; " if shown < len(decision.scores) else ""
    taken = decision.pending_node
    if taken not in decision.best:
        if taken == decision.record.nominated_node_name:
            return f"{of}it gets the node that it is nominated to"
        return f"{of}it gets the node that an eviction recommended"
    if len(decision.best) == 1:
        return f"{of}highest total wins"
    return f"{of}{len(decision.best):,} nodes tie: {fitted(decision.best, page.names_width)}"


def _score_rows(decision: PodDecision, nodes: list[str], columns: list[str]) -> list[list[Part]]:
    """Return the table; headings take as many rows as they have words."""
    words = [_WORD.findall(column) for column in columns]
    height = max((len(word) for word in words), default=1)
    taken = decision.pending_node
    rows: list[list[Part]] = []
    for line in range(height):
        last = line == height - 1
        heads = [word[line - height + len(word)] if line - height + len(word) >= 0 else "" for word in words]
        cells = ["", "node" if last else "", *heads, "total" if last else ""]
        rows.append([Cell(text, "dim") for text in cells])
    for node in nodes:
        style = "good" if node == taken else ""
        scores = [str(decision.scores[node][column]) for column in columns]
        total = Cell(str(decision.totals[node]), "bold")
        mark = "→" if node == taken else ""
        rows.append([Cell(mark, style), Name(node, NODES, style), *scores, total])
    return rows


def _device_rows(claims: Claims) -> list[tuple[str, ...]]:
    return [
        (
            "extended resources" if claim.metadata.name == IN_MEMORY else claim.metadata.name,
            *(result.request, result.device, f"of {result.driver}/{result.pool}"),
        )
        for claim, allocation in claims
        for result in allocation.devices.results
    ]


def _write_placed(page: Page, decision: PodDecision, placed: PlacedPodFacts) -> None:
    page.title("Why it is there", "as far as that can be known, from what would be decided now")
    for reason in _reasons(decision, placed):
        page.paragraph(reason, indent=2, hanging=2)
    page.title("If it were evicted")
    page.paragraph(_then(decision, placed), indent=2, hanging=2)
    for budget, allowed in placed.budgets:
        page.paragraph(f"budget {budget} allows {counted(allowed, 'disruption')} now", indent=2, hanging=2)
    _write_preemptors(page, decision, placed)


def _reasons(decision: PodDecision, placed: PlacedPodFacts) -> Iterator[str]:
    if placed.since_ns is not None:
        yield f"it has been there since {format_time(placed.since_ns)}"
    if placed.by == "kubelet":
        yield "no scheduler placed it: it mirrors a static pod of the node's kubelet"
    totals, node = decision.totals, placed.node
    if placed.rank is None:
        status = decision.nodes.get(node)
        why = f": {status.message}" if status is not None else "" if decision.nodes else ": no node is examined"
        yield f"it would not fit there now{why}"
    elif len(totals) <= 1:
        yield "it is the only node that can take it"
    elif placed.rank == 1:
        others = len(decision.best) - 1
        equal = f", as {counted(others, 'other', 'does')}" if others else ""
        yield f"it has the highest total of {counted(len(totals), 'node')} that can take it, {totals[node]}{equal}"
    else:
        best = decision.best[0]
        yield (
            f"it is number {placed.rank} by total of {counted(len(totals), 'node')} that can take it: {totals[node]}, "
            f"and {best} has {totals[best]}; the cluster was another when it was placed"
        )


def _then(decision: PodDecision, placed: PlacedPodFacts) -> str:
    if placed.by == "kubelet":
        return "nothing would change: its kubelet replaces it"
    if placed.then == "schedulable":
        back = ", its present node" if placed.then_node == placed.node else ""
        goes = f"goes to {placed.then_node}{back}"
    elif placed.then == "preempts" and decision.victims:
        victims = listed([victim.key for victim in decision.victims], 3)
        goes = f"preempts {victims} on {placed.then_node}"
    else:
        goes = "finds no node"
    if placed.controller:
        return f"{placed.controller} replaces it, and the replacement {goes}"
    return f"no controller replaces it; a pod like it {goes}"


def _write_preemptors(page: Page, decision: PodDecision, placed: PlacedPodFacts) -> None:
    record = decision.record
    if not record.is_preemptible or placed.by == "kubelet":
        page.title("Possible preemptors", "none")
        why = "it mirrors a static pod" if placed.by == "kubelet" else f"its policy is {record.preemption_policy}"
        page.paragraph(f"{why}: it is not preempted", indent=2)
        return
    has_equals = any(each.pod.priority == record.priority for each in placed.preemptors)
    note = f"pods of a priority {'from' if has_equals else 'above'} {record.priority} that may preempt"
    page.title("Possible preemptors", note)
    rows = [
        (
            Name(each.pod.key, PODS, "bad" if each.is_chosen else ""),
            f"priority {each.pod.priority}",
            "pending, and would preempt it now" if each.is_chosen else "pending, and prefers another node",
        )
        for each in placed.preemptors
    ]
    page.table(rows or [("no pending pod would preempt it",)], most=_MAX_PREEMPTORS)
    if placed.not_asked:
        page.line(Cell(f"{counted(placed.not_asked, 'pending pod')} of lower priority not tried", "dim"), indent=2)
