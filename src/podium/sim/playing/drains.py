"""The drains that a scenario's steps begin."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from podium.driver.component import Component
from podium.machines.disruption.drain import Drain
from podium.sim.control_plane import ControlPlane
from podium.sim.playing.subjects import Subjects
from podium.sim.scenario.changes import DrainNode
from podium.sim.scenario.steps import Step


class Drains:
    """Those that are not over, and those that wait for the drain of another node; ``add`` takes in a component."""

    def __init__(self, subjects: Subjects, control_plane: ControlPlane, add: Callable[[Component], None]) -> None:
        self._subjects = subjects
        self._control_plane = control_plane
        self._add = add
        self._begun: dict[Component, tuple[Step, DrainNode]] = {}
        # By node, those that wait for its drain.
        self._waiting: dict[str, list[tuple[Step, DrainNode]]] = {}

    def begin(self, step: Step, change: DrainNode, now: int) -> None:
        """Drain a node, once the drain that this one comes after is over; a node that is gone is skipped."""
        if change.after and self._is_awaited(change.after):
            self._waiting.setdefault(change.after, []).append((step, change))
        elif self._subjects.find(step, "Node", change.node, now) is None:
            self.begin_waiting(change.node, now)
        else:
            component = Component(f"drain of {change.node}", lambda: Drain(change.node, change.settings))
            self._begun[component] = (step, change)
            self._control_plane.begin_drain(component)
            self._add(component)

    def end(self, component: Component) -> tuple[Step, DrainNode, bool]:
        """The step and the change that began a drain, which is over, and whether the node is drained."""
        step, change = self._begun.pop(component)
        machine = component.machine
        return step, change, isinstance(machine, Drain) and machine.report().state == "drained"

    def begin_waiting(self, node: str, now: int) -> None:
        """Begin the drains that wait for that of a node."""
        for step, change in self._waiting.pop(node, ()):
            self.begin(step, change, now)

    def _is_awaited(self, node: str) -> bool:
        """Whether a drain of the node is not over, or waits for that of another."""
        waiting = (change for drains in self._waiting.values() for _, change in drains)
        return any(change.node == node for change in chain(waiting, (change for _, change in self._begun.values())))
