"""Adapters from plugins in the simple form, which answer for one node, to the array form.

A plugin in the simple form may state its scope like one in the array form. It is then called for every node, even if
another plugin rejected the pod there, once for each class of pods, and again only for changed rows: its answers must
depend on nothing else. Without a scope its answers may depend on anything and are not cached, except for a score whose
code evidently reads the node alone (`podium.framework.simple_form`).
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Callable, Iterator, Sequence
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_VARARGS, CO_VARKEYWORDS
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

import numpy as np

from podium.api.errors import shown
from podium.cluster import arrays, pod_classes, what_if_view
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import NodeView, View
from podium.framework import plugin as points
from podium.framework.handle import CycleState
from podium.framework.pre_filters import has_code, rejection
from podium.framework.verdicts import SUCCESS, Calling, Code, PluginError, Status, Verdicts, is_failure

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


class ScoreByNodeAlone(ScoreByRow):
    """A Score plugin in the simple form without a scope whose code reads the node alone.

    Its score of a node holds until the node changes. Unlike a plugin that states its scope it may lack an answer for
    nodes that the pod does not fit.
    """

    def __init__(self, plugin: points.ScorePlugin, cluster: Cluster) -> None:
        super().__init__(plugin, cluster)
        self.scope = points.Scope.ROW

    def score_any_rows(self, state: CycleState, pod: PodRecord, view: View) -> arrays.Int64s:
        """Return the scores; -1 for free rows, and if the plugin fails or a score is out of range.

        A caller that uses such a row calls `score_rows`, which raises the error.
        """
        scores = np.full(len(view), -1, dtype=np.int64)
        positions = np.flatnonzero(view.take(view.cluster.nodes.present))
        for position, node in zip(positions.tolist(), view.nodes(positions), strict=True):
            try:
                score: object = self._score(state, pod, node)
            except BaseException as error:
                if not is_failure(error):
                    raise
                continue
            if isinstance(score, int) and 0 <= score <= points.MAX_NODE_SCORE:
                scores[position] = score
        return scores


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
    if scores_by_node_alone(plugin):
        return ScoreByNodeAlone(plugin, cluster)
    return ScoreByRow(plugin, cluster) if _is_of_rows(plugin) else ScoreByNode(plugin)


def scores_by_node_alone(plugin: points.Plugin) -> bool:
    """Return whether a plugin scores in the simple form, and only its code shows that it reads the node alone.

    A plugin that prepares or normalizes is treated like any without a scope.
    """
    has_more = isinstance(
        plugin, points.ArrayScorePlugin | points.NormalizePlugin | points.PreFilterPlugin | points.PreScorePlugin
    )
    is_open = isinstance(plugin, points.ScorePlugin) and not has_more and not hasattr(plugin, "scope")
    return is_open and reads_alone(cast(points.ScorePlugin, plugin).score, "node")


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


_ODD = CO_ASYNC_GENERATOR | CO_COROUTINE | CO_GENERATOR | CO_VARARGS | CO_VARKEYWORDS
# Built-in functions without side effects whose results depend on their arguments alone.
_PLAIN = frozenset(
    """
    abs all any bool dict divmod enumerate filter float frozenset getattr hasattr int isinstance issubclass iter len
    list map max min next pow range repr reversed round set slice sorted str sum tuple zip
    """.split()
)
# Instructions that load local variables, some of them as one of several effects.
_OF_LOCALS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF")
# Instructions that create or change something beyond the call, or read what others may change.
_REACHING_OUT = tuple(
    """
    STORE_ATTR STORE_SUBSCR STORE_SLICE STORE_GLOBAL STORE_NAME STORE_DEREF DELETE_ATTR DELETE_SUBSCR DELETE_GLOBAL
    DELETE_NAME DELETE_DEREF LOAD_BUILD_CLASS LOAD_LOCALS LOAD_NAME LOAD_FROM_DICT_OR LOAD_SUPER IMPORT_ GET_AWAITABLE
    """.split()
)


def reads_alone(method: Callable[..., Any], argument: str) -> bool:
    """Return whether a method's result depends only on one of its arguments and what can be read from it.

    It does if the code uses no other argument, nothing of its module and no variable around it, calls only built-in
    functions of their arguments, and sets only its own variables. The same argument then has the same result, or the
    same error. False means that this cannot be shown.
    """
    function = method.__func__ if isinstance(method, MethodType) else method
    if not isinstance(function, FunctionType):
        return False
    code = function.__code__
    named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_flags & _ODD or code.co_freevars or argument not in named:
        return False
    others = frozenset(named) - {argument}
    return all(_is_plain(each, others, function.__globals__) for each in _codes(code))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_plain(code: CodeType, others: frozenset[str], module: dict[str, Any]) -> bool:
    """Return whether code uses none of the ``others``, and nothing of the module.

    A variable of an inner function with the name of one of the others counts as a use.
    """
    for instruction in dis.get_instructions(code):
        name, subject = instruction.opname, instruction.argval
        if name.startswith(_REACHING_OUT):
            return False
        if name.startswith("LOAD_GLOBAL") and not _is_plain_builtin(subject, module):
            return False
        subjects = subject if isinstance(subject, tuple) else (subject,)
        if any(load in name for load in _OF_LOCALS) and not others.isdisjoint(subjects):
            return False
    return True


def _is_plain_builtin(name: str, module: dict[str, Any]) -> bool:
    found = None if name in module else getattr(builtins, name, None)
    return name in _PLAIN or (isinstance(found, type) and issubclass(found, Exception)) if found is not None else False
