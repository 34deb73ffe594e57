"""Where pods are at the end of a simulation, for people: node by node, or in sum for many nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.quantity import format_quantity
from podium.api.resize import effective_spec
from podium.api.resource_requests import node_allocatable, pod_requests
from podium.api.resources import CPU
from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, counted
from podium.sim.results.pod_states import NodeStates, PodState
from podium.store.store import Store

_MOST_NODES = 20
_MOST_PODS = 8
_BAR = 10
_HEADINGS = ("node", "cpu", "", "pod", "priority", "requests")
# The upper ends of the groups into which many nodes are put, in percent.
_LEVELS = (0, 25, 50, 75, 99)


@dataclass(frozen=True, slots=True)
class _Filled:
    """A node: what it offers, and the pods on it that have not ended, the most important first."""

    name: str
    offered: Mapping[str, int]
    pods: tuple[Pod, ...]

    @property
    def cpu_percent(self) -> int:
        """How much of its cpu is requested, in whole percent, rounded down."""
        return self.percent(CPU, sum(pod_requests(effective_spec(pod)).get(CPU, 0) for pod in self.pods))

    def percent(self, resource: str, amount: int) -> int:
        """The amount in whole percent of what the node offers; all of it where it offers none."""
        offered = self.offered.get(resource, 0)
        return 100 * amount // offered if offered else 100 * bool(amount)


def write_placement(page: Page, store: Store, states: NodeStates) -> None:
    """Write each node with a bar of the cpu that is requested, and its pods; of many nodes, how full they are.

    What is unusual about a node or a pod stands behind its name.
    """
    nodes = _filled(store)
    if len(nodes) > _MOST_NODES:
        page.title("At the end", f"{counted(len(nodes), 'node')}, by how much of their cpu is requested")
        _write_levels(page, nodes)
        return
    page.title("At the end", counted(len(nodes), "node"))
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _HEADINGS]]
    for node in nodes:
        rows += _rows(node, states)
    page.columns(rows, indent=2, right=(2, 4))


def bar(percent: int) -> str:
    """A bar that is full at 100 percent."""
    full = min(max(percent, 0), 100) * _BAR // 100
    return "█" * full + "░" * (_BAR - full)


def _filled(store: Store) -> list[_Filled]:
    pods: dict[str, list[Pod]] = {}
    for stored in store.objects("Pod"):
        pod = stored.object
        if isinstance(pod, Pod) and pod.spec.node_name and not pod.is_terminal:
            pods.setdefault(pod.spec.node_name, []).append(pod)
    return [
        _Filled(
            stored.key,
            node_allocatable(stored.object.status),
            tuple(sorted(pods.get(stored.key, ()), key=lambda pod: (-pod.priority, pod.key))),
        )
        for stored in sorted(store.objects("Node"), key=lambda stored: stored.key)
        if isinstance(stored.object, Node)
    ]


def _rows(node: _Filled, states: NodeStates) -> list[list[Part]]:
    percent, marks = node.cpu_percent, states.marks(node.name)
    name = Name(node.name, NODES, "warn" if marks else "", after=_marked(", ".join(marks)))
    head: list[Part] = [name, bar(percent), f"{percent}%"]
    pods = [_pod_cells(node, pod, states.state_of(pod)) for pod in node.pods[:_MOST_PODS]]
    if len(node.pods) > _MOST_PODS:
        pods.append([Cell(f"and {len(node.pods) - _MOST_PODS:,} more", "dim")])
    blank: list[Part] = ["", "", ""]
    return [[*(blank if number else head), *cells] for number, cells in enumerate(pods or [[]])]


def _marked(mark: str) -> str:
    return f" ({mark})" if mark else ""


def _pod_cells(node: _Filled, pod: Pod, state: PodState) -> list[Part]:
    requests = sorted(pod_requests(effective_spec(pod)).items())
    amounts = (
        f"{format_quantity(amount, name)} {name} ({node.percent(name, amount)}%)" for name, amount in requests if amount
    )
    name = Name(pod.key, PODS, after=_marked("" if state == "ready" else state))
    return [name, str(pod.priority), ", ".join(amounts) or "nothing"]


def _write_levels(page: Page, nodes: list[_Filled]) -> None:
    """Write how many nodes are how full."""
    levels = Counter(next((top for top in _LEVELS if node.cpu_percent <= top), 100) for node in nodes)
    rows: list[list[Part]] = []
    lowest = 0
    for top in (*_LEVELS, 100):
        label = "none" if top == 0 else "all" if top == 100 else f"{lowest}-{top}%"
        lowest = top + 1
        rows.append([label, f"{levels[top]:,}", bar(100 * levels[top] // len(nodes))])
    page.columns(rows, indent=2, right=(0, 1))
