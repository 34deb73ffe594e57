"""So many pods placed one after another: what is told of `podium plan fit --replicas`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from podium.api.basis import Caveat
from podium.app.console import cells
from podium.app.console.cells import Name, Part
from podium.app.console.page import counted
from podium.app.planning.answer import Finding, PlanAnswer, Section, Table
from podium.app.planning.answering import pods
from podium.app.planning.chances.sections import told_outcomes
from podium.app.planning.deciding.causes import Blocked, blocked
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Settled
from podium.app.planning.deciding.retelling import settled_again
from podium.app.planning.questions.fit_scenario import Asked, FitWishes, fit_scenario
from podium.cluster.pods import PodRecord

_MOST_ROWS = 20


def so_many(
    decisions: Decisions,
    asked: Asked,
    pod: PodRecord,
    wishes: FitWishes,
    replicas: int,
    rests_on: tuple[Caveat, ...],
) -> PlanAnswer:
    """Whether so many fit, placed one after another as the scheduler would."""
    copies = tuple(decisions.copies(pod, replicas))
    outcomes = settled_again(decisions, copies, wishes.stories, preempts=wishes.preempts)
    settled = decisions.settle(copies, preempts=wishes.preempts)
    why = blocked(decisions, settled)
    placed = Counter(fate.node for fate in settled.fates)
    victims = Counter(decisions.workloads.of(victim) for fate in settled.fates for victim in fate.victims)
    data = {
        "pod": asked.label,
        "fits": len(settled.fates),
        "wanted": replicas,
        "preempting": sum(bool(fate.victims) for fate in settled.fates),
        "why": why[0].text if why else None,
    }
    sections = [
        Section("fit", "", (), data=data),
        _told_placed(placed),
        _told_victims(victims),
        _stopping(why),
        *told_outcomes(outcomes),
    ]
    return PlanAnswer(
        "fit",
        _told(asked, settled, replicas, victims.total(), why),
        findings=tuple(_findings(asked, settled, victims, why)),
        rests_on=rests_on,
        scenario=fit_scenario(decisions.loaded.read, asked, wishes, replicas),
        sections=tuple(sections),
        further=(_told_nodes(decisions, placed),),
        table=Table(("node", "pods"), tuple(sorted(placed.items())), frozenset(("pods",))),
    )


def _findings(asked: Asked, settled: Settled, victims: Mapping[str, int], why: Sequence[Blocked]) -> Iterator[Finding]:
    if victims:
        yield Finding("preempt", f"{pods(sum(victims.values()))} would be preempted", tuple(sorted(victims)))
    if settled.waiting:
        text = f"{pods(len(settled.waiting))} of {asked.label} get no node: {why[0].text}"
        yield Finding("unschedulable", text, (asked.label,))


def _told_placed(placed: Counter[str]) -> Section:
    """The nodes that get the most."""
    rows: tuple[tuple[Part, ...], ...] = tuple(
        (Name(node, cells.NODES), pods(number)) for node, number in tally(placed.elements())[:_MOST_ROWS]
    )
    left = len(placed) - _MOST_ROWS
    if left > 0:
        rows += ((f"and {in_nodes(left)} more", ""),)
    return Section("placed", "Where they go", rows, data=[{"node": n, "pods": k} for n, k in sorted(placed.items())])


def _told_victims(victims: Mapping[str, int]) -> Section:
    """The workloads that lose pods, by name."""
    lost = sorted(victims.items())
    rows = tuple((f"{number:,}", Name(workload, cells.WORKLOADS)) for workload, number in lost[:_MOST_ROWS])
    return Section("victims", "Preempted", rows, data=dict(lost))


def _told_nodes(decisions: Decisions, placed: Mapping[str, int]) -> Section:
    """Every node, those that get the most first."""
    nodes = sorted(decisions.cluster.nodes.row_of, key=lambda node: (-placed.get(node, 0), node))
    rows = tuple((Name(node, cells.NODES), f"{placed.get(node, 0):,}") for node in nodes)
    return Section("nodes", "All nodes", rows, ("node", "pods"))


def _told(asked: Asked, settled: Settled, replicas: int, victims: int, why: Sequence[Blocked]) -> str:
    preempting = sum(bool(fate.victims) for fate in settled.fates)
    by = f", {preempting:,} of them by preempting {pods(victims)}" if victims else ""
    if not settled.waiting:
        which = f"all {replicas:,} of {asked.label} get a node" if replicas > 1 else f"one of {asked.label} gets a node"
        return which + by
    verb = "gets" if len(settled.fates) == 1 else "get"
    said = f"{len(settled.fates):,} of {replicas:,} of {asked.label} {verb} a node{by}"
    return f"{said}; what ends it: {why[0].text}"


def _stopping(why: Sequence[Blocked]) -> Section:
    rows = tuple((f"{len(each.pods):,} wait", each.text) for each in why)
    data = [{"pods": len(each.pods), "why": each.text} for each in why]
    return Section("ends", "What ends it", rows, data=data)


def tally(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Each text with its number, those of the highest first."""
    return sorted(Counter(texts).items(), key=lambda item: (-item[1], item[0]))


def in_nodes(number: int) -> str:
    """So many nodes."""
    return counted(number, "node")
