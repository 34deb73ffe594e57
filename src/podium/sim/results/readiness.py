"""How many pods of each workload were ready when, and how many it wanted.

A pod is ready whose condition says so, that neither ends nor has ended, and whose node is there, ready and not stopped.
What holds for no time, as between a pod's end and the start of its replacement at the same instant, is not counted.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.node import Node
from podium.api.node_health import is_ready
from podium.api.pod import TERMINAL_PHASES, Pod
from podium.machines.disruption.covered_pods import is_healthy
from podium.sim.results.series import Series
from podium.sim.results.top_workloads import TopWorkloads
from podium.sim.results.usage import Usage
from podium.sim.sim_event import seconds
from podium.store.log.watch_event import WatchEvent

_MOST_POINTS = 200
_DAEMONS = "DaemonSet "


class _Points(Series[tuple[int, int]]):
    """How many pods were ready and wanted."""

    most: int = _MOST_POINTS


class WorkloadReadiness(msgspec.Struct):
    """One workload: `before` the run, `lowest` for any time in it, `ready` and `wanted` at present.

    `short_ns` is for how long it had fewer ready than it wanted; `pending_ns` how long its pods waited for nodes, added
    up. `pods` have not ended. `was_known` is whether it was there before the run, `is_of_daemons` whether it is a
    DaemonSet.
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
    was_known: bool = False
    is_of_daemons: bool = False
    since_ns: int = 0
    points: Series[tuple[int, int]] = msgspec.field(default_factory=_Points)

    def pass_time(self, now: int) -> None:
        """Let what is so last until now."""
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
        """The workload as JSON shows it."""
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
    """A pod that has not ended; `node` is the one that it was placed on, "" for none."""

    found: WorkloadReadiness
    node: str = ""
    is_healthy: bool = False
    is_ready: bool = False
    is_pending: bool = False


class NodeLife(msgspec.Struct):
    """A node: whether it was there before, when it came and went, and its pods that are not a DaemonSet's."""

    name: str
    was_there: bool
    added_ns: int
    gone_ns: int | None = None
    pods_before: int = 0
    pods: int = 0


class Readiness:
    """Takes in every write; what one costs hangs on the pods that it concerns.

    `usage` is told which pods come to nodes and leave them.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._tops = TopWorkloads()
        self._found: dict[str, WorkloadReadiness] = {}
        self._pods: dict[str, _Pod] = {}
        self._workload_of: dict[str, str] = {}
        # The nodes that are well, those whose machine is down, and those that say that they are ready.
        self._well: set[str] = set()
        self._down: set[str] = set()
        self._ready_nodes: set[str] = set()
        self.nodes: dict[str, NodeLife] = {}
        self.ready = 0
        self.pending = 0

    def start(self) -> None:
        """All that was there before the run has been taken in."""
        for found in self._found.values():
            found.before = found.lowest = found.ready
            found.wanted_before = found.wanted
            found.was_known = True
        for life in self.nodes.values():
            life.was_there, life.pods_before = True, life.pods

    def pod_written(self, pod: Pod, now: int, *, is_gone: bool) -> None:
        """A pod was written; times do not go back."""
        uid, status = pod.metadata.uid, pod.status
        known = self._pods.get(uid)
        if known is None:
            if uid in self._workload_of:
                # It has ended before, and only goes now.
                return
            known = self._begin(uid, pod, now)
        phase, node = status.phase, known.node
        if is_gone or phase in TERMINAL_PHASES:
            self._end(uid, known, now, has_succeeded=phase == "Succeeded")
            return
        if not node and pod.spec.node_name:
            node = known.node = pod.spec.node_name
            self._usage.put_pod(pod, now)
            self._count_on_node(known, 1)
        known.is_healthy = phase == "Running" and is_healthy(pod)
        is_up = known.is_healthy and node in self._well
        waits = not node and pod.metadata.deletion_timestamp is None
        if is_up is not known.is_ready or waits is not known.is_pending:
            self._change(known, now, is_up, waits)

    def node_written(self, node: Node, now: int, *, is_gone: bool) -> None:
        """A node was written."""
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

    def written(self, event: WatchEvent, now: int) -> None:
        """Something else was written, such as a workload."""
        top = self._tops.observe(event)
        if top is not None:
            found = self._of(top, now)
            found.wanted = self._tops.wanted(top) or 0
            found.points.put(now, (found.ready, found.wanted))

    def power(self, node: str, now: int, *, is_up: bool) -> None:
        """A node's machine stops or starts, which the API need not know yet."""
        (self._down.discard if is_up else self._down.add)(node)
        self._judge_node(node, now)

    @property
    def workload_of_pods(self) -> dict[str, str]:
        """By uid, the label of the workload of each pod that was ever there."""
        return self._workload_of

    @property
    def top_of_workloads(self) -> dict[str, str]:
        """By label, the topmost owner of each workload that another owns."""
        return self._tops.tops

    def workloads(self, now: int) -> list[WorkloadReadiness]:
        """What is known of each workload up to now, by label."""
        for found in self._found.values():
            found.pass_time(now)
        return [self._found[label] for label in sorted(self._found)]

    # What follows from it

    def _begin(self, uid: str, pod: Pod, now: int) -> _Pod:
        """A pod comes. Of a workload of which nothing but pods is known they are what it wants."""
        label = self._tops.of(pod)
        found = self._of(label, now)
        known = self._pods[uid] = _Pod(found)
        self._workload_of[uid] = label
        found.pods += 1
        if not self._tops.asks(label):
            found.wanted = max(found.wanted, found.pods)
            found.points.put(now, (found.ready, found.wanted))
        return known

    def _end(self, uid: str, known: _Pod, now: int, *, has_succeeded: bool) -> None:
        self._change(known, now, False, False)
        del self._pods[uid]
        if known.node:
            self._usage.remove_pod(uid, known.node, now)
            self._count_on_node(known, -1)
        found = known.found
        found.pods -= 1
        if has_succeeded and not self._tops.asks(found.workload):
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
        """A pod is ready or waits for a node, and was or did not before, or the other way round."""
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
