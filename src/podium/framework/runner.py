"""Runs the plugins of a profile as kube-scheduler's framework does, over all nodes at once.

Source: pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.worlds import Worlds
from podium.framework.class_cache import ClassCache, KeptRows
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError
from podium.framework.plugin import (
    ArrayFilterPlugin,
    FilterPlugin,
    PodChangePlugin,
    PreFilterResult,
    Scope,
)
from podium.framework.profile import Profile
from podium.framework.scoring import Scoring
from podium.framework.status import SUCCESS, Status, unresolvable
from podium.framework.verdicts import Outcome, Verdicts

KEPT_CLASSES = 64


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """The result of all PreFilters. ``rows`` None means every node; ``plugins`` are those that named nodes."""

    status: Status
    rows: Int64s | None = None
    plugins: tuple[str, ...] = ()


class Runner:
    """One profile at work on one cluster."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self.profile = profile
        self.cluster = cluster
        self.cache = ClassCache(KEPT_CLASSES)
        self.scoring = Scoring(profile, cluster, self.cache)
        # Where the next sample of nodes to score starts, when the profile asks for samples.
        self.next_start = 0
        self._pod_change = [plugin for plugin in profile.pre_filter if isinstance(plugin, PodChangePlugin)]
        self._scopes = [
            plugin.scope if isinstance(plugin, ArrayFilterPlugin) else Scope.CLUSTER for plugin in profile.filter
        ]

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        """The pod's place in the active queue; the smallest goes first."""
        if self.profile.queue_sort is None:
            raise PluginError(f"profile {self.profile.scheduler_name} has no QueueSort plugin")
        return self.profile.queue_sort.sort_key(pod, queued_ns)

    def pre_filter(self, state: CycleState, pod: PodRecord) -> PreFiltered:
        """Run every PreFilter; the first rejection ends it."""
        names: frozenset[str] | None = None
        narrowing: list[str] = []
        for plugin in self.profile.pre_filter:
            answer = plugin.pre_filter(state, pod, self.cluster)
            result = answer if isinstance(answer, PreFilterResult) else PreFilterResult(answer)
            if result.status.is_skip:
                state.skip_filter.add(plugin.name)
                continue
            if not result.status.is_success:
                return PreFiltered(result.status.by(plugin.name))
            if result.node_names is not None:
                narrowing.append(plugin.name)
                names = result.node_names if names is None else names & result.node_names
                if not names:
                    return PreFiltered(_nothing_left(narrowing))
        if names is None:
            return PreFiltered(SUCCESS)
        row_of = self.cluster.nodes.row_of
        rows = np.array(sorted(row_of[name] for name in names if name in row_of), dtype=np.int64)
        return PreFiltered(SUCCESS, rows, tuple(narrowing))

    def filter(self, state: CycleState, pod: PodRecord, rows: Int64s | None = None) -> Outcome:
        """Filter the live cluster, or some rows of it, with regard to nominated pods."""
        view = View(self.cluster, rows)
        outcome = self._filter_kept(state, pod, view) if rows is None else self._filter(state, pod, view)
        self._respect_nominations(state, pod, view, outcome)
        return outcome

    def filter_worlds(self, state: CycleState, pod: PodRecord, worlds: Worlds) -> Outcome:
        """Filter worlds, with regard to nominated pods."""
        outcome = self._filter(state, pod, worlds)
        self._respect_nominations(state, pod, worlds, outcome)
        return outcome

    def _respect_nominations(self, state: CycleState, pod: PodRecord, view: View, outcome: Outcome) -> None:
        """Where pods of equal or higher priority are nominated, ``pod`` must also fit beside them.

        A refusal beside the nominated pods is the answer for that node, whatever the plain one was
        (RunFilterPluginsWithNominatedPods tries that first).
        """
        positions, nominated = self._nominated(pod, view)
        if not nominated:
            return
        beside = np.array(sorted(set(positions)), dtype=np.int64)
        worlds = view.at(beside) if isinstance(view, Worlds) else Worlds(self.cluster, view.rows[beside])
        worlds.join(np.searchsorted(beside, positions), nominated)
        outcome.override(beside, self._filter(state, pod, worlds))

    def _nominated(self, pod: PodRecord, view: View) -> tuple[list[int], list[PodRecord]]:
        """Nominated pods that count for ``pod``, with their positions in the view, ascending."""
        nominations, row_of = self.cluster.nominations, self.cluster.nodes.row_of
        if not nominations:
            return [], []
        found: list[tuple[int, PodRecord]] = []
        for name in nominations.nodes():
            row = row_of.get(name)
            if row is None:
                continue
            counted = [p for p in nominations.on(name) if p.priority >= pod.priority and p.uid != pod.uid]
            if counted:
                position = int(np.searchsorted(view.rows, row))
                if position < len(view) and view.rows[position] == row:
                    found.extend((position, nominated) for nominated in counted)
        found.sort(key=lambda entry: entry[0])
        return [position for position, _ in found], [nominated for _, nominated in found]

    def _filter_kept(self, state: CycleState, pod: PodRecord, view: View) -> Outcome:
        """Filter all rows, keeping for the pod's class what only a changed row can change."""
        nodes, outcome = self.cluster.nodes, Outcome(len(view))
        skipped = frozenset(state.skip_filter)
        for scope, log in ((Scope.NODE, nodes.node_changes), (Scope.ROW, nodes.changes)):
            kept = self.cache.rows(pod.pod_class.id, (scope, skipped))

            def compute(rows: Int64s | None, scope: Scope = scope, kept: KeptRows = kept) -> Int64s:
                part = self._filter(state, pod, View(self.cluster, rows), scope)
                kept.decoders.update(part.decoders)
                return part.refused

            kept.refresh(log, nodes.count, compute)
            outcome.merge(kept.values)
            outcome.decoders.update(kept.decoders)
        self._filter_into(outcome, state, pod, view, Scope.CLUSTER)
        outcome.refused[~view.take(nodes.present)] = Outcome.ABSENT
        return outcome

    def _filter(self, state: CycleState, pod: PodRecord, view: View, scope: Scope | None = None) -> Outcome:
        outcome = Outcome(len(view))
        self._filter_into(outcome, state, pod, view, scope)
        return outcome

    def _filter_into(
        self, outcome: Outcome, state: CycleState, pod: PodRecord, view: View, scope: Scope | None
    ) -> None:
        """Run the filters of one scope (None: all) that have something to say about the pod."""
        for index, plugin in enumerate(self.profile.filter, 1):
            if plugin.name in state.skip_filter or (scope is not None and self._scopes[index - 1] is not scope):
                continue
            if isinstance(plugin, ArrayFilterPlugin):
                outcome.add(index, plugin.name, plugin.filter_rows(state, pod, view))
            else:
                self._filter_one_by_one(outcome, index, plugin, state, pod, view)

    def _filter_one_by_one(
        self, outcome: Outcome, index: int, plugin: FilterPlugin, state: CycleState, pod: PodRecord, view: View
    ) -> None:
        """Ask a plugin in the simple form about every node that nobody before it refused."""
        statuses: list[Status] = [SUCCESS]
        codes = np.zeros(len(view), dtype=np.int64)
        present = view.take(self.cluster.nodes.present)
        for position in outcome.undecided(index):
            if not present[position]:
                continue
            own = self._world_state(state, pod, view, int(position)) if isinstance(view, Worlds) else state
            status = plugin.filter(own, pod, view.node(int(position)))
            if not isinstance(status, Status):
                raise PluginError(f"plugin {plugin.name} answered {status!r} at Filter for pod {pod.key}, not a Status")
            if not status.is_success:
                codes[position] = len(statuses)
                statuses.append(status)
        outcome.add(index, plugin.name, Verdicts.choose(codes, tuple(statuses)))

    def _world_state(self, state: CycleState, pod: PodRecord, worlds: Worlds, position: int) -> CycleState:
        """The state of one world: a clone that was told, in order, of every pod that left or joined."""
        if not self._pod_change:
            return state
        own = state.clone()
        node = worlds.node(position)
        for sign, changed in worlds.history(position):
            for plugin in self._pod_change:
                if plugin.name in state.skip_filter:
                    continue
                if sign > 0:
                    plugin.add_pod(own, pod, changed, node)
                else:
                    plugin.remove_pod(own, pod, changed, node)
        return own


def _nothing_left(plugins: list[str]) -> Status:
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously")
