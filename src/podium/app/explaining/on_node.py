"""The verdicts of every plugin: about one node ("why not there?"), and about all nodes as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from podium.api.errors import PodiumError, node_hint, nodes_named
from podium.app.answers import Renderable
from podium.app.console.page import Cell, Page, Part, Section, counted, listed
from podium.app.explaining.attempts import rated_of
from podium.app.explaining.explanation import SCHEMA_VERSION, Explanation, status_dict
from podium.app.explaining.obstacles import filter_verdicts, find_obstacles, obstacle_texts
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.placement import place
from podium.decide.preempting.preemption_plan import PreemptionPlan
from podium.framework.handle import CycleState
from podium.framework.runner import Runner
from podium.framework.scoring import Score
from podium.framework.verdicts import SUCCESS, Status, Verdicts

_MAX_VICTIMS = 5


@dataclass(frozen=True, slots=True, repr=False)
class NodeAnswer(Renderable):
    """Every plugin's verdict on one node, compared with the node that the pod gets.

    `verdicts` has the filters in their order, None for those that do not apply to the pod; it is empty if the pod is
    rejected before any node is examined, for the reason `before`. `beside` are nominated pods whose requests count on
    the node. `scores` are those of a feasible node, `taken_scores` those of the node that the pod gets. `obstacles` say
    what is missing, in words.
    """

    explanation: Explanation
    node: str
    before: Status | None = None
    verdicts: Mapping[str, Status | None] = field(default_factory=dict)
    beside: tuple[PodRecord, ...] = ()
    obstacles: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    taken_scores: tuple[Score, ...] = ()

    @property
    def headline(self) -> str:
        """The answer whether the pod goes to the node, in one line."""
        explanation, node = self.explanation, self.node
        pod = explanation.pod if explanation.placed is None else f"{explanation.pod}, if evicted,"
        if explanation.pre_enqueue is not None or explanation.error:
            return f"{pod} goes to no node: it is not attempted, or the attempt fails"
        if self.fits:
            return f"{pod} goes to {node}" if self.taken == node else f"{pod} fits on {node}, and goes to {self.taken}"
        if self.taken == node:
            return f"{pod} does not fit on {node} as it is, and preempts there"
        verb = "preempts on" if explanation.victims else "goes to"
        destination = f"; it {verb} {self.taken}" if self.taken else ""
        return f"{pod} does not fit on {node}{destination}"

    def write(self, page: Page) -> None:
        """Write why the pod goes there or not: each filter's verdict, the scores, and preemption."""
        page.paragraph(Cell(self.headline, "good" if self.taken == self.node else "warn"), hanging=2)
        if self.explanation.error:
            page.paragraph(self.explanation.error, indent=2, hanging=2)
        for obstacle in self.obstacles:
            page.paragraph(obstacle, indent=2, hanging=2)
        if self.before is not None:
            page.title("Before the node was examined", self.before.plugin)
            page.paragraph(self.before.message, indent=2)
        filters, scores = verdict_sections(self)
        page.sections([filters])
        if self.beside:
            page.title("Room is kept there for")
            page.paragraph(listed([pod.key for pod in self.beside], _MAX_VICTIMS), indent=2)
        page.sections([scores])
        plan = self.explanation.plan
        if plan is not None and plan.eligible and not self.fits:
            page.title("Preemption there")
            page.paragraph(self._preemption_text(plan), indent=2, hanging=2)
        page.caveats(self.explanation.caveats)

    def _preemption_text(self, plan: PreemptionPlan) -> str:
        candidate, rejected = plan.candidates.get(self.node), plan.rejected.get(self.node)
        if candidate is None:
            why = "preemption cannot change the node's verdict" if rejected is None else rejected.message
            return f"does not help: {why}"
        victims = listed([victim.key for victim in candidate.victims], _MAX_VICTIMS)
        text = f"would preempt {victims}, with {counted(candidate.budget_violations, 'budget violation')}"
        better = "" if self.taken == self.node or not plan.criterion else f"; decided by the {plan.criterion}"
        return text + better

    @property
    def fits(self) -> bool:
        """Return whether the node is feasible without changes."""
        status = self.explanation.nodes.get(self.node)
        return status is not None and status.is_success

    @property
    def taken(self) -> str:
        """The node that the pod gets, or would get if it were evicted."""
        return self.explanation.pending_node

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values; ``preemption`` is None if none was planned."""
        plan, preemption = self.explanation.plan, None
        if plan is not None and plan.eligible:
            candidate, rejected = plan.candidates.get(self.node), plan.rejected.get(self.node)
            preemption = {"helps": False, "reasons": [] if rejected is None else list(rejected.reasons)}
            if candidate is not None:
                victims = [victim.key for victim in candidate.victims]
                preemption = {"helps": True, "victims": victims, "pdbViolations": candidate.budget_violations}
        return {
            "schemaVersion": SCHEMA_VERSION,
            "pod": self.explanation.pod,
            "outcome": self.explanation.outcome,
            "node": self.node,
            "fits": self.fits,
            "taken": self.taken,
            **({} if self.before is None else {"preFilter": _reasons(self.before)}),
            "filters": [
                {"plugin": plugin, **({"status": "Skip"} if status is None else _reasons(status))}
                for plugin, status in self.verdicts.items()
            ],
            "nominatedThere": [pod.key for pod in self.beside],
            "obstacles": list(self.obstacles),
            "scores": [score.to_dict() for score in self.scores],
            "takenScores": [score.to_dict() for score in self.taken_scores],
            "preemption": preemption,
        }


def answer_on(decision: Explanation, node: str) -> NodeAnswer:
    """Return every plugin's verdict on the node for the decision's pod; its name may be short, or a pattern.

    Raises PodiumError for an unknown node, and for several.
    """
    runner, pod = decision.runner, decision.record
    with decision.as_decided():
        row_of = runner.cluster.nodes.row_of
        meant = nodes_named(node, row_of)
        if len(meant) > 1:
            raise PodiumError(f"{node} means {counted(len(meant), 'node')}; name one: {listed(meant, 3)}")
        if not meant:
            raise PodiumError(f"node {node} is not in the input{node_hint(node, row_of)}")
        node, row = meant[0], row_of[meant[0]]
    if decision.pre_enqueue is not None or decision.error:
        return NodeAnswer(decision, node, decision.pre_enqueue)
    with decision.as_decided():
        before, verdicts = _verdicts(runner, pod, row)
        on_node = next((found for found in find_obstacles(runner, pod) if found.node == node), None)
        scores = scores_of(decision)
        nominated = () if on_node is None else on_node.nominated
        texts = () if on_node is None else tuple(obstacle_texts(runner.cluster, pod, on_node))
        rated = scores.get(node, ()), scores.get(decision.pending_node, ())
        return NodeAnswer(decision, node, before, verdicts, nominated, texts, *rated)


def scores_of(decision: Explanation) -> Mapping[str, tuple[Score, ...]]:
    """Return each Score plugin's score by feasible node, in the profile's order."""
    runner = decision.runner
    placement = place(runner, decision.record, nominated_first=False)
    rated = rated_of(runner, placement) if len(placement.feasible) else None
    if rated is None:
        return {}
    names = list(runner.cluster.nodes.names)
    return {
        names[row]: tuple(each.at(position) for each in rated)
        for position, row in enumerate(placement.feasible.tolist())
    }


def _verdicts(runner: Runner, pod: PodRecord, row: int) -> tuple[Status | None, Mapping[str, Status | None]]:
    """Return the rejection of the pod before this node is examined, and each filter's verdict on the node."""
    state = CycleState()
    pre_filter = runner.pre_filter(state, pod)
    if not pre_filter.status.is_success:
        return pre_filter.status, {}
    before = pre_filter.left_out if pre_filter.rows is not None and row not in pre_filter.rows else None
    view = View(runner.cluster, np.array([row], dtype=np.int64))
    found = {name: _statuses(name, verdicts)[0] for name, verdicts in filter_verdicts(runner, state, pod, view)}
    return before, {plugin.name: found.get(plugin.name) for plugin in runner.profile.filter}


def _statuses(plugin: str, verdicts: Verdicts) -> list[Status]:
    codes = verdicts.codes.tolist()
    statuses = {code: verdicts.status(code).by(plugin) if code else SUCCESS for code in set(codes)}
    return [statuses[code] for code in codes]


def _reasons(status: Status) -> dict[str, Any]:
    return {key: value for key, value in status_dict(status).items() if key != "plugin"}


def verdict_sections(answer: NodeAnswer) -> list[Section]:
    """Return each filter's verdict on the node, and the scores beside those of the node that the pod gets."""
    order = "in the order of the profile; the first that rejects is the node's verdict"
    filters: list[tuple[Part, ...]] = []
    for plugin, status in answer.verdicts.items():
        if status is None:
            filters.append((plugin, Cell("does not apply", "dim"), ""))
        elif status.is_success:
            filters.append((plugin, Cell("passes", "good"), ""))
        else:
            filters.append((plugin, Cell(status.code.value, "bad"), ", ".join(status.reasons)))
    taken = [] if answer.taken == answer.node else [answer.taken]
    other = {score.plugin: score.weighted for score in answer.taken_scores}
    scores: list[tuple[Part, ...]] = [
        (
            *(score.plugin, score.raw, score.normalized, score.weight, score.weighted),
            *(other.get(score.plugin, "") for _ in taken),
        )
        for score in answer.scores
    ]
    if scores:
        total = Cell(str(sum(score.weighted for score in answer.scores)), "bold")
        scores.append(("total", "", "", "", total, *(sum(other.values()) for _ in taken)))
    headings = ("plugin", "raw", "normalised", "weight", "weighted", *(f"on {node}" for node in taken))
    rest = f"beside those of {answer.taken}, which it gets" if taken else ""
    return [
        Section("filters", "Filters", tuple(filters), rest=order),
        Section("scores", "Scores", tuple(scores), headings, rest, right=(4,)),
    ]


def verdict_table(decision: Explanation) -> dict[str, Any]:
    """Return the verdicts of all filters on all nodes, by name, and the scores of feasible nodes, as plain values.

    Filters and scores are columns in the profile's order, without filters if the pod is rejected before any node is
    examined. kube-scheduler runs no further filter on a rejected node. ``before`` is why a node was not examined, ""
    for examined ones; scores are None for nodes that have none.
    """
    runner, pod = decision.runner, decision.record
    row_of = runner.cluster.nodes.row_of
    nodes = sorted(row_of)
    before = [decision.error or "; ".join(decision.pre_enqueue.reasons if decision.pre_enqueue else ())] * len(nodes)
    filters: list[dict[str, Any]] = []
    scores: Mapping[str, tuple[Score, ...]] = {}
    if decision.pre_enqueue is None and not decision.error:
        rows = np.array([row_of[node] for node in nodes], dtype=np.int64)
        with decision.as_decided():
            state = CycleState()
            pre_filter = runner.pre_filter(state, pod)
            if not pre_filter.status.is_success:
                before = [f"{pre_filter.status.plugin}: {'; '.join(pre_filter.status.reasons)}"] * len(nodes)
            else:
                why = "; ".join(pre_filter.left_out.reasons)
                looked_at = rows if pre_filter.rows is None else pre_filter.rows
                before = ["" if is_there else why for is_there in np.isin(rows, looked_at).tolist()]
                found = dict(filter_verdicts(runner, state, pod, View(runner.cluster, rows)))
                filters = [_column(plugin.name, found.get(plugin.name)) for plugin in runner.profile.filter]
                scores = scores_of(decision)
    of_nodes = [scores.get(node, ()) for node in nodes]
    columns = [
        {
            "plugin": score.plugin,
            "weight": score.weight,
            "raw": [some[place].raw if some else None for some in of_nodes],
            "normalized": [some[place].normalized if some else None for some in of_nodes],
        }
        for place, score in enumerate(next(filter(None, of_nodes), ()))
    ]
    totals = [sum(score.weighted for score in some) if some else None for some in of_nodes]
    return {"nodes": nodes, "before": before, "filters": filters, "scores": columns, "totals": totals}


def _column(plugin: str, verdicts: Verdicts | None) -> dict[str, Any]:
    """Return the verdicts of a filter: ``of`` has for each node the index of its status in ``statuses``."""
    if verdicts is None:
        return {"plugin": plugin, "skipped": True}
    found = [(status.code.value, tuple(status.reasons)) for status in _statuses(plugin, verdicts)]
    places = {status: place for place, status in enumerate(dict.fromkeys(found))}
    statuses = [{"status": code, "reasons": list(reasons)} for code, reasons in places]
    return {"plugin": plugin, "skipped": False, "statuses": statuses, "of": [places[status] for status in found]}
