"""A pod that has a node, for people: why it is there, where it would go, and who could take its place."""

from __future__ import annotations

from collections.abc import Iterator

from podium.api.times import format_time
from podium.app.console.cells import PODS
from podium.app.console.page import Cell, Name, Page, Part, counted, listed
from podium.app.explaining.explanation import Explanation, Placed

_MOST_TAKERS = 5


def write_placed(page: Page, explanation: Explanation, placed: Placed) -> None:
    """Write what is known of a pod's place, then what would become of it, then who could take it."""
    page.title("Why it is there", "as far as that can be known: by what would be decided now")
    for reason in _reasons(explanation, placed):
        page.paragraph(reason, indent=2, hanging=2)
    page.title("If it were evicted")
    page.paragraph(_then(explanation, placed), indent=2, hanging=2)
    for budget, allowed in placed.budgets:
        page.paragraph(f"budget {budget} allows {counted(allowed, 'disruption')} now", indent=2, hanging=2)
    _write_takers(page, explanation, placed)


def _reasons(explanation: Explanation, placed: Placed) -> Iterator[str]:
    if placed.since_ns is not None:
        yield f"it has been there since {format_time(placed.since_ns)}"
    if placed.by == "kubelet":
        yield "no scheduler placed it: it mirrors a static pod of the node's kubelet"
    totals, node = explanation.totals, placed.node
    if placed.rank is None:
        status = explanation.nodes.get(node)
        why = f": {status.message}" if status is not None else "" if explanation.nodes else ": no node is looked at"
        yield f"it would not be let in there now{why}"
    elif len(totals) <= 1:
        yield "it is the only node that can take it"
    elif placed.rank == 1:
        others = len(explanation.best) - 1
        equal = f", as {counted(others, 'other')} {'does' if others == 1 else 'do'}" if others else ""
        yield f"it has the highest total of {counted(len(totals), 'node')} that can take it, {totals[node]}{equal}"
    else:
        best = explanation.best[0]
        yield (
            f"it is number {placed.rank} by total of {counted(len(totals), 'node')} that can take it: {totals[node]}, "
            f"and {best} has {totals[best]}; the cluster was another when it was placed"
        )


def _then(explanation: Explanation, placed: Placed) -> str:
    if placed.by == "kubelet":
        return "nothing would change: its kubelet makes it again"
    if placed.then == "schedulable":
        back = ", where it was" if placed.then_node == placed.node else ""
        goes = f"goes to {placed.then_node}{back}"
    elif placed.then == "preempts" and explanation.plan is not None and explanation.plan.chosen is not None:
        victims = listed([victim.key for victim in explanation.plan.chosen.victims], 3)
        goes = f"preempts {victims} on {placed.then_node}"
    else:
        goes = "finds no node"
    if placed.controller:
        return f"{placed.controller} makes it again, and it {goes}"
    return f"nobody makes it again; a pod like it {goes}"


def _write_takers(page: Page, explanation: Explanation, placed: Placed) -> None:
    record = explanation.record
    if not record.is_preemptible or placed.by == "kubelet":
        page.title("Who could take its place", "nobody")
        why = "it mirrors a static pod" if placed.by == "kubelet" else f"its policy is {record.preemption_policy}"
        page.paragraph(f"{why}: it is not preempted", indent=2)
        return
    has_equals = any(taker.pod.priority == record.priority for taker in placed.takers)
    note = f"pods of a priority {'from' if has_equals else 'above'} {record.priority} that may preempt"
    page.title("Who could take its place", note)
    rows: list[list[Part]] = [
        [
            Name(taker.pod.key, PODS, "bad" if taker.is_chosen else ""),
            f"priority {taker.pod.priority}",
            "pending, and would preempt it now" if taker.is_chosen else "pending, and prefers another node",
        ]
        for taker in placed.takers[:_MOST_TAKERS]
    ]
    page.columns(rows, indent=2)
    if not rows:
        page.line("none of those pending would preempt it", indent=2)
    if len(placed.takers) > _MOST_TAKERS:
        page.line(Cell(f"and {len(placed.takers) - _MOST_TAKERS:,} more", "dim"), indent=2)
    if placed.further:
        page.line(Cell(f"{counted(placed.further, 'pending pod')} further down not asked", "dim"), indent=2)
