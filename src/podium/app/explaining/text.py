"""An explanation for people: the outcome, then what led to it, then what would have to change."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podium.api.quantity import format_quantity
from podium.api.replacements import gets_in_words
from podium.app.console.basis_text import write_basis
from podium.app.console.disruptions_text import write_disruptions
from podium.app.console.page import Cell, Page, Part, fitted, listed, shortened
from podium.app.explaining.devices import shown_devices
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import find_obstacles
from podium.app.explaining.preemption_text import write_preemption
from podium.app.explaining.reasons import write_by_reason
from podium.app.explaining.remedies_text import write_remedies

_MOST_VICTIMS = 3
_MOST_ROWS = 5
_STYLES = {
    "schedulable": "good",
    "preempts": "warn",
    "unschedulable": "bad",
    "not-eligible": "bad",
    "gated": "warn",
    "error": "bad",
}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[^A-Za-z0-9]+")


def write_explanation(page: Page, explanation: Explanation) -> None:
    """Write the whole explanation."""
    _write_decision(page, explanation)
    write_disruptions(page, explanation.disruptions)
    write_basis(page, explanation.rests_on)


def _write_decision(page: Page, explanation: Explanation) -> None:
    page.paragraph(Cell(_headline(explanation), _STYLES[explanation.outcome]), hanging=2)
    for fact in _facts(explanation):
        page.paragraph(fact, indent=2, hanging=2)
    if explanation.pre_enqueue is not None:
        page.title("Not in the queue", explanation.pre_enqueue.plugin)
        page.paragraph(explanation.pre_enqueue.message, indent=2)
        return
    if explanation.error:
        page.title("A plugin failed")
        page.paragraph(explanation.error, indent=2)
        return
    if explanation.pre_filter is not None:
        page.title("Before any node was looked at", explanation.pre_filter.plugin)
        page.paragraph(explanation.pre_filter.message, indent=2)
        return
    _write_nodes(page, explanation)
    _write_devices(page, explanation)
    if explanation.scores:
        _write_scores(page, explanation)
    if explanation.outcome == "schedulable" or not explanation.nodes:
        return
    obstacles = find_obstacles(explanation.runner, explanation.record)
    if explanation.plan is not None and explanation.plan.eligible:
        write_preemption(page, explanation, explanation.plan, {obstacle.node: obstacle for obstacle in obstacles})
    write_remedies(page, explanation, obstacles)


def _headline(explanation: Explanation) -> str:
    pod, plan = explanation.pod, explanation.plan
    if explanation.outcome == "gated":
        return f"{pod} is gated: it is not attempted"
    if explanation.outcome == "error":
        return f"{pod} is not scheduled: the attempt fails"
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


def _facts(explanation: Explanation) -> Iterator[str]:
    """What is worth knowing about the pod itself."""
    pod, names = explanation.record, explanation.runner.cluster.nodes.resources
    asked = {names[index]: amount for index, amount in pod.pod_class.requests.items()}
    amounts = ", ".join(f"{format_quantity(amount, name)} {name}" for name, amount in sorted(asked.items()))
    yield f"priority {pod.priority}, {pod.pod_class.qos}, asks for {amounts or 'no resources'}"
    if pod.nominated_node_name:
        yield f"is nominated to {pod.nominated_node_name}"
    left = explanation.runner.cluster.replacements.by_pod.get(pod.uid)
    if left is not None:
        yield f"comes in place of pod {left.evicted_pod.name}, whose eviction left it {gets_in_words(left)}"
    if pod.gates:
        yield f"is not attempted before its scheduling gates are removed: {', '.join(pod.gates)}"
    if pod.terminating:
        yield "is being deleted, and so not attempted"


def _write_nodes(page: Page, explanation: Explanation) -> None:
    fitting = sum(status.is_success for status in explanation.nodes.values())
    if not explanation.nodes:
        page.title("Nodes", "there are none")
        return
    page.title("Nodes", f"{fitting:,} of {len(explanation.nodes):,} can take it")
    write_by_reason(page, explanation.nodes)


def _write_devices(page: Page, explanation: Explanation) -> None:
    """Write what the claims get on the node that is taken, and what is done for them where there is none."""
    devices = explanation.devices
    claims = devices.claims.get(explanation.node)
    if claims:
        page.title("Devices", f"that its claims get on {explanation.node}")
        page.columns(shown_devices(claims), indent=2)
    elif devices.releases:
        page.title("Devices", "that a claim gives back, so that it may get others elsewhere")
        for claim in devices.releases:
            page.paragraph(claim, indent=2)


def _write_scores(page: Page, explanation: Explanation) -> None:
    order = sorted(explanation.totals, key=lambda name: (name != explanation.node, -explanation.totals[name], name))
    best = sorted(order[:_MOST_ROWS], key=lambda name: (-explanation.totals[name], name != explanation.node, name))
    page.title("Scores", _scores_note(page, explanation, len(best)))
    columns = list(explanation.scores[explanation.node])
    plain = [column for column in columns if len({scores[column] for scores in explanation.scores.values()}) > 1]
    if len(best) > 1 and plain:
        same = [f"{column} {explanation.scores[explanation.node][column]}" for column in columns if column not in plain]
    else:
        plain, same = columns, []
    page.columns(_score_rows(page, explanation, best, plain), indent=2, right=range(2, len(plain) + 3))
    if same:
        page.paragraph(Cell(f"the same on every node: {', '.join(same)}", "dim"), indent=2, hanging=2)


def _scores_note(page: Page, explanation: Explanation, shown: int) -> str:
    if len(explanation.scores) == 1:
        return "the only node that fits"
    of = f"the best {shown} of {len(explanation.scores):,}; " if shown < len(explanation.scores) else ""
    if explanation.node not in explanation.best:
        if explanation.node == explanation.record.nominated_node_name:
            return f"{of}it takes the node that it is nominated to"
        return f"{of}it takes the node that an eviction left it to try"
    if len(explanation.best) == 1:
        return f"{of}highest total wins"
    return f"{of}{len(explanation.best):,} nodes tie: {fitted(explanation.best, page.name_width)}"


def _score_rows(page: Page, explanation: Explanation, nodes: list[str], columns: list[str]) -> list[list[Part]]:
    """The table, its headings over as many rows as their words need."""
    words = [_WORD.findall(column) for column in columns]
    height = max((len(word) for word in words), default=1)
    rows: list[list[Part]] = []
    for line in range(height):
        last = line == height - 1
        heads = [word[line - height + len(word)] if line - height + len(word) >= 0 else "" for word in words]
        cells = ["", "node" if last else "", *heads, "total" if last else ""]
        rows.append([Cell(text, "dim") for text in cells])
    for node in nodes:
        style = "good" if node == explanation.node else ""
        scores = [str(explanation.scores[node][column]) for column in columns]
        total = Cell(str(explanation.totals[node]), "bold")
        mark = "→" if node == explanation.node else ""
        rows.append([Cell(mark, style), Cell(shortened(node, page.name_width), style), *scores, total])
    return rows
