"""What every plugin says of one node: "why not there?"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from podium.api.errors import PodiumError
from podium.api.schemas.suggestion import likely
from podium.app.explaining.explanation import SCHEMA_VERSION, Explanation
from podium.app.explaining.obstacle_facts import facts
from podium.app.explaining.obstacles import find_obstacles
from podium.app.shown import Shown
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.placement import left_out, place
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling, PluginError
from podium.framework.plugin import ArrayFilterPlugin, FilterPlugin
from podium.framework.runner import Runner
from podium.framework.scoring import Score
from podium.framework.status import SUCCESS, Status
from podium.framework.verdicts import Outcome

if TYPE_CHECKING:
    from podium.app.console.page import Page


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one Filter plugin says of a node; `status` None where it has nothing to say about the pod."""

    plugin: str
    status: Status | None


@dataclass(frozen=True, slots=True, repr=False)
class NodeAnswer(Shown):
    """Every plugin's verdict about one node, and how it compares with the node that is taken.

    `verdicts` are the filters' in their order, empty where the pod is turned down before any node is looked at, for the
    reason `before`. `beside` are pods that the node keeps room for. `scores` are there where the node can take the pod,
    `taken_scores` those of the node that is taken. `obstacles` say what is missing, in words.
    """

    explanation: Explanation
    node: str
    before: Status | None
    verdicts: tuple[Verdict, ...]
    beside: tuple[PodRecord, ...]
    obstacles: tuple[str, ...]
    scores: tuple[Score, ...]
    taken_scores: tuple[Score, ...]

    @property
    def headline(self) -> str:
        """Whether the node can take the pod, in a line."""
        from podium.app.explaining.on_node_text import headline_on

        return headline_on(self)

    def _in_a_line(self) -> str:
        return self.headline

    def write(self, page: Page) -> None:
        """Write it as `podium explain --node` does."""
        from podium.app.explaining.on_node_text import write_on_node

        write_on_node(page, self)

    @property
    def fits(self) -> bool:
        """Whether the node can take the pod as it is."""
        status = self.explanation.nodes.get(self.node)
        return status is not None and status.is_success

    @property
    def taken(self) -> str:
        """The node that is taken, or that would be if the pod were evicted."""
        placed = self.explanation.placed
        return self.explanation.node if placed is None else placed.then_node

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values."""
        found: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "pod": self.explanation.pod,
            "outcome": self.explanation.outcome,
            "node": self.node,
            "fits": self.fits,
            "taken": self.taken,
        }
        if self.before is not None:
            found["preFilter"] = _status(self.before)
        found["filters"] = [
            {"plugin": verdict.plugin, **({"status": "Skip"} if verdict.status is None else _status(verdict.status))}
            for verdict in self.verdicts
        ]
        found["nominatedThere"] = [pod.key for pod in self.beside]
        found["obstacles"] = list(self.obstacles)
        found["scores"] = [score.to_dict() for score in self.scores]
        found["takenScores"] = [score.to_dict() for score in self.taken_scores]
        found["preemption"] = self._preemption()
        return found

    def _preemption(self) -> dict[str, Any] | None:
        """What preempting there would take, or why it does not help; None where it is not asked for."""
        plan = self.explanation.plan
        if plan is None or not plan.eligible:
            return None
        candidate, rejected = plan.candidates.get(self.node), plan.rejected.get(self.node)
        if candidate is not None:
            victims = [victim.key for victim in candidate.victims]
            return {"helps": True, "victims": victims, "pdbViolations": candidate.budget_violations}
        return {"helps": False, "reasons": [] if rejected is None else list(rejected.reasons)}


def answer_on(explanation: Explanation, node: str) -> NodeAnswer:
    """What every plugin says of the node about the pod of an explanation. Raises PodiumError for an unknown node."""
    runner, pod = explanation.runner, explanation.record
    with explanation.as_decided():
        row = runner.cluster.nodes.row_of.get(node)
    if row is None:
        near = likely(node, sorted(runner.cluster.nodes.row_of))
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise PodiumError(f"node {node} is not in the input{hint}")
    if explanation.pre_enqueue is not None or explanation.error:
        return NodeAnswer(explanation, node, explanation.pre_enqueue, (), (), (), (), ())
    with explanation.as_decided():
        before, verdicts = _verdicts(runner, pod, row)
        on_node = next((found for found in find_obstacles(runner, pod) if found.node == node), None)
        scores = scores_of(explanation)
        return NodeAnswer(
            explanation,
            node,
            before,
            verdicts,
            () if on_node is None else on_node.nominated,
            () if on_node is None else tuple(facts(runner.cluster, pod, on_node)),
            scores.get(node, ()),
            scores.get(explanation.node if explanation.placed is None else explanation.placed.then_node, ()),
        )


def scores_of(explanation: Explanation) -> Mapping[str, tuple[Score, ...]]:
    """By node that can take the pod, what each Score plugin says of it, in the profile's order."""
    runner, pod = explanation.runner, explanation.record
    placement = place(runner, pod, nominated_first=False)
    if not len(placement.feasible):
        return {}
    view = View(runner.cluster, placement.feasible)
    state = placement.state
    try:
        if placement.totals is None:
            runner.scoring.prepare(state, pod, view)
        rated = runner.scoring.rated(state, pod, view)
    except PluginError:
        # The only node that fits is taken without being rated, whoever could not have rated it.
        return {}
    names = runner.cluster.nodes.names_by_row()
    return {
        names[row]: tuple(each.at(position) for each in rated)
        for position, row in enumerate(placement.feasible.tolist())
    }


def _verdicts(runner: Runner, pod: PodRecord, row: int) -> tuple[Status | None, tuple[Verdict, ...]]:
    """What turns the pod down before any node, or this one, is looked at; and what each filter says of it."""
    state = CycleState()
    pre_filter = runner.pre_filter(state, pod)
    if not pre_filter.status.is_success:
        return pre_filter.status, ()
    before = left_out(pre_filter) if pre_filter.rows is not None and row not in pre_filter.rows else None
    view = View(runner.cluster, np.array([row], dtype=np.int64))
    return before, tuple(
        Verdict(plugin.name, None if plugin.name in state.skip_filter else _asked(plugin, state, pod, view))
        for plugin in runner.profile.filter
    )


def _asked(plugin: ArrayFilterPlugin | FilterPlugin, state: CycleState, pod: PodRecord, view: View) -> Status:
    with Calling(plugin.name, "Filter", pod):
        if not isinstance(plugin, ArrayFilterPlugin):
            return plugin.filter(state, pod, view.node(0)).by(plugin.name)
        outcome = Outcome(1)
        outcome.add(1, plugin.name, plugin.filter_rows(state, pod, view))
        return outcome.status(0) if outcome.refused[0] else SUCCESS


def _status(status: Status) -> dict[str, Any]:
    found: dict[str, Any] = {"status": status.code.value}
    if status.reasons:
        found["reasons"] = list(status.reasons)
    return found
