"""The components of a simulated cluster besides its schedulers."""

from __future__ import annotations

from collections.abc import Mapping

from podium.api.node import Node
from podium.api.pod import Pod
from podium.driver.component import Component
from podium.machines.disruption.drain import Drain, DrainReport
from podium.machines.kubelets.kubelet import Kubelet
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.observations import Observation
from podium.plane.component_names import KUBELET
from podium.plane.components import ComponentSettings, controllers
from podium.plane.node_power import NodePower
from podium.sim.scenario.scenario import Scenario

News = list[tuple[Component, Observation]]
"""What components learn otherwise than from the API."""


class ControlPlane:
    """Makes kubelets and controllers as the scenario has them, and knows which nodes' machines have stopped.

    ``given`` are the nodes by uid that are there from the start.
    """

    def __init__(self, scenario: Scenario, kubelets: KubeletSettings, given: Mapping[str, Node], start_ns: int) -> None:
        self._power = NodePower(given.values(), start_ns)
        self.components = controllers(ComponentSettings(kubelets, scenario.node_lifecycle, given))
        self._by_name = {component.name: component for component in self.components}
        # In the order in which they were begun; of those that are over only the report is left.
        self._drains: list[Component | DrainReport] = []

    @property
    def kubelet(self) -> Component:
        """The kubelets."""
        return self._by_name[KUBELET]

    def is_running(self, pod: Pod) -> bool:
        """Whether a pod's containers run; nobody can tell while kubelets are down."""
        kubelet = self.kubelet.machine
        return isinstance(kubelet, Kubelet) and kubelet.is_running(pod)

    def begin_drain(self, drain: Component) -> None:
        """A step has begun a drain."""
        self._drains.append(drain)

    def drain_reports(self) -> list[DrainReport]:
        """How far the drains are, in the order in which they were begun."""
        found = (drain.machine if isinstance(drain, Component) else drain for drain in self._drains)
        return [
            one.report() if isinstance(one, Drain) else one for one in found if isinstance(one, Drain | DrainReport)
        ]

    @property
    def has_drains(self) -> bool:
        """Whether any drain was begun."""
        return bool(self._drains)

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
        return self._power.is_down(node)

    def change_power(self, node: str, now: int, *, is_up: bool) -> News:
        """A node's machine stops or starts: its kubelet, and who hears its heartbeat; nothing when it is so already."""
        return [(self._by_name[name], news) for name, news in self._power.change(node, now, is_up=is_up)]

    def news(self, component: Component) -> list[Observation]:
        """What a component that begins anew has to be told before anything else."""
        return self._power.news(component.name) if self._by_name.get(component.name) is component else []
