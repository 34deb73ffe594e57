"""Failures of nodes, tried one by one: what becomes of their pods.

Their pods are evicted node by node, and replacements are placed on the other nodes in queue order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.api.node import UNREACHABLE, Taint, is_ready
from podium.api.workloads import Job
from podium.app.console.cells import by_key
from podium.app.explaining.obstacles import RESOURCES
from podium.app.exporter.failure_queue import LATER_NS, FailureQueue
from podium.app.planning.deciding.attempts import FailedAttempts
from podium.app.planning.deciding.decisions import DAEMON_SET, Decisions, replacement
from podium.cluster.arrays import Bools
from podium.cluster.pod_classes import PodClass
from podium.cluster.pods import PodRecord
from podium.cluster.view import tolerates
from podium.controllers.nodes.node_lifecycle import ZoneDisruption
from podium.controllers.workloads.job_pods import waits_for_failure
from podium.framework.handle import CycleState
from podium.framework.verdicts import PluginError

OUTCOMES = FITS, PREEMPTS, UNPLACED = "fits", "preempts", "unplaced"
FATES = _REPLACED, _HELD, _UNMANAGED = "replaced", "held", "unmanaged"
# Owners that create a replacement while the evicted pod terminates on a node that does not answer.
_REPLACING = ("ReplicaSet", "ReplicationController", "Job")
_TAINTS = tuple(Taint(key=UNREACHABLE, effect=effect) for effect in ("NoSchedule", "NoExecute"))
# The pods that are evicted at one time, and that time, from the first taint on.
_Turn = tuple[int, Sequence[PodRecord]]
# In how many turns the nodes of larger groups are evicted.
_MAX_TURNS = 20


class FailureScope(NamedTuple):
    """Nodes that fail together: one node, or all with a value of a label."""

    kind: str
    name: str
    nodes: tuple[str, ...]


class FailureOutcome(msgspec.Struct, frozen=True):
    """The outcome of one failure, in numbers of pods.

    ``replaced`` get replacements; ``held`` wait for their node: those of StatefulSets, and of Jobs that replace only
    failed pods, while they terminate, and those that tolerate the failure; ``unmanaged`` have no controller that
    replaces them. ``unplaced`` replacements and victims find no node, ``unplaced_alone`` if none may preempt. ``first``
    is the workload of the most important pod without a place; ``unplaced_by`` counts these pods by workload.
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


def _stays_ns(pod: PodRecord) -> int | None:
    """Return how long the pod tolerates the failure of its node; None for good."""
    toleration = next((each for each in pod.spec.tolerations if tolerates(each, _TAINTS[1])), None)
    seconds = 0 if toleration is None else toleration.toleration_seconds
    return None if seconds is None else max(seconds, 0) * 10**9


@dataclass(frozen=True, slots=True)
class _Counted:
    """The pod classes, by their ids, that the filters for a class count beyond a node.

    ``live`` are those of which pods count until they terminate, in the domains of ``keys``.
    """

    classes: tuple[Mapping[int, None], ...] = ()
    live: tuple[Mapping[int, None], ...] = ()
    keys: tuple[str, ...] = ()


def _joined(turns: Sequence[_Turn]) -> list[_Turn]:
    """Return few turns for many; the last time of several counts."""
    at_once = max(-(-len(turns) // _MAX_TURNS), 1)
    some = [turns[place : place + at_once] for place in range(0, len(turns), at_once)]
    return [(each[-1][0], [pod for _, pods in each for pod in pods]) for each in some]


class FailureTrials:
    """Failures tried one by one on a cluster whose pending pods have been placed.

    In a trial, pods are ready as soon as they have a node, and the status of budgets follows.
    """

    def __init__(self, decisions: Decisions) -> None:
        """Place the pending pods."""
        self._decisions = decisions
        for runner in decisions.runners.values():
            # Several pods of a class are usually evicted at one time.
            runner.rankings.is_eager = True
        # The attempts that have failed before a failure, without and with preemption.
        self._failed = [FailedAttempts(decisions.cluster, decisions.runners, preempts=each) for each in (False, True)]
        base = decisions.schedule(decisions.pending, preempts=True, replaces=True, failed=self._failed[True])
        self._counted: dict[PodClass, _Counted | None] = {}
        # Equal pods of nodes in equal domains share an answer.
        self._accepts: dict[tuple[PodClass, tuple[str | None, ...]], Bools] = {}
        filters = [{plugin.name for plugin in runner.profile.filter} for runner in decisions.runners.values()]
        self._counts_pods = all(RESOURCES in names for names in filters)
        self._patient_jobs = {
            job.metadata.uid for job in decisions.objects if isinstance(job, Job) and waits_for_failure(job.spec)
        }
        self._health = ZoneDisruption()
        for name, row in decisions.cluster.nodes.row_of.items():
            self._health.replace(name, node := decisions.cluster.nodes.node(row), is_healthy=is_ready(node))
        self._by_node = by_key((pod.node_name, pod) for pod in decisions.cluster.placed.values())
        # Pods that were tried at one time come in order of names.
        self._waiting = tuple(replace(pod, created_ns=0) for pod in base.waiting)
        # Others fit nowhere after a failure either, unless one preempts: nodes that fail free nothing.
        self._count_others = [pod for pod in self._waiting if self._counted_for(pod) != _Counted()]
        # The further ready pods of budgets in a trial.
        self._more_ready: Counter[str] = Counter()

    def outcome(self, scope: FailureScope) -> FailureOutcome:
        """Return the outcome of one failure."""
        turns = self._health.eviction_delays_ns(scope.nodes)
        pods = by_key((self._effect_on(pod), pod) for name in scope.nodes for pod in self._by_node.get(name, ()))
        counts = len(pods.get(_REPLACED, ())), len(pods.get(_HELD, ())), len(pods.get(_UNMANAGED, ()))
        replaced = [pod for pod in pods.get(_REPLACED, ()) if pod.node_name in turns]
        never = [pod for pod in pods.get(_REPLACED, ()) if pod.node_name not in turns and pod.ready]
        stays = ((_stays_ns(pod), pod) for fate in FATES for pod in pods.get(fate, ()) if pod.node_name in turns)
        leaving = [(turns[pod.node_name] + stay_ns, pod) for stay_ns, pod in stays if stay_ns is not None]
        evicted = Counter(pod.pod_class for _, pod in leaving)
        # Evictions may make room for those that count the pods that do not terminate.
        ids = {pod_class.id for pod_class in evicted}
        known = map(self._counted_for, self._count_others)
        is_open = any(counted is None or any(map(ids.intersection, counted.live)) for counted in known)
        certain = None if is_open else self._certain(scope, replaced, evicted)
        lacking = alone = self._lacking([*(certain or ()), *never])
        victims = 0
        if certain is None or certain:
            in_turn = _joined(sorted(by_key(leaving).items()))
            if not in_turn or in_turn[0][0]:
                # The first taint alone may let pods that wait find a node.
                in_turn.insert(0, (0, []))
            with self._decisions.what_if() as what_if:
                self._let_fail(scope, replaced)
                left, victims, before = self._play(in_turn, {0, *turns.values()})
                what_if.follower = None
                lacking = self._lacking([*left, *never], self._waiting)
                alone = alone if certain else lacking
                if certain is None and before is not None:
                    # Until a pod preempts, everything happens without preemption, too.
                    savepoint, turn, left = before
                    what_if.roll_back(savepoint)
                    left = self._play_alone(in_turn, left, turn)
                    alone = self._lacking([*left, *never], self._waiting)
        outcome = UNPLACED if lacking else PREEMPTS if alone else FITS
        numbers = *counts, alone.total(), lacking.total(), victims
        first, by_workload = next(iter(lacking), ""), dict(sorted(lacking.items()))
        return FailureOutcome(scope.kind, scope.name, len(scope.nodes), outcome, *numbers, first, by_workload)

    def _effect_on(self, pod: PodRecord) -> str:
        """Return what happens to a pod when its node fails, "" for nothing."""
        kind = "" if pod.controller is None else pod.controller.kind
        if pod.terminating or pod.is_mirror or kind in (DAEMON_SET, "Node"):
            return ""
        if kind == "StatefulSet" or pod.owner_uid in self._patient_jobs or _stays_ns(pod) is None:
            return _HELD
        return _REPLACED if kind in _REPLACING else _UNMANAGED

    def _let_fail(self, scope: FailureScope, replaced: Iterable[PodRecord]) -> None:
        """Let nodes fail: their pods are not ready, and no others come."""
        nodes, what_if = self._decisions.cluster.nodes, self._decisions.scratch
        what_if.follower = self
        self._more_ready.clear()
        for pod in chain.from_iterable(self._by_node.get(name, ()) for name in scope.nodes):
            self.on_pod_left(pod)
        specs = [pod.spec for pod in (*self._waiting, *replaced)]
        tolerant = any(tolerates(each, _TAINTS[0]) for spec in specs for each in spec.tolerations)
        honors = any(each.node_taints_policy == "Honor" for spec in specs for each in spec.topology_spread_constraints)
        # Otherwise the taint means no more than that the node takes no pods.
        closes = self._counts_pods and not tolerant and not honors
        for row in map(nodes.row_of.__getitem__, scope.nodes):
            if closes:
                what_if.close_node(row)
                continue
            node = nodes.node(row)
            taints = (*(each for each in node.spec.taints if each.key != UNREACHABLE), *_TAINTS)
            what_if.put(replace(node, spec=replace(node.spec, taints=taints)))

    def on_pod_coming(self, pod: PodRecord, _: int) -> None:
        self._count_ready(pod, 1)

    def on_pod_left(self, pod: PodRecord) -> None:
        if pod.is_healthy or pod.start_ns >= LATER_NS:
            self._count_ready(pod, -1)

    def _count_ready(self, pod: PodRecord, number: int) -> None:
        """Update the status of budgets, which decide among victims, as the disruption controller does."""
        for key in [budget.key for budget in self._decisions.cluster.budgets.over(pod.pod_class)]:
            self._more_ready[key] += number
            known = self._decisions.cluster.budgets.objects[key]
            status = known.status
            allowed = max(0, status.current_healthy + self._more_ready[key] - status.desired_healthy)
            if status.expected_pods and allowed != status.disruptions_allowed:
                self._decisions.put(replace(known, status=replace(status, disruptions_allowed=allowed)))

    def _play(
        self, in_turn: Sequence[_Turn], taints: Iterable[int]
    ) -> tuple[tuple[PodRecord, ...], int, tuple[int, int, tuple[PodRecord, ...]] | None]:
        """Evict pods in turns, and place those that wait, also by preemption.

        Return the pods that wait at the end, the number of victims, and for the first turn in which pods preempt a
        savepoint, its number, and the pods that wait before it.
        """
        queue, before = FailureQueue(self._decisions, self._failed[True].copy(), self._waiting, taints), None
        ends = (*(now_ns for now_ns, _ in in_turn[1:]), None)
        for number, (turn, end_ns) in enumerate(zip(in_turn, ends, strict=False)):
            savepoint, waiting = self._decisions.scratch.savepoint(), tuple(queue.waiting)
            queue.try_pods(self._evict(turn), turn[0])
            queue.pass_time(end_ns)
            if queue.victims and before is None:
                before = savepoint, number, waiting
        return (*queue.waiting, *queue.later), queue.victims, before

    def _play_alone(self, in_turn: Sequence[_Turn], left: tuple[PodRecord, ...], first: int) -> tuple[PodRecord, ...]:
        """Evict pods in turns, from the ``first`` one on, and place those that wait; return those that still do."""
        failed = self._failed[False].copy()
        for turn in in_turn[first:]:
            left = self._decisions.schedule((*left, *self._evict(turn)), failed=failed).waiting
        return left

    def _evict(self, turn: _Turn) -> list[PodRecord]:
        """Let the pods of a turn terminate, and return their replacements."""
        now_ns, pods = turn
        for pod in pods:
            self._decisions.scratch.replace_pod(replace(pod, terminating=True))
            self._decisions.scratch.leave_group(pod)
        return [replacement(pod, created_ns=LATER_NS + now_ns) for pod in pods if self._effect_on(pod) == _REPLACED]

    def _lacking(self, unplaced: Iterable[PodRecord], waiting: Iterable[PodRecord] = ()) -> Counter[str]:
        """Return how many pods each workload lacks beyond those that waited before, the most important pod's first."""
        workload_of = self._decisions.workloads.of
        return Counter(map(workload_of, self._decisions.in_order(unplaced))) - Counter(map(workload_of, waiting))

    def _certain(
        self, scope: FailureScope, replaced: Sequence[PodRecord], evicted: Mapping[PodClass, int]
    ) -> list[PodRecord] | None:
        """Return the pods that find no place without preemption wherever the others go; None if that is not certain.

        Each pod placed takes room on one node. A pod fits if more nodes accept it than there are pods before it, and
        it fits nowhere if none does.
        """
        row_of = self._decisions.cluster.nodes.row_of
        failed = np.array([row_of[name] for name in scope.nodes], dtype=np.int64)
        never = set()
        for pod_class, pod in {pod.pod_class: pod for pod in replaced}.items():
            accepts = self._accepting(pod, evicted)
            left = 0 if accepts is None else int(accepts.sum() - accepts[failed].sum())
            if accepts is None or 0 < left < len(replaced):
                return None
            if not left:
                never.add(pod_class)
        return [pod for pod in replaced if pod.pod_class in never]

    def _accepting(self, pod: PodRecord, evicted: Mapping[PodClass, int]) -> Bools | None:
        """Return by row whether it accepts an evicted pod in any case; None if that depends on the others."""
        decisions, pod_class, counted = self._decisions, pod.pod_class, self._counted_for(pod)
        if counted is None:
            return None
        for ids in counted.classes:
            if any(other.id in ids and (other is not pod_class or number > 1) for other, number in evicted.items()):
                return None
        labels = decisions.cluster.nodes.node(pod.row).metadata.labels
        place = (pod_class, tuple(map(labels.get, counted.keys)))
        if place not in self._accepts:
            with decisions.what_if() as what_if:
                if counted.keys:
                    what_if.replace_pod(replace(pod, terminating=True))
                self._accepts[place] = np.zeros(decisions.cluster.nodes.count, dtype=np.bool_)
                self._accepts[place][decisions.runners[pod.scheduler_name].feasible_rows(pod)] = True
        return self._accepts[place]

    def _counted_for(self, pod: PodRecord) -> _Counted | None:
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
