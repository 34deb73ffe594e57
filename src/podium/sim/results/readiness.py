"""Ready and wanted pods of each workload over time.

A pod is ready if its condition says so, it neither terminates nor has ended, and its node exists, is ready and runs.
States that last no time, such as between a pod's end and its replacement's start at one instant, do not count.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.meta import OwnerReference
from podium.api.node import Node, is_ready
from podium.api.pod import TERMINAL_PHASES, Pod
from podium.api.times import seconds
from podium.api.workloads import DaemonSet, Job, PodMaker, pods_wanted
from podium.controllers.disruption.budget import is_healthy
from podium.controllers.workloads.jobs import is_finished
from podium.controllers.workloads.owned_pods import label_of
from podium.sim.results.usage import RequestedUsage, Series
from podium.store.stored import Stored
from podium.store.watch_log import WatchEvent

_MOST_POINTS = 200
_DAEMONS = "DaemonSet "


class WorkloadReadiness(msgspec.Struct):
    """One workload: `before` the run, the `lowest` number in it, and `ready` and `wanted` now.

    `short_ns` is how long fewer pods were ready than wanted, `pending_ns` the sum of its pods' waiting times. `pods`
    have not ended. `is_of_daemons`: it is a DaemonSet. `points` are numbers of ready and wanted pods.
    """

    workload: str
    wanted: int = 0
    wanted_before: int = 0
    before: int = 0
    lowest: int = 0
    ready: int = 0
    pods: int = 0
    pending: int = 0
    short_ns: int = 0
    pending_ns: int = 0
    is_of_daemons: bool = False
    since_ns: int = 0
    points: Series[tuple[int, int]] = msgspec.field(default_factory=lambda: Series(most=_MOST_POINTS))

    def pass_time(self, now: int) -> None:
        """Extend the present state until now."""
        elapsed = now - self.since_ns
        if elapsed:
            if self.lowest:
                self.lowest = min(self.lowest, self.ready)
            if self.ready < self.wanted:
                self.short_ns += elapsed
            if self.pending:
                self.pending_ns += elapsed * self.pending
            self.since_ns = now

    def to_dict(self, start_ns: int) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "wantedBefore": self.wanted_before,
            "wanted": self.wanted,
            "readyBefore": self.before,
            "lowestReady": self.lowest,
            "ready": self.ready,
            "pending": self.pending,
            "shortSeconds": seconds(self.short_ns),
            "pendingSeconds": seconds(self.pending_ns),
            "series": [
                {"time": seconds(time - start_ns), "ready": ready, "wanted": wanted}
                for time, (ready, wanted) in self.points.points
            ],
        }


class _Pod(msgspec.Struct):
    """A pod that has not ended; `node` is "" until it is placed."""

    found: WorkloadReadiness
    node: str = ""
    is_healthy: bool = False
    is_ready: bool = False
    is_pending: bool = False


class NodeLife(msgspec.Struct):
    """The lifetime of a node, and its pods except those of DaemonSets."""

    name: str
    was_there: bool
    added_ns: int
    gone_ns: int | None = None
    pods_before: int = 0
    pods: int = 0


class Readiness:
    """Tracks readiness, and updates `usage`; the cost of a write depends only on the pods that it affects."""

    def __init__(self, usage: RequestedUsage) -> None:
        self._usage = usage
        self.tops = TopWorkloads()
        self._found: dict[str, WorkloadReadiness] = {}
        self._pods: dict[str, _Pod] = {}
        self.workload_of: dict[str, str] = {}
        """The workload of every pod, by uid."""
        # Nodes that are ready and up, nodes whose machine is down, and nodes that report Ready.
        self._well: set[str] = set()
        self._down: set[str] = set()
        self._ready_nodes: set[str] = set()
        self.nodes: dict[str, NodeLife] = {}
        self.ready = 0
        self.pending = 0

    def start(self) -> None:
        """Take the present state as that before the run."""
        for found in self._found.values():
            found.before = found.lowest = found.ready
            found.wanted_before = found.wanted
        for life in self.nodes.values():
            life.was_there, life.pods_before = True, life.pods

    def pod_written(self, pod: Pod, now: int, *, is_gone: bool) -> None:
        """Record a write of a pod; times do not decrease."""
        uid, status = pod.metadata.uid, pod.status
        known = self._pods.get(uid)
        if known is None:
            if uid in self.workload_of:
                # It has ended before and is deleted now.
                return
            # A new pod; an unknown workload wants as many pods as it has had.
            label = self.tops.of(pod)
            found = self._of(label, now)
            known = self._pods[uid] = _Pod(found)
            self.workload_of[uid] = label
            found.pods += 1
            if self.tops.desired_pods(label) is None:
                found.wanted = max(found.wanted, found.pods)
                found.points.put(now, (found.ready, found.wanted))
        phase, node = status.phase, known.node
        if is_gone or phase in TERMINAL_PHASES:
            self._end(uid, known, now, has_succeeded=phase == "Succeeded")
            return
        if not node and pod.spec.node_name:
            node = known.node = pod.spec.node_name
            self._usage.count_pod(pod, now)
            self._count_on_node(known, 1)
        known.is_healthy = phase == "Running" and is_healthy(pod)
        is_up = known.is_healthy and node in self._well
        waits = not node and pod.metadata.deletion_timestamp is None
        if is_up is not known.is_ready or waits is not known.is_pending:
            self._change(known, now, is_up, waits)

    def node_written(self, node: Node, now: int, *, is_gone: bool) -> None:
        self._usage.observe_node(node, now, is_gone=is_gone)
        name = node.metadata.name
        life = self.nodes.get(name)
        if is_gone:
            self._ready_nodes.discard(name)
            if life is not None:
                life.gone_ns = now
        else:
            (self._ready_nodes.add if is_ready(node) else self._ready_nodes.discard)(name)
            if life is None:
                self.nodes[name] = NodeLife(name, was_there=False, added_ns=now)
                on_node = (self._pods[uid] for uid in self._usage.pods_on(name))
                self.nodes[name].pods = sum(not known.found.is_of_daemons for known in on_node)
            elif life.gone_ns is not None:
                life.gone_ns = None
        self._judge_node(name, now)

    def on_write(self, event: WatchEvent, now: int) -> None:
        """Record a write of another object, such as a workload."""
        top = self.tops.observe(event)
        if top is not None:
            found = self._of(top, now)
            found.wanted = self.tops.desired_pods(top) or 0
            found.points.put(now, (found.ready, found.wanted))

    def power(self, node: str, now: int, *, is_up: bool) -> None:
        """Record that a node's machine stopped or started, before the API shows it."""
        (self._down.discard if is_up else self._down.add)(node)
        self._judge_node(node, now)

    def ready_pods(self) -> set[str]:
        """Return the uids of the pods that are ready."""
        return {uid for uid, known in self._pods.items() if known.is_ready}

    def workloads(self, now: int) -> list[WorkloadReadiness]:
        """Return all workloads up to now, by label."""
        for found in self._found.values():
            found.pass_time(now)
        return [self._found[label] for label in sorted(self._found)]

    def _end(self, uid: str, known: _Pod, now: int, *, has_succeeded: bool) -> None:
        self._change(known, now, False, False)
        del self._pods[uid]
        if known.node:
            self._usage.drop_pod(uid, known.node, now)
            self._count_on_node(known, -1)
        found = known.found
        found.pods -= 1
        if has_succeeded and self.tops.desired_pods(found.workload) is None:
            found.wanted -= 1
            found.points.put(now, (found.ready, found.wanted))

    def _judge_node(self, name: str, now: int) -> None:
        is_well = name in self._ready_nodes and name not in self._down
        if is_well is (name in self._well):
            return
        (self._well.add if is_well else self._well.discard)(name)
        for uid in sorted(self._usage.pods_on(name)):
            known = self._pods[uid]
            is_up = known.is_healthy and is_well
            if is_up is not known.is_ready:
                self._change(known, now, is_up, known.is_pending)

    def _change(self, known: _Pod, now: int, is_up: bool, waits: bool) -> None:
        """Update whether a pod is ready, and whether it is pending."""
        found = known.found
        if found.since_ns != now:
            found.pass_time(now)
        if waits is not known.is_pending:
            more, known.is_pending = 1 if waits else -1, waits
            found.pending += more
            self.pending += more
        if is_up is not known.is_ready:
            more, known.is_ready = 1 if is_up else -1, is_up
            found.ready += more
            self.ready += more
            found.points.put(now, (found.ready, found.wanted))

    def _of(self, label: str, now: int) -> WorkloadReadiness:
        found = self._found.get(label)
        if found is None:
            is_of_daemons = label.startswith(_DAEMONS)
            found = self._found[label] = WorkloadReadiness(label, since_ns=now, is_of_daemons=is_of_daemons)
        else:
            found.pass_time(now)
        return found

    def _count_on_node(self, known: _Pod, number: int) -> None:
        life = self.nodes.get(known.node)
        if life is not None and not known.found.is_of_daemons:
            life.pods += number


# Static pods are controlled by their node.


class TopWorkloads:
    """The topmost owners of workloads; owners are written before what they own."""

    def __init__(self) -> None:
        self.tops: dict[str, str] = {}
        """By label, such as `ReplicaSet default/web-1`, the label of the topmost known owner."""
        # By topmost owner, the pods that each workload below it wants; if the owner wants pods itself, only these.
        self._asked: dict[str, dict[str, int]] = {}

    def observe(self, event: WatchEvent) -> str | None:
        """Record a write; return the label of the workload whose wanted pods may have changed, None for no workload."""
        object_ = event.stored.object
        label = label_of(object_)
        controller = object_.metadata.controller if object_.metadata.owner_references else None
        is_asking = isinstance(object_, PodMaker)
        if not is_asking and controller is None:
            return None
        top = label if controller is None else self._top(object_.metadata.namespace, controller)
        if not is_asking:
            return None
        if event.type == "DELETED":
            self.tops.pop(label, None)
        elif top != label:
            self.tops[label] = top
        if top != label and top in self._asked.get(top, ()):
            # The numbers of a Deployment's ReplicaSets do not count.
            return None
        asked = self._asked.setdefault(top, {})
        if event.type == "DELETED":
            # An empty entry remembers that it wanted pods.
            asked.pop(label, None)
        else:
            asked[label] = desired_pods(event.stored)
        return top

    def of(self, pod: Pod) -> str:
        controller = pod.metadata.controller if pod.metadata.owner_references else None
        if controller is None or controller.kind == "Node":
            return f"Pod {pod.key}"
        return self._top(pod.metadata.namespace, controller)

    def desired_pods(self, top: str) -> int | None:
        """Return how many pods a workload wants, None if unknown."""
        asked = self._asked.get(top)
        return None if asked is None else sum(asked.values())

    def _top(self, namespace: str, controller: OwnerReference) -> str:
        label = f"{controller.kind} {namespace}/{controller.name}"
        return self.tops.get(label, label)


def desired_pods(stored: Stored) -> int:
    """Return how many pods a workload wants now."""
    object_, status = stored.object, stored.raw.get("status", {})
    if isinstance(object_, DaemonSet):
        return int(status.get("desiredNumberScheduled", 0))
    if isinstance(object_, Job):
        if is_finished(object_) or object_.spec.suspend:
            return 0
        completions, parallelism = object_.spec.completions, object_.spec.parallelism
        left = parallelism if completions is None else max(completions - status.get("succeeded", 0), 0)
        return min(parallelism, left)
    return pods_wanted(object_) or 0
