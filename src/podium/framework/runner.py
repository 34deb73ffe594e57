"""Runs the plugins of a profile as kube-scheduler's framework does, over all nodes at once.

Source: pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.worlds import Worlds
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling, PluginError, failure, is_failure
from podium.framework.extenders import Extenders
from podium.framework.kept.class_cache import ClassCache, as_many_as
from podium.framework.kept.filters import KEPT_CLASSES, KEPT_ENTRIES, KeptFilters
from podium.framework.kept.rankings import Rankings
from podium.framework.kept.row_filters import RowFilters
from podium.framework.plugin import (
    ArrayFilterPlugin,
    CellFilterPlugin,
    FilterPlugin,
    JoiningPlugin,
    Plugin,
    PodChangePlugin,
    PreparingPlugin,
    ReservePlugin,
    RowFilterPlugin,
    Scope,
    is_own,
)
from podium.framework.pre_filters import PreFiltered, PreFilters
from podium.framework.reach import Reach, Reaches, ReachingFilterPlugin
from podium.framework.scoring import Scoring
from podium.framework.settings.profile import Profile
from podium.framework.simple_form import FilterByNode, filter_by_node, scope_of, scores_by_node_alone
from podium.framework.status import SUCCESS, Status, unresolvable
from podium.framework.verdicts import Outcome


class _Filter:
    """A Filter plugin in the array form, with its place in the profile; ``plugin`` is as the profile has it.

    ``by_row``, ``joining`` and ``cells`` are None where it does not have these forms, or is not asked in them.
    """

    __slots__ = ("after_others", "array", "by_row", "cells", "index", "joining", "plugin", "scope")

    def __init__(
        self,
        index: int,
        plugin: ArrayFilterPlugin | FilterPlugin,
        cluster: Cluster,
        told: Sequence[PodChangePlugin],
    ) -> None:
        self.index = index
        self.plugin = plugin
        self.array = plugin if isinstance(plugin, ArrayFilterPlugin) else filter_by_node(plugin, cluster, told)
        self.scope = scope_of(self.array)
        self.by_row = self.array if isinstance(self.array, RowFilterPlugin) and is_own(self.array) else None
        self.joining = plugin if isinstance(plugin, JoiningPlugin) and is_own(plugin) else None
        self.cells = plugin if isinstance(plugin, CellFilterPlugin) and is_own(plugin) else None
        self.after_others = bool(getattr(self.array, "after_others", False))


class Runner:
    """One profile at work on one cluster."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self.profile = profile
        self.cluster = cluster
        # Who is asked beside the plugins; None where nobody is.
        self.extenders: Extenders | None = None
        self.cache = ClassCache(as_many_as(KEPT_ENTRIES, cluster.nodes, least=KEPT_CLASSES))
        self.scoring = Scoring(profile, cluster, self.cache)
        self._pod_change = [plugin for plugin in profile.pre_filter if isinstance(plugin, PodChangePlugin)]
        # Those of PreBind that make something ready.
        self.preparing = [plugin for plugin in profile.pre_bind if isinstance(plugin, PreparingPlugin)]
        self._filters = [
            _Filter(index, plugin, cluster, self._pod_change) for index, plugin in enumerate(profile.filter, 1)
        ]
        self._wide_filters = {placed.plugin.name for placed in self._filters if placed.scope is Scope.CLUSTER}
        self._node_filters = {placed.plugin.name for placed in self._filters if placed.scope is Scope.NODE}
        # Whether all others look at single rows, by the plugins that were skipped when this was asked last.
        self._row_local: tuple[frozenset[str], bool] = (frozenset(), not self._wide_filters)
        self.kept = KeptFilters(self, self.cache, self._filters)
        self._simple = [placed.array for placed in self._filters if isinstance(placed.array, FilterByNode)]
        if any(map(_may_look_at_any_pod, (*profile.filter, *profile.score))):
            cluster.notes_every_reading = True
        self._pre_filters = PreFilters(profile.pre_filter, cluster)
        self.rankings = Rankings(self)

    @property
    def reserving(self) -> Sequence[ReservePlugin]:
        """The plugins that reserve what a pod needs on its node beside room."""
        return self.profile.reserve

    def extenders_of(self, pod: PodRecord) -> Extenders | None:
        """The extenders where any of them is asked about the pod, else None."""
        extenders = self.extenders
        return None if extenders is None or not extenders.concern(pod) else extenders

    def pre_enqueue(self, pod: PodRecord) -> Status:
        """Whether the pod may be attempted at all: success, or the answer of the first PreEnqueue that holds it back.

        One that raises holds the pod back too.
        """
        for plugin in self.profile.pre_enqueue:
            # As `Calling` does it, which would cost as much as most plugins take to answer.
            try:
                status = plugin.pre_enqueue(pod)
            except BaseException as error:
                if not is_failure(error):
                    raise
                told = error if isinstance(error, PluginError) else failure(error, plugin.name, "PreEnqueue", pod)
                status = unresolvable(str(told))
            if status is not SUCCESS and not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        """The pod's place in the active queue; the smallest goes first."""
        if self.profile.queue_sort is None:
            raise PluginError(f"profile {self.profile.scheduler_name} has no QueueSort plugin")
        return self.profile.queue_sort.sort_key(pod, queued_ns)

    def pre_filter(self, state: CycleState, pod: PodRecord) -> PreFiltered:
        """Run every PreFilter (see `PreFilters.run`)."""
        for simple in self._simple:
            simple.begin_attempt()
        return self._pre_filters.run(state, pod)

    def filters_of(self, state: CycleState) -> list[_Filter]:
        """The filters that have something to say about the pod of this attempt."""
        return [placed for placed in self._filters if placed.plugin.name not in state.skip_filter]

    def filter(self, state: CycleState, pod: PodRecord, rows: Int64s | None = None) -> Outcome:
        """Filter the live cluster, or some rows of it, with regard to nominated pods."""
        if rows is None and self.is_row_local(state):
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
            self._filter_into(outcome, state, pod, view, Scope.CLUSTER)
        if self.cluster.nominations.uids:
            outcome.override(*self.beside(state, pod, view, pod.uid))
        return outcome

    def filter_worlds(self, state: CycleState, pod: PodRecord, worlds: Worlds, own_uid: str) -> Outcome:
        """Filter worlds, with regard to nominated pods; the nomination of ``own_uid`` does not count."""
        outcome = self.filter_view(state, pod, worlds)
        if self.cluster.nominations.uids:
            outcome.override(*self.beside(state, pod, worlds, own_uid))
        return outcome

    def for_known_nodes(self, state: CycleState) -> CycleState:
        """The same attempt for nodes that the filters of scope NODE have let in, which are not asked again."""
        return state.skipping(self._node_filters)

    def feasible_rows(self, pod: PodRecord) -> Int64s:
        """The rows that the Filters would let another pod like ``pod`` onto, as things are."""
        other = pod.without_node(name="", uid="")
        state = CycleState()
        found = self.pre_filter(state, other)
        if not found.status.is_success:
            return np.empty(0, dtype=np.int64)
        feasible = self.filter(state, other, found.rows).feasible
        return feasible if found.rows is None else found.rows[feasible]

    def is_row_local(self, state: CycleState) -> bool:
        """Whether every filter that has something to say answers for a row from that row alone."""
        skipped, is_local = self._row_local
        if skipped is not state.skip_filter:
            is_local = self._wide_filters <= state.skip_filter
            self._row_local = state.skip_filter, is_local
        return is_local

    def reaches(self, state: CycleState, pod: PodRecord) -> Reaches:
        """On which pods of other nodes the answers hang of those filters that have something to say.

        Of Podium's own, those that do not say look at no pods of other nodes.
        """
        found: list[Reach] = []
        is_known = True
        for placed in self.filters_of(state):
            if placed.scope is not Scope.CLUSTER:
                continue
            if isinstance(placed.plugin, ReachingFilterPlugin):
                with Calling(placed.plugin.name, "Filter", pod):
                    found += placed.plugin.reaches(state, pod)
            elif not is_own(placed.plugin):
                is_known = False
        return Reaches(tuple(found), is_known)

    def row_filters(self, state: CycleState, pod: PodRecord, rows: int = 1) -> RowFilters | None:
        """The filters for one row at a time, to be asked about so many.

        None where some filter that has something to say has no such form, or there are so many rows that arrays are
        quicker.
        """
        return self.kept.row_filters(state, pod, rows)

    def refused_beside(self, state: CycleState, pod: PodRecord, rows: Int64s) -> Int64s:
        """Those of some rows, ascending, where ``pod`` does not fit beside the nominated pods that count for it."""
        filters = self.kept.row_filters(state, pod, len(rows))
        if filters is not None:
            refused = [filters.beside(pod, row, (), pod.uid) != 0 for row in rows.tolist()]
            return rows[np.array(refused, dtype=np.bool_)]
        positions, beside = self.beside(state, pod, View(self.cluster, rows), pod.uid)
        return rows[positions[beside.refused != 0]] if len(beside.refused) else rows[:0]

    def beside(self, state: CycleState, pod: PodRecord, view: View, own_uid: str) -> tuple[Int64s, Outcome]:
        """The positions with nominated pods that count for ``pod``, and whether it fits beside them there."""
        if self.cluster.nominations.reach_domains and not self.is_row_local(state):
            return self._beside_all(state, pod, view, own_uid)
        positions, nominated = self._nominated(pod.priority, own_uid, view)
        beside = np.array(sorted(set(positions)), dtype=np.int64)
        if not nominated:
            return beside, Outcome(0)
        worlds = view.at(beside) if isinstance(view, Worlds) else Worlds(self.cluster, view.rows[beside])
        worlds.join(np.searchsorted(beside, positions), nominated)
        return beside, self.filter_view(state, pod, worlds)

    def _beside_all(self, state: CycleState, pod: PodRecord, view: View, own_uid: str) -> tuple[Int64s, Outcome]:
        """The same where nominated pods count for other nodes too: whether it fits beside all of them that count."""
        row_of = self.cluster.nodes.row_of
        found = [
            (row_of[name], other)
            for other, name in self.cluster.nominations.all()
            if name in row_of and other.uid != own_uid and self.cluster.nominations.priority(other) >= pod.priority
        ]
        everywhere = np.arange(len(view), dtype=np.int64)
        if not found:
            return everywhere[:0], Outcome(0)
        worlds = view.at(everywhere) if isinstance(view, Worlds) else Worlds(self.cluster, view.rows)
        worlds.join_everywhere([other for _, other in found], np.array([row for row, _ in found], dtype=np.int64))
        return everywhere, self.filter_view(state, pod, worlds)

    def _nominated(self, priority: int, own_uid: str, view: View) -> tuple[list[int], list[PodRecord]]:
        """Nominated pods of at least ``priority``, all but one's own, with their positions in the view, ascending."""
        nominations = self.cluster.nominations
        if len(view) <= len(nominations) or (isinstance(view, Worlds) and view.are_many):
            places = [(position, int(row)) for position, row in enumerate(view.rows)]
        else:
            rows = np.array(nominations.rows(), dtype=np.int64)
            at = np.minimum(np.searchsorted(view.rows, rows), len(view) - 1)
            places = [(int(p), int(r)) for p, r in zip(at, rows, strict=True) if view.rows[p] == r]
        found = [
            (position, pod)
            for position, row in places
            for pod in nominations.on_row(row)
            if pod.uid != own_uid and nominations.priority(pod) >= priority
        ]
        return [position for position, _ in found], [pod for _, pod in found]

    def filter_rows_of(self, state: CycleState, pod: PodRecord, rows: Int64s, scope: Scope) -> Outcome:
        """What the filters of one scope say of some rows, without regard to nominated pods."""
        return self.filter_view(state, pod, View(self.cluster, rows), scope)

    def filter_view(self, state: CycleState, pod: PodRecord, view: View, scope: Scope | None = None) -> Outcome:
        """Run the filters of one scope (None: all) that have something to say; nominated pods are not regarded."""
        outcome = Outcome(len(view))
        self._filter_into(outcome, state, pod, view, scope)
        return outcome

    def _filter_into(
        self, outcome: Outcome, state: CycleState, pod: PodRecord, view: View, scope: Scope | None
    ) -> None:
        """Run the filters of one scope (None: all) that have something to say about the pod."""
        for placed in self._filters:
            if placed.plugin.name in state.skip_filter or (scope is not None and placed.scope is not scope):
                continue
            with Calling(placed.plugin.name, "Filter", pod):
                if placed.after_others:
                    self._filter_rest(outcome, placed, state, pod, view)
                else:
                    outcome.add(placed.index, placed.plugin.name, placed.array.filter_rows(state, pod, view))

    def _filter_rest(self, outcome: Outcome, placed: _Filter, state: CycleState, pod: PodRecord, view: View) -> None:
        """Ask a plugin about the nodes that nobody before it refused."""
        positions = outcome.undecided(placed.index)
        positions = positions[view.take(self.cluster.nodes.present)[positions]]
        if not len(positions):
            return
        part = view.at(positions) if isinstance(view, Worlds) else View(self.cluster, view.rows[positions])
        verdicts = placed.array.filter_rows(state, pod, part)
        codes = np.zeros(len(view), dtype=np.int64)
        codes[positions] = verdicts.codes
        outcome.add(placed.index, placed.plugin.name, replace(verdicts, codes=codes))


def _may_look_at_any_pod(plugin: Plugin) -> bool:
    """Whether a plugin's answers are kept by row, and may hang on what none of Podium's own look at in pods."""
    return not is_own(plugin) and (scope_of(plugin) is Scope.ROW or scores_by_node_alone(plugin))
