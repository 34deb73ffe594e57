"""A decision as text: the outcome, then its reasons, then the remedies."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.api import avoid_list, policy, quantity, times
from podium.app.console.cells import NODES, PODS, counted
from podium.app.console.disruptions_text import write_disruptions
from podium.app.console.page import Cell, Name, Page, Part, fitted, listed
from podium.app.explaining.explanation import Explanation, PlacedPodFacts
from podium.app.explaining.gang import gang_plugin
from podium.app.explaining.obstacles import find_obstacles
from podium.app.explaining.outcomes import write_outcomes
from podium.app.explaining.preemption_text import write_by_reason, write_gang, write_preemption, write_proposal
from podium.app.explaining.remedies import write_remedies
from podium.plugins.dynamic_resources.fitting import IN_MEMORY

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


def write_explanation(page: Page, decision: Explanation, *, all_nodes: bool = False, outcomes: bool = False) -> None:
    """Write the whole decision; with ``all_nodes`` a line for each node, with ``outcomes`` all equal outcomes."""
    page.paragraph(Cell(headline_of(decision), _STYLES[decision.outcome]), hanging=2)
    for fact in facts_of(decision):
        page.paragraph(fact, indent=2, hanging=2)
    if decision.gang is not None:
        write_gang(page, decision.gang)
    if decision.placed is not None:
        _write_placed(page, decision, decision.placed)
    before = decision.pre_enqueue or decision.pre_filter
    if before is not None:
        page.title(
            "Before any node was examined" if before is decision.pre_filter else "Not in the queue", before.plugin
        )
        page.paragraph(before.message, indent=2)
    elif decision.error:
        page.title("A plugin failed")
        page.paragraph(decision.error, indent=2)
    else:
        _write_nodes(page, decision, all_nodes=all_nodes)
    if outcomes:
        write_outcomes(page, decision)
    write_disruptions(page, decision.disruptions)
    page.caveats(decision.caveats)


def _write_nodes(page: Page, decision: Explanation, *, all_nodes: bool) -> None:
    """Write the nodes, the devices, the scores, and what a pod without a feasible node may do."""
    fitting = sum(status.is_success for status in decision.nodes.values())
    page.title("Nodes", f"{fitting:,} of {len(decision.nodes):,} can take it" if decision.nodes else "there are none")
    if all_nodes:
        _write_each_node(page, decision)
    else:
        write_by_reason(page, decision.nodes)
    claims = decision.devices.claims.get(decision.pending_node)
    if claims:
        page.title("Devices", f"that its claims get on {decision.pending_node}")
        rows = [
            (
                "extended resources" if claim.metadata.name == IN_MEMORY else claim.metadata.name,
                *(result.request, result.device, f"of {result.driver}/{result.pool}"),
            )
            for claim, allocation in claims
            for result in allocation.devices.results
        ]
        page.columns(rows, indent=2)
    elif decision.devices.releases:
        page.title("Devices", "deallocated from a claim, which may get others elsewhere")
        for released in decision.devices.releases:
            page.paragraph(released, indent=2)
    if decision.scores:
        _write_scores(page, decision)
    if decision.pending_outcome == "schedulable" or not decision.nodes or decision.awaits_others:
        return
    with decision.as_decided():
        obstacles = find_obstacles(decision.runner, decision.record)
        if decision.plan is not None and decision.plan.eligible:
            write_preemption(page, decision, decision.plan, {obstacle.node: obstacle for obstacle in obstacles})
        if decision.proposal is not None:
            write_proposal(page, decision.proposal)
        write_remedies(page, decision, obstacles)


def _write_each_node(page: Page, decision: Explanation) -> None:
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


def headline_of(decision: Explanation) -> str:
    """Return the outcome in one line."""
    pod, node = decision.pod, decision.node
    match decision.outcome:
        case "placed":
            return f"{pod} is on node {node}"
        case "gated" | "error":
            return f"{pod} is {'not scheduled: the attempt fails' if decision.error else 'gated: it is not attempted'}"
        case "schedulable":
            return f"{pod} fits{' with its gang' if decision.gang else ''}: node {node}"
        case "preempts" if decision.gang:
            return f"{pod} preempts with its gang: it is to go to {node}"
        case "preempts" if decision.is_bound_early:
            return f"{pod} is bound to {node} at once: its kubelet waits for pods that terminate there"
        case "preempts" if decision.victims:
            victims = [victim.key for victim in decision.victims]
            noun = "victim" if len(victims) == 1 else "victims"
            return f"{pod} preempts on {node}: {noun} {listed(victims, _MAX_VICTIMS)}"
        case "preempts" if decision.proposal is not None:
            return f"{pod} fits nowhere, and {decision.proposal.status.plugin} nominates it to {node}"
    return _waits(decision)


def _waits(decision: Explanation) -> str:
    pod, plan = decision.pod, decision.plan
    if decision.awaits_others:
        return f"{pod} would fit, and waits for its gang"
    if plan is None:
        return f"{pod} is unschedulable"
    if plan.put_off is not None:
        return f"{pod} is unschedulable for now: {plan.put_off}"
    if plan.held_back is not None:
        return f"{pod} is unschedulable: {plan.held_back}"
    return f"{pod} is unschedulable" + ("" if plan.eligible else f", and {plan.reason.removesuffix('.')}")


def facts_of(decision: Explanation) -> list[str]:
    """Return facts about the pod itself."""
    pod, cluster = decision.record, decision.runner.cluster
    with decision.as_decided():
        group, left = cluster.pod_groups.of(pod), cluster.replacements.by_pod.get(pod.uid)
        there = counted(0 if group is None else cluster.pod_groups.live(group.key), "pod")
    requests = {cluster.nodes.resources[index]: amount for index, amount in pod.pod_class.requests.items()}
    amounts = ", ".join(f"{quantity.format_quantity(amount, name)} {name}" for name, amount in sorted(requests.items()))
    rule = pod.annotations.get(policy.PRIORITY_RULE_ANNOTATION)
    by_rule = f" by priority rule {rule}" if rule else ""
    found = [f"priority {pod.priority}{by_rule}, {pod.pod_class.qos}, asks for {amounts or 'no resources'}"]
    if pod.nominated_node_name:
        found.append(f"is nominated to {pod.nominated_node_name}")
    if group is not None and decision.gang is None:
        ignored = "" if gang_plugin(decision.runner) else ", but its profile places no gangs"
        least = f"at least {group.min_count:,} are placed together or none{ignored}"
        found.append(f"belongs to PodGroup {group.key}, which has {there}; {least}")
    if left is not None:
        gets = avoid_list.gets_in_words(left)
        found.append(f"replaces pod {left.evicted_pod.name}{gets and f', whose eviction left it {gets}'}")
    if pod.gates:
        found.append(f"is not attempted before its scheduling gates are removed: {', '.join(pod.gates)}")
    if pod.terminating:
        found.append("is being deleted, and so not attempted")
    return found


def _write_scores(page: Page, decision: Explanation) -> None:
    taken = decision.pending_node
    totals, own = decision.totals, decision.node
    order = sorted(totals, key=lambda name: (name != taken, name != own, -totals[name], name))
    best = sorted(order[:_MAX_ROWS], key=lambda name: (-totals[name], name != taken, name))
    of = f"the best {len(best)} of {len(totals):,}; " if len(best) < len(totals) else ""
    note = f"{len(decision.best):,} nodes tie: {fitted(decision.best, page.names_width)}"
    if len(totals) == 1:
        note = "the only node that fits"
    elif taken not in decision.best:
        is_nominated = taken == decision.record.nominated_node_name
        note = f"it gets the node that {'it is nominated to' if is_nominated else 'an eviction recommended'}"
    elif len(decision.best) == 1:
        note = "highest total wins"
    page.title("Scores", of + note)
    columns = list(decision.scores[taken])
    plain = [column for column in columns if len({scores[column] for scores in decision.scores.values()}) > 1]
    if len(best) > 1 and plain:
        same = [f"{column} {decision.scores[taken][column]}" for column in columns if column not in plain]
    else:
        plain, same = columns, []
    page.columns(_score_rows(decision, best, plain), indent=2, right=range(2, len(plain) + 3))
    if same:
        page.paragraph(Cell(f"the same on every node: {', '.join(same)}", "dim"), indent=2, hanging=2)


def _score_rows(decision: Explanation, nodes: list[str], columns: list[str]) -> list[list[Part]]:
    """Return the table; headings take as many rows as they have words."""
    words = [[""], ["node"], *map(_WORD.findall, columns), ["total"]]
    height = max(map(len, words))
    heads = [[""] * (height - len(word)) + word for word in words]
    rows: list[list[Part]] = [[Cell(text, "dim") for text in line] for line in zip(*heads, strict=True)]
    for node in nodes:
        mark, style = ("→", "good") if node == decision.pending_node else ("", "")
        scores = [str(decision.scores[node][column]) for column in columns]
        total = Cell(str(decision.totals[node]), "bold")
        rows.append([Cell(mark, style), Name(node, NODES, style), *scores, total])
    return rows


def _write_placed(page: Page, decision: Explanation, placed: PlacedPodFacts) -> None:
    page.title("Why it is there", "as far as that can be known, from what would be decided now")
    for reason in _reasons(decision, placed):
        page.paragraph(reason, indent=2, hanging=2)
    page.title("If it were evicted")
    page.paragraph(_replacement_text(decision, placed), indent=2, hanging=2)
    for budget, allowed in placed.budgets:
        page.paragraph(f"budget {budget} allows {counted(allowed, 'disruption')} now", indent=2, hanging=2)
    record = decision.record
    if not record.is_preemptible or placed.by == "kubelet":
        page.title("Possible preemptors", "none")
        why = "it mirrors a static pod" if placed.by == "kubelet" else f"its policy is {record.preemption_policy}"
        page.paragraph(f"{why}: it is not preempted", indent=2)
        return
    has_equals = any(pod.priority == record.priority for pod, _ in placed.preemptors)
    note = f"pods of a priority {'from' if has_equals else 'above'} {record.priority} that may preempt"
    page.title("Possible preemptors", note)
    rows = [
        (
            Name(pod.key, PODS, "bad" if is_chosen else ""),
            f"priority {pod.priority}",
            "pending, and would preempt it now" if is_chosen else "pending, and prefers another node",
        )
        for pod, is_chosen in placed.preemptors
    ]
    page.table(rows or [("no pending pod would preempt it",)], most=5)
    if placed.not_asked:
        page.line(Cell(f"{counted(placed.not_asked, 'pending pod')} of lower priority not tried", "dim"), indent=2)


def _reasons(decision: Explanation, placed: PlacedPodFacts) -> Iterator[str]:
    if placed.since_ns is not None:
        yield f"it has been there since {times.format_time(placed.since_ns)}"
    if placed.by == "kubelet":
        yield "no scheduler placed it: it mirrors a static pod of the node's kubelet"
    totals, node = decision.totals, decision.node
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


def _replacement_text(decision: Explanation, placed: PlacedPodFacts) -> str:
    if placed.by == "kubelet":
        return "nothing would change: its kubelet replaces it"
    if placed.then == "schedulable":
        back = ", its present node" if placed.then_node == decision.node else ""
        outcome = f"goes to {placed.then_node}{back}"
    elif placed.then == "preempts" and decision.victims:
        outcome = f"preempts {listed([victim.key for victim in decision.victims], 3)} on {placed.then_node}"
    else:
        outcome = "finds no node"
    if placed.controller:
        return f"{placed.controller} replaces it, and the replacement {outcome}"
    return f"no controller replaces it; a pod like it {outcome}"
