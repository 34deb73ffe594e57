"""The components of a simulated cluster besides its schedulers."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.node import Node
from podium.api.node_health import READY, condition_status
from podium.api.pod import Pod
from podium.driver.component import Component
from podium.machines.disruption.avoid_lists import AvoidLists
from podium.machines.disruption.default_budgets import DefaultBudgets
from podium.machines.disruption.disruption_controller import DisruptionController
from podium.machines.disruption.drain import Drain, DrainReport
from podium.machines.kubelets.kubelet import Kubelet, KubeletSettings
from podium.machines.nodes.node_lifecycle import NodeLifecycle
from podium.machines.nodes.pod_garbage import PodGarbageCollector
from podium.machines.nodes.taint_eviction import TaintEviction
from podium.machines.observations import NodeHeard, NodeSilent, NodeStarted, NodeStopped, Observation
from podium.machines.volumes.persistent_volumes import PersistentVolumes
from podium.machines.workloads.cron.cron_jobs import CronJobs
from podium.machines.workloads.daemons.daemon_sets import DaemonSets
from podium.machines.workloads.jobs.jobs import Jobs
from podium.machines.workloads.resource_claims import ResourceClaims
from podium.machines.workloads.rolling.deployments import Deployments
from podium.machines.workloads.rolling.replica_sets import ReplicaSets
from podium.machines.workloads.stateful.stateful_sets import StatefulSets
from podium.sim.scenario.scenario import Scenario

News = list[tuple[Component, Observation]]
"""What components learn otherwise than from the API."""


class ControlPlane:
    """Makes kubelets and controllers as the scenario has them, and knows which nodes' machines have stopped.

    ``given`` are the nodes by uid that are there from the start.
    """

    def __init__(self, scenario: Scenario, kubelets: KubeletSettings, given: Mapping[str, Node], start_ns: int) -> None:
        # By the name of each node that is down, since when. One whose state is unknown was down before.
        self._down = {
            node.metadata.name: start_ns for node in given.values() if condition_status(node, READY) == "Unknown"
        }
        self._kubelet = Component("kubelet", lambda: Kubelet(kubelets))
        self._lifecycle = Component("node-lifecycle-controller", lambda: NodeLifecycle(scenario.node_lifecycle, given))
        self.components = [
            self._kubelet,
            self._lifecycle,
            Component("taint-eviction-controller", TaintEviction),
            Component("pod-garbage-collector", PodGarbageCollector),
            Component("deployment-controller", Deployments),
            Component("replicaset-controller", ReplicaSets),
            Component("statefulset-controller", StatefulSets),
            Component("daemonset-controller", DaemonSets),
            Component("job-controller", Jobs),
            Component("cronjob-controller", CronJobs),
            Component("resource-claim-controller", ResourceClaims),
            Component("persistentvolume-controller", PersistentVolumes),
            Component("default-budget-controller", DefaultBudgets),
            Component("disruption-controller", DisruptionController),
            Component("avoid-list-controller", AvoidLists),
        ]
        # In the order in which they were begun; of those that are over only the report is left.
        self._drains: list[Component | DrainReport] = []

    @property
    def kubelet(self) -> Component:
        """The kubelets."""
        return self._kubelet

    def is_running(self, pod: Pod) -> bool:
        """Whether a pod's containers run; nobody can tell while kubelets are down."""
        kubelet = self._kubelet.machine
        return isinstance(kubelet, Kubelet) and kubelet.is_running(pod)

    def begin_drain(self, drain: Component) -> None:
        """A step has begun a drain."""
        self._drains.append(drain)

    def drain_reports(self) -> list[DrainReport]:
        """How far the drains are, in the order in which they were begun."""
        found = (drain.machine if isinstance(drain, Component) else drain for drain in self._drains)
        return [
            drain_report.report() if isinstance(drain_report, Drain) else drain_report
            for drain_report in found
            if isinstance(drain_report, Drain | DrainReport)
        ]

    def end_drains(self) -> list[Component]:
        """The drains that are over, each told once: nobody need tell them anything more."""
        ended = []
        for index, one in enumerate(self._drains):
            if isinstance(one, Component) and isinstance(one.machine, Drain) and one.machine.is_over:
                self._drains[index] = one.machine.report()
                ended.append(one)
        return ended

    def is_down(self, node: str) -> bool:
        """Whether the node's machine has stopped."""
        return node in self._down

    def change_power(self, node: str, now: int, *, is_up: bool) -> News:
        """A node's machine stops or starts: its kubelet, and who hears its heartbeat; nothing when it is so already."""
        if is_up is (node not in self._down):
            return []
        if is_up:
            del self._down[node]
            return [(self._kubelet, NodeStarted(node)), (self._lifecycle, NodeHeard(node))]
        self._down[node] = now
        return [(self._kubelet, NodeStopped(node)), (self._lifecycle, NodeSilent(node, now))]

    def news(self, component: Component) -> list[Observation]:
        """What a component that begins anew has to be told before anything else."""
        if component is self._kubelet:
            return [NodeStopped(node) for node in self._down]
        if component is self._lifecycle:
            return [NodeSilent(node, since_ns) for node, since_ns in self._down.items()]
        return []
