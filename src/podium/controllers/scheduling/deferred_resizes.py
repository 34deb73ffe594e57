"""Pods that preempt others on their own node, so that a deferred resize in place fits (alpha in 1.37).

Read, not measured. Source: KEP-5836; pkg/scheduler/framework/plugins/deferredpodscheduling; the NodeName plugin, which
names the pod's node in PreFilter; all other filters but NodeResourcesFit skip such a pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from msgspec import structs

from podium.api.pod import Pod
from podium.api.resource_requests import is_resize_deferred
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.controllers.actions import Action, Record
from podium.controllers.scheduling.attempts import SchedulingAttempts, preemption_grounds
from podium.controllers.scheduling.pod_reports import fit_error
from podium.decide.placement import Placement
from podium.decide.post_filter import ask_post_filters
from podium.decide.transaction import ClusterTransaction
from podium.framework.handle import CycleState
from podium.framework.pre_filters import PreFiltered
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration
from podium.framework.settings.registry import Registry, build_profiles
from podium.framework.verdicts import SUCCESS, PluginError, unresolvable
from podium.plugins.registry import IN_TREE

_OTHER_NODES = PreFiltered(SUCCESS, None, ("NodeName",), unresolvable("node(s) didn't satisfy plugin(s) [NodeName]"))
_DISABLED = "node had resize preemption disabled"


class DeferredResizes:
    """The pods with a deferred resize, and attempts to make room for them.

    They count with the requests that they wait for already, so that no other pod takes the room. A pod that fits waits
    for its kubelet. It is attempted when it is first seen deferred or its requests change, and when another pod on its
    node leaves or changes its requests, or the node changes. Kube-scheduler takes these pods from its queue, in the
    same order as pending ones, and with a backoff; here they come first, by priority and key, without a backoff.
    """

    def __init__(self, attempts: SchedulingAttempts, runners: Mapping[str, Runner]) -> None:
        self._attempts = attempts
        self._cluster = attempts.cluster
        self._runners = runners
        # The requests of each pod (by uid) when it was last shown, and the pods to attempt.
        self._requests: dict[str, Mapping[int, int]] = {}
        self._due: dict[str, None] = {}
        self.due = self._due.keys()
        """The uids of pods to attempt; a live view."""

    @property
    def can_attempt(self) -> bool:
        """Return whether a pod is to be attempted, and no preemption for it is in progress."""
        return bool(self._due) and any(not self._attempts.preemptions.holds(uid) for uid in self._due)

    def show(self, pod: Pod, before: PodRecord | None, record: PodRecord) -> None:
        """Take in a pod on a node, and how it was before; one without a deferred resize is forgotten."""
        if not self._runners:
            return
        if before is not None and before.pod_class.requests != record.pod_class.requests:
            self.wake(record.node_name)
        uid, is_ours = record.uid, record.scheduler_name in self._runners
        if not is_ours or record.terminating or not is_resize_deferred(pod):
            self.forget(uid)
            return
        requests = record.pod_class.requests
        if self._requests.get(uid) != requests:
            self._due[uid] = None
        self._requests[uid] = requests

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone or not deferred any more; no further victim is deleted for it."""
        if self._requests.pop(uid, None) is not None:
            self._due.pop(uid, None)
            self._attempts.preemptions.forget(uid)

    def leave(self, pod: PodRecord) -> None:
        """Forget a pod that left its node, and attempt the others there again."""
        if self._requests:
            self.forget(pod.uid)
            self.wake(pod.node_name)

    def wake(self, node_name: str) -> None:
        """Attempt the pods on a node again, after a change there."""
        placed = self._cluster.placed
        there = (uid for uid in self._requests if uid in placed and placed[uid].node_name == node_name)
        self._due |= dict.fromkeys(there)

    def attempt(self, now: int) -> list[Action]:
        """Make room for the first pod that is due; return the actions."""
        due = [uid for uid in self._due if not self._attempts.preemptions.holds(uid)]
        pods = [self._cluster.placed[uid] for uid in due if uid in self._cluster.placed]
        if not pods:
            self._due.clear()
            return []
        pod = min(pods, key=lambda pod: (-pod.priority, pod.key))
        del self._due[pod.uid]
        row = self._cluster.nodes.row_of.get(pod.node_name)
        if row is None:
            return []
        self._cluster.pass_time(now)
        if self._cluster.nodes.node(row).spec.pod_preemption_policy.disable_resize_preemption:
            return [_failed(pod, f"0/{len(self._cluster.nodes)} nodes are available: 1 {_DISABLED}.")]
        return self._make_room(pod, row, now)

    def _make_room(self, pod: PodRecord, row: int, now: int) -> list[Action]:
        """Preempt pods of the node if the pod does not fit there beside them."""
        runner, attempts, rows = self._runners[pod.scheduler_name], self._attempts, np.array([row], dtype=np.int64)
        attempts.known.forget()
        try:
            with ClusterTransaction(self._cluster, self._runners) as changes:
                changes.take_off(pod.uid)
                arriving, state = pod.on_node(""), CycleState()
                runner.pre_filter(state, arriving)
                outcome = runner.filter(state, arriving, rows)
                if len(outcome.feasible):
                    return []
                found = structs.replace(_OTHER_NODES, rows=rows)
                placement = Placement(arriving, state, found, rows, outcome, outcome.feasible, None, None)
                result = ask_post_filters(runner, placement)
        except PluginError as error:
            return [_failed(pod, str(error))]
        put_off = attempts.cap.take(pod, result.victims)
        reason = f"preemption: {put_off}" if put_off else result.status.message
        actions: list[Action] = [_failed(pod, fit_error(placement, len(self._cluster.nodes), reason))]
        if put_off or not result.victims:
            return actions
        victims, cancelled = attempts.cancel_bindings(pod, result.victims, now)
        grounds = preemption_grounds(result.plan)
        deletions = attempts.preemptions.start(pod, victims, evicts=result.evicts, rationale=grounds)
        return [*actions, *cancelled, *deletions]


def resize_runners(configuration: Configuration, cluster: Cluster, seed: int) -> dict[str, Runner]:
    """Return runners that check the resources of a node alone, and plan preemption, by scheduler name."""
    runners = {}
    for name, profile in build_profiles(configuration, Registry(IN_TREE), cluster, seed=seed).items():
        filters = [plugin for plugin in profile.filter if plugin.name == "NodeResourcesFit"]
        post_filters = [plugin for plugin in profile.post_filter if plugin.name == "DefaultPreemption"]
        few = replace(profile, pre_filter=(), filter=filters, post_filter=post_filters, pre_score=(), score=())
        runners[name] = Runner(replace(few, percentage_of_nodes_to_score=None), cluster)
    return runners


def _failed(pod: PodRecord, message: str) -> Record:
    return Record(pod.key, pod.uid, "Warning", "FailedScheduling", message)
