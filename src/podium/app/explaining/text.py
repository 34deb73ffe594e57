"""An explanation for people: the outcome, then what led to it, then what would have to change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.api.quantity import format_quantity
from podium.api.replacements import gets_in_words
from podium.app.console.basis_text import write_basis
from podium.app.console.cells import NODES, counted
from podium.app.console.disruptions_text import write_disruptions
from podium.app.console.page import Cell, Name, Page, Part, fitted, listed
from podium.app.explaining.devices import shown_devices
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.gang import gang_plugin
from podium.app.explaining.gang_text import write_gang
from podium.app.explaining.obstacles import find_obstacles
from podium.app.explaining.outcomes_text import write_outcomes
from podium.app.explaining.placed_text import write_placed
from podium.app.explaining.preemption_text import write_preemption
from podium.app.explaining.reasons import write_by_reason
from podium.app.explaining.remedies_text import write_remedies
from podium.decide.preempting.preemption_plan import PreemptionPlan

_MOST_VICTIMS = 3
_MOST_ROWS = 5
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


def write_explanation(page: Page, explanation: Explanation, *, all_nodes: bool = False, outcomes: bool = False) -> None:
    """Write the whole explanation; with ``all_nodes`` a line for each node, however many there are.

    With ``outcomes`` it says in which other ways chance may have it come out.
    """
    _write_decision(page, explanation, all_nodes=all_nodes)
    if outcomes:
        write_outcomes(page, explanation)
    write_disruptions(page, explanation.disruptions)
    write_basis(page, explanation.caveats)


def _write_decision(page: Page, explanation: Explanation, *, all_nodes: bool) -> None:
    page.paragraph(Cell(headline_of(explanation), _STYLES[explanation.outcome]), hanging=2)
    for fact in facts_of(explanation):
        page.paragraph(fact, indent=2, hanging=2)
    if explanation.gang is not None:
        write_gang(page, explanation.gang)
    if explanation.placed is not None:
        write_placed(page, explanation, explanation.placed)
    before = _before_any_node(explanation)
    if before is not None:
        title, plugin, message = before
        page.title(title, plugin)
        page.paragraph(message, indent=2)
        return
    _write_nodes(page, explanation, all_nodes=all_nodes)
    _write_devices(page, explanation)
    if explanation.scores:
        _write_scores(page, explanation)
    _write_ways_out(page, explanation)


def _before_any_node(explanation: Explanation) -> tuple[str, str, str] | None:
    """What ends the attempt before any node is looked at: a heading, the plugin, and what it says; None for nothing."""
    if explanation.pre_enqueue is not None:
        return "Not in the queue", explanation.pre_enqueue.plugin, explanation.pre_enqueue.message
    if explanation.error:
        return "A plugin failed", "", explanation.error
    if explanation.pre_filter is not None:
        return "Before any node was looked at", explanation.pre_filter.plugin, explanation.pre_filter.message
    return None


def _write_ways_out(page: Page, explanation: Explanation) -> None:
    """Write what preemption comes to, and what would have to change, for a pod that no node can take."""
    outcome = explanation.outcome if explanation.placed is None else explanation.placed.then
    if outcome == "schedulable" or not explanation.nodes or explanation.awaits_others:
        return
    with explanation.as_decided():
        obstacles = find_obstacles(explanation.runner, explanation.record)
        if explanation.plan is not None and explanation.plan.eligible:
            write_preemption(page, explanation, explanation.plan, {obstacle.node: obstacle for obstacle in obstacles})
        write_remedies(page, explanation, obstacles)


def headline_of(explanation: Explanation) -> str:
    """What would happen, in a line."""
    pod, plan = explanation.pod, explanation.plan
    if explanation.outcome == "placed":
        return f"{pod} is on node {explanation.node}"
    if explanation.outcome == "gated":
        return f"{pod} is gated: it is not attempted"
    if explanation.outcome == "error":
        return f"{pod} is not scheduled: the attempt fails"
    if explanation.gang is not None:
        return _of_gang(explanation)
    return _fits_or_not(explanation, pod, plan)


def _fits_or_not(explanation: Explanation, pod: str, plan: PreemptionPlan | None) -> str:
    if explanation.outcome == "schedulable":
        return f"{pod} fits: node {explanation.node}"
    if plan is not None and plan.chosen is not None:
        victims = [victim.key for victim in plan.chosen.victims]
        noun = "victim" if len(victims) == 1 else "victims"
        return f"{pod} preempts on {explanation.node}: {noun} {listed(victims, _MOST_VICTIMS)}"
    if plan is not None and plan.put_off is not None:
        return f"{pod} is unschedulable for now: {plan.put_off}"
    if plan is not None and not plan.eligible:
        return f"{pod} is unschedulable, and {plan.reason.removesuffix('.')}"
    return f"{pod} is unschedulable"


def _of_gang(explanation: Explanation) -> str:
    if explanation.outcome == "schedulable":
        return f"{explanation.pod} fits with its gang: node {explanation.node}"
    if explanation.outcome == "preempts":
        return f"{explanation.pod} preempts with its gang: it is to go to {explanation.node}"
    if explanation.awaits_others:
        return f"{explanation.pod} would fit, and waits for its gang"
    return f"{explanation.pod} is unschedulable"


def facts_of(explanation: Explanation) -> list[str]:
    """What is worth knowing about the pod itself."""
    with explanation.as_decided():
        return list(_facts(explanation))


def _facts(explanation: Explanation) -> Iterator[str]:
    pod, names = explanation.record, explanation.runner.cluster.nodes.resources
    asked = {names[index]: amount for index, amount in pod.pod_class.requests.items()}
    amounts = ", ".join(f"{format_quantity(amount, name)} {name}" for name, amount in sorted(asked.items()))
    yield f"priority {pod.priority}, {pod.pod_class.qos}, asks for {amounts or 'no resources'}"
    if pod.nominated_node_name:
        yield f"is nominated to {pod.nominated_node_name}"
    group = explanation.runner.cluster.pod_groups.of(pod)
    if group is not None and explanation.gang is None:
        there = counted(explanation.runner.cluster.pod_groups.live(group.key), "pod")
        places = "are placed" if gang_plugin(explanation.runner) else "would be placed, if its profile placed gangs,"
        least = f"{group.min_count:,} {places} together or none"
        yield f"belongs to PodGroup {group.key}, which has {there}; {least}"
    left = explanation.runner.cluster.replacements.by_pod.get(pod.uid)
    if left is not None:
        gets = gets_in_words(left)
        yield f"comes in place of pod {left.evicted_pod.name}{gets and f', whose eviction left it {gets}'}"
    if pod.gates:
        yield f"is not attempted before its scheduling gates are removed: {', '.join(pod.gates)}"
    if pod.terminating:
        yield "is being deleted, and so not attempted"


def _write_nodes(page: Page, explanation: Explanation, *, all_nodes: bool) -> None:
    fitting = sum(status.is_success for status in explanation.nodes.values())
    if not explanation.nodes:
        page.title("Nodes", "there are none")
        return
    page.title("Nodes", f"{fitting:,} of {len(explanation.nodes):,} can take it")
    if all_nodes:
        _write_each_node(page, explanation)
    else:
        write_by_reason(page, explanation.nodes)


def _write_each_node(page: Page, explanation: Explanation) -> None:
    """Write a row for each node: those that can take the pod first, the best of them at the top."""
    totals = explanation.totals
    order = sorted(explanation.nodes, key=lambda name: (name not in totals, -totals.get(name, 0), name))
    rows: list[list[Part]] = []
    for name in order:
        status = explanation.nodes[name]
        verdict = Cell("fits", "good") if status.is_success else Cell(status.message)
        plugin = "" if status.is_success else status.plugin
        rows.append([Name(name, NODES), str(totals.get(name, "")), Cell(plugin, "dim"), verdict])
    page.columns(rows, indent=2, right=(1,))


def _write_devices(page: Page, explanation: Explanation) -> None:
    """Write what the claims get on the node that is taken, and what is done for them where there is none."""
    devices = explanation.devices
    claims = devices.claims.get(_taken(explanation))
    if claims:
        page.title("Devices", f"that its claims get on {_taken(explanation)}")
        page.columns(shown_devices(claims), indent=2)
    elif devices.releases:
        page.title("Devices", "that a claim gives back, so that it may get others elsewhere")
        for claim in devices.releases:
            page.paragraph(claim, indent=2)


def _taken(explanation: Explanation) -> str:
    """The node that is taken, or that would be if the pod were evicted."""
    return explanation.node if explanation.placed is None else explanation.placed.then_node


def _write_scores(page: Page, explanation: Explanation) -> None:
    taken = _taken(explanation)
    totals, own = explanation.totals, explanation.node
    order = sorted(totals, key=lambda name: (name != taken, name != own, -totals[name], name))
    best = sorted(order[:_MOST_ROWS], key=lambda name: (-totals[name], name != taken, name))
    page.title("Scores", _scores_note(page, explanation, len(best)))
    columns = list(explanation.scores[taken])
    plain = [column for column in columns if len({scores[column] for scores in explanation.scores.values()}) > 1]
    if len(best) > 1 and plain:
        same = [f"{column} {explanation.scores[taken][column]}" for column in columns if column not in plain]
    else:
        plain, same = columns, []
    page.columns(_score_rows(explanation, best, plain), indent=2, right=range(2, len(plain) + 3))
    if same:
        page.paragraph(Cell(f"the same on every node: {', '.join(same)}", "dim"), indent=2, hanging=2)


def _scores_note(page: Page, explanation: Explanation, shown: int) -> str:
    if len(explanation.scores) == 1:
        return "the only node that fits"
    of = f"the best {shown} of {len(explanation.scores):,}; " if shown < len(explanation.scores) else ""
    taken = _taken(explanation)
    if taken not in explanation.best:
        if taken == explanation.record.nominated_node_name:
            return f"{of}it takes the node that it is nominated to"
        return f"{of}it takes the node that an eviction left it to try"
    if len(explanation.best) == 1:
        return f"{of}highest total wins"
    return f"{of}{len(explanation.best):,} nodes tie: {fitted(explanation.best, page.names_width)}"


def _score_rows(explanation: Explanation, nodes: list[str], columns: list[str]) -> list[list[Part]]:
    """The table, its headings over as many rows as their words need."""
    words = [_WORD.findall(column) for column in columns]
    height = max((len(word) for word in words), default=1)
    taken = _taken(explanation)
    rows: list[list[Part]] = []
    for line in range(height):
        last = line == height - 1
        heads = [word[line - height + len(word)] if line - height + len(word) >= 0 else "" for word in words]
        cells = ["", "node" if last else "", *heads, "total" if last else ""]
        rows.append([Cell(text, "dim") for text in cells])
    for node in nodes:
        style = "good" if node == taken else ""
        scores = [str(explanation.scores[node][column]) for column in columns]
        total = Cell(str(explanation.totals[node]), "bold")
        mark = "→" if node == taken else ""
        rows.append([Cell(mark, style), Name(node, NODES, style), *scores, total])
    return rows
