"""What stands between a pod and each node: the answer of every filter, not only of the first that refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from podium.cluster.nodes import NodeColumns
from podium.cluster.pods import PodRecord
from podium.cluster.view import View
from podium.framework.cycle_state import CycleState
from podium.framework.plugin import ArrayFilterPlugin, FilterPlugin
from podium.framework.runner import Runner
from podium.framework.status import Status
from podium.framework.verdicts import Outcome

RESOURCES = "NodeResourcesFit"


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which a node has too little left: cpu in milli, all else in units."""

    resource: str
    wanted: int
    left: int
    allocatable: int

    @property
    def lacking(self) -> int:
        """How much more would have to be free."""
        return self.wanted - self.left


@dataclass(frozen=True, slots=True)
class NodeObstacles:
    """All that keeps a pod off one node: each filter that refuses, and pods that the node keeps room for.

    The filters are asked about the node as it is; `nominated` are the pods, of equal or higher priority, beside which
    the pod would have to fit as well.
    """

    node: str
    refusals: tuple[Status, ...]
    shortages: tuple[Shortage, ...]
    nominated: tuple[PodRecord, ...]

    @property
    def order(self) -> tuple[int, float, str]:
        """Nodes with fewer obstacles come first, then those that lack the smaller share of what is asked for."""
        share = max((shortage.lacking / shortage.wanted for shortage in self.shortages), default=1.0)
        return sum(len(refusal.reasons) for refusal in self.refusals) + len(self.nominated), share, self.node


def find_obstacles(runner: Runner, pod: PodRecord) -> list[NodeObstacles]:
    """The obstacles on every node that has any, the nearest node first; none where a PreFilter turns the pod down."""
    state = CycleState()
    if not runner.pre_filter(state, pod).status.is_success:
        return []
    nodes = runner.cluster.nodes
    refusals = _refusals(runner, state, pod)
    found = []
    for name, row in nodes.row_of.items():
        on_node = runner.cluster.nominations.on(name)
        nominated = tuple(other for other in on_node if other.uid != pod.uid and other.priority >= pod.priority)
        statuses = tuple(refusals.get(row, ()))
        if statuses or nominated:
            shortages = next(
                (_shortages(nodes, pod, row, status) for status in statuses if status.plugin == RESOURCES), ()
            )
            found.append(NodeObstacles(name, statuses, shortages, nominated))
    return sorted(found, key=lambda obstacles: obstacles.order)


def _refusals(runner: Runner, state: CycleState, pod: PodRecord) -> dict[int, list[Status]]:
    """By row, what each filter that refuses says, in the profile's order."""
    view, found = View(runner.cluster), dict[int, list[Status]]()
    present = view.take(runner.cluster.nodes.present)
    for plugin in runner.profile.filter:
        if plugin.name in state.skip_filter:
            continue
        if not isinstance(plugin, ArrayFilterPlugin):
            for row in np.flatnonzero(present).tolist():
                _add(found, row, _asked(plugin, state, pod, view, row))
            continue
        outcome = Outcome(len(view))
        outcome.add(1, plugin.name, plugin.filter_rows(state, pod, view))
        statuses: dict[int, Status] = {}
        for row in np.flatnonzero(present & (outcome.refused != 0)).tolist():
            refused = int(outcome.refused[row])
            if refused not in statuses:
                statuses[refused] = outcome.status_of(refused)
            _add(found, row, statuses[refused])
    return found


def _asked(plugin: FilterPlugin, state: CycleState, pod: PodRecord, view: View, row: int) -> Status:
    return plugin.filter(state, pod, view.node(row)).by(plugin.name)


def _add(found: dict[int, list[Status]], row: int, status: Status) -> None:
    if not status.is_success:
        found.setdefault(row, []).append(status)


def _shortages(nodes: NodeColumns, pod: PodRecord, row: int, status: Status) -> tuple[Shortage, ...]:
    """The resources that a refusal names, with the amounts."""
    found = []
    for index, wanted in sorted(pod.pod_class.requests.items()):
        name, allocatable = nodes.resources[index], int(nodes.allocatable[index, row])
        if f"Insufficient {name}" in status.reasons:
            found.append(Shortage(name, wanted, allocatable - int(nodes.requested[index, row]), allocatable))
    return tuple(found)
