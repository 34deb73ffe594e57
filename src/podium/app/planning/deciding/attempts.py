"""Kinds of pods that get the same decision, and the kinds of which attempts have failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
import numpy as np

from podium.api.policy import NEVER_PREEMPTS
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.handle import CycleState
from podium.framework.plugin import is_own
from podium.framework.runner import Runner
from podium.framework.verdicts import PluginError
from podium.plugins.default_preemption import DefaultPreemption

PodKind = tuple[object, ...]
"""The inputs of a decision about a pod besides the cluster; pods of one kind get the same decision."""

_SHARED = "podium.app.planning.deciding.attempts"
Found = TypeVar("Found")
# More rows than these are worth an attempt.
_FEW_ROWS = 32


def kind_of(pod: PodRecord) -> PodKind:
    """Return what a decision about the pod depends on besides the cluster."""
    pod_class = pod.pod_class
    return (
        pod.scheduler_name,
        pod_class.memo.get(_SHARED, pod_class),
        pod.priority,
        pod.preemption_policy,
        pod.gates,
        pod.terminating,
        pod.nominated_node_name,
        pod.made_claims,
    )


def note_shared_kind(pod: PodRecord, runner: Runner | None) -> None:
    """Let pod classes with equal owner and spec share a kind where no filter looks beyond the node.

    The pods of an indexed Job, for example, differ only in a label.
    """
    memo = pod.pod_class.memo
    if _SHARED in memo or runner is None or not all(map(is_own, runner.profile.filter)):
        return
    state = CycleState()
    try:
        passes = runner.pre_filter(state, pod).status.is_success
    except PluginError:
        return
    if passes and runner.is_row_local(state):
        shared = (pod.namespace, pod.pod_class.owner, pod.pod_class.spec)
        memo[_SHARED] = msgspec.msgpack.encode(shared, order="deterministic")


def preemption_of(runner: Runner) -> DefaultPreemption | None:
    """Return the DefaultPreemption plugin of a scheduler's profile, if it has one."""
    return next((plugin for plugin in runner.profile.post_filter if isinstance(plugin, DefaultPreemption)), None)


class FailedAttempts:
    """The kinds of pods whose attempts have failed in a what-if run that places pods, closes nodes and preempts.

    An attempt fails again unless a filter beyond single nodes accepts a node for the first time, or a pod has left a
    node. A further pod lets no other one fit its node, nor does a closed node, and a preemption there counts all less
    important pods as gone. A node with nominated pods may have failed because of them, and is not noted. Pods and
    schedulers have no entry if more may matter, such as volumes, devices and groups.
    """

    def __init__(self, cluster: Cluster, runners: Mapping[str, Runner], *, preempts: bool) -> None:
        self._cluster = cluster
        self.preempts = preempts
        """Whether pods may preempt others."""
        self.plugins: dict[PodKind, tuple[str, ...]] = {}
        """The plugins that rejected the kinds of which attempts failed, sorted."""
        self._runners = {name: runner for name, runner in runners.items() if self._is_known(runner)}
        # A pod of each kind, and the rows that filters of single rows reject, also without less important pods.
        self._rejected: dict[PodKind, tuple[PodRecord, Bools]] = {}
        # The last answer of filters beyond single rows about each kind, and their inputs then.
        self._accepted: dict[PodKind, tuple[list[object], Bools]] = {}

    def copy(self) -> FailedAttempts:
        """Return attempts that have failed so far, to which others can be added."""
        copied = FailedAttempts(self._cluster, self._runners, preempts=self.preempts)
        copied.plugins = {**self.plugins}
        copied._rejected = {kind: (pod, rejected.copy()) for kind, (pod, rejected) in self._rejected.items()}
        return copied

    def may_preempt(self, pod: PodRecord, rows: Int64s) -> bool:
        """Return whether filters beyond single rows accept any of these rows, or may do so after a preemption."""
        accepted = self._accepted_beyond(pod)
        return accepted is None or bool(accepted[rows].any())

    def attempt(self, pod: PodRecord, make: Callable[[], tuple[Found, ...]]) -> tuple[Found, ...]:
        """Make an attempt that returns () if it fails, unless it is certain to fail, and record that."""
        if self.fails_again(pod):
            return ()
        found, kind = make(), kind_of(pod)
        accepted = None if found else self._accepted_beyond(pod)
        if accepted is not None:
            rejected = accepted.copy()
            rejected[self._cluster.nominations.rows()] = False
            self._rejected[kind] = pod, rejected | self._rejected[kind][1] if kind in self._rejected else rejected
        return found

    def leave(self, victims: Iterable[PodRecord]) -> None:
        """Note that pods have left their nodes."""
        for victim in victims:
            row = self._cluster.nodes.row_of[victim.node_name]
            for pod, rejected in self._rejected.values():
                if not self._may_be_victim(victim.priority, pod):
                    rejected[row] = False

    def fails_again(self, pod: PodRecord) -> bool:
        """Return whether an attempt is certain to fail again."""
        _, rejected = self._rejected.get(kind_of(pod), (pod, None))
        accepted = None if rejected is None else self._accepted_beyond(pod)
        if rejected is None or accepted is None:
            return False
        rows = np.flatnonzero(accepted & ~rejected)
        if len(rows) > _FEW_ROWS:
            return False
        if len(rows):
            runner, state = self._runners[pod.scheduler_name], CycleState()
            runner.pre_filter(state, pod)
            others = (other for row in rows.tolist() for other in self._cluster.pods_on(row))
            may_help = any(self._may_be_victim(other.priority, pod) for other in others)
            if may_help or len(runner.filter(state, pod, rows).feasible):
                return False
            rejected[np.setdiff1d(rows, self._cluster.nominations.rows())] = True
            # Others reject these rows now.
            self.plugins.pop(kind_of(pod), None)
        return True

    def _may_be_victim(self, priority: int, pod: PodRecord) -> bool:
        return self.preempts and priority < pod.priority and pod.preemption_policy not in NEVER_PREEMPTS

    def _is_known(self, runner: Runner) -> bool:
        """Return whether only the filters of a scheduler, and trials of single nodes, decide."""
        plugin = preemption_of(runner) if self.preempts else None
        is_plain = plugin is None or plugin.plain_trials(self._cluster) is not None
        return is_plain and runner.extenders is None and all(map(is_own, runner.profile.plugins()))

    def _accepted_beyond(self, pod: PodRecord) -> Bools | None:
        """Return the rows that filters beyond single rows accept; None if the pod can have no entry."""
        runner, pod_class, state = self._runners.get(pod.scheduler_name), pod.pod_class, CycleState()
        if runner is None or pod_class.claims or pod.spec.resource_claims or pod_class.pod_group:
            return None
        nominations = self._cluster.nominations
        if nominations.reach_domains or nominations.depend_on_pods() or pod.uid in nominations:
            return None
        if not runner.pre_filter(state, pod).is_open:
            return None
        if runner.is_row_local(state):
            return np.ones(self._cluster.nodes.count, dtype=np.bool_)
        parts, pods = runner.filter_parts(state, pod), self._cluster.pods
        if parts is None:
            return None
        for predicate in parts.counted:
            counted = pods.priority[pods.slots_of(self._cluster.matcher(predicate).classes)]
            if len(counted) and self._may_be_victim(counted.min(), pod):
                return None
        inputs, kind = runner.wide_inputs(state, pod), kind_of(pod)
        known = self._accepted.get(kind)
        if known is None or known[0] != inputs:
            accepted: Bools = runner.filter_view(parts.wide, pod, View(self._cluster)).refused == 0
            if inputs is None:
                return accepted
            known = self._accepted[kind] = inputs, accepted
        return known[1]
