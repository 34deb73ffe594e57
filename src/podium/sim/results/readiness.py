"""How many pods of each workload were ready when, and how many it wanted.

A pod is ready whose condition says so, that neither ends nor has ended, and whose node is there, ready and not stopped.
What holds for no time, as between a pod's end and the start of its replacement at the same instant, is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podium.api.node import Node
from podium.api.node_health import is_ready
from podium.api.pod import TERMINAL_PHASES, Pod
from podium.machines.disruption.covered_pods import is_healthy
from podium.sim.results.series import Series
from podium.sim.results.top_workloads import TopWorkloads
from podium.sim.sim_event import seconds
from podium.store.log.watch_event import WatchEvent

_MOST_POINTS = 200
_DAEMONS = "DaemonSet "


@dataclass(slots=True)
class WorkloadReadiness:
    """One workload: `before` the run, `lowest` for any time in it, `ready` and `wanted` at present.

    `short_ns` is for how long it had fewer ready than it wanted; `pending_ns` how long its pods waited for nodes, added
    up. `pods` have not ended. `was_known` is whether it was there before the run.
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
    since_ns: int = 0
    points: Series[tuple[int, int]] = field(default_factory=lambda: Series(_MOST_POINTS))

    def pass_time(self, now: int) -> None:
        """Let what is so last until now."""
        elapsed = now - self.since_ns
        if elapsed:
            self.lowest = min(self.lowest, self.ready)
            if self.ready < self.wanted:
                self.short_ns += elapsed
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


@dataclass(slots=True)
class _Pod:
    found: WorkloadReadiness
    node: str = ""
    is_healthy: bool = False
    is_ready: bool = False
    is_pending: bool = False

    @property
    def is_daemon(self) -> bool:
        return self.found.workload.startswith(_DAEMONS)


@dataclass(slots=True)
class NodeLife:
    """A node: whether it was there before, when it came and went, and its pods that are not a DaemonSet's."""

    name: str
    was_there: bool
    added_ns: int
    gone_ns: int | None = None
    pods_before: int = 0
    pods: int = 0


class Readiness:
    """Takes in every write; what one costs hangs on the pods that it concerns."""

    def __init__(self, start_ns: int) -> None:
        self._now = start_ns
        self._has_started = False
        self._tops = TopWorkloads()
        self._found: dict[str, WorkloadReadiness] = {}
        self._pods: dict[str, _Pod] = {}
        self._workload_of: dict[str, str] = {}
        # By node, its pods that have not ended; and the nodes that are well.
        self._on: dict[str, set[str]] = {}
        self._well: set[str] = set()
        self._down: set[str] = set()
        self._ready_nodes: set[str] = set()
        self.nodes: dict[str, NodeLife] = {}
        self.ready = 0
        self.pending = 0

    def start(self) -> None:
        """All that was there before the run has been taken in."""
        self._has_started = True
        for found in self._found.values():
            found.before = found.lowest = found.ready
            found.wanted_before = found.wanted
            found.was_known = True
        for life in self.nodes.values():
            life.was_there, life.pods_before = True, life.pods

    def observe(self, event: WatchEvent, now: int) -> None:
        """Take in a write at `now`; times do not go back."""
        self._now = now
        object_ = event.stored.object
        if isinstance(object_, Pod):
            self._pod(object_, now, is_gone=event.type == "DELETED")
        elif isinstance(object_, Node):
            self._node(object_, now, is_gone=event.type == "DELETED")
        else:
            top = self._tops.observe(event)
            if top is not None:
                found = self._of(top, now)
                found.wanted = self._tops.wanted(top) or 0
                self._note(found, now)

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

    # What is written

    def _pod(self, pod: Pod, now: int, *, is_gone: bool) -> None:
        uid = pod.metadata.uid
        known = self._pods.get(uid)
        if known is None:
            if uid in self._workload_of:
                # It has ended before, and only goes now.
                return
            known = self._begin(pod, now)
        if is_gone or pod.status.phase in TERMINAL_PHASES:
            self._end(uid, known, pod, now)
            return
        node = pod.spec.node_name
        if node and not known.node:
            known.node = node
            self._on.setdefault(node, set()).add(uid)
            self._count_on_node(known, 1)
        known.is_healthy = pod.status.phase == "Running" and is_healthy(pod)
        self._judge(known, now, waits=not known.node and not pod.is_terminating)

    def _begin(self, pod: Pod, now: int) -> _Pod:
        uid, label = pod.metadata.uid, self._tops.of(pod)
        known = self._pods[uid] = _Pod(self._of(label, now))
        self._workload_of[uid] = label
        self._count(known.found, now, 1, pod)
        return known

    def _end(self, uid: str, known: _Pod, pod: Pod, now: int) -> None:
        known.is_healthy = False
        self._judge(known, now, waits=False)
        del self._pods[uid]
        if known.node:
            on_node = self._on[known.node]
            on_node.discard(uid)
            if not on_node:
                del self._on[known.node]
            self._count_on_node(known, -1)
        self._count(known.found, now, -1, pod)

    def _count(self, found: WorkloadReadiness, now: int, number: int, pod: Pod) -> None:
        """A pod comes or ends. Of a workload of which nothing but pods is known they are what it wants."""
        found.pass_time(now)
        found.pods += number
        if self._tops.wanted(found.workload) is None:
            found.wanted = max(found.wanted, found.pods)
            if number < 0 and pod.status.phase == "Succeeded":
                found.wanted -= 1
            self._note(found, now)

    def _node(self, node: Node, now: int, *, is_gone: bool) -> None:
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
                on_node = (self._pods[uid] for uid in self._on.get(name, ()))
                self.nodes[name].pods = sum(not known.is_daemon for known in on_node)
            elif life.gone_ns is not None:
                life.gone_ns = None
        self._judge_node(name, now)

    # What follows from it

    def _judge_node(self, name: str, now: int) -> None:
        is_well = name in self._ready_nodes and name not in self._down
        if is_well is (name in self._well):
            return
        (self._well.add if is_well else self._well.discard)(name)
        for uid in sorted(self._on.get(name, ())):
            known = self._pods[uid]
            self._judge(known, now, waits=known.is_pending)

    def _judge(self, known: _Pod, now: int, *, waits: bool) -> None:
        """See whether a pod is ready, and whether it waits for a node."""
        is_up = known.is_healthy and known.node in self._well
        if is_up is known.is_ready and waits is known.is_pending:
            return
        found = known.found
        found.pass_time(now)
        more_ready, more_pending = is_up - known.is_ready, waits - known.is_pending
        found.ready += more_ready
        found.pending += more_pending
        self.ready += more_ready
        self.pending += more_pending
        known.is_ready, known.is_pending = is_up, waits
        self._note(found, now)

    def _of(self, label: str, now: int) -> WorkloadReadiness:
        found = self._found.get(label)
        if found is None:
            found = self._found[label] = WorkloadReadiness(label, since_ns=now)
        found.pass_time(now)
        return found

    def _note(self, found: WorkloadReadiness, now: int) -> None:
        found.points.put(now, (found.ready, found.wanted))

    def _count_on_node(self, known: _Pod, number: int) -> None:
        life = self.nodes.get(known.node)
        if life is not None and not known.is_daemon:
            life.pods += number
