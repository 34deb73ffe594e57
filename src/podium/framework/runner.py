"""The runner: executes a profile's plugins as kube-scheduler's framework does, over all nodes at once.

Source: pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.what_if_view import WhatIfView
from podium.framework import plugin as points
from podium.framework.cache.class_cache import CacheByClass, CachedRows, as_many_as
from podium.framework.cache.filters import KEPT_CLASSES, KEPT_ENTRIES, CachedFilters
from podium.framework.cache.rankings import Rankings
from podium.framework.cache.row_filters import RowFilters
from podium.framework.extenders import Extenders
from podium.framework.handle import (
    CountingFilterPlugin,
    CycleState,
    DomainFilterPlugin,
    FilterParts,
    Reach,
    Reaches,
    ReachingFilterPlugin,
)
from podium.framework.pre_filters import PreFiltered, PreFilters
from podium.framework.scoring import Scoring
from podium.framework.settings.registry import Profile
from podium.framework.simple_form import FilterByNode, filter_by_node, scope_of
from podium.framework.verdicts import SUCCESS, Calling, Outcome, PluginError, Status, failure, is_failure, unresolvable


class PlacedFilter:
    """A Filter plugin in the array form, at a position in the profile (from 1); ``plugin`` is the profile's object.

    ``by_row``, ``cells``, ``counting`` and ``domains`` are None if it lacks these forms, or is not called in them.
    """

    __slots__ = ("after_others", "array", "by_row", "cells", "counting", "domains", "index", "plugin", "scope")

    def __init__(
        self,
        index: int,
        plugin: points.ArrayFilterPlugin | points.FilterPlugin,
        cluster: Cluster,
        state_plugins: Sequence[points.PodChangePlugin],
    ) -> None:
        self.index = index
        self.plugin = plugin
        self.array = (
            plugin if isinstance(plugin, points.ArrayFilterPlugin) else filter_by_node(plugin, cluster, state_plugins)
        )
        self.scope = scope_of(self.array)
        self.by_row = (
            self.array if isinstance(self.array, points.RowFilterPlugin) and points.is_own(self.array) else None
        )
        self.cells = plugin if isinstance(plugin, points.CellFilterPlugin) and points.is_own(plugin) else None
        self.counting = plugin if isinstance(plugin, CountingFilterPlugin) and points.is_own(plugin) else None
        self.domains = plugin if self.counting is not None and isinstance(plugin, DomainFilterPlugin) else None
        self.after_others = bool(getattr(self.array, "after_others", False))


class Runner:
    """One profile on one cluster; `podium.framework.handle.Handle` describes the methods for PostFilter plugins."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self.profile = profile
        self.cluster = cluster
        self.is_sampling = profile.is_sampling
        if self.is_sampling:
            # From now on, the order in which nodes appear is remembered.
            cluster.nodes.tree_order()
        # The extenders that are called besides the plugins; None if there are none.
        self.extenders: Extenders | None = None
        limit = as_many_as(KEPT_ENTRIES, cluster.nodes, least=KEPT_CLASSES)
        self.cache: CacheByClass[CachedRows] = CacheByClass(limit)
        self.scoring = Scoring(profile, cluster, self.cache)
        self._pod_change = [plugin for plugin in profile.pre_filter if isinstance(plugin, points.PodChangePlugin)]
        # The PreBind plugins that prepare something.
        self.preparing = [plugin for plugin in profile.pre_bind if isinstance(plugin, points.PreparingPlugin)]
        self._filters = [
            PlacedFilter(index, plugin, cluster, self._pod_change) for index, plugin in enumerate(profile.filter, 1)
        ]
        self._wide_filters = {placed.plugin.name for placed in self._filters if placed.scope is points.Scope.CLUSTER}
        self._node_filters = {placed.plugin.name for placed in self._filters if placed.scope is points.Scope.NODE}
        self.kept = CachedFilters(self, self.cache, self._filters)
        self._simple = [placed.array for placed in self._filters if isinstance(placed.array, FilterByNode)]
        foreign = [plugin for plugin in (*profile.filter, *profile.score) if not points.is_own(plugin)]
        # Answers that are cached by row may depend on fields that Podium's own plugins ignore.
        if any(scope_of(plugin) is points.Scope.ROW for plugin in foreign):
            cluster.notes_every_reading = True
        self._pre_filters = PreFilters(profile.pre_filter, cluster)
        self.rankings = Rankings(self)

    @property
    def reserving(self) -> Sequence[points.ReservePlugin]:
        """The plugins that reserve what a pod needs on its node besides capacity."""
        return self.profile.reserve

    def extenders_of(self, pod: PodRecord) -> Extenders | None:
        extenders = self.extenders
        return None if extenders is None or not extenders.concern(pod) else extenders

    def pre_enqueue(self, pod: PodRecord) -> Status:
        """Return whether the pod may be attempted: success, or the status of the first PreEnqueue plugin that gates it.

        A plugin that raises gates the pod too.
        """
        for plugin in self.profile.pre_enqueue:
            # Like `Calling`, which would cost as much as most plugins take to answer.
            try:
                status = plugin.pre_enqueue(pod)
            except BaseException as error:
                if not is_failure(error):
                    raise
                problem = error if isinstance(error, PluginError) else failure(error, plugin.name, "PreEnqueue", pod)
                status = unresolvable(str(problem))
            if status is not SUCCESS and not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        """Return the pod's key in the active queue; the smallest goes first."""
        if self.profile.queue_sort is None:
            raise PluginError(f"profile {self.profile.scheduler_name} has no QueueSort plugin")
        return self.profile.queue_sort.sort_key(pod, queued_ns)

    def pre_filter(self, state: CycleState, pod: PodRecord) -> PreFiltered:
        """Run every PreFilter plugin (see `PreFilters.run`), at the start of an attempt."""
        if self.is_sampling:
            # kube-scheduler takes a snapshot of the nodes, with their order, for each attempt.
            self.cluster.nodes.tree_order()
        for simple in self._simple:
            simple.begin_attempt()
        return self._pre_filters.run(state, pod)

    def filters_of(self, state: CycleState) -> list[PlacedFilter]:
        """Return the filters that apply to the pod of this attempt."""
        return [placed for placed in self._filters if placed.plugin.name not in state.skip_filter]

    def filter(self, state: CycleState, pod: PodRecord, rows: Int64s | None = None) -> Outcome:
        """Filter the live cluster, or some rows of it, considering nominated pods."""
        if rows is None and self.is_row_local(state) and not self.cluster.nominations.depend_on_pods():
            return self.kept.filter_all(state, pod)
        few = None if rows is None else self.kept.filter_few(state, pod, rows)
        if few is not None:
            return few
        view = View(self.cluster, rows)
        if rows is not None:
            outcome = self.filter_view(state, pod, view)
        else:
            _, by_row = self.kept.refusals(state, pod)
            outcome = Outcome.of(by_row.values.copy(), dict(by_row.decoders))
            self._filter_into(outcome, state, pod, view, points.Scope.CLUSTER)
        if self.cluster.nominations.uids:
            outcome.override(*self.beside(state, pod, view, pod.uid))
        return outcome

    def filter_what_if(self, state: CycleState, pod: PodRecord, what_if: WhatIfView, own_uid: str) -> Outcome:
        outcome = self.filter_view(state, pod, what_if)
        if self.cluster.nominations.uids:
            outcome.override(*self.beside(state, pod, what_if, own_uid))
        return outcome

    def fits_without(self, state: CycleState, pod: PodRecord, node_name: str, gone: Iterable[PodRecord]) -> bool:
        row = self.cluster.nodes.row_of.get(node_name)
        if row is None:
            return False
        slots = np.array([other.slot for other in gone], dtype=np.int64)
        what_if = WhatIfView(self.cluster, np.array([row], dtype=np.int64))
        what_if.remove_anywhere(np.zeros(len(slots), dtype=np.int64), slots)
        return bool(self.filter_what_if(state, pod, what_if, pod.uid).refused[0] == 0)

    def for_known_nodes(self, state: CycleState) -> CycleState:
        return state.skipping(self._node_filters)

    def feasible_rows(self, pod: PodRecord) -> Int64s:
        other = pod.without_node(name="", uid="")
        state = CycleState()
        found = self.pre_filter(state, other)
        if not found.status.is_success:
            return np.empty(0, dtype=np.int64)
        feasible = self.filter(state, other, found.rows).feasible
        return feasible if found.rows is None else found.rows[feasible]

    def is_row_local(self, state: CycleState) -> bool:
        return self._wide_filters <= state.skip_filter

    def reaches(self, state: CycleState, pod: PodRecord) -> Reaches:
        # Podium's own filters that do not report pods of other nodes do not depend on any.
        found: list[Reach] = []
        is_known = True
        for placed in self.wide_filters(state):
            if isinstance(placed.plugin, ReachingFilterPlugin):
                with Calling(placed.plugin.name, "Filter", pod):
                    found += placed.plugin.reaches(state, pod)
            elif not points.is_own(placed.plugin):
                is_known = False
        return Reaches(tuple(found), is_known)

    def filter_parts(self, state: CycleState, pod: PodRecord) -> FilterParts | None:
        """Return the attempt with the filters of single rows and with the others.

        Returns None if one of the others does more than count, or if nominated pods count on other nodes too.
        """
        if self.cluster.nominations.reach_domains:
            return None
        wide = [placed.counting for placed in self.wide_filters(state)]
        counting = [plugin for plugin in wide if plugin is not None]
        if len(counting) < len(wide):
            return None
        local = {placed.plugin.name for placed in self.filters_of(state)} - self._wide_filters
        counted = [predicate for plugin in counting for predicate in plugin.counted(state, pod)]
        return FilterParts(state.skipping(self._wide_filters), state.skipping(local), tuple(counted))

    def wide_filters(self, state: CycleState) -> list[PlacedFilter]:
        """Return the filters that apply and depend on more than one row."""
        if self.is_row_local(state):
            return []
        return [placed for placed in self.filters_of(state) if placed.scope is points.Scope.CLUSTER]

    def wide_inputs(self, state: CycleState, pod: PodRecord) -> list[object] | None:
        """Return what the filters of scope CLUSTER depend on; None if one of them does not state it."""
        found: list[object] = []
        for placed in self.wide_filters(state):
            if placed.domains is None:
                return None
            found += placed.domains.inputs(state, pod)
        return found

    def row_filters(self, state: CycleState, pod: PodRecord, rows: int = 1) -> RowFilters | None:
        return self.kept.row_filters(state, pod, rows)

    def refused_beside(self, state: CycleState, pod: PodRecord, rows: Int64s) -> Int64s:
        """Return the rows, ascending, on which ``pod`` does not fit beside the nominated pods that count for it."""
        filters = self.kept.row_filters(state, pod, len(rows))
        if filters is not None:
            refused = [filters.beside(pod, row, (), pod.uid) != 0 for row in rows.tolist()]
            return rows[np.array(refused, dtype=np.bool_)]
        positions, nominated_places = self.beside(state, pod, View(self.cluster, rows), pod.uid)
        return rows[positions[nominated_places.refused != 0]] if len(nominated_places.refused) else rows[:0]

    def beside(self, state: CycleState, pod: PodRecord, view: View, own_uid: str) -> tuple[Int64s, Outcome]:
        """Return the positions with nominated pods that count for ``pod``, and whether it fits beside them there."""
        if self.cluster.nominations.reach_domains and not self.is_row_local(state):
            return self._beside_all(state, pod, view, own_uid)
        positions, nominated = self._nominated(pod, own_uid, view)
        nominated_places = np.array(sorted(set(positions)), dtype=np.int64)
        if not nominated:
            return nominated_places, Outcome(0)
        what_if = (
            view.at(nominated_places)
            if isinstance(view, WhatIfView)
            else WhatIfView(self.cluster, view.rows[nominated_places])
        )
        what_if.join(np.searchsorted(nominated_places, positions), nominated)
        return nominated_places, self.filter_view(state, pod, what_if)

    def _beside_all(self, state: CycleState, pod: PodRecord, view: View, own_uid: str) -> tuple[Int64s, Outcome]:
        """Return `beside` if nominated pods count on other nodes, too: whether the pod fits beside all that count."""
        row_of = self.cluster.nodes.row_of
        found = [
            (row_of[name], other)
            for other, name in self.cluster.nominations.all()
            if name in row_of and other.uid != own_uid and self.cluster.nominations.counts_for(other, pod)
        ]
        everywhere = np.arange(len(view), dtype=np.int64)
        if not found:
            return everywhere[:0], Outcome(0)
        what_if = view.at(everywhere) if isinstance(view, WhatIfView) else WhatIfView(self.cluster, view.rows)
        what_if.join_everywhere([other for _, other in found], np.array([row for row, _ in found], dtype=np.int64))
        return everywhere, self.filter_view(state, pod, what_if)

    def _nominated(self, pod: PodRecord, own_uid: str, view: View) -> tuple[list[int], list[PodRecord]]:
        """Return the nominated pods that count for ``pod``, all but ``own_uid``, with their positions, ascending."""
        nominations = self.cluster.nominations
        if len(view) <= len(nominations) or (isinstance(view, WhatIfView) and view.are_many):
            places = [(position, int(row)) for position, row in enumerate(view.rows)]
        else:
            rows = np.array(nominations.rows(), dtype=np.int64)
            at = np.minimum(np.searchsorted(view.rows, rows), len(view) - 1)
            places = [(int(p), int(r)) for p, r in zip(at, rows, strict=True) if view.rows[p] == r]
        found = [
            (position, other)
            for position, row in places
            for other in nominations.on_row(row)
            if other.uid != own_uid and nominations.counts_for(other, pod)
        ]
        return [position for position, _ in found], [other for _, other in found]

    def filter_view(self, state: CycleState, pod: PodRecord, view: View, scope: points.Scope | None = None) -> Outcome:
        """Run the filters of one scope (None: all) that apply, ignoring nominated pods."""
        outcome = Outcome(len(view))
        self._filter_into(outcome, state, pod, view, scope)
        return outcome

    def _filter_into(
        self, outcome: Outcome, state: CycleState, pod: PodRecord, view: View, scope: points.Scope | None
    ) -> None:
        """Run the filters of one scope (None: all) that apply to the pod."""
        for placed in self._filters:
            if placed.plugin.name in state.skip_filter or (scope is not None and placed.scope is not scope):
                continue
            with Calling(placed.plugin.name, "Filter", pod):
                if placed.after_others:
                    self._filter_rest(outcome, placed, state, pod, view)
                else:
                    outcome.add(placed.index, placed.plugin.name, placed.array.filter_rows(state, pod, view))

    def _filter_rest(
        self, outcome: Outcome, placed: PlacedFilter, state: CycleState, pod: PodRecord, view: View
    ) -> None:
        """Call a filter for the nodes that no earlier filter rejected."""
        positions = outcome.undecided(placed.index)
        positions = positions[view.take(self.cluster.nodes.present)[positions]]
        if not len(positions):
            return
        part = view.at(positions) if isinstance(view, WhatIfView) else View(self.cluster, view.rows[positions])
        verdicts = placed.array.filter_rows(state, pod, part)
        codes = np.zeros(len(view), dtype=np.int64)
        codes[positions] = verdicts.codes
        outcome.add(placed.index, placed.plugin.name, replace(verdicts, codes=codes))
