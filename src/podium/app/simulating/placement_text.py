"""Where pods are at the end of a simulation, for people: node by node, or in sum for many nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from podium.api.quantity import format_quantity
from podium.app.console.cells import NODES, PODS
from podium.app.console.page import Cell, Name, Page, Part, counted
from podium.app.simulating.placement import MOST_NODES, FilledNode, PlacedPod

_BAR = 10
_HEADINGS = ("node", "cpu", "", "pod", "priority", "requests")
# The upper ends of the groups into which many nodes are put, in percent.
_LEVELS = (0, 25, 50, 75, 99)


def write_placement(page: Page, nodes: Sequence[FilledNode]) -> None:
    """Write each node with a bar of the cpu that is requested, and its pods; of many nodes, how full they are.

    What is unusual about a node or a pod stands behind its name.
    """
    if len(nodes) > MOST_NODES:
        page.title("At the end", f"{counted(len(nodes), 'node')}, by how much of their cpu is requested")
        _write_levels(page, nodes)
        return
    page.title("At the end", counted(len(nodes), "node"))
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _HEADINGS]]
    for node in nodes:
        rows += _rows(node)
    page.columns(rows, indent=2, right=(2, 4))


def bar(percent: int) -> str:
    """A bar that is full at 100 percent."""
    full = min(max(percent, 0), 100) * _BAR // 100
    return "█" * full + "░" * (_BAR - full)


def _rows(node: FilledNode) -> list[list[Part]]:
    percent, marks = node.cpu_percent, node.marks
    name = Name(node.name, NODES, "warn" if marks else "", after=_marked(", ".join(marks)))
    head: list[Part] = [name, bar(percent), f"{percent}%"]
    pods = [_pod_cells(node, pod) for pod in node.pods]
    if node.further_pods:
        pods.append([Cell(f"and {node.further_pods:,} more", "dim")])
    blank: list[Part] = ["", "", ""]
    return [[*(blank if number else head), *cells] for number, cells in enumerate(pods or [[]])]


def _marked(mark: str) -> str:
    return f" ({mark})" if mark else ""


def _pod_cells(node: FilledNode, pod: PlacedPod) -> list[Part]:
    requests = sorted(pod.requests.items())
    amounts = (
        f"{format_quantity(amount, name)} {name} ({node.percent(name, amount)}%)" for name, amount in requests if amount
    )
    name = Name(pod.key, PODS, after=_marked("" if pod.state == "ready" else pod.state))
    return [name, str(pod.priority), ", ".join(amounts) or "nothing"]


def _write_levels(page: Page, nodes: Sequence[FilledNode]) -> None:
    """Write how many nodes are how full."""
    levels = Counter(next((top for top in _LEVELS if node.cpu_percent <= top), 100) for node in nodes)
    rows: list[list[Part]] = []
    lowest = 0
    for top in (*_LEVELS, 100):
        label = "none" if top == 0 else "all" if top == 100 else f"{lowest}-{top}%"
        lowest = top + 1
        rows.append([label, f"{levels[top]:,}", bar(100 * levels[top] // len(nodes))])
    page.columns(rows, indent=2, right=(0, 1))
