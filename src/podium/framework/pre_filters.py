"""Runs the PreFilter plugins of a profile: what is prepared once an attempt, before nodes are looked at.

Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster.arrays import Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pod_class import PodClass
from podium.cluster.pods import PodRecord
from podium.framework.cycle_state import CycleState
from podium.framework.errors import PluginError, blame
from podium.framework.plugin import ClassFilterPlugin, PreFilterPlugin, PreFilterResult, is_own
from podium.framework.status import SKIP, SUCCESS, Code, Status, unresolvable


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """The result of all PreFilters. ``rows`` None means every node; ``plugins`` are those that named nodes."""

    status: Status
    rows: Int64s | None = None
    plugins: tuple[str, ...] = ()


_EVERY_NODE = PreFiltered(SUCCESS)


class _Asked:
    """The PreFilter plugins that may have something to say to the pods of a class, and the names of the others."""

    __slots__ = ("_names", "_skipping", "_with_them", "plugins")

    def __init__(self, plugins: list[PreFilterPlugin], skipping: list[str]) -> None:
        self.plugins = plugins
        self._skipping = self._with_them = frozenset(skipping)
        self._names: list[str] = []

    def skipping_with(self, names: list[str]) -> frozenset[str]:
        """The names of those that skip a pod of the class, with those that have said so of it.

        It is one object for pods of which the same ones say so: what is kept by it is found without a comparison.
        """
        if names != self._names:
            self._names, self._with_them = names, self._skipping.union(names)
        return self._with_them


class PreFilters:
    """The PreFilter plugins of one profile at work on one cluster."""

    def __init__(self, plugins: Sequence[PreFilterPlugin], cluster: Cluster) -> None:
        self._plugins = plugins
        self._knowing = [plugin for plugin in plugins if isinstance(plugin, ClassFilterPlugin) and is_own(plugin)]
        self._cluster = cluster
        # Tells what is known here of a class from what another profile knows of it, in the class's memo.
        self._asked_key = object()

    def run(self, state: CycleState, pod: PodRecord) -> PreFiltered:
        """Run every PreFilter.

        A rejection that preemption might lift lets the others prepare their Filters all the same, for preemption needs
        them; any other rejection ends it. Raises PluginError for an answer that is neither success, skip nor rejection.
        """
        asked = self._asked_about(pod.pod_class)
        skipping: list[str] = []
        try:
            return self._ask(asked.plugins, state, pod, skipping)
        finally:
            state.skip_filter = asked.skipping_with(skipping)

    def _ask(
        self, plugins: Sequence[PreFilterPlugin], state: CycleState, pod: PodRecord, skipping: list[str]
    ) -> PreFiltered:
        """What some plugins come to together; the names of those that skip the pod are added to ``skipping``."""
        names: frozenset[str] | None = None
        narrowing: list[str] = []
        rejected: Status | None = None
        cluster = self._cluster
        for plugin in plugins:
            # As `Calling` does it, which would cost as much as most plugins take to answer.
            try:
                answer = plugin.pre_filter(state, pod, cluster)
            except BaseException as error:
                blame(error, plugin.name, "PreFilter", pod)
                raise
            if answer is SKIP:
                skipping.append(plugin.name)
                continue
            if answer is SUCCESS:
                continue
            status, named = (
                (answer.status, answer.node_names) if isinstance(answer, PreFilterResult) else (answer, None)
            )
            if says(status, Code.SKIP):
                skipping.append(plugin.name)
            elif not says(status, Code.SUCCESS):
                rejected = rejection(status, plugin.name, "PreFilter", pod)
                if rejected.code is not Code.UNSCHEDULABLE:
                    state.never_run = self._behind(plugin)
                    return PreFiltered(rejected)
            elif named is not None:
                narrowing.append(plugin.name)
                names = named if names is None else names & named
                if not names:
                    state.never_run = self._behind(plugin)
                    return PreFiltered(_nothing_left(narrowing))
        return PreFiltered(rejected) if rejected is not None else self._narrowed(names, narrowing)

    def _behind(self, plugin: PreFilterPlugin) -> frozenset[str]:
        """The names of those that come after a plugin, whether or not they are asked about pods of the class."""
        behind = self._plugins[self._plugins.index(plugin) + 1 :]
        return frozenset(other.name for other in behind)

    def _narrowed(self, names: frozenset[str] | None, plugins: list[str]) -> PreFiltered:
        """The rows of the nodes that some plugins named; None means every node."""
        if names is None:
            return _EVERY_NODE
        row_of = self._cluster.nodes.row_of
        rows = np.array(sorted(row_of[name] for name in names if name in row_of), dtype=np.int64)
        return PreFiltered(SUCCESS, rows, tuple(sorted(plugins)))

    def _asked_about(self, pod_class: PodClass) -> _Asked:
        known: _Asked | None = pod_class.memo.get(self._asked_key)
        if known is None:
            skipping = [plugin.name for plugin in self._knowing if plugin.never_filters(pod_class)]
            asked = [plugin for plugin in self._plugins if plugin.name not in skipping]
            known = pod_class.memo[self._asked_key] = _Asked(asked, skipping)
        return known


def says(answer: object, code: Code) -> bool:
    """Whether a plugin answered with a code."""
    return isinstance(answer, Status) and answer.code is code


def rejection(answer: object, plugin: str, point: str, pod: PodRecord) -> Status:
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
