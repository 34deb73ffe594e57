"""The kubelets of all nodes: they admit and start pods, let them run, end them, and evict when memory runs short.

Source: pkg/kubelet; controlled-rescheduling.md for pods that wait for others to end.
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.machines.actions import Action, DeleteObject, ReportStatus
from podium.machines.concerns import PLACED
from podium.machines.kubelets import kubelet_reports as reports
from podium.machines.kubelets.host import Hosts
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.kubelets.node_kubelet import NodeKubelet
from podium.machines.machine import UNMOVED
from podium.machines.observations import (
    Answered,
    Changed,
    ContainersExited,
    Gone,
    NodeStarted,
    NodeStopped,
    Observation,
    Tick,
)
from podium.machines.parts.deadlines import Deadline, Deadlines, soonest
from podium.machines.parts.work_queue import WorkQueue

_SECOND = 10**9
# How long after a write failed it is sent again: 1 s, doubled up to the kubelets' period of synchronization.
_FIRST_RETRY_NS = _SECOND
_LONGEST_RETRY_NS = 10 * _SECOND

_REPORTS = (ReportStatus, DeleteObject)
_NOWHERE = "", ""

_Report = ReportStatus | DeleteObject
_Subject = tuple[str, str]
"""Of whom a report is: a pod's uid; or a node's name and the type of its condition."""


class Kubelet:
    """The kubelets of a cluster as one machine, which keeps each node apart.

    One machine, because a driver asks every machine at every step, and clusters have thousands of nodes. What the API
    is told follows what happened on the node: a pod's containers are gone before its end is reported, and whoever knows
    of its end may count on its room. Pods on a node that nobody knows wait for it.

    What runs on nodes outlives this machine, but for the back-off of failing containers: one that starts anew finds it
    in the API. Of nodes whose machines are down it must be told again (`NodeStopped`), before anything else.
    """

    watches = frozenset(("Node", "Pod"))
    heeded_pods = PLACED

    def __init__(self, settings: KubeletSettings = KubeletSettings()) -> None:  # noqa: B008 - an immutable value
        self._settings = settings
        self._hosts = Hosts() if settings.reports_all else None
        self._nodes: dict[str, NodeKubelet] = {}
        # By key, the uid and the node of each pod that has one.
        self._pods: dict[str, tuple[str, str]] = {}
        self._deadlines: Deadlines[str] = Deadlines()
        # What reports have failed, and the last one of each subject with its node.
        self._retries: WorkQueue[_Subject] = WorkQueue(_FIRST_RETRY_NS, _LONGEST_RETRY_NS)
        self._failed: dict[_Subject, tuple[str, _Report]] = {}
        # Whether any has failed since the last one of its subject was written.
        self._has_failed = False
        self._actions: list[Action] = []

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` and say what to write."""
        # Most of what a cluster shows are pods, and what became of reports about them.
        if type(observation) is Changed and type(pod := observation.object) is Pod:
            if not self._pod_changed(pod, observation.raw, now):
                return UNMOVED
        elif type(observation) is Answered:
            if not self._answered(observation.action, observation, now):
                return UNMOVED
        elif type(observation) is Tick:
            self._tick(now)
        else:
            self._happened(observation, now)
        if not self._actions:
            return []
        actions = self._actions[:]
        self._actions.clear()
        return actions

    def _happened(self, observation: Observation, now: int) -> None:
        match observation:
            case Changed(object=Node() as node, raw=raw):
                self._node(node.metadata.name).show_node(node, raw, now)
                self._look_at(node.metadata.name)
            case Gone(object=Node() as node):
                self._node_gone(node)
            case Gone(object=Pod() as pod):
                self._hide(pod.key)
            case NodeStopped(node=name):
                self._node(name).fail()
                self._look_at(name)
            case NodeStarted(node=name):
                self._node(name).recover(now)
                self._look_at(name)
            case ContainersExited(node=name, uid=uid) if name in self._nodes:
                self._nodes[name].finish(uid, now)
                self._look_at(name)

    def deadline(self) -> Deadline:
        """When something is due on some node; that it fails, or is refused, over and over again is no news."""
        deadline = self._deadlines.deadline()
        return soonest(deadline, self._retries.deadline()) if self._failed else deadline

    def is_running(self, pod: Pod) -> bool:
        """Whether a pod's containers run."""
        node = self._nodes.get(pod.spec.node_name)
        return node is not None and node.is_running(pod.metadata.uid)

    def _node_gone(self, node: Node) -> None:
        if self._hosts is not None:
            self._hosts.nodes.free(node.metadata.uid)
        self._node(node.metadata.name).hide_node()
        self._look_at(node.metadata.name)

    def _pod_changed(self, pod: Pod, raw: Raw, now: int) -> bool:
        """Take in a pod as it is now; whether that concerns any node."""
        key, uid, name = pod.key, pod.metadata.uid, pod.spec.node_name
        known, is_replaced = self._pods.get(key), False
        if known is None or known[0] != uid or known[1] != name:
            if known is None and not name:
                return False
            is_replaced = known is not None and known[0] != uid
            if is_replaced:
                self._hide(key)
            if not name:
                return True
            self._pods[key] = uid, name
        if self._hosts is not None:
            self._hosts.show_pod(uid, raw)
        node = self._nodes.get(name) or self._node(name)
        return (node.show_pod(pod, raw, now) and self._plan(name, node, node.deadline())) or is_replaced

    def _hide(self, key: str) -> None:
        """The pod of that key is gone."""
        if key in self._pods:
            uid, name = self._pods.pop(key)
            if self._hosts is not None:
                self._hosts.pods.free(uid)
            if name in self._nodes:
                self._nodes[name].hide_pod(uid)
                self._look_at(name)

    def _answered(self, action: Action, answered: Answered, now: int) -> bool:
        """A report was written, or was not, or nobody knows whether it was; whether anything comes of that."""
        if not isinstance(action, _REPORTS):
            raise TypeError(f"kubelets do not ask for {action}")
        name = action.key if action.kind == "Node" else self._pods.get(action.key, _NOWHERE)[1]
        if answered.problem is None or answered.answer.is_over:
            if self._has_failed:
                self._succeed(name, action)
            node = self._nodes.get(name)
            return node is not None and node.written(action) and self._plan(name, node, node.deadline())
        if self._is_wanted(name, action):
            subject = _subject(name, action)
            self._retries.answer(subject, answered, now)
            self._failed[subject] = name, action
            self._has_failed = True
        return True

    def _succeed(self, name: str, action: _Report) -> None:
        """A report was written, or need not be."""
        subject = _subject(name, action)
        # An answer may be late: what was told since then, and failed, is sent again all the same.
        if self._failed.get(subject, (name, action))[1] is action:
            self._failed.pop(subject, None)
            self._retries.forget(subject)
        self._has_failed = self._retries.has_failures

    def _is_wanted(self, name: str, action: _Report) -> bool:
        return name in self._nodes and self._nodes[name].is_wanted(action)

    def _try_again(self, now: int) -> None:
        """Send the reports again whose time has come, if they are still what the API should be told."""
        while (subject := self._retries.take(now)) is not None:
            name, action = self._failed.pop(subject)
            if self._is_wanted(name, action):
                self._actions.append(action)
            else:
                self._retries.forget(subject)

    def _tick(self, now: int) -> None:
        if self._failed:
            self._try_again(now)
        while (due := self._deadlines.take_due(now)) is not None:
            node = self._nodes[due]
            node.told = None
            self._plan(due, node, node.tick(now))

    def _node(self, name: str) -> NodeKubelet:
        if name not in self._nodes:
            self._nodes[name] = NodeKubelet(self._settings, self._actions, self._hosts)
        return self._nodes[name]

    def _look_at(self, name: str) -> None:
        """Take what a node has to say; one that is gone with its pods is forgotten."""
        node = self._nodes[name]
        self._plan(name, node, node.deadline())
        if node.is_idle:
            del self._nodes[name]

    def _plan(self, name: str, node: NodeKubelet, deadline: Deadline) -> bool:
        """A node is due then; whether there is anything that it has not told before."""
        told = node.told
        node.told = deadline
        if node.gives_way:
            # Of nodes that are due at one time it is the last one where others have come before it.
            node.gives_way = False
            self._deadlines.set_last(name, deadline.time_ns, recurs=not deadline.is_news)
        elif deadline is not told:
            self._deadlines.set(name, deadline.time_ns, recurs=not deadline.is_news)
        return deadline is not told or bool(self._actions)


def _subject(name: str, action: _Report) -> _Subject:
    return (name, reports.reported(action)) if action.kind == "Node" else ("", action.uid)
