"""The scoring of nodes that passed the filters.

Source: pkg/scheduler/framework/runtime/framework.go (RunPreScorePlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from msgspec import Struct, structs

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework import plugin as points
from podium.framework.cache.class_cache import CacheByClass, CachedRows
from podium.framework.handle import CycleState
from podium.framework.settings.registry import Profile
from podium.framework.simple_form import scope_of, score_by_node
from podium.framework.verdicts import Calling, PluginError

# The cache, which scores all rows of a new class, takes more time than one row out of so many.
_FEW = 16


class Rater:
    """A Score plugin in the array form, with what the runner must know of it; None for points that it lacks."""

    def __init__(self, plugin: points.ArrayScorePlugin | points.ScorePlugin, weight: int, cluster: Cluster) -> None:
        self.name = plugin.name
        self.weight = weight
        self.array = plugin if isinstance(plugin, points.ArrayScorePlugin) else score_by_node(plugin, cluster)
        self.normalizing = plugin if isinstance(plugin, points.NormalizePlugin) else None
        self.scope = scope_of(self.array)
        # Podium's own plugins keep to the range; scores of others are checked.
        self.checked = not points.is_own(plugin)
        # True if the final score of a row depends on that row alone.
        self.kept = self.scope is not points.Scope.CLUSTER and self.normalizing is None
        self.by_row = (
            self.array if isinstance(self.array, points.RowScorePlugin) and points.is_own(self.array) else None
        )
        self.ranged = plugin if isinstance(plugin, points.RangeNormalizePlugin) and not self.checked else None
        self.cells = plugin if isinstance(plugin, points.CellScorePlugin) and not self.checked else None
        self._by_class = plugin if isinstance(plugin, points.ClassScorePlugin) and not self.checked else None

    def never_scores(self, pod_class: PodClass) -> bool:
        """Return whether the plugin is known to skip all pods of the class."""
        return self._by_class is not None and self._by_class.never_scores(pod_class)


class Score(Struct, frozen=True):
    """The score of a node by one Score plugin: raw, normalized to 0..100, and the weight."""

    plugin: str
    raw: int
    normalized: int
    weight: int

    @property
    def weighted(self) -> int:
        """Its contribution to the node's total."""
        return self.normalized * self.weight

    def to_dict(self) -> dict[str, int | str]:
        return {**structs.asdict(self), "weighted": self.weighted}


class Rated(Struct, frozen=True, eq=False):
    """The scores of some nodes by one plugin: ``raw``, within 0 and 100 as ``normalized``, and the weight."""

    plugin: str
    weight: int
    raw: Int64s
    normalized: Int64s

    @property
    def weighted(self) -> Int64s:
        return self.normalized * self.weight

    def at(self, position: int) -> Score:
        """Return the score of the node at a position."""
        return Score(self.plugin, int(self.raw[position]), int(self.normalized[position]), self.weight)


class Scoring:
    """The PreScore and Score plugins of one profile on one cluster."""

    def __init__(self, profile: Profile, cluster: Cluster, cache: CacheByClass[CachedRows]) -> None:
        self._profile = profile
        self._cluster = cluster
        self._cache = cache
        self.raters = [Rater(plugin, profile.weights[plugin.name], cluster) for plugin in profile.score]
        prepared = {plugin.name for plugin in profile.pre_score}
        self.unprepared = [
            plugin.name
            for plugin in profile.score
            if getattr(plugin, "needs_pre_score", False) and plugin.name not in prepared
        ]

    def prepare(self, state: CycleState, pod: PodRecord, feasible: View) -> None:
        """Run every PreScore plugin; those that skip are left out of `rated` and `totals`.

        Raises PluginError for a plugin that is enabled at Score but not at PreScore: kube-scheduler's InterPodAffinity,
        PodTopologySpread and TaintToleration then fail every pod (getPreScoreState in their scoring.go); others do
        without.
        """
        for name in self.unprepared:
            raise PluginError(f"plugin {name} failed at Score for pod {pod.key}: it is not enabled at preScore")
        for plugin in self._profile.pre_score:
            with Calling(plugin.name, "PreScore", pod):
                status = plugin.pre_score(state, pod, feasible)
            if status.is_skip:
                state.skip_score |= {plugin.name}
            elif not status.is_success:
                raise PluginError(f"plugin {plugin.name} failed at PreScore for pod {pod.key}: {status.message}")

    def rated(self, state: CycleState, pod: PodRecord, feasible: View) -> list[Rated]:
        """Return the intermediate results of each plugin that applies to this pod, in the profile's order."""
        found = []
        for rater in self._rating(state):
            raw = self.raw(rater, state, pod, feasible)
            normalized = self._normalized(rater, state, pod, feasible, raw.copy())
            found.append(Rated(rater.name, rater.weight, raw.copy(), normalized))
        return found

    def totals(self, state: CycleState, pod: PodRecord, feasible: View) -> Int64s:
        """Return ``[n]`` the sum of all weighted scores; equal to that of `rated`, with cached parts."""
        total = np.zeros(len(feasible), dtype=np.int64)
        raters, is_few = self._rating(state), len(feasible) * _FEW < self._cluster.nodes.count
        for scope in (points.Scope.NODE, points.Scope.ROW):
            kept_raters = [rater for rater in raters if rater.kept and rater.scope is scope and not is_few]
            if kept_raters:
                part = feasible.take(self.kept_sum(kept_raters, scope, state, pod))
                if part.min(initial=0) < 0:
                    # It raises the error about the plugin whose score is out of range.
                    self.rated(state, pod, feasible)
                total += part
        for rater in raters:
            if is_few or not rater.kept:
                raw = self.raw(rater, state, pod, feasible)
                total += self._normalized(rater, state, pod, feasible, raw) * rater.weight
        return total

    def _rating(self, state: CycleState) -> list[Rater]:
        return [rater for rater in self.raters if rater.name not in state.skip_score]

    def kept_sum(self, raters: list[Rater], scope: points.Scope, state: CycleState, pod: PodRecord) -> Int64s:
        """Return ``[rows]`` the sum of the scores of some raters of one scope (see `sum_of`).

        It is cached for the pod's class.
        """
        nodes, is_node = self._cluster.nodes, scope is points.Scope.NODE
        key = "score", scope, tuple([rater.name for rater in raters])
        kept = self._cache.get(pod.pod_class, key, partial(CachedRows, whole=is_node))
        kept.refresh(nodes.node_changes if is_node else nodes.changes, nodes.count, self.sum_of(raters, state, pod))
        return kept.values

    def sum_of(self, raters: list[Rater], state: CycleState, pod: PodRecord) -> Callable[[Int64s | None], Int64s]:
        """Return a function that sums the raters' scores for some rows; negative if a score is out of range.

        Infeasible rows are scored too, and a rater may return anything there: callers must check the rows that they
        use.
        """
        all_own = not any(rater.checked for rater in raters)

        def compute(rows: Int64s | None) -> Int64s:
            views = View.pieces(self._cluster) if rows is None and all_own else (View(self._cluster, rows),)
            return np.concatenate([compute_on(view) for view in views])

        def compute_on(view: View) -> Int64s:
            total = np.zeros(len(view), dtype=np.int64)
            broken = np.zeros(len(view), dtype=np.bool_)
            for rater in raters:
                raw = self.raw(rater, state, pod, view)
                total += raw * rater.weight
                if rater.checked:
                    broken |= (raw < 0) | (raw > points.MAX_NODE_SCORE)
            total[broken] = -1
            return total

        return compute

    def raw(self, rater: Rater, state: CycleState, pod: PodRecord, view: View) -> Int64s:
        """Return a plugin's scores before normalization."""
        with Calling(rater.name, "Score", pod):
            raw = rater.array.score_rows(state, pod, view)
            if rater.checked:
                _require_integers(raw, len(view))
            return raw

    def _normalized(self, rater: Rater, state: CycleState, pod: PodRecord, feasible: View, raw: Int64s) -> Int64s:
        if rater.normalizing is not None:
            with Calling(rater.name, "NormalizeScore", pod):
                raw = rater.normalizing.normalize(state, pod, raw, feasible)
                if rater.checked:
                    _require_integers(raw, len(feasible))
        if rater.checked and len(raw) and not 0 <= int(raw.min()) <= int(raw.max()) <= points.MAX_NODE_SCORE:
            raise PluginError(
                f"plugin {rater.name} gave pod {pod.key} scores from {raw.min()} to {raw.max()}; "
                f"they must be within 0 and {points.MAX_NODE_SCORE} (add a normalize method)"
            )
        return raw


def _require_integers(scores: Int64s, size: int) -> None:
    if scores.shape != (size,) or scores.dtype.kind != "i":
        raise ValueError(f"{size} integers are needed, not an array of {scores.dtype} of shape {scores.shape}")


def default_normalize(scores: Int64s, *, reverse: bool) -> Int64s:
    """Scale the scores so that the highest becomes 100.

    ``reverse`` then inverts them (helper DefaultNormalizeScore).
    """
    highest = int(scores.max()) if len(scores) else 0
    if highest == 0:
        return np.full(len(scores), points.MAX_NODE_SCORE, dtype=np.int64) if reverse else scores
    scaled = points.MAX_NODE_SCORE * scores // highest
    return points.MAX_NODE_SCORE - scaled if reverse else scaled
