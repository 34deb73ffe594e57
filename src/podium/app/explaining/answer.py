"""All that there is to say about a decision, for programs."""

from __future__ import annotations

from typing import Any

from podium.api.times import format_time
from podium.app.explaining.explanation import SCHEMA_VERSION, Explanation, Placed
from podium.app.explaining.obstacles import find_obstacles
from podium.app.explaining.outcomes import outcomes_dict, outcomes_of
from podium.app.explaining.remedies import NodeRemedy, PodRemedy, ProtectionRemedy, Remedies, find_remedies

_NEED_REMEDIES = ("preempts", "unschedulable", "not-eligible")


def answer_of(explanation: Explanation) -> dict[str, Any]:
    """The decision, the pod's gates, what decided between candidates, what would have to change, what it rests on.

    Where chance has a say, all outcomes that are equal.
    """
    found = {"schemaVersion": SCHEMA_VERSION, **explanation.decision()}
    record = explanation.record
    found["priority"] = record.priority
    if record.nominated_node_name:
        found["nominatedNode"] = record.nominated_node_name
    if record.gates:
        found["gates"] = list(record.gates)
    if explanation.plan is not None and explanation.plan.criterion:
        found["preemption"] = {**found["preemption"], "decidedBy": explanation.plan.criterion}
    outcomes = outcomes_of(explanation)
    if sum(len(outcome.victims) for outcome in outcomes) > 1:
        found |= outcomes_dict(outcomes)
    remedies = remedies_of(explanation)
    if remedies is not None:
        found["remedies"] = _remedies(remedies)
    if explanation.placed is not None:
        found["placed"] = _placed(explanation.placed)
    disruptions = explanation.disruptions
    if disruptions:
        found["disruptions"] = disruptions.to_dict()
    found["restsOn"] = [caveat.to_dict() for caveat in explanation.caveats]
    return found


def remedies_of(explanation: Explanation) -> Remedies | None:
    """What would have to change for a pod that no node can take; None for others."""
    outcome = explanation.outcome if explanation.placed is None else explanation.placed.then
    if outcome not in _NEED_REMEDIES or not explanation.nodes or explanation.awaits_others:
        return None
    with explanation.as_decided():
        return find_remedies(explanation, find_obstacles(explanation.runner, explanation.record))


def _remedies(remedies: Remedies) -> dict[str, Any]:
    found: dict[str, Any] = {"nodes": [_node(node) for node in remedies.nodes], "furtherNodes": remedies.further}
    if remedies.pod is not None:
        found["pod"] = _pod(remedies.pod)
    if remedies.protection is not None:
        found["protection"] = _protection(remedies.protection)
    return found


def _node(remedy: NodeRemedy) -> dict[str, Any]:
    return {"nodes": list(remedy.nodes), "obstacles": list(remedy.obstacles)}


def _pod(remedy: PodRemedy) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if remedy.priority is not None:
        found["priority"] = remedy.priority
    if remedy.from_never:
        found["preemptionPolicy"] = "PreemptLowerPriority"
    return found | _then(remedy.then)


def _protection(remedy: ProtectionRemedy) -> dict[str, Any]:
    return {"pods": [pod.key for pod in remedy.pods]} | _then(remedy.then)


def _then(then: Explanation) -> dict[str, Any]:
    """What would happen: on which node, and whom the pod would preempt there."""
    chosen = then.plan.chosen if then.plan is not None else None
    victims = [] if chosen is None else [victim.key for victim in chosen.victims]
    return {"outcome": then.outcome, "node": then.node, "victims": victims}


def _placed(placed: Placed) -> dict[str, Any]:
    return {
        "placedBy": placed.by,
        "since": None if placed.since_ns is None else format_time(placed.since_ns),
        "rank": placed.rank,
        "ifEvicted": {
            "outcome": placed.then,
            "node": placed.then_node,
            "madeAgainBy": placed.controller or None,
        },
        "takers": [
            {"pod": taker.pod.key, "priority": taker.pod.priority, "now": taker.is_chosen} for taker in placed.takers
        ],
        "takersNotAsked": placed.further,
        "budgets": [{"budget": name, "allowed": allowed} for name, allowed in placed.budgets],
    }
