"""Every plugin's verdict about every node, and the scores of those that fit: a table of nodes by plugins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from podium.app.explaining.explanation import Explanation
from podium.app.explaining.on_node import scores_of
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.decide.placement import left_out
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling
from podium.framework.plugin import ArrayFilterPlugin, FilterPlugin
from podium.framework.runner import Runner
from podium.framework.scoring import Score
from podium.framework.status import SUCCESS, Status


@dataclass(frozen=True, slots=True)
class FilterColumn:
    """What one Filter plugin says of the nodes: ``of`` has for each node its place among the different ``statuses``.

    A plugin that has nothing to say about the pod ``is_skipped``, and has neither.
    """

    plugin: str
    statuses: tuple[Status, ...] = ()
    of: tuple[int, ...] = ()
    is_skipped: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The column as plain values."""
        if self.is_skipped:
            return {"plugin": self.plugin, "skipped": True}
        return {
            "plugin": self.plugin,
            "skipped": False,
            "statuses": [{"status": status.code.value, "reasons": list(status.reasons)} for status in self.statuses],
            "of": list(self.of),
        }


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """The table: ``nodes`` are by name, and each filter is asked about each of them, whatever the others have said.

    kube-scheduler asks no further filter about a node that one has turned down. ``before`` is why a node was not looked
    at, or the pod turned down before any was: by node, "" for those that were. ``scores`` are there for the nodes that
    can take the pod, in the profile's order.
    """

    nodes: tuple[str, ...]
    filters: tuple[FilterColumn, ...]
    before: tuple[str, ...]
    scores: tuple[tuple[Score, ...], ...]

    def to_dict(self) -> dict[str, Any]:
        """The table as plain values, by column; None for the scores of nodes that have none."""
        plugins = [(score.plugin, score.weight) for score in next(filter(None, self.scores), ())]
        return {
            "nodes": list(self.nodes),
            "before": list(self.before),
            "filters": [column.to_dict() for column in self.filters],
            "scores": [
                {
                    "plugin": plugin,
                    "weight": weight,
                    "raw": [scores[place].raw if scores else None for scores in self.scores],
                    "normalized": [scores[place].normalized if scores else None for scores in self.scores],
                }
                for place, (plugin, weight) in enumerate(plugins)
            ],
            "totals": [sum(score.weighted for score in scores) if scores else None for scores in self.scores],
        }


def verdict_table(explanation: Explanation) -> VerdictTable:
    """The table behind an explanation; without filters where the pod is turned down before any node is looked at."""
    runner, pod = explanation.runner, explanation.record
    row_of = runner.cluster.nodes.row_of
    nodes = tuple(sorted(row_of))
    nothing = ((),) * len(nodes)
    if explanation.pre_enqueue is not None or explanation.error:
        held = explanation.error or "; ".join(explanation.pre_enqueue.reasons if explanation.pre_enqueue else ())
        return VerdictTable(nodes, (), (held,) * len(nodes), nothing)
    rows = np.array([row_of[node] for node in nodes], dtype=np.int64)
    with explanation.as_decided():
        state = CycleState()
        pre_filter = runner.pre_filter(state, pod)
        if not pre_filter.status.is_success:
            told = f"{pre_filter.status.plugin}: {'; '.join(pre_filter.status.reasons)}"
            return VerdictTable(nodes, (), (told,) * len(nodes), nothing)
        looked_at = None if pre_filter.rows is None else set(pre_filter.rows.tolist())
        why = "" if looked_at is None else "; ".join(left_out(pre_filter).reasons)
        before = tuple("" if looked_at is None or row in looked_at else why for row in rows.tolist())
        filters = tuple(_columns(runner, state, pod, View(runner.cluster, rows)))
        scores = scores_of(explanation)
    return VerdictTable(nodes, filters, before, tuple(scores.get(node, ()) for node in nodes))


def _columns(runner: Runner, state: CycleState, pod: PodRecord, view: View) -> list[FilterColumn]:
    return [
        FilterColumn(plugin.name, is_skipped=True)
        if plugin.name in state.skip_filter
        else _column(plugin.name, _asked(plugin, state, pod, view))
        for plugin in runner.profile.filter
    ]


def _asked(
    plugin: ArrayFilterPlugin | FilterPlugin, state: CycleState, pod: PodRecord, view: View
) -> Sequence[tuple[int, Status]]:
    """For each node a number and the status that it stands for, equal ones for equal numbers."""
    with Calling(plugin.name, "Filter", pod):
        if not isinstance(plugin, ArrayFilterPlugin):
            return [(0, plugin.filter(state, pod, view.node(place))) for place in range(len(view))]
        verdicts = plugin.filter_rows(state, pod, view)
        codes = verdicts.codes.tolist()
        statuses = {code: verdicts.status(code) if code else SUCCESS for code in set(codes)}
        return [(code, statuses[code]) for code in codes]


def _column(plugin: str, asked: Sequence[tuple[int, Status]]) -> FilterColumn:
    statuses: dict[tuple[str, tuple[str, ...]], int] = {}
    kept: list[Status] = []
    of = []
    for _, status in asked:
        same = (status.code.value, tuple(status.reasons))
        if same not in statuses:
            statuses[same] = len(kept)
            kept.append(status)
        of.append(statuses[same])
    return FilterColumn(plugin, tuple(kept), tuple(of))
