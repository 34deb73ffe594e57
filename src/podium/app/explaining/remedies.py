"""The changes with which a pod would run: of nodes, and of priorities and policies, found by deciding again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podium.api.policy import HIGHEST_USER_PRIORITY, NEVER_PREEMPTS
from podium.api.times import SECOND, format_time
from podium.app.console.cells import NODES, by_key
from podium.app.console.page import Cell, Page, counted, listed, names_of
from podium.app.explaining.attempts import explain_decision
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import NodeObstacles, find_obstacles, obstacle_texts
from podium.cluster.pods import DEFAULT_POLICY, PodRecord
from podium.decide.preempting import eligibility

_MAX_ROWS = 6
_MAX_NAMES = 3
_NEED_REMEDIES = ("preempts", "unschedulable", "not-eligible")


class PodRemedy(Struct, frozen=True):
    """The decision about the pod with another priority (None: its own) and with leave to preempt.

    `from_never`: its policy now forbids it to preempt.
    """

    priority: int | None
    from_never: bool
    then: Explanation


class Remedies(Struct, frozen=True):
    """The remedies; None for those that do not help.

    `nodes` has the nodes by their obstacles in words, the nearest first; without all of these the pod fits there.
    `further` nodes are not described. `protection` has the pods of lower priority that their policy protects, and the
    decision if it did not.
    """

    nodes: Mapping[tuple[str, ...], list[str]]
    further: int
    pod: PodRemedy | None
    protection: tuple[list[PodRecord], Explanation] | None


def find_remedies(decision: Explanation, obstacles: Sequence[NodeObstacles]) -> Remedies:
    """Return the changes with which a pod that fits nowhere would run; each is enough by itself.

    ``obstacles`` are those of all nodes, the nearest first.
    """
    cluster, pod, near = decision.runner.cluster, decision.record, obstacles[:200]
    nodes = by_key((tuple(obstacle_texts(cluster, pod, each)), each.node) for each in near)
    return Remedies(nodes, len(obstacles) - len(near), _pod_remedy(decision), _protection_remedy(decision))


def protected_pods(decision: Explanation) -> list[PodRecord]:
    """Return the pods of lower priority that their policy protects from preemption, by key."""
    lower = (pod for pod in decision.runner.cluster.placed.values() if pod.priority < decision.record.priority)
    return sorted((pod for pod in lower if not pod.is_preemptible and not pod.is_mirror), key=lambda pod: pod.key)


def _protection_remedy(decision: Explanation) -> tuple[list[PodRecord], Explanation] | None:
    """Decide again with the protection removed, and restore it."""
    pods, cluster = protected_pods(decision), decision.runner.cluster
    if decision.node or decision.plan is None or not decision.plan.eligible or not pods:
        return None
    try:
        for pod in pods:
            cluster.replace_pod(replace(pod, preemption_policy=DEFAULT_POLICY))
        then = explain_decision(decision.runner, decision.record)
    finally:
        for pod in pods:
            cluster.replace_pod(pod)
    if then.plan is None or then.plan.chosen is None:
        return None
    victims = {victim.key for victim in then.plan.chosen.victims}
    return [pod for pod in pods if pod.key in victims], then


def _pod_remedy(decision: Explanation) -> PodRemedy | None:
    """Find the lowest priority with which the pod would get a node, by binary search."""
    pod, plan, cluster = decision.record, decision.plan, decision.runner.cluster
    if decision.node or plan is None or plan.reason in eligibility.NOT_ELIGIBLE_YET:
        return None
    from_never = pod.preemption_policy in NEVER_PREEMPTS
    willing = replace(pod, preemption_policy=DEFAULT_POLICY)
    # Its own priority if the policy alone may help, and those just above that of a placed or nominated pod.
    others = {other.priority for other in (*cluster.placed.values(), *(each for each, _ in cluster.nominations.all()))}
    above = {priority + 1 for priority in others if pod.priority <= priority < HIGHEST_USER_PRIORITY}
    priorities = [*([pod.priority] if from_never else []), *sorted(above)]

    @cache
    def tried(priority: int) -> Explanation:
        return explain_decision(decision.runner, replace(willing, priority=priority))

    # If the highest does not help, none does.
    if not priorities or not tried(priorities[-1]).node:
        return None
    priority = priorities[bisect_left(priorities[:-1], True, key=lambda each: bool(tried(each).node))]
    return PodRemedy(None if priority == pod.priority else priority, from_never, tried(priority))


def remedies_dict(decision: Explanation) -> dict[str, Any] | None:
    """Return the JSON form of the remedies for a pod that no node can take; None for others."""
    if decision.pending_outcome not in _NEED_REMEDIES or not decision.nodes or decision.awaits_others:
        return None
    with decision.as_decided():
        remedies = find_remedies(decision, find_obstacles(decision.runner, decision.record))
    found: dict[str, Any] = {
        "nodes": [{"nodes": nodes, "obstacles": list(obstacles)} for obstacles, nodes in remedies.nodes.items()],
        "furtherNodes": remedies.further,
    }
    if remedies.pod is not None:
        found["pod"] = {} if remedies.pod.priority is None else {"priority": remedies.pod.priority}
        found["pod"] |= {"preemptionPolicy": DEFAULT_POLICY} if remedies.pod.from_never else {}
        found["pod"] |= _then_dict(remedies.pod.then)
    if remedies.protection is not None:
        pods, then = remedies.protection
        found["protection"] = {"pods": [pod.key for pod in pods]} | _then_dict(then)
    return found


def _then_dict(then: Explanation) -> dict[str, Any]:
    return {"outcome": then.outcome, "node": then.node, "victims": [victim.key for victim in then.victims]}


def write_remedies(page: Page, decision: Explanation, obstacles: Sequence[NodeObstacles]) -> None:
    """Write the obstacles on the nearest nodes, and what another priority or policy would change."""
    remedies = find_remedies(decision, obstacles)
    goal = " to run without preempting" if decision.outcome == "preempts" else ""
    page.title(f"What would have to change{goal}", "each line is enough by itself")
    alike = [(names_of(nodes, NODES, "bold"), "; ".join(obstacles)) for obstacles, nodes in remedies.nodes.items()]
    page.columns(alike[:_MAX_ROWS], indent=2)
    further = sum(map(len, list(remedies.nodes.values())[_MAX_ROWS:])) + remedies.further
    if further:
        page.line(Cell(f"{counted(further, 'more node')}, further away", "dim"), indent=2)
    for line in _conditions(decision, remedies):
        page.paragraph(line, indent=2, hanging=2)


def _conditions(decision: Explanation, remedies: Remedies) -> Iterator[str]:
    """Yield the events for which the preemption waits, and the effects of another policy or priority."""
    plan, node = decision.plan, decision.record.nominated_node_name
    if plan is not None and plan.reason == eligibility.NOT_ELIGIBLE_TERMINATING:
        yield f"the pods that it preempted on {node} would have to end"
    if plan is not None and plan.reason == eligibility.NOT_ELIGIBLE_TERMINATING_ELSEWHERE:
        yield f"the pods that keep it off {node}, and terminate, would have to end"
    if plan is not None and plan.put_off is not None:
        yield f"at {plan.put_off.next_time} the cap on the scheduler's disruptions leaves enough"
    held = None if plan is None else plan.held_back
    if held is not None:
        noun = "budget" if len(held.budgets) == 1 else "budgets"
        refusing = f"{noun} {listed(held.budgets, _MAX_NAMES)}"
        text = f"if {refusing} allowed it, it {_preempting(held.victims, held.node_name)}"
        if held.next_ns is not None:
            next_time = format_time(-(-held.next_ns // SECOND) * SECOND)
            text += f"; the next token of a rate comes back at {next_time}"
        yield text
    if remedies.protection is not None:
        pods, then = remedies.protection
        names = listed([f"{pod.key} ({pod.preemption_policy})" for pod in pods], _MAX_NAMES)
        yield f"without the preemptionPolicy of {names} it {_preempting(then.victims, then.node)}"
    changed = remedies.pod
    if changed is not None:
        policy = ["preemptionPolicy PreemptLowerPriority"] if changed.from_never else []
        priority = [] if changed.priority is None else [f"priority {changed.priority}"]
        yield f"with {' and '.join(policy + priority)} it {_preempting(changed.then.victims, changed.then.node)}"


def _preempting(victims: Sequence[PodRecord], node: str) -> str:
    names = listed([victim.key for victim in victims], _MAX_NAMES)
    return f"would preempt {names} on {node}" if victims else f"would fit on {node}"
