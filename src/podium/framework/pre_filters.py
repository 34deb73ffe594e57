"""The PreFilter plugins of a profile, which prepare an attempt, and the contract of plugins for groups of pods.

Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec
import numpy as np

from podium.api.versions.release import Behavior
from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.handle import CycleState, Handle
from podium.framework.plugin import ClassFilterPlugin, Plugin, PreFilterPlugin, PreFilterResult, ReservePlugin, is_own
from podium.framework.verdicts import SKIP, SUCCESS, Code, Outcome, PluginError, Status, blame, unresolvable

LEFT_OUT = "PreFilter"
"""The plugin of a rejection by several PreFilters together."""


class PreFiltered(msgspec.Struct, frozen=True):
    """The result of all PreFilter plugins.

    ``rows`` None means every node; ``plugins`` are those that named nodes. ``left_out`` is the status of all other
    nodes.
    """

    status: Status
    rows: Int64s | None = None
    plugins: tuple[str, ...] = ()
    left_out: Status = unresolvable().by(LEFT_OUT)

    @property
    def is_open(self) -> bool:
        """Return whether the pod may try every node."""
        return self.rows is None and self.status.is_success

    def within(self, rows: Int64s | None) -> PreFiltered:
        """Return the same result for some rows (ascending), None for all."""
        if rows is None:
            return self
        return msgspec.structs.replace(self, rows=rows if self.rows is None else np.intersect1d(rows, self.rows))


_EVERY_NODE = PreFiltered(SUCCESS)


class PreFilters:
    """The PreFilter plugins of one profile on one cluster."""

    def __init__(self, plugins: Sequence[PreFilterPlugin], cluster: Cluster) -> None:
        self._plugins = plugins
        self._class_filters = [plugin for plugin in plugins if isinstance(plugin, ClassFilterPlugin) and is_own(plugin)]
        self._cluster = cluster
        self._counts_left_out = cluster.release.has(Behavior.UNMATCHED_NODES_COUNTED)
        # Distinguishes this profile's entries from those of other profiles in the memo of a class.
        self._memo_key = object()

    def run(self, state: CycleState, pod: PodRecord) -> PreFiltered:
        """Run every PreFilter plugin.

        After a rejection that preemption might resolve, the others still prepare their filters, which preemption needs;
        any other rejection ends it. Raises PluginError for an answer that is neither success, skip nor rejection.
        """
        applicable: _Applicable = pod.pod_class.memo.get(self._memo_key) or self._applicable(pod.pod_class)
        skipping: list[str] = []
        try:
            return self._call(applicable.plugins, state, pod, skipping)
        finally:
            if applicable.skipping != skipping:
                applicable.skipping, applicable.skipped = skipping, applicable.always_skipped.union(skipping)
            state.skip_filter = applicable.skipped

    def _call(
        self, plugins: Sequence[tuple[str, PreFilterPlugin]], state: CycleState, pod: PodRecord, skipping: list[str]
    ) -> PreFiltered:
        """Return the joint result of some plugins; add the names of those that skip the pod to ``skipping``."""
        names: frozenset[str] | None = None
        narrowing: list[str] = []
        rejected: Status | None = None
        cluster = self._cluster
        for name, plugin in plugins:
            # Like `Calling`, which would cost as much as most plugins take to answer.
            try:
                answer = plugin.pre_filter(state, pod, cluster)
            except BaseException as error:
                blame(error, name, "PreFilter", pod)
                raise
            if answer is SKIP:
                skipping.append(name)
                continue
            if answer is SUCCESS:
                continue
            status, named = (
                (answer.status, answer.node_names) if isinstance(answer, PreFilterResult) else (answer, None)
            )
            if has_code(status, Code.SKIP):
                skipping.append(name)
            elif not has_code(status, Code.SUCCESS):
                rejected = rejection(status, name, "PreFilter", pod)
                if rejected.code is not Code.UNSCHEDULABLE:
                    state.never_run = self._names_after(plugin)
                    return PreFiltered(rejected)
            elif named is not None:
                narrowing.append(name)
                names = named if names is None else names & named
                if not names:
                    state.never_run = self._names_after(plugin)
                    return PreFiltered(_nothing_left(narrowing))
        found = _EVERY_NODE if names is None else self._named_rows(names, narrowing)
        return found if rejected is None else PreFiltered(rejected)

    def _names_after(self, plugin: PreFilterPlugin) -> frozenset[str]:
        """Return the names of the plugins after ``plugin``, whether or not they are called for pods of the class."""
        later = self._plugins[self._plugins.index(plugin) + 1 :]
        return frozenset(other.name for other in later)

    def _named_rows(self, names: frozenset[str], plugins: list[str]) -> PreFiltered:
        """Return the rows of the nodes that some plugins named."""
        row_of = self._cluster.nodes.row_of
        rows = np.array(sorted(row_of[name] for name in names if name in row_of), dtype=np.int64)
        plugins = sorted(plugins)
        reasons = (f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]",) if self._counts_left_out else ()
        return PreFiltered(SUCCESS, rows, tuple(plugins), unresolvable(*reasons).by(LEFT_OUT))

    def _applicable(self, pod_class: PodClass) -> _Applicable:
        skipped = frozenset(plugin.name for plugin in self._class_filters if plugin.never_filters(pod_class))
        plugins = [(plugin.name, plugin) for plugin in self._plugins if plugin.name not in skipped]
        found = pod_class.memo[self._memo_key] = _Applicable(plugins, skipped, [], skipped)
        return found


class _Applicable(msgspec.Struct, eq=False):
    """The plugins, by name, that may apply to the pods of a class, and the names of the others.

    ``skipping`` are those that skipped the last pod, and ``skipped`` these and the others. For the same names it is the
    same object, which caches by skipped plugins compare for free.
    """

    plugins: Sequence[tuple[str, PreFilterPlugin]]
    always_skipped: frozenset[str]
    skipping: list[str]
    skipped: frozenset[str]


def has_code(answer: object, code: Code) -> bool:
    """Return whether a plugin answered with a code."""
    return isinstance(answer, Status) and answer.code is code


def rejection(answer: object, plugin: str, point: str, pod: PodRecord) -> Status:
    """Return a plugin's rejection. Raises PluginError for an answer that is none."""
    if isinstance(answer, Status) and answer.is_rejected:
        return answer.by(plugin)
    found = (
        f"{answer.code.value} ({answer.message})"
        if isinstance(answer, Status)
        else f"{answer!r}, which is not a Status"
    )
    raise PluginError(f"plugin {plugin} answered {found} at {point} for pod {pod.key}")


def _nothing_left(plugins: list[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously")


class Domain(NamedTuple):
    """Nodes that may take all pods of a group: those with one value of a topology key.

    ``rows`` are theirs, ascending; None for all nodes.
    """

    name: str
    rows: Int64s | None


EVERYWHERE = (Domain("", None),)
"""The domains of a group without a topology."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupDemand:
    """Pods of one PodGroup that are to be placed together, and that do not fit together at present.

    ``members`` are the pending ones in the order in which they are tried; at least ``needed`` of them need a node,
    besides those of the group that have one. All of them have to be in one of the ``domains``, which are in the order
    in which they are tried.
    """

    key: str
    members: tuple[PodRecord, ...]
    needed: int
    domains: tuple[Domain, ...] = EVERYWHERE


class GroupPostFilterResult(msgspec.Struct, frozen=True):
    """A proposal for a group: a node for each of enough members, and the victims that this requires, or nothing.

    ``placements`` are in the order of the members; omitted members stay pending. A plugin returns SUCCESS for a
    proposal, UNSCHEDULABLE if there is none or it is not worthwhile now, and ERROR if it fails. ``plan``, ``retry_ns``,
    ``evicts`` and ``waits_for`` are as in `PostFilterResult`. ``keeps_nominations``: the victims of an earlier plan are
    still terminating, so that the members' nominations stay; otherwise nominations end if there is no new plan.
    ``binds_first``: bind the members as soon as the victims' deletions are under way. ``states`` are those of the
    placements if these are bound now: they need no victims, or there is no capacity yet and their kubelets hold the
    pods until there is.
    """

    status: Status
    placements: tuple[tuple[PodRecord, str], ...] = ()
    victims: tuple[PodRecord, ...] = ()
    plan: Any = None
    retry_ns: int | None = None
    evicts: bool = False
    keeps_nominations: bool = False
    binds_first: bool = False
    states: tuple[CycleState, ...] = ()
    waits_for: tuple[str, ...] = ()


class GroupHandle(Handle, Protocol):
    """The scheduler's interface for such a plugin, in addition to that of any PostFilter plugin."""

    @property
    def reserving(self) -> Sequence[ReservePlugin]:
        """The plugins that reserve what a pod needs on its node besides capacity."""

    def pre_filter(self, state: CycleState, pod: PodRecord) -> PreFiltered:
        """Run the PreFilter plugins for a member; they prepare the Filter plugins in its state."""

    def filter(self, state: CycleState, pod: PodRecord, rows: Int64s | None = None) -> Outcome:
        """Filter the live cluster, or some rows of it, considering nominated pods."""


@runtime_checkable
class GroupPostFilterPlugin(Plugin, Protocol):
    """Looks for a solution if too few of a PodGroup's pods fit: one plan for all of them, or none.

    It is a PostFilter plugin as well, and is called in the order of these.
    """

    def group_post_filter(
        self, demand: GroupDemand, handle: GroupHandle, cluster: Cluster
    ) -> GroupPostFilterResult: ...
