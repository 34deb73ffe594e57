"""The outcomes that a decision may have: by chance, and with changes of nodes, priorities and policies (remedies).

kube-scheduler selects at random among the nodes with the best score, and among the candidates that its criteria leave
equal. In a large cluster, the nodes that it examines depend on where it starts (`limited_search`). Outcomes by chance
differ in the preempted workloads. Remedies are found by deciding again.

Source: pkg/scheduler/schedule_one.go (selectHost), pkg/scheduler/framework/preemption/preemption.go
(pickOneNodeForPreemption, which takes the first of a map).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podium.api.policy import HIGHEST_USER_PRIORITY, NEVER_PREEMPTS
from podium.api.times import SECOND, format_time
from podium.app.console.cells import NODES, WORKLOADS, by_key
from podium.app.console.page import Cell, Name, Page, Part, counted, listed, names_of
from podium.app.explaining.attempts import explain_decision
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.obstacles import NodeObstacles, find_obstacles, obstacle_texts
from podium.cluster.pods import DEFAULT_POLICY, PodRecord
from podium.decide.preempting import eligibility

MAX_OUTCOMES = 100
"""The maximum number of outcomes to name, and of nodes of each."""

_MAX_NODES = 5


class TieOutcome(Struct, frozen=True):
    """Possible choices that preempt the same numbers of pods of the same workloads; () for none.

    `victims` has the pods by node, in the order of the nodes' names, and `chances` the share of each node.
    """

    losses: tuple[tuple[str, int], ...]
    victims: tuple[tuple[str, tuple[str, ...]], ...]
    chances: tuple[float, ...] = ()

    @property
    def chance(self) -> float:
        """The share of the outcome, from 0 to 1."""
        return sum(self.chances)

    def to_dict(self) -> dict[str, Any]:
        return {
            "losses": [{"workload": workload, "pods": pods} for workload, pods in self.losses],
            "chance": round(self.chance, 4),
            "nodes": [
                {"node": node, "victims": list(victims), "chance": round(chance, 4)}
                for (node, victims), chance in zip(self.victims[:MAX_OUTCOMES], self.chances, strict=False)
            ],
            "furtherNodes": max(0, len(self.victims) - MAX_OUTCOMES),
        }


def outcomes_of(decision: Explanation) -> tuple[TieOutcome, ...]:
    """Return the outcomes that the decision may have, the most probable first, then by losses.

    There is one if nothing depends on chance, and none if the pod gets no node.
    """
    plan, search = decision.plan, decision.limited_search
    if search is not None:
        with decision.as_decided():
            chances = search.chances()
        victims_on = {} if plan is None else plan.candidates
        return grouped({name: victims_on[name].victims if name in victims_on else () for name in chances}, chances)
    if plan is not None and plan.chosen is not None:
        chosen = {name: plan.candidates[name].victims for name in plan.selected if name in plan.candidates}
        return grouped(chosen or {plan.chosen.node_name: plan.chosen.victims})
    if decision.proposal is not None and decision.node:
        return grouped({decision.node: decision.victims})
    if decision.outcome != "schedulable":
        return ()
    return grouped(dict.fromkeys(decision.best or (decision.node,), ()))


def outcomes_dict(outcomes: Sequence[TieOutcome]) -> dict[str, Any]:
    """Return the JSON form of the first outcomes, and the number of further ones."""
    named = [outcome.to_dict() for outcome in outcomes[:MAX_OUTCOMES]]
    return {"outcomes": named, "furtherOutcomes": max(0, len(outcomes) - MAX_OUTCOMES)}


def grouped(
    choices: Mapping[str, tuple[PodRecord, ...]], chances: Mapping[str, float] | None = None
) -> tuple[TieOutcome, ...]:
    """Return nodes, with the victims on each, by losses: the most probable first, then by losses.

    Without ``chances`` all nodes are equally probable.
    """
    found: dict[tuple[tuple[str, int], ...], list[tuple[str, tuple[str, ...]]]] = {}
    for node in sorted(choices):
        losses = tuple(sorted(Counter(map(_workload, choices[node])).items()))
        found.setdefault(losses, []).append((node, tuple(victim.key for victim in choices[node])))
    chances = dict.fromkeys(choices, 1 / max(len(choices), 1)) if chances is None else chances
    outcomes = [
        TieOutcome(losses, tuple(victims), tuple(chances[node] for node, _ in victims))
        for losses, victims in found.items()
    ]
    return tuple(sorted(outcomes, key=lambda outcome: (-round(outcome.chance, 9), outcome.losses)))


def _workload(victim: PodRecord) -> str:
    controller = victim.controller
    return f"Pod {victim.key}" if controller is None else f"{controller.kind} {victim.namespace}/{controller.name}"


def write_outcomes(page: Page, decision: Explanation) -> None:
    """Write the preempted workloads and the nodes of each outcome."""
    outcomes = outcomes_of(decision)
    choices = sum(len(outcome.victims) for outcome in outcomes)
    if choices < 2:
        page.title("Outcomes", "one: nothing depends on chance" if outcomes else "one: it gets no node")
        return
    is_limited = decision.limited_search is not None
    why = (
        "that kube-scheduler may make" if is_limited else "that are equal for kube-scheduler, which takes one at random"
    )
    page.title("Outcomes", f"{choices:,} choices {why}")
    rows: list[list[Part]] = []
    for outcome in outcomes:
        pods = sum(number for _, number in outcome.losses)
        names = ", ".join(workload for workload, _ in outcome.losses)
        lost: Part = Cell(f"{counted(pods, 'pod')} of {names}", "bad")
        if not pods:
            lost = Cell("no pod is preempted", "good")
        elif len(outcome.losses) == 1:
            lost = Name(names, WORKLOADS, "bad", after="" if pods == 1 else f": {pods} pods")
        nodes = names_of([node for node, _ in outcome.victims], NODES, most=_MAX_NODES)
        share: list[Part] = [f"{outcome.chance:.0%}"] if is_limited else []
        rows.append([*share, lost, counted(len(outcome.victims), "node"), nodes])
    page.table(rows, most=MAX_OUTCOMES)


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
