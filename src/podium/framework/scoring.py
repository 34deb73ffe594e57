"""Rates the nodes that passed the filters.

Source: pkg/scheduler/framework/runtime/framework.go (RunPreScorePlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.class_cache import ClassCache
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.plugin import (
    MAX_NODE_SCORE,
    ArrayScorePlugin,
    NormalizePlugin,
    Scope,
    ScorePlugin,
)
from podium.framework.profile import Profile

AnyScorePlugin = ArrayScorePlugin | ScorePlugin


class Scoring:
    """The PreScore and Score plugins of one profile at work on one cluster."""

    def __init__(self, profile: Profile, cluster: Cluster, cache: ClassCache) -> None:
        self._profile = profile
        self._cluster = cluster
        self._cache = cache
        self._scope = {
            plugin.name: plugin.scope if isinstance(plugin, ArrayScorePlugin) else Scope.CLUSTER
            for plugin in profile.score
        }

    def prepare(self, state: CycleState, pod: PodRecord, feasible: View) -> None:
        """Run every PreScore; those that have nothing to say are left out of `scores` and `totals`."""
        for plugin in self._profile.pre_score:
            status = plugin.pre_score(state, pod, feasible)
            if status.is_skip:
                state.skip_score.add(plugin.name)
            elif not status.is_success:
                raise PluginError(f"plugin {plugin.name} failed at PreScore for pod {pod.key}: {status.message}")

    def scores(self, state: CycleState, pod: PodRecord, feasible: View) -> dict[str, Int64s]:
        """The weighted score of each plugin that rates this pod: ``[n]`` for the positions of ``feasible``."""
        return {
            plugin.name: self._normalized(plugin, state, pod, feasible, self._raw(plugin, state, pod, feasible))
            * self._profile.weights[plugin.name]
            for plugin in self._rating(state)
        }

    def totals(self, state: CycleState, pod: PodRecord, feasible: View) -> Int64s:
        """The sum of all weighted scores, ``[n]``; equal to adding up `scores`, but keeps what it can."""
        total = np.zeros(len(feasible), dtype=np.int64)
        nodes = self._cluster.nodes
        for scope, log in ((Scope.NODE, nodes.node_changes), (Scope.ROW, nodes.changes)):
            kept_plugins = [p for p in self._rating(state) if self._keeps(p, scope)]
            if not kept_plugins:
                continue
            key = ("score", tuple(plugin.name for plugin in kept_plugins))
            kept = self._cache.rows(pod.pod_class.id, key, whole=scope is Scope.NODE)
            kept.refresh(log, nodes.count, self._sum(kept_plugins, state, pod))
            total += feasible.take(kept.values)
        for plugin in self._rating(state):
            if any(self._keeps(plugin, scope) for scope in (Scope.NODE, Scope.ROW)):
                continue
            raw = self._raw_kept(plugin, state, pod, feasible)
            total += self._normalized(plugin, state, pod, feasible, raw) * self._profile.weights[plugin.name]
        return total

    def _rating(self, state: CycleState) -> list[AnyScorePlugin]:
        return [plugin for plugin in self._profile.score if plugin.name not in state.skip_score]

    def _keeps(self, plugin: AnyScorePlugin, scope: Scope) -> bool:
        """Whether a plugin's final score of a row depends on that row alone."""
        return self._scope[plugin.name] is scope and not isinstance(plugin, NormalizePlugin)

    def _sum(
        self, plugins: list[AnyScorePlugin], state: CycleState, pod: PodRecord
    ) -> Callable[[Int64s | None], Int64s]:
        def compute(rows: Int64s | None) -> Int64s:
            view = View(self._cluster, rows)
            total = np.zeros(len(view), dtype=np.int64)
            for plugin in plugins:
                total += self._raw(plugin, state, pod, view) * self._profile.weights[plugin.name]
            return total

        return compute

    def _raw_kept(self, plugin: AnyScorePlugin, state: CycleState, pod: PodRecord, feasible: View) -> Int64s:
        """Raw scores of a plugin that normalises them; kept where they depend on the node object alone."""
        if self._scope[plugin.name] is not Scope.NODE:
            return self._raw(plugin, state, pod, feasible)
        kept = self._cache.rows(pod.pod_class.id, ("raw", plugin.name), whole=True)

        def compute(rows: Int64s | None) -> Int64s:
            return self._raw(plugin, state, pod, View(self._cluster, rows))

        kept.refresh(self._cluster.nodes.node_changes, self._cluster.nodes.count, compute)
        values: Int64s = feasible.take(kept.values)
        return values

    def _raw(self, plugin: AnyScorePlugin, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        if isinstance(plugin, ArrayScorePlugin):
            return plugin.score_rows(state, pod, view)
        scores = np.zeros(len(view), dtype=np.int64)
        for position in range(len(view)):
            score = plugin.score(state, pod, view.node(position))
            if not isinstance(score, int):
                raise PluginError(f"plugin {plugin.name} scored {score!r} for pod {pod.key}; an integer is needed")
            scores[position] = score
        return scores

    def _normalized(
        self, plugin: AnyScorePlugin, state: CycleState, pod: PodRecord, feasible: View, raw: Int64s
    ) -> Int64s:
        if isinstance(plugin, NormalizePlugin):
            raw = plugin.normalize(state, pod, raw, feasible)
        if len(raw) and not 0 <= int(raw.min()) <= int(raw.max()) <= MAX_NODE_SCORE:
            raise PluginError(
                f"plugin {plugin.name} gave pod {pod.key} scores from {raw.min()} to {raw.max()}; "
                f"they must be within 0 and {MAX_NODE_SCORE} (add a normalize method)"
            )
        return raw


def default_normalize(scores: Int64s, *, reverse: bool) -> Int64s:
    """Scale so that the highest score becomes 100; ``reverse`` then turns it round (helper DefaultNormalizeScore)."""
    highest = int(scores.max()) if len(scores) else 0
    if highest == 0:
        return np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64) if reverse else scores
    scaled = MAX_NODE_SCORE * scores // highest
    return MAX_NODE_SCORE - scaled if reverse else scaled
