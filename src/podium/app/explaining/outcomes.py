"""The outcomes that a decision may have by chance, by preempted workloads.

kube-scheduler selects at random among the nodes with the best score, and among the candidates that its criteria leave
equal. In a large cluster, the nodes that it examines depend on where it starts (`limited_search`).

Source: pkg/scheduler/schedule_one.go (selectHost), pkg/scheduler/framework/preemption/preemption.go
(pickOneNodeForPreemption, which takes the first of a map).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from podium.app.console.cells import NODES, WORKLOADS, Cell, Name, Part, counted, names_of
from podium.app.console.page import Page
from podium.app.explaining.explanation import Explanation
from podium.cluster.pods import PodRecord

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
