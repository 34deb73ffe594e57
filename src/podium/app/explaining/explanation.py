"""An explanation: a decision about one pod with what would have to change, as text, JSON and a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from podium.api.errors import PodiumError
from podium.api.policy import PRIORITY_RULE_ANNOTATION
from podium.api.times import format_time
from podium.app.answers import Frame, Shown, Value, kinds
from podium.app.console.page import Page
from podium.app.explaining.on_node import NodeAnswer, answer_on
from podium.app.explaining.outcomes import outcomes_dict, outcomes_of
from podium.app.explaining.pod_decision import SCHEMA_VERSION, PlacedPodFacts, PodDecision
from podium.app.explaining.remedies import remedies_dict
from podium.app.explaining.text import headline_of, write_explanation
from podium.sim.results.disruption_state import DisruptionState

_COLUMNS = kinds("node status plugin reasons", "total")


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(PodDecision, Shown):
    """The decision about one pod of a loaded cluster."""

    @classmethod
    def of(cls, decision: PodDecision, disruptions: Callable[[], DisruptionState] = DisruptionState) -> Explanation:
        """Return the explanation of a decision."""
        values = {field.name: getattr(decision, field.name) for field in fields(decision)}
        return cls(**{**values, "disruptions_found": disruptions})

    @property
    def headline(self) -> str:
        """What becomes of the pod, in one line."""
        return headline_of(self)

    def _in_a_line(self) -> str:
        return self.headline

    def on_node(self, node: str) -> NodeAnswer:
        """Return what every plugin says of one node: "why not there?". Raises PodiumError for an unknown node."""
        return answer_on(self, node)

    def write(self, page: Page) -> None:
        """Write it as `podium explain` does."""
        write_explanation(page, self)

    def frame(self, name: str = "nodes") -> Frame:
        """Return a table of the explanation: `nodes`, the only one. Raises PodiumError for another.

        A row for each node, by name: `node`, `status` as kube-scheduler names it, the `plugin` that rejected it, its
        `reasons`; the `total` score and the weighted one of each plugin, as `score.PLUGIN`, if the pod fits; and if
        preemption was tried the number of `victims`, and of these those that violate a budget.
        """
        if name != "nodes":
            raise PodiumError(f"an explanation has no table {name}; it has: nodes")
        return Frame.of_rows("nodes", [self._row(node) for node in self.nodes], _COLUMNS)

    def _row(self, node: str) -> dict[str, Value]:
        status = self.nodes[node]
        row: dict[str, Value] = {
            "node": node,
            "status": status.code.value,
            "plugin": status.plugin or None,
            "reasons": ", ".join(status.reasons) or None,
            "total": self.totals.get(node),
        }
        row |= {f"score.{plugin}": score for plugin, score in self.scores.get(node, {}).items()}
        candidate = None if self.plan is None else self.plan.candidates.get(node)
        if candidate is not None:
            row |= {"victims": len(candidate.victims), "pdbViolations": candidate.budget_violations}
        return row

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values: the decision, equal outcomes, what would have to change, the caveats."""
        found = {"schemaVersion": SCHEMA_VERSION, **self.decision()}
        record = self.record
        found["priority"] = record.priority
        if PRIORITY_RULE_ANNOTATION in record.annotations:
            found["priorityRule"] = record.annotations[PRIORITY_RULE_ANNOTATION]
        if record.nominated_node_name:
            found["nominatedNode"] = record.nominated_node_name
        if record.gates:
            found["gates"] = list(record.gates)
        if self.plan is not None and self.plan.criterion:
            found["preemption"] = {**found["preemption"], "decidedBy": self.plan.criterion}
        outcomes = outcomes_of(self)
        if sum(len(outcome.victims) for outcome in outcomes) > 1:
            found |= outcomes_dict(outcomes)
        remedies = remedies_dict(self)
        if remedies is not None:
            found["remedies"] = remedies
        if self.placed is not None:
            found["placed"] = _placed_dict(self.placed)
        if self.disruptions:
            found["disruptions"] = self.disruptions.to_dict()
        found["caveats"] = [caveat.to_dict() for caveat in self.caveats]
        return found


def _placed_dict(placed: PlacedPodFacts) -> dict[str, Any]:
    return {
        "placedBy": placed.by,
        "since": None if placed.since_ns is None else format_time(placed.since_ns),
        "rank": placed.rank,
        "ifEvicted": {"outcome": placed.then, "node": placed.then_node, "replacedBy": placed.controller or None},
        "preemptors": [
            {"pod": each.pod.key, "priority": each.pod.priority, "now": each.is_chosen} for each in placed.preemptors
        ],
        "preemptorsNotAsked": placed.not_asked,
        "budgets": [{"budget": name, "allowed": allowed} for name, allowed in placed.budgets],
    }
