"""Failures of nodes: their pods are evicted at once, and replacements placed on the other nodes in queue order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.api.node import Taint
from podium.app.console.cells import by_key
from podium.app.explaining.obstacles import RESOURCES
from podium.app.planning.deciding.decisions import DAEMON_SET, Decisions, QueueResult
from podium.cluster.arrays import Int64s
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.cluster.view import tolerates
from podium.framework.handle import CycleState
from podium.framework.verdicts import PluginError

NODE, ZONE, POOL, RACK, PAIR = "node", "zone", "pool", "rack", "pair"
GROUPS = (ZONE, POOL, RACK)
OUTCOMES = FITS, PREEMPTS, UNPLACED = "fits", "preempts", "unplaced"
FATES = _REPLACED, _HELD, _UNMANAGED = "replaced", "held", "unmanaged"
# Owners that create a replacement while the evicted pod terminates on a node that does not answer.
_REPLACING = ("ReplicaSet", "ReplicationController", "Job")
_UNREACHABLE = "node.kubernetes.io/unreachable"
_TAINTS = tuple(Taint(key=_UNREACHABLE, effect=effect) for effect in ("NoSchedule", "NoExecute"))
# Replacements come after all pods of the same priority that wait already.
_LATER_NS = 1 << 62


class FailureScope(NamedTuple):
    """Nodes that fail together: one node, or all with a value of a label."""

    kind: str
    name: str
    nodes: tuple[str, ...]


class FailureOutcome(msgspec.Struct, frozen=True):
    """The outcome of one failure, in numbers of pods.

    ``replaced`` get replacements; ``held`` wait for their node, since a StatefulSet replaces no pod that still
    terminates or since they tolerate the failure; ``unmanaged`` have no controller that replaces them. ``unplaced``
    replacements and victims find no node, ``unplaced_alone`` if none may preempt. ``first`` is the workload of the most
    important pod without a place; ``unplaced_by`` counts these pods by workload.
    """

    scope: str
    name: str
    nodes: int
    outcome: str
    replaced: int
    held: int
    unmanaged: int
    unplaced_alone: int = 0
    unplaced: int = 0
    preempted: int = 0
    first: str = ""
    unplaced_by: dict[str, int] = {}

    @property
    def order(self) -> tuple[int, int, int, str]:
        """A sort key: the worst failures first."""
        return -self.unplaced, -self.unplaced_alone, -self.replaced, self.name


def failure_outcomes(decisions: Decisions, scopes: Sequence[FailureScope]) -> list[FailureOutcome]:
    """Return the outcome of each failure, after the pending pods that fit now have been placed."""
    with decisions.what_if():
        trials = _Trials(decisions, decisions.schedule(decisions.pending), preempts=False)
        alone = [trials.outcome(scope) for scope in scopes]
    with decisions.what_if():
        base = decisions.schedule(decisions.pending, preempts=True, replaces=True)
        trials, found = _Trials(decisions, base, preempts=True), []
        for scope, without in zip(scopes, alone, strict=True):
            # If the pending pods preempt none, a failure without unplaced pods has the same outcome.
            outcome = trials.outcome(scope) if base.preemptors or without.unplaced else without
            verdict = UNPLACED if outcome.unplaced else PREEMPTS if without.unplaced else FITS
            found.append(replace(outcome, unplaced_alone=without.unplaced, outcome=verdict))
    return found


def _fate(pod: PodRecord) -> str:
    """Return what becomes of a pod of a node that fails, "" for nothing."""
    kind = "" if pod.controller is None else pod.controller.kind
    if pod.terminating or pod.is_mirror or kind in (DAEMON_SET, "Node"):
        return ""
    toleration = next((each for each in pod.spec.tolerations if tolerates(each, _TAINTS[1])), None)
    if kind == "StatefulSet" or (toleration is not None and toleration.toleration_seconds is None):
        return _HELD
    return _REPLACED if kind in _REPLACING else _UNMANAGED


def _replacement(pod: PodRecord) -> PodRecord:
    """Return the pod that the controller creates instead."""
    fields = {"created_ns": _LATER_NS, "start_ns": NOT_STARTED_NS, "ready": False, "preempted": False}
    return pod.without_node(uid=f"{pod.uid}/again", **fields)


def _sees_taint(pod: PodRecord) -> bool:
    """Return whether the taint of a failed node means more to the pod than that the node takes no pods."""
    constraints = pod.spec.topology_spread_constraints
    tolerant = any(tolerates(each, _TAINTS[0]) for each in pod.spec.tolerations)
    return tolerant or any(each.node_taints_policy == "Honor" for each in constraints)


class _Trials:
    """Failures tried one by one on a cluster whose pending pods have been placed, with or without preemption."""

    def __init__(self, decisions: Decisions, base: QueueResult, *, preempts: bool) -> None:
        self._decisions = decisions
        self._preempts = preempts
        self._room = _Room(decisions)
        filters = [{plugin.name for plugin in runner.profile.filter} for runner in decisions.runners.values()]
        self._counts_pods = all(RESOURCES in names for names in filters)
        self._by_node = by_key((pod.node_name, pod) for pod in decisions.cluster.placed.values())
        # Other pods that wait fit nowhere after a failure either: nodes that fail free nothing.
        self._waiting = tuple(pod for pod in base.waiting if self._room.counted_for(pod) != _Counted())

    def outcome(self, scope: FailureScope) -> FailureOutcome:
        """Return the outcome of one failure; without preemption ``unplaced`` counts the pods that do not fit."""
        decisions = self._decisions
        pods = by_key((_fate(pod), pod) for name in scope.nodes for pod in self._by_node.get(name, ()))
        replaced, held, unmanaged = (pods.get(fate, []) for fate in FATES)
        counts = len(replaced), len(held), len(unmanaged)
        found = FailureOutcome(scope.kind, scope.name, len(scope.nodes), FITS, *counts)
        evicted = Counter(pod.pod_class for pod in (*replaced, *held, *unmanaged))
        # Evictions may make room for those that count the pods that do not terminate.
        waiting = [pod for pod in self._waiting if self._room.is_concerned(pod, evicted)]
        unplaced = None if waiting else self._certain(scope, replaced, evicted)
        if unplaced is None:
            with decisions.what_if() as what_if:
                closes = self._counts_pods and not any(map(_sees_taint, (*waiting, *replaced)))
                for name in scope.nodes:
                    row = decisions.cluster.nodes.row_of[name]
                    if closes:
                        what_if.close_node(row)
                        continue
                    node = decisions.cluster.nodes.node(row)
                    taints = (*(each for each in node.spec.taints if each.key != _UNREACHABLE), *_TAINTS)
                    what_if.change_node(replace(node, spec=replace(node.spec, taints=taints)))
                for pod in (*replaced, *held, *unmanaged):
                    what_if.replace_pod(replace(pod, terminating=True))
                pending = (*waiting, *map(_replacement, replaced))
                result = decisions.schedule(pending, preempts=self._preempts, replaces=self._preempts)
            known = {pod.uid for pod in waiting}
            unplaced = [pod for pod in result.waiting if pod.uid not in known]
            found = replace(found, preempted=len(result.preemptors))
        workloads = [decisions.workloads.of(pod) for pod in decisions.in_order(unplaced)]
        by_workload = dict(sorted(Counter(workloads).items()))
        return replace(found, unplaced=len(unplaced), first="".join(workloads[:1]), unplaced_by=by_workload)

    def _certain(
        self, scope: FailureScope, replaced: Sequence[PodRecord], evicted: Mapping[PodClass, int]
    ) -> list[PodRecord] | None:
        """Return the pods that find no place wherever the others go; None if that is not certain.

        Each pod placed takes room on one node. A pod fits if more nodes accept it than there are pods before it, and
        without preemption it fits nowhere if none does.
        """
        row_of = self._decisions.cluster.nodes.row_of
        failed = np.array([row_of[name] for name in scope.nodes], dtype=np.int64)
        never = set()
        for pod_class, pod in {pod.pod_class: pod for pod in replaced}.items():
            rows = self._room.accepting(pod, evicted)
            left = 0 if rows is None else len(rows) - int(np.isin(failed, rows).sum())
            if rows is None or (left < len(replaced) and (left or self._preempts)):
                return None
            if not left:
                never.add(pod_class)
        return [_replacement(pod) for pod in replaced if pod.pod_class in never]


@dataclass(frozen=True, slots=True)
class _Counted:
    """The pod classes, by their ids, that the filters for a class count beyond a node.

    ``live`` are those of which pods count until they terminate, in the domains of ``keys``.
    """

    classes: tuple[Mapping[int, None], ...] = ()
    live: tuple[Mapping[int, None], ...] = ()
    keys: tuple[str, ...] = ()


class _Room:
    """The nodes that accept a pod after it was evicted; equal pods of nodes in equal domains share an answer."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._counted: dict[PodClass, _Counted | None] = {}
        self._rows: dict[tuple[PodClass, tuple[str | None, ...]], Int64s] = {}

    def is_concerned(self, pod: PodRecord, evicted: Mapping[PodClass, int]) -> bool:
        counted = self.counted_for(pod)
        return counted is None or any(other.id in ids for ids in counted.live for other in evicted)

    def accepting(self, pod: PodRecord, evicted: Mapping[PodClass, int]) -> Int64s | None:
        """Return the rows that accept an evicted pod in any case; None if that depends on the others."""
        decisions, pod_class, counted = self._decisions, pod.pod_class, self.counted_for(pod)
        if counted is None:
            return None
        for ids in counted.classes:
            if any(other.id in ids and (other is not pod_class or number > 1) for other, number in evicted.items()):
                return None
        labels = decisions.cluster.nodes.node(pod.row).metadata.labels
        place = (pod_class, tuple(map(labels.get, counted.keys)))
        if place not in self._rows:
            with decisions.what_if() as what_if:
                if counted.keys:
                    what_if.replace_pod(replace(pod, terminating=True))
                self._rows[place] = decisions.runners[pod.scheduler_name].feasible_rows(pod)
        return self._rows[place]

    def counted_for(self, pod: PodRecord) -> _Counted | None:
        """Return what counts for a pod; None if a filter does more than count, or rejects the pod altogether."""
        if pod.pod_class not in self._counted:
            self._counted[pod.pod_class] = self._find_counted(pod)
        return self._counted[pod.pod_class]

    def _find_counted(self, pod: PodRecord) -> _Counted | None:
        runner, state = self._decisions.runners.get(pod.scheduler_name), CycleState()
        matcher, other = self._decisions.cluster.matcher, pod.without_node(name="", uid="")
        honors = any(each.node_taints_policy == "Honor" for each in pod.spec.topology_spread_constraints)
        if runner is None or honors or self._decisions.is_of_gang(pod):
            return None
        try:
            passes = runner.pre_filter(state, other).status.is_success
            if passes and runner.is_row_local(state):
                return _Counted()
            parts, reaches = runner.filter_parts(state, other), runner.reaches(state, other)
        except PluginError:
            return None
        if not passes or parts is None or not reaches.is_known:
            return None
        live = [reach for reach in reaches.found if reach.predicate.live_only]
        classes = tuple(matcher(predicate).classes for predicate in parts.counted)
        keys = tuple(dict.fromkeys(reach.key for reach in live))
        return _Counted(classes, tuple(matcher(reach.predicate).classes for reach in live), keys)
