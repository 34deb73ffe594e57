"""Plugins in the simple form, which answer for one node, as plugins in the array form.

A plugin in the simple form may state its scope as one in the array form does. It is then asked about every node, also
those where another plugin refused the pod, once for each class of pods, and again only where the row has changed: its
answers may hang on nothing else. Without a scope its answers may hang on anything, and nothing is kept of them; but
for a score of which the code shows that it reads the node alone (`podium.framework.code_reads`). That is kept, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from podium.api.errors import shown
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.node_view import NodeView
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.worlds import Worlds
from podium.framework.code_reads import reads_alone
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling, PluginError, is_failure
from podium.framework.plugin import (
    MAX_NODE_SCORE,
    ArrayScorePlugin,
    FilterPlugin,
    FitsRow,
    NormalizePlugin,
    Plugin,
    PodChangePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    Scope,
    ScorePlugin,
    ScoreRow,
)
from podium.framework.pre_filters import rejection, says
from podium.framework.status import SUCCESS, Code, Status
from podium.framework.verdicts import Verdicts

MOST_REFUSALS = 4096
"""How many different refusals are told apart where answers are kept."""


def scope_of(plugin: Plugin) -> Scope:
    """The scope that a plugin states; CLUSTER for one that states none. Raises PluginError for one that is none."""
    stated: Any = getattr(plugin, "scope", Scope.CLUSTER)
    try:
        return Scope(stated)
    except ValueError:
        scopes = ", ".join(f'Scope.{scope.name} ("{scope.value}")' for scope in Scope)
        raise PluginError(f"plugin {plugin.name} has the scope {shown(stated)}; it must be one of {scopes}") from None


class ScoreByNode:
    """A Score plugin in the simple form."""

    def __init__(self, plugin: ScorePlugin) -> None:
        self.name = plugin.name
        self.scope = scope_of(plugin)
        self._score = plugin.score

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """The scores; 0 for free rows."""
        present = view.take(view.cluster.nodes.present)
        if present.all():
            return self._scores(state, pod, view.nodes())
        scores = np.zeros(len(view), dtype=np.int64)
        positions = np.flatnonzero(present)
        scores[positions] = self._scores(state, pod, view.nodes(positions))
        return scores

    def _scores(self, state: CycleState, pod: PodRecord, nodes: Sequence[NodeView]) -> Int64s:
        score = self._score
        scores = [score(state, pod, node) for node in nodes]
        for kind in set(map(type, scores)):
            if not issubclass(kind, int):
                wrong = next(score for score in scores if type(score) is kind)
                raise PluginError(f"plugin {self.name} scored {wrong!r} for pod {pod.key}; an integer is needed")
        return np.array(scores, dtype=np.int64)


class ScoreByRow(ScoreByNode):
    """A Score plugin of scope ROW in the simple form that prepares nothing, and so can be asked about a single row."""

    def __init__(self, plugin: ScorePlugin, cluster: Cluster) -> None:
        super().__init__(plugin)
        self._cluster = cluster

    def row_score(self, pod_class: PodClass) -> ScoreRow:
        """The score of a row, as a function, which raises PluginError for one that is not within the range."""
        return self._score_row

    def _score_row(self, pod: PodRecord, row: int) -> int:
        with Calling(self.name, "Score", pod):
            score: object = self._score(CycleState(), pod, self._cluster.node_views.of(row))
        if isinstance(score, int) and 0 <= score <= MAX_NODE_SCORE:
            return score
        raise PluginError(
            f"plugin {self.name} scored {score!r} for pod {pod.key}; an integer within 0 and {MAX_NODE_SCORE} is needed"
            " (or a normalize method)"
        )


class ScoreByNodeAlone(ScoreByRow):
    """A Score plugin in the simple form that states no scope, and whose code reads nothing but the node.

    What it says of a node stands until the node changes. Unlike one that states its scope it need not have an answer
    about nodes that the pod does not fit.
    """

    def __init__(self, plugin: ScorePlugin, cluster: Cluster) -> None:
        super().__init__(plugin, cluster)
        self.scope = Scope.ROW

    def score_any_rows(self, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """The scores, -1 where the plugin fails or leaves the range, and for free rows.

        Whoever takes such a row asks about it with `score_rows`, which tells what was wrong.
        """
        scores = np.full(len(view), -1, dtype=np.int64)
        positions = np.flatnonzero(view.take(view.cluster.nodes.present))
        scores[positions] = [self._score_any(state, pod, node) for node in view.nodes(positions)]
        return scores

    def _score_any(self, state: CycleState, pod: PodRecord, node: NodeView) -> int:
        try:
            score: object = self._score(state, pod, node)
        except BaseException as error:
            if not is_failure(error):
                raise
            return -1
        return score if isinstance(score, int) and 0 <= score <= MAX_NODE_SCORE else -1


class FilterByNode:
    """A Filter plugin in the simple form. It is asked about the nodes alone that no filter before it refused.

    One refusal always has the same code, so that outcomes of several calls can be put together: as long as the attempt
    lasts, or, where answers are kept, for good.
    """

    after_others = True

    def __init__(self, plugin: FilterPlugin, told: Sequence[PodChangePlugin]) -> None:
        self.name = plugin.name
        self.scope = scope_of(plugin)
        self._filter = plugin.filter
        # Those that keep a state true while pods leave and join nodes.
        self._told = told
        self._statuses: list[Status] = [SUCCESS]
        self._code_of: dict[Status, int] = {}

    def begin_attempt(self) -> None:
        """Start the codes anew unless answers are kept; outcomes made so far keep the statuses that theirs mean."""
        if self.scope is Scope.CLUSTER and self._code_of:
            self._statuses, self._code_of = [SUCCESS], {}

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """The verdicts. Raises PluginError for an answer that is neither success nor a refusal."""
        codes = np.zeros(len(view), dtype=np.int64)
        present = view.take(view.cluster.nodes.present)
        worlds = view if isinstance(view, Worlds) and self._told else None
        positions = np.flatnonzero(present)
        for position, node in zip(positions.tolist(), view.nodes(positions), strict=True):
            own = state if worlds is None else self._state_of(worlds, position, state, pod, node)
            status = self._filter(own, pod, node)
            if status is not SUCCESS and not says(status, Code.SUCCESS):
                codes[position] = self._code(rejection(status, self.name, "Filter", pod))
        return Verdicts(codes, self._statuses.__getitem__)

    def _code(self, status: Status) -> int:
        code = self._code_of.get(status)
        if code is None:
            if self.scope is not Scope.CLUSTER and len(self._code_of) >= MOST_REFUSALS:
                # What is kept is bounded, and so is what it may mean.
                status = Status(status.code, (f"node(s) were refused by plugin {self.name}",), self.name)
            code = self._code_of.setdefault(status, len(self._statuses))
            if code == len(self._statuses):
                self._statuses.append(status)
        return code

    def _state_of(self, worlds: Worlds, position: int, state: CycleState, pod: PodRecord, node: NodeView) -> CycleState:
        """The state of one world: a clone that was told, in order, of every pod that left or joined."""
        own = state.clone()
        here = [(sign, changed, node) for sign, changed in worlds.history(position)]
        for sign, changed, where in [*here, *worlds.history_elsewhere(position)]:
            for plugin in self._told:
                if plugin.name in state.skip_filter:
                    continue
                with Calling(plugin.name, "AddPod" if sign > 0 else "RemovePod", pod):
                    tell = plugin.add_pod if sign > 0 else plugin.remove_pod
                    tell(own, pod, changed, where)
        return own


class FilterByRow(FilterByNode):
    """A Filter plugin of scope ROW in the simple form that prepares nothing, and so can be asked about a single row."""

    def __init__(self, plugin: FilterPlugin, cluster: Cluster) -> None:
        super().__init__(plugin, ())
        self._cluster = cluster

    def row_filter(self, pod_class: PodClass) -> FitsRow:
        """Whether a pod fits a row, as a function; it raises PluginError for what is neither success nor a refusal."""
        return self._fits_row

    def _fits_row(self, pod: PodRecord, row: int) -> bool:
        with Calling(self.name, "Filter", pod):
            status: object = self._filter(CycleState(), pod, self._cluster.node_views.of(row))
        return says(status, Code.SUCCESS) or not rejection(status, self.name, "Filter", pod)


def score_by_node(plugin: ScorePlugin, cluster: Cluster) -> ScoreByNode:
    """The plugin in the array form."""
    if scores_by_node_alone(plugin):
        return ScoreByNodeAlone(plugin, cluster)
    return ScoreByRow(plugin, cluster) if _is_of_rows(plugin) else ScoreByNode(plugin)


def scores_by_node_alone(plugin: Plugin) -> bool:
    """Whether a plugin scores in the simple form, and leaves it to its code to say that it reads the node alone.

    One that prepares or normalises has its answers asked for as those of any that states no scope.
    """
    has_more = isinstance(plugin, ArrayScorePlugin | NormalizePlugin | PreFilterPlugin | PreScorePlugin)
    is_open = isinstance(plugin, ScorePlugin) and not has_more and not hasattr(plugin, "scope")
    return is_open and reads_alone(cast(ScorePlugin, plugin).score, "node")


def filter_by_node(plugin: FilterPlugin, cluster: Cluster, told: Sequence[PodChangePlugin]) -> FilterByNode:
    """The plugin in the array form. ``told`` are those that keep a state true while pods leave and join nodes."""
    return FilterByRow(plugin, cluster) if _is_of_rows(plugin) else FilterByNode(plugin, told)


def _is_of_rows(plugin: Plugin) -> bool:
    prepares = isinstance(plugin, PreFilterPlugin | PreScorePlugin)
    return scope_of(plugin) is Scope.ROW and not prepares
