"""Pictures of decisions: nodes by verdict, scores by plugin, candidates with their victims."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from podium.api.errors import escape
from podium.app.console.page import Page, Section, counted
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import find_obstacles
from podium.app.explaining.on_node import NodeAnswer, verdict_sections
from podium.app.explaining.preemption_text import costs_of
from podium.app.explaining.remedies import write_remedies
from podium.app.explaining.text import facts_of
from podium.app.explaining.workload import WorkloadExplanation
from podium.app.live.decisions import Preemption, WrittenDecision, facts_of_written, write_decision
from podium.app.reporting.picture import AnswerPicture, Candidate, Decision, caveat_texts, drawn

_WIDTH = 120
# Wide enough that no line is broken.
_ENDLESS = 4_000
_LONGEST = 2_000
_FITS = "fits"
_ROLES = {"schedulable": "the node that it goes to", "preempts": "the node on which it preempts"}


def picture_of_decision(answer: Explanation | WorkloadExplanation | NodeAnswer) -> AnswerPicture:
    """Return the picture of a decision about a pod, with every plugin's verdict on one node if requested."""
    explanation = answer if isinstance(answer, Explanation) else answer.explanation
    on_node = answer if isinstance(answer, NodeAnswer) else None
    page, about, remedies = Page(_WIDTH), Page(_ENDLESS), Page(_ENDLESS)
    answer.write(page)
    if isinstance(answer, WorkloadExplanation):
        answer.write_pods(about)
    if explanation.pending_outcome in ("preempts", "unschedulable", "not-eligible") and explanation.nodes:
        with explanation.as_decided():
            write_remedies(remedies, explanation, find_obstacles(explanation.runner, explanation.record))
    # The title, and the changes with which the pod would run, each a node and what it lacks in columns.
    title, *changes = _lines(remedies) or [""]
    found = facts_of(explanation)
    for status in (explanation.pre_enqueue, explanation.pre_filter):
        if status is not None:
            found.append(f"{status.plugin}: {status.message}")
    tables = []
    if on_node is not None:
        obstacles = tuple((text,) for text in on_node.obstacles)
        tables = drawn([Section("obstacles", "Obstacles", obstacles), *verdict_sections(on_node)])
    return AnswerPicture(
        command="explain",
        headline=_plain(explanation.headline if on_node is None else on_node.headline),
        facts=[*_lines(about), *[_plain(fact) for fact in (*found, explanation.error) if fact]],
        tables=tables,
        decision=_decision(explanation),
        changes=[re.sub(" {2,}", ": ", change, count=1) for change in changes],
        changes_title=title.partition("  ")[0],
        caveats=caveat_texts(explanation.caveats),
        text=page.text,
    )


def _lines(page: Page) -> list[str]:
    return [line.strip() for line in page.text.splitlines() if line.strip()]


def _decision(explanation: Explanation) -> Decision:
    # The distinct verdicts, success first, then the most frequent, and the index of each node's verdict.
    texts = {
        name: _FITS if status.is_success else f"{status.message or status.code.value} ({status.plugin})"
        for name, status in explanation.nodes.items()
    }
    counts = Counter(texts.values())
    groups = sorted(counts, key=lambda text: (text != _FITS, -counts[text], text))
    group_of = {name: groups.index(text) for name, text in texts.items()}
    plan = explanation.plan
    chosen = "" if plan is None or plan.chosen is None else plan.chosen.node_name
    order = () if plan is None else plan.candidates.values()
    candidates = {
        each.node_name: (
            *(each.budget_violations, each.victims[0].priority, [victim.key for victim in each.victims]),
            costs_of(plan, each) if plan is not None and plan.criteria else None,
        )
        for each in sorted(order, key=lambda each: (each.node_name != chosen, *each.cost, each.node_name))
    }
    return _drawn(
        explanation.pod,
        explanation.pending_node,
        groups,
        group_of,
        totals=explanation.totals,
        scores=explanation.scores,
        candidates=candidates,
        rejected={} if plan is None else {name: status.message for name, status in plan.rejected.items()},
        fits=any(status.is_success for status in explanation.nodes.values()),
        decided_by="" if plan is None else plan.criterion,
        role=_ROLES.get(explanation.pending_outcome, ""),
        criteria=None if plan is None else [criterion.heading for criterion in plan.criteria] or None,
    )


_Candidate = tuple[int, int | None, Sequence[str], list[str] | None]
"""The violations, the highest priority and the keys of the victims of a candidate, and its costs."""


def _drawn(
    pod: str,
    taken: str,
    groups: list[str],
    group_of: Mapping[str, int],
    *,
    totals: Mapping[str, int],
    scores: Mapping[str, Mapping[str, int]],
    candidates: Mapping[str, _Candidate],
    rejected: Mapping[str, str],
    **others: Any,
) -> Decision:
    """Return the drawing of a decision, which refers to nodes by index."""
    names = sorted(group_of)
    places = {name: place for place, name in enumerate(names)}
    rated = sorted(totals, key=lambda name: (-totals[name], name != taken, name))
    plugins = list(dict.fromkeys(plugin for name in rated for plugin in scores.get(name, ())))
    return Decision(
        pod=_plain(pod),
        taken=places.get(taken, -1),
        nodes=list(map(_plain, names)),
        groups=list(map(_plain, groups)),
        group_of=[group_of[name] for name in names],
        plugins=plugins,
        rated=[places[name] for name in rated],
        scores=[[scores.get(name, {}).get(plugin, 0) for plugin in plugins] for name in rated],
        totals=[totals[name] for name in rated],
        candidates=[
            Candidate(places[name], violations, priority, len(keys), list(map(_plain, keys[:30])), costs)
            for name, (violations, priority, keys, costs) in candidates.items()
        ],
        rejected=[(places[name], _plain(why)) for name, why in sorted(rejected.items())],
        **others,
    )


def _plain(text: str) -> str:
    return escape(text, _LONGEST)


_SUCCESS = "Success"
_UNNAMED = "rejected; the log does not name the reason"
_WRITTEN_ROLES = {"schedulable": "the node that it went to", "preempts": "the node on which it preempted"}


def picture_of_written(decision: WrittenDecision) -> AnswerPicture:
    """Return the picture of a decision from the decision log, with the actions that followed."""
    page = Page(_WIDTH)
    write_decision(page, decision)
    facts = [facts_of_written(decision), decision.error]
    facts.append("" if decision.preemption is None else decision.preemption.reason)
    named, number = sum(len(verdict.names) for verdict in decision.nodes), sum(each.count for each in decision.nodes)
    if named < number:
        facts.append(f"the log names {named:,} of {counted(number, 'node')}: the first of each verdict and the best")
    done: list[tuple[str, ...]] = []
    for action in decision.done:
        rest = (f"{name} {value}" for name, value in action.items() if name not in ("action", "pod", "uid"))
        done.append((f"{action.get('action')}", f"{action.get('pod')}", ", ".join(rest)))
    return AnswerPicture(
        command="explain",
        headline=_plain(page.text.splitlines()[0]),
        facts=list(map(_plain, filter(None, facts))),
        tables=drawn([Section("done", "Asked for", tuple(done), ("", "pod", ""))]),
        decision=_written_decision(decision),
        text=page.text,
    )


def _written_decision(decision: WrittenDecision) -> Decision:
    groups = sorted(decision.nodes, key=lambda verdict: (verdict.status != _SUCCESS, -verdict.count, verdict.text))
    group_of = {name: place for place, verdict in enumerate(groups) for name in verdict.names}
    texts, counts = [verdict.text for verdict in groups], [verdict.count for verdict in groups]
    preemption = decision.preemption or Preemption()
    refused = {name: verdict.text for verdict in preemption.rejected for name in verdict.names}
    # The best nodes may be none of those that their verdict names first.
    fits = bool(groups) and groups[0].status == _SUCCESS
    mentioned = dict.fromkeys((decision.node, *decision.totals, *preemption.candidates, *refused))
    unnamed = [name for name in mentioned if name and name not in group_of]
    if unnamed and not fits:
        texts.append(_UNNAMED)
        counts.append(len(unnamed))
    group_of |= dict.fromkeys(unnamed, 0 if fits else len(groups))
    order = sorted(
        preemption.candidates.items(), key=lambda item: (item[0] != decision.node, item[1].violations, item[0])
    )
    return _drawn(
        decision.pod,
        decision.node,
        texts,
        group_of,
        totals=decision.totals,
        scores=decision.scores,
        # The line does not have the priority of a candidate's victims.
        candidates={name: (each.violations, None, each.victims, None) for name, each in order},
        rejected=refused,
        fits=fits,
        decided_by="",
        role=_WRITTEN_ROLES.get(decision.outcome, ""),
        counts=counts,
    )
