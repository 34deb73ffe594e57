"""All ways in which a decision may come out where chance chooses between equals, by who suffers.

kube-scheduler takes one of the nodes of the best score, and one of the candidates that its criteria leave equal, by
chance. Source: pkg/scheduler/schedule_one.go (selectHost), pkg/scheduler/framework/preemption/preemption.go
(pickOneNodeForPreemption, which takes the first of a map).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.app.explaining.explanation import Explanation
from podium.cluster.pods import PodRecord

MOST_OUTCOMES = 100
"""How many are named, and how many nodes of each."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Ways that are alike for those who suffer: by workload, how many of its pods go; () where nobody does.

    `victims` has the pods by node, in the order of the nodes' names.
    """

    suffering: tuple[tuple[str, int], ...]
    victims: tuple[tuple[str, tuple[str, ...]], ...]

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON shows it."""
        return {
            "suffering": [{"workload": workload, "pods": pods} for workload, pods in self.suffering],
            "nodes": [{"node": node, "victims": list(victims)} for node, victims in self.victims[:MOST_OUTCOMES]],
            "furtherNodes": max(0, len(self.victims) - MOST_OUTCOMES),
        }


def outcomes_of(explanation: Explanation) -> tuple[Outcome, ...]:
    """The outcomes that are equal to the one that is told: of most nodes first, then by who suffers.

    There is one where nothing is left to chance, and none where the pod gets no node. Of kube-scheduler's other
    chances, a sample of the nodes (`percentageOfNodesToScore`) and of the candidates, nothing is said.
    """
    plan = explanation.plan
    if plan is not None and plan.chosen is not None:
        chosen = {name: plan.candidates[name].victims for name in plan.selected if name in plan.candidates}
        return grouped(chosen or {plan.chosen.node_name: plan.chosen.victims})
    if explanation.outcome != "schedulable":
        return ()
    return grouped(dict.fromkeys(explanation.best or (explanation.node,), ()))


def outcomes_dict(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The outcomes as JSON shows them, the first hundred of them, and how many more there are."""
    named = [outcome.to_dict() for outcome in outcomes[:MOST_OUTCOMES]]
    return {"outcomes": named, "furtherOutcomes": max(0, len(outcomes) - MOST_OUTCOMES)}


def grouped(ways: Mapping[str, tuple[PodRecord, ...]]) -> tuple[Outcome, ...]:
    """Nodes that are equal, with the victims on each, by who suffers: of most nodes first, then by who suffers."""
    found: dict[tuple[tuple[str, int], ...], list[tuple[str, tuple[str, ...]]]] = {}
    for node in sorted(ways):
        suffering = tuple(sorted(Counter(map(_workload, ways[node])).items()))
        found.setdefault(suffering, []).append((node, tuple(victim.key for victim in ways[node])))
    order = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(Outcome(suffering, tuple(victims)) for suffering, victims in order)


def _workload(victim: PodRecord) -> str:
    controller = victim.controller
    return f"Pod {victim.key}" if controller is None else f"{controller.kind} {victim.namespace}/{controller.name}"
