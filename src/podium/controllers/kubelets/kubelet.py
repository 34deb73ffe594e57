"""The kubelets of all nodes: they admit, start, end and evict pods.

Source: pkg/kubelet; controlled-rescheduling.md for pods that wait for others to end.
"""

from __future__ import annotations

from collections import defaultdict

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.times import SECOND
from podium.controllers import controller, observations
from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.deadlines import Deadline, Deadlines, soonest
from podium.controllers.kubelets import kubelet_reports as reports
from podium.controllers.kubelets.host import Hosts, KubeletSettings
from podium.controllers.kubelets.node_kubelet import NodeKubelet
from podium.controllers.kubelets.references import REFERENCED, References
from podium.controllers.observations import ActionFinished, Changed, Deleted, Observation, Tick

# The wait before a failed write is sent again: 1 s, doubled up to the kubelets' sync period.
_FIRST_RETRY_NS = SECOND
_LONGEST_RETRY_NS = 10 * SECOND

_NOWHERE = "", ""
_Report = ReportStatus | DeleteObject
_Subject = tuple[str, str]
"""The subject of a report: a pod's uid; or a node's name and the type of its condition."""


class Kubelet:
    """The kubelets of a cluster as one controller, with separate state for each node.

    One controller for all, because the runtime visits every controller at every step. A pod's end is reported after its
    containers are gone, so that its capacity is free. Pods on an unknown node wait for it. Containers survive a restart
    of this controller, except their restart backoff; stopped machines must be reported again (`NodeStopped`) before
    anything else.
    """

    watches = frozenset(("Node", "Pod"))
    pod_aspects = controller.PLACED

    def __init__(self, settings: KubeletSettings = KubeletSettings()) -> None:  # noqa: B008 - an immutable value
        self._settings = settings
        self._references = References()
        awaited = self._references if settings.awaits_references else None
        self._hosts = Hosts(settings.release, awaited) if settings.reports_all else None
        self.watches |= REFERENCED if settings.awaits_references else frozenset()
        self._nodes = defaultdict[str, NodeKubelet](lambda: NodeKubelet(settings, self._actions, self._hosts))
        # By key, the uid and the node of each bound pod.
        self._pods: dict[str, tuple[str, str]] = {}
        self._deadlines: Deadlines[str] = Deadlines()
        # The subjects of failed reports, and the last report of each with its node.
        self._retries: controller.WorkQueue[_Subject] = controller.WorkQueue(_FIRST_RETRY_NS, _LONGEST_RETRY_NS)
        self._failed: dict[_Subject, tuple[str, _Report]] = {}
        self._actions: list[Action] = []

    def handle(self, observation: Observation, now: int) -> list[Action]:
        # Most observations are pods and answers about them.
        if type(observation) is Changed and type(pod := observation.object) is Pod:
            if not self._pod_changed(pod, observation, now):
                return controller.NO_CHANGE
        elif type(observation) is ActionFinished:
            if not self._on_finished(observation.action, observation, now):
                return controller.NO_CHANGE
        elif type(observation) is Tick:
            self._tick(now)
        else:
            self._on_other(observation, now)
        actions = self._actions[:]
        self._actions.clear()
        return actions

    def _on_other(self, observation: Observation, now: int) -> None:
        match observation:
            case Changed(object=Node() as node, raw=raw):
                self._nodes[node.metadata.name].show_node(node, raw, now)
                self._look_at(node.metadata.name)
            case Deleted(object=Node() as node):
                if self._hosts is not None:
                    self._hosts.nodes.free(node.metadata.uid)
                self._nodes[node.metadata.name].hide_node()
                self._look_at(node.metadata.name)
            case Deleted(object=Pod() as pod):
                self._hide(pod.key)
            case Changed(object=object_, raw=raw) if self._settings.awaits_references:
                self._show_referenced(object_.kind, object_.key, raw, now)
            case Deleted(object=object_) if self._settings.awaits_references:
                self._show_referenced(object_.kind, object_.key, None, now)
            case observations.NodeStopped(node=name):
                self._nodes[name].fail()
                self._look_at(name)
            case observations.NodeStarted(node=name):
                self._nodes[name].recover(now)
                self._look_at(name)
            case observations.ContainersExited(node=name, uid=uid) if name in self._nodes:
                self._nodes[name].finish(uid, now)
                self._look_at(name)

    def _show_referenced(self, kind: str, key: str, raw: Raw | None, now: int) -> bool:
        """Take in an object that pods name, and start those that waited for it; return whether there are any."""
        pods = self._references.show(kind, key, raw)
        for uid, name in map(self._pods.__getitem__, pods):
            self._nodes[name].retry(uid, now)
            self._look_at(name)
        return bool(pods)

    def deadline(self) -> Deadline:
        """Return when something is due on a node; repeated failures do not keep a simulation running."""
        deadline = self._deadlines.deadline()
        return soonest(deadline, self._retries.deadline()) if self._failed else deadline

    def is_running(self, pod: Pod) -> bool:
        """Return whether a pod's containers run."""
        node = self._nodes.get(pod.spec.node_name)
        return node is not None and node.is_running(pod.metadata.uid)

    def _pod_changed(self, pod: Pod, shown: Changed, now: int) -> bool:
        """Take in a pod; return whether that concerns any node."""
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
            self._hosts.show_pod(uid, shown.raw)
        node = self._nodes[name]
        has_effect = node.show_pod(pod, shown, now) and self._plan(name, node, node.deadline())
        # It may have waited for the name of a claim.
        return self._show_referenced("Pod", key, None, now) or has_effect or is_replaced

    def _hide(self, key: str) -> None:
        if key in self._pods:
            uid, name = self._pods.pop(key)
            self._references.note(key, None)
            if self._hosts is not None:
                self._hosts.pods.free(uid)
            if name in self._nodes:
                self._nodes[name].hide_pod(uid)
                self._look_at(name)

    def _on_finished(self, action: Action, finished: ActionFinished, now: int) -> bool:
        """Handle the answer to a report; return whether it has an effect."""
        if not isinstance(action, _Report):
            raise TypeError(f"kubelets do not ask for {action}")
        name = action.key if action.kind == "Node" else self._pods.get(action.key, _NOWHERE)[1]
        if finished.problem is None or finished.answer.is_over:
            if self._retries.has_failures:
                subject = _subject(name, action)
                # An answer may be late: a newer failed report is still sent again.
                if self._failed.get(subject, (name, action))[1] is action:
                    self._failed.pop(subject, None)
                    self._retries.forget(subject)
            node = self._nodes.get(name)
            return node is not None and node.on_report_finished(action, now) and self._plan(name, node, node.deadline())
        if name in self._nodes and self._nodes[name].is_wanted(action):
            subject = _subject(name, action)
            self._retries.answer(subject, finished, now)
            self._failed[subject] = name, action
        return True

    def _tick(self, now: int) -> None:
        while self._failed and (subject := self._retries.take(now)) is not None:
            # Failed reports are sent again if they are still current.
            name, action = self._failed.pop(subject)
            if name in self._nodes and self._nodes[name].is_wanted(action):
                self._actions.append(action)
            else:
                self._retries.forget(subject)
        while (due := self._deadlines.take_due(now)) is not None:
            node = self._nodes[due]
            node.last_deadline = None
            self._plan(due, node, node.tick(now))

    def _look_at(self, name: str) -> None:
        """Update a node's deadline; forget a deleted node without pods."""
        node = self._nodes[name]
        self._plan(name, node, node.deadline())
        if node.is_idle:
            del self._nodes[name]

    def _plan(self, name: str, node: NodeKubelet, deadline: Deadline) -> bool:
        """Set a node's deadline; return whether it or the actions have changed."""
        previous = node.last_deadline
        node.last_deadline = deadline
        if node.gives_way:
            # Among nodes that are due at the same time, it moves behind the others.
            node.gives_way = False
            self._deadlines.set_last(name, deadline.time_ns, recurs=not deadline.keeps_alive)
        elif deadline is not previous:
            self._deadlines.set(name, deadline.time_ns, recurs=not deadline.keeps_alive)
        return deadline is not previous or bool(self._actions)


def _subject(name: str, action: _Report) -> _Subject:
    return (name, reports.reported(action)) if action.kind == "Node" else ("", action.uid)
