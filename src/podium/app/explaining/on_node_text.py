"""What every plugin says of one node, for people."""

from __future__ import annotations

from podium.app.console.basis_text import write_basis
from podium.app.console.page import Cell, Page, Part, counted, listed
from podium.app.explaining.on_node import NodeAnswer, Verdict

_MOST_VICTIMS = 5
_RIGHT = (1, 2, 3, 4, 5)


def write_on_node(page: Page, answer: NodeAnswer) -> None:
    """Write why the pod goes there or not, each filter's verdict, the scores beside the taken node's, preemption."""
    page.paragraph(Cell(headline_on(answer), "good" if answer.taken == answer.node else "warn"), hanging=2)
    if answer.explanation.error:
        page.paragraph(answer.explanation.error, indent=2, hanging=2)
    for obstacle in answer.obstacles:
        page.paragraph(obstacle, indent=2, hanging=2)
    if answer.before is not None:
        page.title("Before the node was looked at", answer.before.plugin)
        page.paragraph(answer.before.message, indent=2)
    if answer.verdicts:
        page.title("Filters", "in the order in which they are asked; the first that refuses is the node's answer")
        page.columns([_verdict(verdict) for verdict in answer.verdicts], indent=2)
    if answer.beside:
        page.title("Room is kept there for")
        page.paragraph(listed([pod.key for pod in answer.beside], _MOST_VICTIMS), indent=2)
    _write_scores(page, answer)
    _write_preemption(page, answer)
    write_basis(page, answer.explanation.caveats)


def headline_on(answer: NodeAnswer) -> str:
    """Whether the pod goes to the node, in a line."""
    explanation, node = answer.explanation, answer.node
    pod = explanation.pod if explanation.placed is None else f"{explanation.pod}, were it evicted,"
    if explanation.pre_enqueue is not None or explanation.error:
        return f"{pod} goes to no node: it is not attempted, or the attempt fails"
    if answer.fits and answer.taken == node:
        return f"{pod} goes to {node}"
    if answer.fits:
        return f"{pod} fits on {node}, and goes to {answer.taken}"
    if answer.taken == node:
        return f"{pod} does not fit on {node} as it is, and preempts there"
    does = "preempts on" if explanation.plan is not None and explanation.plan.chosen is not None else "goes to"
    goes = f"; it {does} {answer.taken}" if answer.taken else ""
    return f"{pod} does not fit on {node}{goes}"


def _verdict(verdict: Verdict) -> list[Part]:
    if verdict.status is None:
        return [verdict.plugin, Cell("has nothing to say", "dim"), ""]
    if verdict.status.is_success:
        return [verdict.plugin, Cell("lets it in", "good"), ""]
    return [verdict.plugin, Cell(verdict.status.code.value, "bad"), ", ".join(verdict.status.reasons)]


def _write_scores(page: Page, answer: NodeAnswer) -> None:
    if not answer.scores:
        return
    is_taken = answer.taken == answer.node
    page.title("Scores", "" if is_taken else f"beside those of {answer.taken}, which it takes")
    beside = [""] if is_taken else [f"on {answer.taken}"]
    heads = ["plugin", "raw", "normalised", "weight", "weighted", *([] if is_taken else beside)]
    rows: list[list[Part]] = [[Cell(head, "dim") for head in heads]]
    taken = {score.plugin: score.weighted for score in answer.taken_scores}
    for score in answer.scores:
        figures = [str(figure) for figure in (score.raw, score.normalized, score.weight, score.weighted)]
        rows.append([score.plugin, *figures, *([] if is_taken else [str(taken.get(score.plugin, ""))])])
    total = str(sum(score.weighted for score in answer.scores))
    rows.append(["total", "", "", "", Cell(total, "bold"), *([] if is_taken else [str(sum(taken.values()))])])
    page.columns(rows, indent=2, right=_RIGHT)


def _write_preemption(page: Page, answer: NodeAnswer) -> None:
    plan = answer.explanation.plan
    if plan is None or not plan.eligible or answer.fits:
        return
    page.title("Preemption there")
    candidate, rejected = plan.candidates.get(answer.node), plan.rejected.get(answer.node)
    if candidate is not None:
        victims = listed([victim.key for victim in candidate.victims], _MOST_VICTIMS)
        told = f"would take {victims}, with {counted(candidate.budget_violations, 'budget violation')}"
        better = "" if answer.taken == answer.node or not plan.criterion else f"; decided by the {plan.criterion}"
        page.paragraph(told + better, indent=2, hanging=2)
    else:
        why = "the node's answer is one that preemption cannot change" if rejected is None else rejected.message
        page.paragraph(f"does not help: {why}", indent=2, hanging=2)
