"""Runs the plugins of a profile as kube-scheduler's framework does, over all nodes at once.

Source: pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.cluster.worlds import Worlds
from podium.framework.class_cache import ClassCache
from podium.framework.cycle_state import CycleState
from podium.framework.errors import Calling, PluginError, failure, is_failure
from podium.framework.kept_filters import KEPT_CLASSES, KeptFilters
from podium.framework.plugin import (
    ArrayFilterPlugin,
    ClassFilterPlugin,
    FilterPlugin,
    PodChangePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreparingPlugin,
    Scope,
)
from podium.framework.profile import Profile
from podium.framework.rankings import Rankings
from podium.framework.row_filters import RowFilters
from podium.framework.scoring import Scoring
from podium.framework.status import SUCCESS, Code, Status, unresolvable
from podium.framework.verdicts import Outcome, Verdicts


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """The result of all PreFilters. ``rows`` None means every node; ``plugins`` are those that named nodes."""

    status: Status
    rows: Int64s | None = None
    plugins: tuple[str, ...] = ()


_EVERY_NODE = PreFiltered(SUCCESS)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The PreFilter plugins that may have something to say to the pods of a class, and the names of the others."""

    plugins: list[PreFilterPlugin]
    skipping: list[str]


class _Filter:
    """A Filter plugin with its place in the profile; ``array`` is None for a plugin in the simple form.

    ``statuses`` are the answers that a plugin in the simple form has given since the attempt began, by their codes: one
    status always has the same code, so that outcomes of several calls can be put together.
    """

    __slots__ = ("_code_of", "after_others", "array", "index", "plugin", "scope", "statuses")

    def __init__(self, index: int, plugin: ArrayFilterPlugin | FilterPlugin) -> None:
        self.index = index
        self.plugin = plugin
        self.array = plugin if isinstance(plugin, ArrayFilterPlugin) else None
        self.scope = Scope.CLUSTER if self.array is None else self.array.scope
        self.after_others = bool(getattr(plugin, "after_others", False))
        self.statuses: list[Status] = [SUCCESS]
        self._code_of: dict[Status, int] = {}

    def forget(self) -> None:
        """Start the codes anew; outcomes made so far keep the statuses that theirs stand for."""
        self.statuses, self._code_of = [SUCCESS], {}

    def code(self, status: Status) -> int:
        """The code of a refusal."""
        code = self._code_of.setdefault(status, len(self.statuses))
        if code == len(self.statuses):
            self.statuses.append(status)
        return code


class Runner:
    """One profile at work on one cluster."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self.profile = profile
        self.cluster = cluster
        self.cache = ClassCache(KEPT_CLASSES)
        self.scoring = Scoring(profile, cluster, self.cache)
        self._pod_change = [plugin for plugin in profile.pre_filter if isinstance(plugin, PodChangePlugin)]
        # Those of PreBind that make something ready.
        self.preparing = [plugin for plugin in profile.pre_bind if isinstance(plugin, PreparingPlugin)]
        self._filters = [_Filter(index, plugin) for index, plugin in enumerate(profile.filter, 1)]
        self._wide_filters = {one.plugin.name for one in self._filters if one.scope is Scope.CLUSTER}
        self.kept = KeptFilters(self, self.cache, self._filters)
        self._simple = [one for one in self._filters if one.array is None]
        # Tells this runner's own from another's in a class's memo.
        self._asked_key = object()
        self.rankings = Rankings(self)

    def pre_enqueue(self, pod: PodRecord) -> Status:
        """Whether the pod may be attempted at all: success, or the answer of the first PreEnqueue that holds it back.

        One that raises holds the pod back too.
        """
        for plugin in self.profile.pre_enqueue:
            try:
                with Calling(plugin.name, "PreEnqueue", pod):
                    status = plugin.pre_enqueue(pod)
            except PluginError as error:
                status = unresolvable(str(error))
            if not status.is_success:
                return status.by(plugin.name)
        return SUCCESS

    def sort_key(self, pod: PodRecord, queued_ns: int) -> tuple[int, ...]:
        """The pod's place in the active queue; the smallest goes first."""
        if self.profile.queue_sort is None:
            raise PluginError(f"profile {self.profile.scheduler_name} has no QueueSort plugin")
        return self.profile.queue_sort.sort_key(pod, queued_ns)

    def pre_filter(self, state: CycleState, pod: PodRecord) -> PreFiltered:
        """Run every PreFilter.

        A rejection that preemption might lift lets the others prepare their Filters all the same, for preemption needs
        them; any other rejection ends it. Raises PluginError for an answer that is neither success, skip nor rejection.
        """
        for one in self._simple:
            one.forget()
        names: frozenset[str] | None = None
        narrowing: list[str] = []
        rejected: Status | None = None
        asked = self._asked_about(pod.pod_class)
        state.skip_filter.update(asked.skipping)
        for plugin in asked.plugins:
            answer = self._ask_pre_filter(plugin, state, pod)
            if answer is SUCCESS:
                continue
            status, named = (
                (answer.status, answer.node_names) if isinstance(answer, PreFilterResult) else (answer, None)
            )
            if _says(status, Code.SKIP):
                state.skip_filter.add(plugin.name)
            elif not _says(status, Code.SUCCESS):
                rejected = _rejection(status, plugin.name, "PreFilter", pod)
                if rejected.code is not Code.UNSCHEDULABLE:
                    return PreFiltered(rejected)
            elif named is not None:
                narrowing.append(plugin.name)
                names = named if names is None else names & named
                if not names:
                    return PreFiltered(_nothing_left(narrowing))
        return PreFiltered(rejected) if rejected is not None else self._narrowed(names, narrowing)

    def _narrowed(self, names: frozenset[str] | None, plugins: list[str]) -> PreFiltered:
        """The rows of the nodes that some plugins named; None means every node."""
        if names is None:
            return _EVERY_NODE
        row_of = self.cluster.nodes.row_of
        rows = np.array(sorted(row_of[name] for name in names if name in row_of), dtype=np.int64)
        return PreFiltered(SUCCESS, rows, tuple(sorted(plugins)))

    def _asked_about(self, pod_class: PodClass) -> _Asked:
        known: _Asked | None = pod_class.memo.get(self._asked_key)
        if known is None:
            plugins = self.profile.pre_filter
            skipping = [p.name for p in plugins if isinstance(p, ClassFilterPlugin) and p.never_filters(pod_class)]
            asked = [plugin for plugin in plugins if plugin.name not in skipping]
            known = pod_class.memo[self._asked_key] = _Asked(asked, skipping)
        return known

    def _ask_pre_filter(self, plugin: PreFilterPlugin, state: CycleState, pod: PodRecord) -> PreFilterResult | Status:
        # As `Calling` does it, which would cost as much as most plugins take to answer.
        try:
            return plugin.pre_filter(state, pod, self.cluster)
        except BaseException as error:
            if is_failure(error) and not isinstance(error, PluginError):
                raise failure(error, plugin.name, "PreFilter", pod) from error
            raise

    def filters_of(self, state: CycleState) -> list[_Filter]:
        """The filters that have something to say about the pod of this attempt."""
        return [one for one in self._filters if one.plugin.name not in state.skip_filter]

    def filter(self, state: CycleState, pod: PodRecord, rows: Int64s | None = None) -> Outcome:
        """Filter the live cluster, or some rows of it, with regard to nominated pods."""
        view = View(self.cluster, rows)
        if rows is not None:
            outcome = self.kept.filter_few(state, pod, rows)
            if outcome is not None:
                return outcome
            outcome = self.filter_view(state, pod, view)
        elif self.is_row_local(state):
            return self.kept.filter_all(state, pod)
        else:
            _, by_row = self.kept.refusals(state, pod)
            outcome = Outcome.of(by_row.values.copy(), dict(by_row.decoders))
            self._filter_into(outcome, state, pod, view, Scope.CLUSTER)
        if self.cluster.nominations:
            outcome.override(*self.beside(state, pod, view, pod.uid))
        return outcome

    def filter_worlds(self, state: CycleState, pod: PodRecord, worlds: Worlds, own_uid: str) -> Outcome:
        """Filter worlds, with regard to nominated pods; the nomination of ``own_uid`` does not count."""
        outcome = self.filter_view(state, pod, worlds)
        if self.cluster.nominations:
            outcome.override(*self.beside(state, pod, worlds, own_uid))
        return outcome

    def is_row_local(self, state: CycleState) -> bool:
        """Whether every filter that has something to say answers for a row from that row alone."""
        return self._wide_filters <= state.skip_filter

    def row_filters(self, state: CycleState, pod: PodRecord, rows: int = 1) -> RowFilters | None:
        """The filters for one row at a time, to be asked about so many.

        None where some filter that has something to say has no such form, or there are so many rows that arrays are
        quicker.
        """
        return self.kept.row_filters(state, pod, rows)

    def beside(self, state: CycleState, pod: PodRecord, view: View, own_uid: str) -> tuple[Int64s, Outcome]:
        """The positions with nominated pods that count for ``pod``, and whether it fits beside them there."""
        positions, nominated = self._nominated(pod.priority, own_uid, view)
        beside = np.array(sorted(set(positions)), dtype=np.int64)
        if not nominated:
            return beside, Outcome(0)
        worlds = view.at(beside) if isinstance(view, Worlds) else Worlds(self.cluster, view.rows[beside])
        worlds.join(np.searchsorted(beside, positions), nominated)
        return beside, self.filter_view(state, pod, worlds)

    def _nominated(self, priority: int, own_uid: str, view: View) -> tuple[list[int], list[PodRecord]]:
        """Nominated pods of at least ``priority``, all but one's own, with their positions in the view, ascending."""
        nominations = self.cluster.nominations
        if len(view) <= len(nominations):
            places = [(position, int(row)) for position, row in enumerate(view.rows)]
        else:
            rows = np.array(nominations.rows(), dtype=np.int64)
            at = np.minimum(np.searchsorted(view.rows, rows), len(view) - 1)
            places = [(int(p), int(r)) for p, r in zip(at, rows, strict=True) if view.rows[p] == r]
        found = [
            (position, pod)
            for position, row in places
            for pod in nominations.on_row(row)
            if pod.priority >= priority and pod.uid != own_uid
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
        for one in self._filters:
            if one.plugin.name in state.skip_filter or (scope is not None and one.scope is not scope):
                continue
            with Calling(one.plugin.name, "Filter", pod):
                if one.array is not None and one.after_others:
                    self._filter_rest(outcome, one, state, pod, view)
                elif one.array is not None:
                    outcome.add(one.index, one.plugin.name, one.array.filter_rows(state, pod, view))
                else:
                    self._filter_one_by_one(outcome, one, state, pod, view)

    def _filter_rest(self, outcome: Outcome, one: _Filter, state: CycleState, pod: PodRecord, view: View) -> None:
        """Ask a plugin in the array form about the nodes that nobody before it refused."""
        positions = outcome.undecided(one.index)
        positions = positions[view.take(self.cluster.nodes.present)[positions]]
        if one.array is None or not len(positions):
            return
        part = view.at(positions) if isinstance(view, Worlds) else View(self.cluster, view.rows[positions])
        verdicts = one.array.filter_rows(state, pod, part)
        codes = np.zeros(len(view), dtype=np.int64)
        codes[positions] = verdicts.codes
        outcome.add(one.index, one.plugin.name, replace(verdicts, codes=codes))

    def _filter_one_by_one(self, outcome: Outcome, one: _Filter, state: CycleState, pod: PodRecord, view: View) -> None:
        """Ask a plugin in the simple form about every node that nobody before it refused."""
        plugin, index = cast(FilterPlugin, one.plugin), one.index
        codes = np.zeros(len(view), dtype=np.int64)
        present = view.take(self.cluster.nodes.present)
        for position in outcome.undecided(index):
            if not present[position]:
                continue
            own = self._world_state(state, pod, view, int(position)) if isinstance(view, Worlds) else state
            status = plugin.filter(own, pod, view.node(int(position)))
            if not _says(status, Code.SUCCESS):
                codes[position] = one.code(_rejection(status, plugin.name, "Filter", pod))
        outcome.add(index, plugin.name, Verdicts(codes, one.statuses.__getitem__))

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
                with Calling(plugin.name, "AddPod" if sign > 0 else "RemovePod", pod):
                    tell = plugin.add_pod if sign > 0 else plugin.remove_pod
                    tell(own, pod, changed, node)
        return own


def _says(answer: object, code: Code) -> bool:
    return isinstance(answer, Status) and answer.code is code


def _rejection(answer: object, plugin: str, point: str, pod: PodRecord) -> Status:
    """A plugin's no. Raises PluginError for an answer that is none."""
    if isinstance(answer, Status) and answer.is_rejected:
        return answer.by(plugin)
    found = (
        f"{answer.code.value} ({answer.message})" if isinstance(answer, Status) else f"{answer!r}, which is no Status"
    )
    raise PluginError(f"plugin {plugin} answered {found} at {point} for pod {pod.key}")


def _nothing_left(plugins: list[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously")
