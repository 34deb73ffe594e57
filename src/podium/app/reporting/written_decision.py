"""The picture of a decision that was written down: the nodes that its line names, by verdict and score."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.errors import escape
from podium.app.console.page import Page, counted
from podium.app.live.decision import Decision as WrittenDecision
from podium.app.live.decision import Preemption, Verdict
from podium.app.live.decision_text import write_decision
from podium.app.reporting.picture import Candidate, Decision, Picture, Table

_WIDTH = 120
_LONGEST = 2_000
_SUCCESS = "Success"
_UNNAMED = "refused; the line does not name for what"
_ROLES = {"schedulable": "the node that it went to", "preempts": "the node on which it preempted"}
_NOT_TOLD = ("action", "pod", "uid")


def picture_of_written(decision: WrittenDecision) -> Picture:
    """The decision, what it was made from, and what was asked for then."""
    page = Page(_WIDTH)
    write_decision(page, decision)
    lines = page.text.splitlines()
    return Picture(
        command="explain",
        headline=escape(lines[0], _LONGEST),
        facts=_facts(decision),
        tables=_done(decision),
        decision=_decision(decision),
        text=page.text,
    )


def _facts(decision: WrittenDecision) -> list[str]:
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


def _decision(decision: WrittenDecision) -> Decision:
    groups = sorted(decision.nodes, key=lambda verdict: (verdict.status != _SUCCESS, -verdict.count, _said(verdict)))
    group_of = {name: place for place, verdict in enumerate(groups) for name in verdict.names}
    texts, counts = [_said(verdict) for verdict in groups], [verdict.count for verdict in groups]
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
        candidates=_candidates(decision, preemption, places),
        rejected=[(places[name], _said(verdict)) for name, verdict in sorted(refused.items())],
        decided_by="",
        role=_ROLES.get(decision.outcome, ""),
        counts=counts,
    )


def _candidates(decision: WrittenDecision, preemption: Preemption, places: Mapping[str, int]) -> list[Candidate]:
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


def _said(verdict: Verdict) -> str:
    if verdict.status == _SUCCESS:
        return "fits"
    message = "; ".join(verdict.reasons) or verdict.status
    return escape(f"{message} ({verdict.plugin})" if verdict.plugin else message, _LONGEST)
