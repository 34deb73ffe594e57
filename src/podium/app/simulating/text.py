"""A simulation as text: its events as lines, the nodes of pods at the end, pending pods, and the sums."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import astuple

from podium.api.quantity import format_quantity
from podium.api.times import format_duration, format_time
from podium.app.console.cells import NODES, PODS, WORKLOADS, by_key, grouped_by_text, whole_reason
from podium.app.console.disruptions_text import write_disruptions
from podium.app.console.page import Cell, Name, Page, Part, Section, counted, listed, names_of
from podium.app.simulating.simulation_result import MOST_NODES, FilledNode, SimulationResult
from podium.controllers.actions import DESCHEDULED
from podium.sim.history import SimEvent
from podium.sim.latencies import in_words
from podium.sim.recording.comparison import RecordingComparison
from podium.sim.results.result import Result

_MOST_WAITING = 12
_TENTH_NS = 10**8
_MOST_NAMES = 3
MOST_LINES = 60
"""The maximum number of lines; longer timelines are shown as a digest."""

_FEWEST_ALIKE = 3
# Components that are not named, since they are the usual actors.
_USUAL = frozenset(("default-scheduler", "kubelet"))
# Reasons with messages that repeat the other columns.
_REDUNDANT = frozenset(("Scheduled", "Preempted"))
_STYLES = {
    "Scheduled": "good",
    "Started": "good",
    "Finished": "good",
    "Nominated": "title",
    "Preempted": "bad",
    "Evicted": "bad",
    "Failed": "bad",
    "FailedCreate": "warn",
    "FailedScheduling": "warn",
    "NominationCleared": "warn",
    "StepSkipped": "warn",
}


def write_simulation(page: Page, result: SimulationResult, *, every_event: bool) -> None:
    """Write the events and results; a digest of many events unless `every_event`.

    If requests take time, times are truncated to tenths of a second unless `every_event`: the few milliseconds of
    latencies are distracting.
    """
    if result.latency_ns and not every_event:
        waiting = [
            {**each, **{name: _tenths(each[name]) for name in ("mean", "p50", "p95", "max")}}
            for each in result.summary["waiting"]
        ]
        result = replace(
            result,
            events=[
                msgspec.structs.replace(event, time=_tenths(event.time), last_time=_tenths(event.last_time))
                for event in result.events
            ],
            pods=[{**pod, "createdAt": _tenths(pod["createdAt"])} for pod in result.pods],
            summary={**result.summary, "waiting": waiting},
        )
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
    moved = [(event.message, event.pod) for event in result.events if event.reason == DESCHEDULED and event.pod]
    if moved:
        page.title("Moved", counted(len(moved), "pod"))
        _write_reasons(page, moved)
    write_disruptions(page, result.disruptions)
    if result.recorded is not None:
        write_comparison(page, result.recorded)
    phases = [f"{number:,} {phase}" for phase, number in summary["pods"].items() if number and phase != "total"]
    page.title("Summary", f"{counted(summary['pods']['total'], 'pod')}: {', '.join(phases)}")
    tried = counted(summary["attempts"], "attempt")
    evicted = "".join(f", {number:,} evicted by {by}" for by, number in summary["evictedBy"].items())
    done = f"{counted(summary['bindings'], 'binding')}, {summary['preempted']:,} preempted{evicted}"
    page.paragraph(f"{tried}, {done}", indent=2, hanging=2)
    page.sections(summary_sections(summary))
    if result.latency_ns:
        page.paragraph(in_words(result.latency_ns, is_drawn=result.draws_latencies), indent=2, hanging=2)
    page.caveats(result.caveats)


def _tenths(seconds: float) -> float:
    return math.floor(seconds * 10 + 1e-6) / 10


def headline_of(result: Result) -> str:
    """Return the result of the run in one line."""
    measures = result.measures
    began = format_time(measures.start_ns)
    length_ns = measures.end_ns - measures.start_ns
    length = format_duration(length_ns - length_ns % _TENTH_NS if result.latency_ns else length_ns)
    return f"{length} from {began}: {sums_text(result.summary)}"


def sums_text(summary: dict[str, Any]) -> str:
    """Return the numbers of bound, preempted and waiting pods in one line."""
    waiting = f"{counted(summary['pods']['pending'], 'pod')} waiting at the end"
    return f"{summary['bindings']:,} bound, {summary['preempted']:,} preempted, {waiting}"


def _write_waiting(page: Page, result: Result) -> None:
    """Write the pods without a node, each with the reason of its last attempt; many of them by reason."""
    waiting = [pod for pod in result.pods if pod["phase"] == "Pending" and pod["node"] is None]
    if not waiting:
        return
    waiting.sort(key=lambda pod: (-pod["priority"], pod["createdAt"], pod["pod"]))
    messages = {event.pod: whole_reason(event.message) for event in result.events if event.reason == "FailedScheduling"}
    messages.update(result.held.items())
    page.title("Still waiting", counted(len(waiting), "pod"))
    reasons = {pod["pod"]: messages.get(pod["pod"], "not attempted") for pod in waiting}
    waits = []
    for pod in waiting:
        nominated = f"nominated to {pod['nominatedNode']}; " if pod["nominatedNode"] else ""
        began = f"since {since(max(pod['createdAt'], 0))}"
        waits.append((pod["pod"], (f"priority {pod['priority']}", began, nominated + reasons[pod["pod"]])))
    same = grouped_by_text(waits)
    if len(same) > _MOST_WAITING:
        _write_reasons(page, ((reason, pod) for pod, reason in reasons.items()), by_size=True)
        return
    rows: list[list[Part]] = [[names_of(pods, PODS, "warn", _MOST_NAMES), *wait] for pods, wait in same]
    if len(same) < len(waiting):
        rows = [[counted(len(pods), "pod"), *row] for row, (pods, _) in zip(rows, same, strict=True)]
    page.columns(rows, indent=2)


def _write_reasons(page: Page, reasons: Iterable[tuple[str, str]], *, by_size: bool = False) -> None:
    alike = by_key(reasons)
    order = sorted(alike, key=lambda reason: (-len(alike[reason]), reason)) if by_size else alike
    rows = [(counted(len(alike[reason]), "pod"), f"{reason}: {listed(alike[reason], _MOST_NAMES)}") for reason in order]
    page.table(rows, most=_MOST_WAITING, noun="reason", right=(0,))


def _write_short(page: Page, short: list[dict[str, Any]]) -> None:
    if not short:
        return
    page.title("Short of pods", counted(len(short), "workload"))
    found = {pod["workload"]: pod for pod in short}
    same = grouped_by_text((pod["workload"], pod["reason"]) for pod in short)
    rows: list[list[Part]] = []
    for names, reason in same[:_MOST_WAITING]:
        wants, has = (sum(found[name][what] for name in names) for what in ("wants", "has"))
        verbs = ("wants", "has") if len(names) == 1 else ("want", "have")
        text = f"{verbs[0]} {wants:,}, {verbs[1]} {has:,}: {reason}"
        rows.append([names_of(names, WORKLOADS, "warn", _MOST_NAMES), text])
    page.columns(rows, indent=2)
    page.more(sum(len(names) for names, _ in same[_MOST_WAITING:]), "workload")


def _write_drains(page: Page, drains: list[dict[str, Any]]) -> None:
    if not drains:
        return
    page.title("Drains", counted(len(drains), "drain"))
    for drain in drains:
        gone = sum(pod["state"] == "gone" for pod in drain["pods"])
        message = drain["message"] or f"{counted(gone, 'pod')} gone"
        style = "" if drain["state"] == "drained" else "warn"
        page.paragraph(Cell(f"{drain['node']} {drain['state']}: {message}", style), indent=2, hanging=2)
        remaining = grouped_by_text(
            (pod["pod"], (pod["state"], pod["reason"] or "")) for pod in drain["pods"] if pod["state"] != "gone"
        )
        rows = [(names_of(pods, PODS, most=_MOST_NAMES), *state) for pods, state in remaining]
        page.columns(rows[:_MOST_WAITING], indent=4)
        page.more(sum(len(pods) for pods, _ in remaining[_MOST_WAITING:]), "pod", indent=4)


def summary_sections(summary: dict[str, Any]) -> list[Section]:
    """Return the waiting times of pods by priority, and the requested share of the nodes' resources."""
    waits = [
        (f"priority {each['priority']}", each["count"], *_durations(each, ("mean", "p50", "p95", "max")))
        for each in summary["waiting"]
    ]
    used = [(name, f"{use['average']:.1%}", f"{use['final']:.1%}") for name, use in summary["use"].items()]
    headings, right = ("", "pods", "mean", "median", "95%", "longest"), (1, 2, 3, 4, 5)
    return [
        Section("waits", "Waits", tuple(waits), headings, "for a node, of the pods that got one", right=right),
        Section(
            "use", "Requested", tuple(used), ("", "on average", "at the end"), "of what the nodes offer", right=(1, 2)
        ),
    ]


def _durations(seconds: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [format_duration(round(seconds[name] * 1000) * 10**6) if name in seconds else "" for name in names]


_MOST_PODS = 20


def comparison_section(comparison: RecordingComparison) -> Section:
    """Return the sums of the recording and of the simulation."""
    rows: list[tuple[Part, ...]] = [
        (name, sums.bindings, sums.preempted, sums.evicted, *_durations(sums.waiting or {}, ("mean", "p95", "max")))
        for name, sums in (("recorded", comparison.recorded), ("simulated", comparison.simulated))
    ]
    headings = ("", "bound", "preempted", "evicted", "mean wait", "95%", "longest")
    rest = f"{counted(comparison.same_node, 'pod')} on the same node"
    return Section("compared", "Recorded and simulated", tuple(rows), headings, rest, right=(4, 5, 6))


def write_comparison(page: Page, comparison: RecordingComparison) -> None:
    """Write both sums, and the pods that are on different nodes."""
    page.sections([comparison_section(comparison)])
    if not comparison.other_node:
        return
    kinds = Counter(each.difference for each in comparison.other_node).most_common()
    page.title("Elsewhere", f"{counted(len(comparison.other_node), 'pod')}, with the wait for a node")
    page.paragraph("; ".join(f"{number:,} {difference}" for difference, number in kinds), indent=2)
    # First those that fare worst.
    others = map(astuple, comparison.other_node)
    worst = sorted(others, key=lambda each: (each[3] is not None, (each[2] or 0) - (each[4] or 0)))

    def cells(node: str | None, wait: float | None) -> tuple[Part, Part]:
        if node is None:
            return "no node", ""
        return Name(node, NODES), f"after {_durations({'wait': wait or 0}, ('wait',))[0]}"

    rows = [(Name(pod, PODS), *cells(*places[:2]), "→", *cells(*places[2:])) for pod, *places, _ in worst]
    page.table(rows, most=_MOST_PODS, noun="pod")


_BAR = 10

# The upper ends of the groups into which many nodes are put, in percent.
_LEVELS = (0, 25, 50, 75, 99)


def write_placement(page: Page, nodes: Sequence[FilledNode]) -> None:
    """Write each node with a bar of its requested cpu, and its pods; of many nodes, how full they are.

    Unusual states of a node or a pod follow its name.
    """
    if len(nodes) <= MOST_NODES:
        page.title("At the end", counted(len(nodes), "node"))
        rows = [row for node in nodes for row in _rows(node)]
        page.table(rows, ("node", "cpu", "", "pod", "priority", "requests"), right=(2, 4))
        return
    page.title("At the end", f"{counted(len(nodes), 'node')}, by how much of their cpu is requested")
    levels = Counter(next((top for top in _LEVELS if node.cpu_percent <= top), 100) for node in nodes)
    rows, lowest = [], 0
    for top in (*_LEVELS, 100):
        label = "none" if top == 0 else "all" if top == 100 else f"{lowest}-{top}%"
        lowest = top + 1
        rows.append([label, f"{levels[top]:,}", bar(100 * levels[top] // len(nodes))])
    page.columns(rows, indent=2, right=(0, 1))


def bar(percent: int) -> str:
    """Return a bar that is full at 100 percent."""
    full = min(max(percent, 0), 100) * _BAR // 100
    return "█" * full + "░" * (_BAR - full)


def _rows(node: FilledNode) -> list[list[Part]]:
    percent, marks = node.cpu_percent, node.marks
    name = Name(node.name, NODES, "warn" if marks else "", after=f" ({', '.join(marks)})" if marks else "")
    head: list[Part] = [name, bar(percent), f"{percent}%"]
    pods: list[list[Part]] = []
    for pod in node.pods:
        amounts = (
            f"{format_quantity(amount, name)} {name} ({node.percent(name, amount)}%)"
            for name, amount in sorted(pod.requests.items())
            if amount
        )
        shown = Name(pod.key, PODS, after="" if pod.state == "ready" else f" ({pod.state})")
        pods.append([shown, str(pod.priority), ", ".join(amounts) or "nothing"])
    if node.further_pods:
        pods.append([Cell(f"and {node.further_pods:,} more", "dim")])
    blank: list[Part] = ["", "", ""]
    return [[*(blank if number else head), *cells] for number, cells in enumerate(pods or [[]])]


def folded(events: Iterable[SimEvent]) -> list[SimEvent]:
    """Return the events, with consecutive equal failures of a pod or workload merged into one."""
    lines: list[SimEvent] = []
    latest: dict[str, int] = {}
    for event in events:
        subject = event.subject
        place = latest.get(subject) if subject else None
        if place is not None and (both := lines[place].repeated(event)):
            lines[place] = both
            continue
        if subject:
            latest[subject] = len(lines)
        lines.append(event)
    return lines


def write_timeline(page: Page, events: list[SimEvent], *, every_event: bool = False) -> None:
    """Write a line for each event: time, reason, pod, node, and the actor or the reason.

    Consecutive equal failures of more than two pods at the same time share a line unless `every_event`.
    """
    if not events:
        page.title("Timeline", "nothing happens")
        return
    page.title("Timeline", "time from the start")
    groups = [[event] for event in events] if every_event else _alike(events)
    page.columns([_line(alike) for alike in groups], indent=2, right=(0,))


def _alike(events: Iterable[SimEvent]) -> Iterator[list[SimEvent]]:
    """Yield the events in their order, grouped by line."""
    for _, group in groupby(events, key=lambda each: (each.time, each.reason, each.node, each.by, _detail(each))):
        alike = list(group)
        if len(alike) >= _FEWEST_ALIKE and alike[0].is_failure:
            yield alike
        else:
            yield from ([event] for event in alike)


def _line(alike: Sequence[SimEvent]) -> list[Part]:
    event = alike[0]
    pods = [other.pod or "" for other in alike]
    return [
        Cell(since(event.time), "dim"),
        Cell(event.reason, _STYLES.get(event.reason, "")),
        Name(pods[0], PODS) if len(pods) == 1 else names_of(pods, PODS, most=1),
        Name(event.node or "", NODES),
        _detail(event),
    ]


def write_digest(page: Page, events: list[SimEvent]) -> None:
    """Write the number of events of each reason, and the preemptions."""
    page.title("Events", f"{sum(event.count for event in events):,}; --events lists them all")
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.reason] += event.count
    rows = [(f"{number:,}", Cell(reason, _STYLES.get(reason, ""))) for reason, number in counts.most_common()]
    page.columns(rows, indent=2, right=(0,))
    preemptions = [event for event in events if event.reason == "Preempted"]
    shown = preemptions[:20]
    if preemptions:
        page.title("Preemptions", f"the first {len(shown)}" if len(preemptions) > len(shown) else "")
    lines = []
    for event in shown:
        pod, node = Name(event.pod or "", PODS, "bad"), Name(event.node or "", NODES, before="on ")
        lines.append((Cell(since(event.time), "dim"), pod, node, Name(event.by or "", PODS, before="by ")))
    page.columns(lines, indent=2, right=(0,))


def since(time: float) -> str:
    """Return a time since the start, such as `+1m30s`."""
    return f"+{format_duration(round(time * 10**9))}"


def _reason(message: str) -> str:
    """Return why no node fits a pod; of preemption only ineligibility, since later events report the rest."""
    reasons, _, rest = whole_reason(message).partition(". ")
    rest = rest.removeprefix("preemption: ")
    return f"{reasons}, {rest}" if rest.startswith("not eligible") else reasons


def _detail(event: SimEvent) -> str:
    parts = [f"by {event.by}"] if event.by and event.by not in _USUAL else []
    if event.message and event.reason not in _REDUNDANT:
        parts.append(_reason(event.message) if event.reason == "FailedScheduling" else event.message)
    merged = f" ({event.count} times, last at {since(event.last_time)})" if event.count > 1 else ""
    return ": ".join(parts) + merged
