"""The kubelets of all nodes: they admit and start pods, let them run, end them, and evict when memory runs short.

Source: pkg/kubelet; controlled-rescheduling.md for pods that wait for others to end.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.decide.pressure import EvictionOrder
from podium.machines.actions import Action, FinishDeletion, ReportNodeCondition, ReportPodStatus
from podium.machines.agenda import Agenda
from podium.machines.kubelets.node_kubelet import NodeKubelet
from podium.machines.kubelets.node_memory import NodeMemory
from podium.machines.observations import Answered, Changed, Gone, Observation, Problem, Tick
from podium.machines.settling_deadlines import SettlingDeadlines

_SECOND = 10**9
# How long after a write failed it is sent again.
_RETRY_NS = _SECOND
# What is wrong with the write itself is so the next time; and what is gone needs no report.
_FINAL_CODES = (400, 404, 422)


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """How kubelets behave; times in nanoseconds.

    A pod starts ``start_delay_ns`` after its admission. A node is short of memory when its pods leave less than
    ``memory_threshold_bytes``, and says so until it has not been for ``pressure_transition_ns``. With
    ``waits_for_victims``, a pod that fits once others have ended that are terminating waits for them on the node.
    ``eviction_order`` says whom of equal priority a node short of memory evicts first. Without ``honors_policy``, pods
    that are not preemptible end for critical ones like others.
    """

    start_delay_ns: int = 0
    memory_threshold_bytes: int = 0
    pressure_transition_ns: int = 300 * _SECOND
    waits_for_victims: bool = False
    eviction_order: EvictionOrder = "BytesOverRequest"
    honors_policy: bool = True


class Kubelet:
    """The kubelets of a cluster as one machine, which keeps each node apart.

    One machine, because a driver asks every machine at every step, and clusters have thousands of nodes. What the API
    is told follows what happened on the node: a pod's containers are gone before its end is reported, and whoever knows
    of its end may count on its room. Pods on a node that nobody knows wait for it.

    What runs on nodes outlives this machine, but for the back-off of failing containers: one that starts anew finds it
    in the API. Nodes whose machines are down it must be told again by `fail_node`, before anything else.
    """

    def __init__(self, settings: KubeletSettings = KubeletSettings()) -> None:
        self._settings = settings
        self._nodes: dict[str, NodeKubelet] = {}
        # By key, the uid and the node of each pod that has one.
        self._pods: dict[str, tuple[str, str]] = {}
        self._deadlines: SettlingDeadlines[str] = SettlingDeadlines()
        self._retries: Agenda[tuple[str, Action]] = Agenda()
        self._actions: list[Action] = []

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` and say what to write."""
        match observation:
            case Changed(object=Node() as node):
                self._node(node.metadata.name).show_node(node, now)
                self._look_at(node.metadata.name)
            case Gone(object=Node() as node):
                self._node(node.metadata.name).hide_node()
                self._look_at(node.metadata.name)
            case Changed(object=Pod() as pod, raw=raw):
                self._pod_changed(pod, raw, now)
            case Gone(object=Pod() as pod):
                self._hide(pod.key)
            case Answered(action=action, problem=problem):
                self._answered(action, problem, now)
            case Tick():
                self._tick(now)
            case _:
                pass
        actions, self._actions = self._actions, []
        return actions

    def next_deadline(self) -> int | None:
        """When something is due on some node."""
        nodes_ns, retries_ns = self._deadlines.next_time(), self._retries.next_time()
        if nodes_ns is None or retries_ns is None:
            return retries_ns if nodes_ns is None else nodes_ns
        return min(nodes_ns, retries_ns)

    def is_settled(self) -> bool:
        """Whether no more is to happen on any node than that containers fail over and over again."""
        return self._deadlines.is_settled() and self._retries.next_time() is None

    def finish(self, pod: Pod, now: int) -> bool:
        """Let a pod's containers exit by themselves; False when they do not run."""
        name = pod.spec.node_name
        if name not in self._nodes or not self._nodes[name].finish(pod.metadata.uid, now):
            return False
        self._look_at(name)
        return True

    def fail_node(self, name: str, now: int) -> None:
        """Let a node's machine stop at ``now``, with all that runs there; the API is told nothing.

        It stays down until `recover_node`, whatever becomes of the node in the API.
        """
        self._node(name).fail()
        self._look_at(name)

    def recover_node(self, name: str, now: int) -> None:
        """Let a node's machine start again: its kubelet begins anew, and restarts the pods that ran there."""
        self._node(name).recover(now)
        self._look_at(name)

    def _pod_changed(self, pod: Pod, raw: Raw, now: int) -> None:
        uid, name = pod.metadata.uid, pod.spec.node_name
        known = self._pods.get(pod.key)
        if known is not None and known[0] != uid:
            self._hide(pod.key)
        if name:
            self._pods[pod.key] = uid, name
            self._node(name).show_pod(pod, raw, now)
            self._look_at(name)

    def _hide(self, key: str) -> None:
        """The pod of that key is gone."""
        if key in self._pods:
            uid, name = self._pods.pop(key)
            self._nodes[name].hide_pod(uid)
            self._look_at(name)

    def _answered(self, action: Action, problem: Problem | None, now: int) -> None:
        """A report was written, or was not, or nobody knows whether it was."""
        name = self._node_of(action)
        if problem is not None and problem.code not in _FINAL_CODES:
            self._retries.add(now + (problem.retry_after_ns or _RETRY_NS), (name, action))
        elif name in self._nodes and self._nodes[name].written(action):
            self._look_at(name)

    def _node_of(self, action: Action) -> str:
        match action:
            case ReportNodeCondition():
                return action.node
            case ReportPodStatus() | FinishDeletion():
                return self._pods.get(action.pod, ("", ""))[1]
            case _:
                raise TypeError(f"kubelets do not ask for {action}")

    def _tick(self, now: int) -> None:
        while (retry := self._retries.take_due(now)) is not None:
            name, action = retry
            if name in self._nodes and self._nodes[name].is_wanted(action):
                self._actions.append(action)
        while (due := self._deadlines.take_due(now)) is not None:
            self._nodes[due].tick(now)
            self._look_at(due)

    def _node(self, name: str) -> NodeKubelet:
        if name not in self._nodes:
            settings = self._settings
            self._nodes[name] = NodeKubelet(
                NodeMemory(settings.memory_threshold_bytes, settings.pressure_transition_ns),
                start_delay_ns=settings.start_delay_ns,
                waits_for_victims=settings.waits_for_victims,
                eviction_order=settings.eviction_order,
                honors_policy=settings.honors_policy,
            )
        return self._nodes[name]

    def _look_at(self, name: str) -> None:
        """Take what a node has to say, and when it will next."""
        node = self._nodes[name]
        self._actions += node.take_actions()
        self._deadlines.set(name, node.next_time(), recurs=node.is_settled())
