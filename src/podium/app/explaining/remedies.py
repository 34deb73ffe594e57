"""The changes with which a pod would run: of nodes, and of priorities and policies, found by deciding again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from podium.api.policy import NEVER_PREEMPTS
from podium.api.times import format_time
from podium.app.console.cells import NODES, by_key
from podium.app.console.page import Cell, Page, Part, counted, listed, names_of
from podium.app.explaining.attempts import explain_decision
from podium.app.explaining.obstacles import NodeObstacles, find_obstacles, obstacle_texts
from podium.app.explaining.pod_decision import PodDecision
from podium.cluster.pods import PodRecord
from podium.decide.preempting.eligibility import (
    NOT_ELIGIBLE_TERMINATING,
    NOT_ELIGIBLE_TERMINATING_ELSEWHERE,
    NOT_ELIGIBLE_YET,
    HeldBack,
)
from podium.decide.preempting.preemption_plan import PreemptionPlan

MAX_USER_PRIORITY = 1_000_000_000
"""The highest priority of pods that are not the system's (pkg/apis/scheduling/types.go)."""

_SECOND = 10**9
_MAX_DESCRIBED = 200
_MAX_ROWS = 6
_MAX_NAMES = 3
_PREEMPTIBLE = "PreemptLowerPriority"
_NEED_REMEDIES = ("preempts", "unschedulable", "not-eligible")


@dataclass(frozen=True, slots=True)
class NodeRemedy:
    """Nodes with the same obstacles, in words; without all of them the pod fits there."""

    nodes: tuple[str, ...]
    obstacles: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodRemedy:
    """The decision about the pod with another priority (None: its own) and with leave to preempt.

    `from_never`: its policy now forbids it to preempt.
    """

    priority: int | None
    from_never: bool
    then: PodDecision


@dataclass(frozen=True, slots=True)
class ProtectionRemedy:
    """The decision if the policy of `pods`, of lower priority, did not protect them from preemption."""

    pods: tuple[PodRecord, ...]
    then: PodDecision


@dataclass(frozen=True, slots=True)
class Remedies:
    """The remedies: the nearest nodes first, `further` nodes without a description; None for those that do not help."""

    nodes: tuple[NodeRemedy, ...]
    further: int
    pod: PodRemedy | None
    protection: ProtectionRemedy | None


def find_remedies(decision: PodDecision, obstacles: Sequence[NodeObstacles]) -> Remedies:
    """Return the changes with which a pod that fits nowhere would run; each is enough by itself.

    ``obstacles`` are those of all nodes, the nearest first.
    """
    cluster = decision.runner.cluster
    alike = by_key(
        (tuple(obstacle_texts(cluster, decision.record, each)), each.node) for each in obstacles[:_MAX_DESCRIBED]
    )
    return Remedies(
        nodes=tuple(NodeRemedy(tuple(nodes), clauses) for clauses, nodes in alike.items()),
        further=len(obstacles[_MAX_DESCRIBED:]),
        pod=_pod_remedy(decision),
        protection=_protection_remedy(decision),
    )


def protected_pods(decision: PodDecision) -> list[PodRecord]:
    """Return the pods of lower priority that their policy protects from preemption, by key."""
    placed = decision.runner.cluster.placed.values()
    lower = (pod for pod in placed if pod.priority < decision.record.priority)
    return sorted((pod for pod in lower if not pod.is_preemptible and not pod.is_mirror), key=lambda pod: pod.key)


def _protection_remedy(decision: PodDecision) -> ProtectionRemedy | None:
    """Decide again with the protection removed, and restore it."""
    pods, cluster = protected_pods(decision), decision.runner.cluster
    if decision.node or decision.plan is None or not decision.plan.eligible or not pods:
        return None
    try:
        for pod in pods:
            cluster.replace_pod(replace(pod, preemption_policy=_PREEMPTIBLE))
        then = explain_decision(decision.runner, decision.record)
    finally:
        for pod in pods:
            cluster.replace_pod(pod)
    if then.plan is None or then.plan.chosen is None:
        return None
    victims = {victim.key for victim in then.plan.chosen.victims}
    return ProtectionRemedy(tuple(pod for pod in pods if pod.key in victims), then)


def _pod_remedy(decision: PodDecision) -> PodRemedy | None:
    """Find the lowest priority with which the pod would get a node, by binary search."""
    pod, plan = decision.record, decision.plan
    if decision.node or plan is None or plan.reason in NOT_ELIGIBLE_YET:
        return None
    from_never = pod.preemption_policy in NEVER_PREEMPTS
    willing = replace(pod, preemption_policy=_PREEMPTIBLE)
    priorities = _priorities(decision)
    if not from_never:
        priorities = priorities[1:]
    found: PodDecision | None = None
    low, high = 0, len(priorities)
    while low < high:
        # The highest is tried first: if that does not help, none does.
        middle = (low + high) // 2 if found else high - 1
        tried = explain_decision(decision.runner, replace(willing, priority=priorities[middle]))
        if tried.node:
            found, high = tried, middle
        elif found is None:
            return None
        else:
            low = middle + 1
    if found is None:
        return None
    priority = found.record.priority
    return PodRemedy(None if priority == pod.priority else priority, from_never, found)


def _priorities(decision: PodDecision) -> list[int]:
    """Return the pod's own priority, and those just above that of a placed or nominated pod, ascending."""
    pod, cluster = decision.record, decision.runner.cluster
    others = {other.priority for other in cluster.placed.values()} | {
        nominated.priority for nominated, _ in cluster.nominations.all()
    }
    above = {priority + 1 for priority in others if pod.priority <= priority < MAX_USER_PRIORITY}
    return [pod.priority, *sorted(above)]


def remedies_dict(decision: PodDecision) -> dict[str, Any] | None:
    """Return the JSON form of the remedies for a pod that no node can take; None for others."""
    if decision.pending_outcome not in _NEED_REMEDIES or not decision.nodes or decision.awaits_others:
        return None
    with decision.as_decided():
        remedies = find_remedies(decision, find_obstacles(decision.runner, decision.record))
    found: dict[str, Any] = {
        "nodes": [{"nodes": list(node.nodes), "obstacles": list(node.obstacles)} for node in remedies.nodes],
        "furtherNodes": remedies.further,
    }
    if remedies.pod is not None:
        found["pod"] = {} if remedies.pod.priority is None else {"priority": remedies.pod.priority}
        found["pod"] |= {"preemptionPolicy": _PREEMPTIBLE} if remedies.pod.from_never else {}
        found["pod"] |= _then_dict(remedies.pod.then)
    if remedies.protection is not None:
        pods = [pod.key for pod in remedies.protection.pods]
        found["protection"] = {"pods": pods} | _then_dict(remedies.protection.then)
    return found


def _then_dict(then: PodDecision) -> dict[str, Any]:
    return {"outcome": then.outcome, "node": then.node, "victims": [victim.key for victim in then.victims]}


def write_remedies(page: Page, decision: PodDecision, obstacles: Sequence[NodeObstacles]) -> None:
    """Write the obstacles on the nearest nodes, and what another priority or policy would change."""
    remedies = find_remedies(decision, obstacles)
    goal = " to run without preempting" if decision.outcome == "preempts" else ""
    page.title(f"What would have to change{goal}", "each line is enough by itself")
    rows: list[list[Part]] = [
        [names_of(node.nodes, NODES, "bold"), "; ".join(node.obstacles)] for node in remedies.nodes[:_MAX_ROWS]
    ]
    page.columns(rows, indent=2)
    further = sum(len(node.nodes) for node in remedies.nodes[_MAX_ROWS:]) + remedies.further
    if further:
        page.line(Cell(f"{counted(further, 'more node')}, further away", "dim"), indent=2)
    for line in [] if decision.plan is None else _plan_lines(decision, decision.plan):
        page.paragraph(line, indent=2, hanging=2)
    if remedies.protection is not None:
        pods = listed([f"{pod.key} ({pod.preemption_policy})" for pod in remedies.protection.pods], _MAX_NAMES)
        page.paragraph(
            f"without the preemptionPolicy of {pods} {_preempting(remedies.protection.then)}", indent=2, hanging=2
        )
    if remedies.pod is not None:
        conditions = []
        if remedies.pod.from_never:
            conditions.append("preemptionPolicy PreemptLowerPriority")
        if remedies.pod.priority is not None:
            conditions.append(f"priority {remedies.pod.priority}")
        page.paragraph(f"with {' and '.join(conditions)} {_preempting(remedies.pod.then)}", indent=2, hanging=2)


def _plan_lines(decision: PodDecision, plan: PreemptionPlan) -> list[str]:
    """Return the reasons for which the preemption waits."""
    node = decision.record.nominated_node_name
    lines = {
        NOT_ELIGIBLE_TERMINATING: [f"the pods that it preempted on {node} would have to end"],
        NOT_ELIGIBLE_TERMINATING_ELSEWHERE: [f"the pods that keep it off {node}, and terminate, would have to end"],
    }.get(plan.reason, [])
    if plan.put_off is not None:
        lines.append(f"at {plan.put_off.next_time} the cap on the scheduler's disruptions leaves enough")
    if plan.held_back is not None:
        lines.append(_held_back(plan.held_back))
    return lines


def _held_back(held: HeldBack) -> str:
    """Return the effect of preemption if budgets allowed it, and when a rate allows more."""
    victims = listed([victim.key for victim in held.victims], _MAX_NAMES)
    noun = "budget" if len(held.budgets) == 1 else "budgets"
    budgets = f"{noun} {listed(held.budgets, _MAX_NAMES)}"
    found = f"if {budgets} allowed it, it would preempt {victims} on {held.node_name}"
    if held.next_ns is None:
        return found
    return f"{found}; the next token of a rate comes back at {format_time(-(-held.next_ns // _SECOND) * _SECOND)}"


def _preempting(then: PodDecision) -> str:
    if not then.victims:
        return f"it would fit on {then.node}"
    victims = listed([victim.key for victim in then.victims], _MAX_NAMES)
    return f"it would preempt {victims} on {then.node}"
