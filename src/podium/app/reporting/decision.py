"""The picture of a decision: nodes by verdict, scores by plugin, candidates with their victims."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.errors import escape
from podium.app.console.page import Page, counted
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import find_obstacles
from podium.app.explaining.on_node import NodeAnswer
from podium.app.explaining.pod_decision import PodDecision
from podium.app.explaining.preemption_text import costs_of
from podium.app.explaining.remedies import write_remedies
from podium.app.explaining.text import facts_of, headline_of
from podium.app.explaining.workload import WorkloadExplanation, write_answer, write_workload
from podium.app.live.decision import Decision as WrittenDecision
from podium.app.live.decision import Preemption, Verdict, write_decision
from podium.app.reporting.picture import Candidate, Decision, Picture, Table, told
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.scoring import Score
from podium.framework.verdicts import Status

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
        headline=escape(headline_of(explanation) if on_node is None else on_node.headline, _LONGEST),
        facts=[*_workload_facts(answer), *_facts(explanation)],
        tables=[] if on_node is None else _on_node(on_node),
        decision=_decision(explanation),
        changes=changes[1:],
        changes_title=changes[0].partition("  ")[0] if changes else "",
        caveats=told(explanation.caveats),
        text=_text(asked, on_node),
    )


def _text(asked: PodDecision | WorkloadExplanation, on_node: NodeAnswer | None) -> str:
    page = Page(_WIDTH)
    write_answer(page, asked, on_node, all_nodes=False)
    return page.text


def _workload_facts(answer: object) -> list[str]:
    if not isinstance(answer, WorkloadExplanation):
        return []
    page = Page(_ENDLESS)
    write_workload(page, answer)
    return _lines(page)


def _facts(explanation: PodDecision) -> list[str]:
    """About the pod itself; then what ends the attempt before any node is looked at."""
    found = facts_of(explanation)
    for status in (explanation.pre_enqueue, explanation.pre_filter):
        if status is not None:
            found.append(f"{status.plugin}: {status.message}")
    if explanation.error:
        found.append(explanation.error)
    return [escape(fact, _LONGEST) for fact in found]


def _changes(explanation: PodDecision) -> list[str]:
    """What would have to change, as the text says it: a title, then each change."""
    if explanation.pending_outcome not in _NEED_CHANGE or not explanation.nodes:
        return []
    page = Page(_ENDLESS)
    with explanation.as_decided():
        write_remedies(page, explanation, find_obstacles(explanation.runner, explanation.record))
    return _lines(page)


def _lines(page: Page) -> list[str]:
    return [line.strip() for line in page.text.splitlines() if line.strip()]


def _decision(explanation: PodDecision) -> Decision:
    names = list(explanation.nodes)
    places = {name: place for place, name in enumerate(names)}
    groups, group_of = _groups(explanation.nodes)
    plan = explanation.plan
    taken = explanation.pending_node
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
        role=_ROLES.get(explanation.pending_outcome, ""),
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
        note = "in the order of the profile; the first that rejects is the node's verdict"
        rows = [[verdict.plugin, *_verdict(verdict.status)] for verdict in answer.verdicts]
        found.append(
            Table(f"Filters on {answer.node}", ["plugin", "verdict", "why"], [list(row) for row in rows], note=note)
        )
    if answer.scores:
        found.append(_scores(answer))
    return found


def _verdict(status: Status | None) -> tuple[str, str]:
    if status is None:
        return "does not apply", ""
    return ("passes", "") if status.is_success else (status.code.value, escape(", ".join(status.reasons), _LONGEST))


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


_SUCCESS = "Success"
_UNNAMED = "refused; the line does not name for what"
_WRITTEN_ROLES = {"schedulable": "the node that it went to", "preempts": "the node on which it preempted"}
_NOT_TOLD = ("action", "pod", "uid")


def picture_of_written(decision: WrittenDecision) -> Picture:
    """The decision, what it was made from, and what was asked for then."""
    page = Page(_WIDTH)
    write_decision(page, decision)
    lines = page.text.splitlines()
    return Picture(
        command="explain",
        headline=escape(lines[0], _LONGEST),
        facts=_written_facts(decision),
        tables=_done(decision),
        decision=_written_decision(decision),
        text=page.text,
    )


def _written_facts(decision: WrittenDecision) -> list[str]:
    woken = f", woken by {decision.woken_by}" if decision.woken_by else ""
    by = f"decided at {decision.time} by {decision.instance or 'somebody'} for profile {decision.profile}"
    found = [f"{by}: attempt {decision.attempt}{woken}, priority {decision.priority}"]
    if decision.error:
        found.append(decision.error)
    if decision.preemption is not None and decision.preemption.reason:
        found.append(decision.preemption.reason)
    named, number = sum(len(verdict.names) for verdict in decision.nodes), sum(each.count for each in decision.nodes)
    if named < number:
        found.append(f"of {counted(number, 'node')} the line names {named:,}, the first of each verdict and the best")
    return [escape(fact, _LONGEST) for fact in found]


def _done(decision: WrittenDecision) -> list[Table]:
    """What the scheduler asked for then."""
    rows: list[list[str | int | float | None]] = [
        [
            escape(f"{done.get('action')}", _LONGEST),
            escape(f"{done.get('pod')}", _LONGEST),
            escape(", ".join(f"{name} {value}" for name, value in done.items() if name not in _NOT_TOLD), _LONGEST),
        ]
        for done in decision.done
    ]
    return [Table("Asked for", ["", "pod", ""], rows)] if rows else []


def _written_decision(decision: WrittenDecision) -> Decision:
    groups = sorted(decision.nodes, key=lambda verdict: (verdict.status != _SUCCESS, -verdict.count, _reason(verdict)))
    group_of = {name: place for place, verdict in enumerate(groups) for name in verdict.names}
    texts, counts = [_reason(verdict) for verdict in groups], [verdict.count for verdict in groups]
    preemption = decision.preemption or Preemption()
    refused = {name: verdict for verdict in preemption.rejected for name in verdict.names}
    # The best nodes may be none of those that their verdict names first.
    fits = bool(groups) and groups[0].status == _SUCCESS
    told = dict.fromkeys((decision.node, *decision.totals, *preemption.candidates, *refused))
    unnamed = [name for name in told if name and name not in group_of]
    if unnamed and not fits:
        texts.append(_UNNAMED)
        counts.append(len(unnamed))
    group_of |= dict.fromkeys(unnamed, 0 if fits else len(groups))
    names = sorted(group_of)
    places = {name: place for place, name in enumerate(names)}
    rated = sorted(decision.totals, key=lambda name: (-decision.totals[name], name != decision.node, name))
    plugins = list(dict.fromkeys(plugin for name in rated for plugin in decision.scores.get(name, ())))
    return Decision(
        pod=escape(decision.pod, _LONGEST),
        taken=places.get(decision.node, -1),
        nodes=[escape(name, _LONGEST) for name in names],
        groups=texts,
        group_of=[group_of[name] for name in names],
        fits=fits,
        plugins=plugins,
        rated=[places[name] for name in rated],
        scores=[[decision.scores.get(name, {}).get(plugin, 0) for plugin in plugins] for name in rated],
        totals=[decision.totals[name] for name in rated],
        candidates=_written_candidates(decision, preemption, places),
        rejected=[(places[name], _reason(verdict)) for name, verdict in sorted(refused.items())],
        decided_by="",
        role=_WRITTEN_ROLES.get(decision.outcome, ""),
        counts=counts,
    )


def _written_candidates(
    decision: WrittenDecision, preemption: Preemption, places: Mapping[str, int]
) -> list[Candidate]:
    """The chosen one first, then those with the fewest violations, by name."""
    names = sorted(
        preemption.candidates, key=lambda name: (name != decision.node, preemption.candidates[name].violations, name)
    )
    found = [(places[name], preemption.candidates[name]) for name in names]
    # What the line does not tell of a candidate is its victims' priority.
    return [
        Candidate(place, one.violations, None, len(one.victims), [escape(victim, _LONGEST) for victim in one.victims])
        for place, one in found
    ]


def _reason(verdict: Verdict) -> str:
    if verdict.status == _SUCCESS:
        return "fits"
    message = "; ".join(verdict.reasons) or verdict.status
    return escape(f"{message} ({verdict.plugin})" if verdict.plugin else message, _LONGEST)
