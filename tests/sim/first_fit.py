"""A trivial scheduler for simulations: the first node with room.

It serves the most important pod first, never preempts, and tries again with all pods whenever something changes.
"""

from collections import Counter

from podium.api.kinds import KINDS
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.controllers.actions import Action, Bind, Record, ReportUnschedulable
from podium.controllers.deadlines import Deadline
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation, Tick

RETRY_NS = 1_000_000_000


class FirstFit:
    """The machine; `name` is the scheduler name that it answers to."""

    watches = frozenset(kind.name for kind in KINDS.values())

    def __init__(self, name: str = "default-scheduler") -> None:
        self.name = name
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.assumed: dict[str, str] = {}
        self.untried: dict[str, None] = {}
        self.retry_ns: int | None = None
        self.seen: list[str] = []

    def handle(self, observation: Observation, now: int) -> list[Action]:
        match observation:
            case Changed(object=changed) | Deleted(object=changed):
                self._observe(changed, isinstance(observation, Deleted))
            case ActionFinished(action=Bind() as bind, problem=problem) if problem is not None:
                self.assumed.pop(bind.uid, None)
                self.retry_ns = now + RETRY_NS
            case Tick():
                return self._tick(now)
            case _:
                pass
        return []

    def deadline(self) -> Deadline:
        time_ns = 0 if self.untried else self.retry_ns
        return Deadline(time_ns, time_ns is not None)

    def _observe(self, changed: Kubernetes, gone: bool) -> None:
        self.seen.append(f"{'-' if gone else '+'}{changed.kind} {changed.key}")
        if isinstance(changed, Node):
            self.nodes.pop(changed.metadata.name, None)
            if not gone:
                self.nodes[changed.metadata.name] = changed
        if isinstance(changed, Pod):
            uid = changed.metadata.uid
            self.pods.pop(uid, None)
            if gone or changed.is_terminal or changed.spec.node_name:
                self.assumed.pop(uid, None)
                self.untried.pop(uid, None)
            if not gone and not changed.is_terminal:
                self.pods[uid] = changed
        self._try_all()

    def _try_all(self) -> None:
        self.untried = {uid: None for uid, pod in self.pods.items() if self._is_pending(uid, pod)}

    def _is_pending(self, uid: str, pod: Pod) -> bool:
        is_ours = pod.spec.scheduler_name == self.name and not pod.is_terminating
        return is_ours and not pod.spec.node_name and uid not in self.assumed

    def _tick(self, now: int) -> list[Action]:
        if self.retry_ns is not None and self.retry_ns <= now:
            self.retry_ns = None
            self._try_all()
        if not self.untried:
            return []
        uid = min(self.untried, key=lambda uid: (-self.pods[uid].priority, self.pods[uid].key))
        del self.untried[uid]
        pod = self.pods[uid]
        for name in sorted(self.nodes):
            if self._fits(pod, name):
                self.assumed[uid] = name
                return [Bind(pod.key, uid, name)]
        message = "no node has room"
        failed = Record(pod.key, uid, "Warning", "FailedScheduling", message)
        reported = pod.status.condition("PodScheduled")
        return [failed] if reported else [failed, ReportUnschedulable(pod.key, uid, "Unschedulable", message)]

    def _fits(self, pod: Pod, node_name: str) -> bool:
        there = [
            one for uid, one in self.pods.items() if (one.spec.node_name or self.assumed.get(uid, "")) == node_name
        ]
        held: Counter[str] = sum((Counter(pod_requests(one.spec)) for one in there), Counter())
        offered = node_allocatable(self.nodes[node_name].status)
        asked = pod_requests(pod.spec)
        enough = all(held[name] + amount <= offered.get(name, 0) for name, amount in asked.items() if amount)
        return enough and len(there) < offered.get("pods", 0)
