"""Adapters from plugins in the simple form, which answer for one node, to the array form.

A plugin in the simple form may state its scope like one in the array form. It is then called for every node, even if
another plugin rejected the pod there, once for each class of pods, and again only for changed rows: its answers must
depend on nothing else. Without a scope its answers may depend on anything and are not cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.api.errors import shown
from podium.cluster import arrays, pod_classes, what_if_view
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView, View
from podium.framework import plugin as points
from podium.framework.handle import CycleState
from podium.framework.pre_filters import has_code, rejection
from podium.framework.verdicts import SUCCESS, Calling, Code, PluginError, Status, Verdicts

MOST_REFUSALS = 4096
"""The most different rejections that are distinguished if answers are cached."""


def scope_of(plugin: points.Plugin) -> points.Scope:
    """Return the scope that a plugin states; CLUSTER by default. Raises PluginError for an invalid one."""
    stated: Any = getattr(plugin, "scope", points.Scope.CLUSTER)
    try:
        return points.Scope(stated)
    except ValueError:
        scopes = ", ".join(f'Scope.{scope.name} ("{scope.value}")' for scope in points.Scope)
        raise PluginError(f"plugin {plugin.name} has the scope {shown(stated)}; it must be one of {scopes}") from None


class ScoreByNode:
    """A Score plugin in the simple form."""

    def __init__(self, plugin: points.ScorePlugin) -> None:
        self.name = plugin.name
        self.scope = scope_of(plugin)
        self._score = plugin.score

    def score_rows(self, state: CycleState, pod: PodRecord, view: View) -> arrays.Int64s:
        """Return the scores; 0 for free rows."""
        score, scores = self._score, np.zeros(len(view), dtype=np.int64)
        positions = np.flatnonzero(view.take(view.cluster.nodes.present))
        nodes = view.nodes() if len(positions) == len(view) else view.nodes(positions)
        found = [score(state, pod, node) for node in nodes]
        for kind in set(map(type, found)):
            if not issubclass(kind, int):
                wrong = next(each for each in found if type(each) is kind)
                raise PluginError(f"plugin {self.name} scored {wrong!r} for pod {pod.key}; an integer is needed")
        scores[positions] = np.array(found, dtype=np.int64)
        return scores


class ScoreByRow(ScoreByNode):
    """A Score plugin of scope ROW in the simple form without preparation, which can score a single row."""

    def __init__(self, plugin: points.ScorePlugin, cluster: Cluster) -> None:
        super().__init__(plugin)
        self._cluster = cluster

    def row_score(self, pod_class: pod_classes.PodClass) -> points.ScoreRow:
        """Return a function that scores a row; it raises PluginError for a score out of range."""
        return self._score_row

    def _score_row(self, pod: PodRecord, row: int) -> int:
        with Calling(self.name, "Score", pod):
            score: object = self._score(CycleState(), pod, self._cluster.node_views.of(row))
        if isinstance(score, int) and 0 <= score <= points.MAX_NODE_SCORE:
            return score
        raise PluginError(
            f"plugin {self.name} scored {score!r} for pod {pod.key}; an integer within 0 and {points.MAX_NODE_SCORE} "
            "is needed (or a normalize method)"
        )


class FilterByNode:
    """A Filter plugin in the simple form. It is called only for nodes that no earlier filter rejected.

    Equal rejections share a code, so that outcomes of several calls can be combined: during an attempt, or permanently
    if answers are cached.
    """

    after_others = True

    def __init__(self, plugin: points.FilterPlugin, state_plugins: Sequence[points.PodChangePlugin]) -> None:
        self.name = plugin.name
        self.scope = scope_of(plugin)
        self._filter = plugin.filter
        # The plugins that update the state when pods are added or removed.
        self._state_plugins = state_plugins
        self._statuses: list[Status] = [SUCCESS]
        self._code_of: dict[Status, int] = {}

    def begin_attempt(self) -> None:
        """Reset the codes unless answers are cached; earlier outcomes keep the statuses of their codes."""
        if self.scope is points.Scope.CLUSTER and self._code_of:
            self._statuses, self._code_of = [SUCCESS], {}

    def filter_rows(self, state: CycleState, pod: PodRecord, view: View) -> Verdicts:
        """Return the verdicts. Raises PluginError for an answer that is neither success nor a rejection."""
        codes = np.zeros(len(view), dtype=np.int64)
        present = view.take(view.cluster.nodes.present)
        worlds = view if isinstance(view, what_if_view.WhatIfView) and self._state_plugins else None
        positions = np.flatnonzero(present)
        for position, node in zip(positions.tolist(), view.nodes(positions), strict=True):
            own = state if worlds is None else self._state_of(worlds, position, state, pod, node)
            status = self._filter(own, pod, node)
            if status is not SUCCESS and not has_code(status, Code.SUCCESS):
                codes[position] = self._code(rejection(status, self.name, "Filter", pod))
        return Verdicts(codes, self._statuses.__getitem__)

    def _code(self, status: Status) -> int:
        code = self._code_of.get(status)
        if code is None:
            if self.scope is not points.Scope.CLUSTER and len(self._code_of) >= MOST_REFUSALS:
                # The cache is bounded, and so are the statuses in it.
                status = Status(status.code, (f"node(s) were refused by plugin {self.name}",), self.name)
            code = self._code_of.setdefault(status, len(self._statuses))
            if code == len(self._statuses):
                self._statuses.append(status)
        return code

    def _state_of(
        self, worlds: what_if_view.WhatIfView, position: int, state: CycleState, pod: PodRecord, node: NodeView
    ) -> CycleState:
        """Return the state of one what-if view: a clone, updated in order for every pod that was removed or added."""
        own = state.clone()
        here = [(sign, changed, node) for sign, changed in worlds.history(position)]
        for sign, changed, where in [*here, *worlds.history_elsewhere(position)]:
            for plugin in self._state_plugins:
                if plugin.name in state.skip_filter:
                    continue
                with Calling(plugin.name, "AddPod" if sign > 0 else "RemovePod", pod):
                    tell = plugin.add_pod if sign > 0 else plugin.remove_pod
                    tell(own, pod, changed, where)
        return own


class FilterByRow(FilterByNode):
    """A Filter plugin of scope ROW in the simple form without preparation, which can filter a single row."""

    def __init__(self, plugin: points.FilterPlugin, cluster: Cluster) -> None:
        super().__init__(plugin, ())
        self._cluster = cluster

    def row_filter(self, pod_class: pod_classes.PodClass) -> points.FitsRow:
        """Return a predicate for whether a pod fits a row; it raises PluginError for an invalid answer."""
        return self._fits_row

    def _fits_row(self, pod: PodRecord, row: int) -> bool:
        with Calling(self.name, "Filter", pod):
            status: object = self._filter(CycleState(), pod, self._cluster.node_views.of(row))
        return has_code(status, Code.SUCCESS) or not rejection(status, self.name, "Filter", pod)


def score_by_node(plugin: points.ScorePlugin, cluster: Cluster) -> ScoreByNode:
    """Return the plugin in the array form."""
    return ScoreByRow(plugin, cluster) if _is_of_rows(plugin) else ScoreByNode(plugin)


def filter_by_node(
    plugin: points.FilterPlugin, cluster: Cluster, state_plugins: Sequence[points.PodChangePlugin]
) -> FilterByNode:
    """Return the plugin in the array form.

    ``state_plugins`` are the plugins that update the state when pods are added or removed.
    """
    return FilterByRow(plugin, cluster) if _is_of_rows(plugin) else FilterByNode(plugin, state_plugins)


def _is_of_rows(plugin: points.Plugin) -> bool:
    prepares = isinstance(plugin, points.PreFilterPlugin | points.PreScorePlugin)
    return scope_of(plugin) is points.Scope.ROW and not prepares
