"""The picture of a decision: nodes by verdict, scores by plugin, candidates with their victims."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.errors import escape
from podium.app.console.page import Page
from podium.app.explaining.answer_text import write_answer
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import find_obstacles
from podium.app.explaining.on_node import NodeAnswer
from podium.app.explaining.on_node_text import headline_on
from podium.app.explaining.preemption_text import costs_of
from podium.app.explaining.remedies_text import write_remedies
from podium.app.explaining.text import facts_of, headline_of
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.explaining.workload_text import write_workload
from podium.app.reporting.picture import Candidate, Decision, Picture, Table, told
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.scoring import Score
from podium.framework.status import Status

_WIDTH = 120
# Wide enough that no line is broken.
_ENDLESS = 4_000
_LONGEST = 2_000
_FITS = "fits"
_MOST_VICTIMS = 30
_ROLES = {"schedulable": "the node that it goes to", "preempts": "the node on which it preempts"}
_NEED_CHANGE = ("preempts", "unschedulable", "not-eligible")


def picture_of_decision(answer: Explanation | WorkloadExplanation | NodeAnswer) -> Picture:
    """A decision about a pod; with what every plugin says of one node, if that was asked."""
    explanation = answer if isinstance(answer, Explanation) else answer.explanation
    on_node = answer if isinstance(answer, NodeAnswer) else None
    changes = _changes(explanation)
    asked = answer if isinstance(answer, WorkloadExplanation) else explanation
    return Picture(
        command="explain",
        headline=escape(headline_of(explanation) if on_node is None else headline_on(on_node), _LONGEST),
        facts=[*_workload_facts(answer), *_facts(explanation)],
        tables=[] if on_node is None else _on_node(on_node),
        decision=_decision(explanation),
        changes=changes[1:],
        changes_title=changes[0].partition("  ")[0] if changes else "",
        rests_on=told(explanation.rests_on),
        text=_text(asked, on_node),
    )


def _text(asked: Explanation | WorkloadExplanation, on_node: NodeAnswer | None) -> str:
    page = Page(_WIDTH)
    write_answer(page, asked, on_node, all_nodes=False)
    return page.text


def _workload_facts(answer: object) -> list[str]:
    if not isinstance(answer, WorkloadExplanation):
        return []
    page = Page(_ENDLESS)
    write_workload(page, answer)
    return _lines(page)


def _facts(explanation: Explanation) -> list[str]:
    """About the pod itself; then what ends the attempt before any node is looked at."""
    found = facts_of(explanation)
    for status in (explanation.pre_enqueue, explanation.pre_filter):
        if status is not None:
            found.append(f"{status.plugin}: {status.message}")
    if explanation.error:
        found.append(explanation.error)
    return [escape(fact, _LONGEST) for fact in found]


def _changes(explanation: Explanation) -> list[str]:
    """What would have to change, as the text says it: a title, then each change."""
    outcome = explanation.outcome if explanation.placed is None else explanation.placed.then
    if outcome not in _NEED_CHANGE or not explanation.nodes:
        return []
    page = Page(_ENDLESS)
    with explanation.as_decided():
        write_remedies(page, explanation, find_obstacles(explanation.runner, explanation.record))
    return _lines(page)


def _lines(page: Page) -> list[str]:
    return [line.strip() for line in page.text.splitlines() if line.strip()]


def _decision(explanation: Explanation) -> Decision:
    names = list(explanation.nodes)
    places = {name: place for place, name in enumerate(names)}
    groups, group_of = _groups(explanation.nodes)
    plan = explanation.plan
    taken = explanation.node if explanation.placed is None else explanation.placed.then_node
    rated = sorted(explanation.totals, key=lambda name: (-explanation.totals[name], name != taken, name))
    plugins = list(explanation.scores[rated[0]]) if rated else []
    return Decision(
        pod=escape(explanation.pod, _LONGEST),
        taken=places.get(taken, -1),
        nodes=[escape(name, _LONGEST) for name in names],
        groups=groups,
        group_of=group_of,
        fits=any(status.is_success for status in explanation.nodes.values()),
        plugins=plugins,
        rated=[places[name] for name in rated],
        scores=[[explanation.scores[name][plugin] for plugin in plugins] for name in rated],
        totals=[explanation.totals[name] for name in rated],
        candidates=[] if plan is None else _candidates(plan, places),
        rejected=[]
        if plan is None
        else [(places[name], escape(status.message, _LONGEST)) for name, status in sorted(plan.rejected.items())],
        decided_by="" if plan is None else plan.criterion,
        role=_ROLES.get(explanation.outcome if explanation.placed is None else explanation.placed.then, ""),
        criteria=None if plan is None else [criterion.heading for criterion in plan.criteria] or None,
    )


def _groups(nodes: Mapping[str, Status]) -> tuple[list[str], list[int]]:
    """What nodes answered, those that fit first, then the most frequent; and the number of each node's answer."""
    said = {name: _FITS if status.is_success else _said(status) for name, status in nodes.items()}
    counts: dict[str, int] = {}
    for text in said.values():
        counts[text] = counts.get(text, 0) + 1
    order = sorted(counts, key=lambda text: (text != _FITS, -counts[text], text))
    place_of = {text: place for place, text in enumerate(order)}
    return order, [place_of[text] for text in said.values()]


def _said(status: Status) -> str:
    message = status.message or status.code.value
    return escape(f"{message} ({status.plugin})" if status.plugin else message, _LONGEST)


def _candidates(plan: PreemptionPlan, places: Mapping[str, int]) -> list[Candidate]:
    """The nodes where preemption would help, the one that is chosen first, then as the criteria order them."""
    chosen = "" if plan.chosen is None else plan.chosen.node_name
    found = sorted(
        plan.candidates.values(),
        key=lambda candidate: (candidate.node_name != chosen, *candidate.cost, candidate.node_name),
    )
    return [
        Candidate(
            places[candidate.node_name],
            candidate.budget_violations,
            candidate.victims[0].priority,
            len(candidate.victims),
            [escape(victim.key, _LONGEST) for victim in candidate.victims[:_MOST_VICTIMS]],
            costs_of(plan, candidate) if plan.criteria else None,
        )
        for candidate in found
    ]


def _on_node(answer: NodeAnswer) -> list[Table]:
    """What every plugin says of the node that was asked about."""
    found = (
        [Table("Obstacles", [""], [[escape(text, _LONGEST)] for text in answer.obstacles])] if answer.obstacles else []
    )
    if answer.verdicts:
        note = "in the order in which they are asked; the first that refuses is the node's answer"
        rows = [[verdict.plugin, *_verdict(verdict.status)] for verdict in answer.verdicts]
        found.append(
            Table(f"Filters on {answer.node}", ["plugin", "verdict", "why"], [list(row) for row in rows], note=note)
        )
    if answer.scores:
        found.append(_scores(answer))
    return found


def _verdict(status: Status | None) -> tuple[str, str]:
    if status is None:
        return "has nothing to say", ""
    return ("lets it in", "") if status.is_success else (status.code.value, escape(", ".join(status.reasons), _LONGEST))


def _scores(answer: NodeAnswer) -> Table:
    heads = ["plugin", "raw", "normalised", "weight", "weighted"]
    beside = {score.plugin: score.weighted for score in answer.taken_scores}
    is_other = answer.taken != answer.node and bool(beside)
    rows = [
        _score_row(score, beside.get(score.plugin) if is_other else None, is_other=is_other) for score in answer.scores
    ]
    return Table(f"Scores of {answer.node}", [*heads, f"on {answer.taken}"] if is_other else heads, rows)


def _score_row(score: Score, beside: int | None, *, is_other: bool) -> list[str | int | float | None]:
    row: list[str | int | float | None] = [score.plugin, score.raw, score.normalized, score.weight, score.weighted]
    return [*row, beside] if is_other else row
