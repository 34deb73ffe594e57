"""A simulation for people: what happened, where pods are at the end, who still waits and why, and the sums."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from podium.api.quantity import format_quantity
from podium.api.times import format_duration, format_time
from podium.app.console.cells import NODES, PODS, WORKLOADS, told_once
from podium.app.console.disruptions_text import write_disruptions
from podium.app.console.page import Cell, Name, Page, Part, counted, listed, names_of
from podium.app.simulating.simulation_result import MOST_NODES, FilledNode, PlacedPod, SimulationResult
from podium.app.simulating.timeline import MOST_LINES, folded, since, whole_reason, write_digest, write_timeline
from podium.controllers.actions import DESCHEDULED
from podium.sim.latencies import in_words
from podium.sim.recording.comparison import PodPlace, RecordingComparison, SideTotals
from podium.sim.results.result import Result

_MOST_WAITING = 12
_TENTH_NS = 10**8
_MOST_NAMES = 3
_WAIT_HEADINGS = ("", "pods", "mean", "median", "95%", "longest")
_USE_HEADINGS = ("", "on average", "at the end")


def write_simulation(page: Page, result: SimulationResult, *, every_event: bool) -> None:
    """Write the whole story; a long one in short unless `every_event`.

    Where requests take time, times are cut off after a tenth of a second unless `every_event`: the few milliseconds
    that latencies add hide what matters.
    """
    if result.latency_ns and not every_event:
        result = _to_tenths(result)
    summary = result.summary
    page.paragraph(Cell(headline_of(result), "bold"), hanging=2)
    lines = folded(result.events)
    if every_event or len(lines) <= MOST_LINES:
        write_timeline(page, lines, every_event=every_event)
    else:
        write_digest(page, result.events)
    write_placement(page, result.placement)
    _write_waiting(page, result)
    _write_short(page, summary["short"])
    _write_drains(page, summary["drains"])
    _write_moved(page, result)
    write_disruptions(page, result.disruptions)
    if result.recorded is not None:
        write_comparison(page, result.recorded)
    _write_summary(page, summary)
    if result.latency_ns:
        page.paragraph(in_words(result.latency_ns, is_drawn=result.draws_latencies), indent=2, hanging=2)
    page.caveats(result.caveats)


def _to_tenths(result: SimulationResult) -> SimulationResult:
    """Return the result with its times cut off after a tenth of a second."""
    waiting = [
        {**each, **{name: _tenths(each[name]) for name in ("mean", "p50", "p95", "max")}}
        for each in result.summary["waiting"]
    ]
    return replace(
        result,
        events=[
            msgspec.structs.replace(event, time=_tenths(event.time), last_time=_tenths(event.last_time))
            for event in result.events
        ],
        pods=[{**pod, "createdAt": _tenths(pod["createdAt"])} for pod in result.pods],
        summary={**result.summary, "waiting": waiting},
    )


def _tenths(seconds: float) -> float:
    return math.floor(seconds * 10 + 1e-6) / 10


def headline_of(result: Result) -> str:
    """What the run comes to, in a line."""
    summary, measures = result.summary, result.measures
    began = format_time(measures.start_ns)
    length_ns = measures.end_ns - measures.start_ns
    length = format_duration(length_ns - length_ns % _TENTH_NS if result.latency_ns else length_ns)
    waiting = f"{counted(summary['pods']['pending'], 'pod')} waiting at the end"
    done = f"{summary['bindings']:,} bound, {summary['preempted']:,} preempted, {waiting}"
    return f"{length} from {began}: {done}"


def _write_waiting(page: Page, result: Result) -> None:
    """Write the pods without a node, each with what its last attempt met; many of them by reason."""
    waiting = [pod for pod in result.pods if pod["phase"] == "Pending" and pod["node"] is None]
    if not waiting:
        return
    messages = {event.pod: whole_reason(event.message) for event in result.events if event.reason == "FailedScheduling"}
    messages.update(result.held.items())
    page.title("Still waiting", counted(len(waiting), "pod"))
    rows: list[list[Part]]
    same = told_once((pod["pod"], _wait(pod, messages)) for pod in _by_priority(waiting))
    if len(same) <= _MOST_WAITING:
        rows = [[names_of(pods, PODS, "warn", _MOST_NAMES), *wait] for pods, wait in same]
        if len(same) < len(waiting):
            rows = [[counted(len(pods), "pod"), *row] for row, (pods, _) in zip(rows, same, strict=True)]
        page.columns(rows, indent=2)
        return
    alike: dict[str, list[str]] = {}
    for pod in _by_priority(waiting):
        alike.setdefault(messages.get(pod["pod"], "not attempted"), []).append(pod["pod"])
    order = sorted(alike.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [
        [counted(len(pods), "pod"), f"{message}: {listed(pods, _MOST_NAMES)}"]
        for message, pods in order[:_MOST_WAITING]
    ]
    page.columns(rows, indent=2, right=(0,))
    if len(order) > _MOST_WAITING:
        page.line(Cell(f"and {counted(len(order) - _MOST_WAITING, 'more reason')}", "dim"), indent=2)


def _by_priority(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(pods, key=lambda pod: (-pod["priority"], pod["createdAt"], pod["pod"]))


def _wait(pod: dict[str, Any], messages: dict[str | None, str]) -> tuple[str, str, str]:
    nominated = f"nominated to {pod['nominatedNode']}; " if pod["nominatedNode"] else ""
    reason = nominated + messages.get(pod["pod"], "not attempted")
    return f"priority {pod['priority']}", f"since {since(max(pod['createdAt'], 0))}", reason


def _write_short(page: Page, short: list[dict[str, Any]]) -> None:
    if not short:
        return
    page.title("Short of pods", counted(len(short), "workload"))
    found = {pod["workload"]: pod for pod in short}
    same = told_once((pod["workload"], pod["reason"]) for pod in short)
    rows: list[list[Part]] = []
    for names, reason in same[:_MOST_WAITING]:
        wants, has = (sum(found[name][what] for name in names) for what in ("wants", "has"))
        verbs = ("wants", "has") if len(names) == 1 else ("want", "have")
        told = f"{verbs[0]} {wants:,}, {verbs[1]} {has:,}: {reason}"
        rows.append([names_of(names, WORKLOADS, "warn", _MOST_NAMES), told])
    page.columns(rows, indent=2)
    if len(same) > _MOST_WAITING:
        more = sum(len(names) for names, _ in same[_MOST_WAITING:])
        page.line(Cell(f"and {counted(more, 'more workload')}", "dim"), indent=2)


def _write_drains(page: Page, drains: list[dict[str, Any]]) -> None:
    """Write how far each drain came, and what it left behind or waits for."""
    if not drains:
        return
    page.title("Drains", counted(len(drains), "drain"))
    for drain in drains:
        gone = sum(pod["state"] == "gone" for pod in drain["pods"])
        said = drain["message"] or f"{counted(gone, 'pod')} gone"
        style = "" if drain["state"] == "drained" else "warn"
        page.paragraph(Cell(f"{drain['node']} {drain['state']}: {said}", style), indent=2, hanging=2)
        stays = told_once(
            (pod["pod"], (pod["state"], pod["reason"] or "")) for pod in drain["pods"] if pod["state"] != "gone"
        )
        rows: list[list[Part]] = [
            [names_of(pods, PODS, most=_MOST_NAMES), *told] for pods, told in stays[:_MOST_WAITING]
        ]
        if rows:
            page.columns(rows, indent=4)
        if len(stays) > _MOST_WAITING:
            more = sum(len(pods) for pods, _ in stays[_MOST_WAITING:])
            page.line(Cell(f"and {counted(more, 'more pod')}", "dim"), indent=4)


def _write_moved(page: Page, result: Result) -> None:
    """Write which pods a rescheduler has evicted, and why; those of one reason together."""
    alike: dict[str, list[str]] = {}
    for event in result.events:
        if event.reason == DESCHEDULED and event.pod is not None:
            alike.setdefault(event.message, []).append(event.pod)
    if not alike:
        return
    page.title("Moved", counted(sum(len(pods) for pods in alike.values()), "pod"))
    rows: list[list[Part]] = [
        [counted(len(pods), "pod"), f"{message}: {listed(pods, _MOST_NAMES)}"]
        for message, pods in list(alike.items())[:_MOST_WAITING]
    ]
    page.columns(rows, indent=2, right=(0,))
    if len(alike) > _MOST_WAITING:
        page.line(Cell(f"and {counted(len(alike) - _MOST_WAITING, 'more reason')}", "dim"), indent=2)


def _write_summary(page: Page, summary: dict[str, Any]) -> None:
    phases = [f"{number:,} {phase}" for phase, number in summary["pods"].items() if number and phase != "total"]
    page.title("Summary", f"{counted(summary['pods']['total'], 'pod')}: {', '.join(phases)}")
    tried = counted(summary["attempts"], "attempt")
    evicted = "".join(f", {number:,} evicted by {by}" for by, number in summary["evictedBy"].items())
    done = f"{counted(summary['bindings'], 'binding')}, {summary['preempted']:,} preempted{evicted}"
    page.paragraph(f"{tried}, {done}", indent=2, hanging=2)
    if summary["waiting"]:
        page.title("Waits", "for a node, of the pods that got one")
        rows: list[list[Part]] = [[Cell(head, "dim") for head in _WAIT_HEADINGS]]
        for waiting in summary["waiting"]:
            times = [_duration(waiting[name]) for name in ("mean", "p50", "p95", "max")]
            rows.append([f"priority {waiting['priority']}", f"{waiting['count']:,}", *times])
        page.columns(rows, indent=2, right=range(1, 6))
    if summary["use"]:
        page.title("Requested", "of what the nodes offer")
        used: list[list[Part]] = [[Cell(head, "dim") for head in _USE_HEADINGS]]
        used += [[name, f"{use['average']:.1%}", f"{use['final']:.1%}"] for name, use in summary["use"].items()]
        page.columns(used, indent=2, right=(1, 2))


def _duration(seconds: float) -> str:
    return format_duration(round(seconds * 1000) * 10**6)


_MOST_PODS = 20
_HEADINGS = ("", "bound", "preempted", "evicted", "mean wait", "95%", "longest")


def write_comparison(page: Page, comparison: RecordingComparison) -> None:
    """Write both sums, and the pods that are on another node here than there."""
    page.title("Recorded and simulated", f"{counted(comparison.same, 'pod')} on the same node")
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _HEADINGS]]
    rows += [_row("recorded", comparison.recorded), _row("simulated", comparison.simulated)]
    page.columns(rows, indent=2, right=range(1, len(_HEADINGS)))
    if not comparison.differences:
        return
    page.title("Elsewhere", f"{counted(len(comparison.differences), 'pod')}, with the wait for a node")
    others: list[list[Part]] = [
        [Name(difference.pod, PODS), *_place(difference.recorded), "→", *_place(difference.simulated)]
        for difference in comparison.differences[:_MOST_PODS]
    ]
    page.columns(others, indent=2)
    if len(comparison.differences) > _MOST_PODS:
        page.line(Cell(f"and {counted(len(comparison.differences) - _MOST_PODS, 'more pod')}", "dim"), indent=2)


def _row(name: str, sums: SideTotals) -> list[Part]:
    waits = sums.waiting or {}
    times = [_in_words(waits[key]) if key in waits else "" for key in ("mean", "p95", "max")]
    return [name, f"{sums.bindings:,}", f"{sums.preempted:,}", f"{sums.evicted:,}", *times]


def _place(place: PodPlace) -> tuple[Part, Part]:
    if place.node is None:
        return "no node", ""
    return Name(place.node, NODES), f"after {_in_words(place.wait or 0)}"


def _in_words(seconds: float) -> str:
    return format_duration(round(seconds * 1000) * 10**6)


_BAR = 10
_NODE_HEADINGS = ("node", "cpu", "", "pod", "priority", "requests")
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
    rows: list[list[Part]] = [[Cell(heading, "dim") for heading in _NODE_HEADINGS]]
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
    levels = Counter(next((top for top in _LEVELS if node.cpu_percent <= top), 100) for node in nodes)
    rows: list[list[Part]] = []
    lowest = 0
    for top in (*_LEVELS, 100):
        label = "none" if top == 0 else "all" if top == 100 else f"{lowest}-{top}%"
        lowest = top + 1
        rows.append([label, f"{levels[top]:,}", bar(100 * levels[top] // len(nodes))])
    page.columns(rows, indent=2, right=(0, 1))
