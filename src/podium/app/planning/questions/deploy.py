"""`podium plan deploy`: where each pod goes, which pods it preempts, where those go, and which they preempt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec

from podium.api.basis import kinds_passed_over
from podium.api.errors import InputError
from podium.api.input.codec import Document, refuse_empty_pods
from podium.api.workloads import WORKLOADS
from podium.app.console import cells
from podium.app.console.cells import Name, Names, Part, agreeing, by_key, counted
from podium.app.console.page import Section
from podium.app.planning import answer, impact, scenarios
from podium.app.planning.question import PlanQuestion, PlanRun, PlayedPlan
from podium.sim.results.result import Result

_MAX_ROWS = 20
_MAX_NODES = 2


def deploy(run: PlanRun, objects: Sequence[Document]) -> answer.PlanAnswer:
    """Answer what happens when the objects are created, or updated to what the files say.

    Objects of kinds that Podium does not read are passed over. Raises InputError if no object makes a pod, and for pods
    without containers.
    """
    refuse_empty_pods(objects)
    read = [(document, document.object) for document in objects if document.object is not None]
    labels = [f"{item.kind} {item.key}" for _, item in read if scenarios.makes_pods(item)]
    if not labels:
        raise InputError(f"nothing in the files makes a pod; one of Pod, {', '.join(WORKLOADS)} is needed")
    try:
        played = run.play(PlanQuestion("deploy", (scenarios.step("apply", [document.raw for document, _ in read]),)))
    except InputError as error:
        raise _in_files(error, run, [document for document, _ in read]) from None
    # The preemptions less those without the plan: as many of each workload as the impact counts. Each of the latter
    # cancels the one that is most like it.
    preemptions, anyway = _preemptions(played.result), _preemptions(played.baseline)
    for likeness in _LIKENESSES:
        preemptions, anyway = impact.beyond(preemptions, anyway, likeness), impact.beyond(anyway, preemptions, likeness)
    created = [_created_pods(played, label) for label in labels]
    rows: list[tuple[Part, ...]] = []
    for each in created[:_MAX_ROWS]:
        numbers = {node: f" ({number:,})" if number > 1 else "" for node, number in each.nodes.items()}
        nodes = Names(tuple(Name(node, cells.NODES, after=text) for node, text in numbers.items()), most=_MAX_NODES)
        waiting = f"{each.waiting:,} wait" if each.waiting else ""
        rows.append((Name(each.workload, cells.WORKLOADS), counted(each.total, "pod"), waiting, nodes))
    sections = [Section("placed", "Where they go", tuple(rows), data=msgspec.to_builtins(created))]
    sections += [_cascade_section(preemptions)] if preemptions else []
    caveats = [caveat for caveat in kinds_passed_over(objects) if caveat.count]
    return played.answer(_headline(played, labels, created, preemptions), sections=sections, caveats=caveats)


def _in_files(error: InputError, run: PlanRun, documents: Sequence[Document]) -> InputError:
    """Return an error about one of the plan's objects with its place in the files; others as they are."""
    own = len(scenarios.scenario_of_spec(run.read, "deploy", {})["spec"].get("steps", []))
    found = re.match(rf"\.spec\.steps\[{own}\]\.apply\[(\d+)\](.*)", error.path)
    if found is None:
        return error
    document = documents[int(found[1])]
    return InputError(error.problem, source=document.source, document=document.index, path=found[2])


class _CreatedPods(msgspec.Struct, frozen=True):
    """The pods of one workload that the plan creates: how many on which nodes, and how many wait."""

    workload: str
    nodes: dict[str, int]
    waiting: int

    @property
    def total(self) -> int:
        return sum(self.nodes.values()) + self.waiting


def _created_pods(played: PlayedPlan, label: str) -> _CreatedPods:
    new, anyway = _new_pods(played.result, played.baseline, label), _new_pods(played.baseline, played.result, label)
    left = new - anyway
    # Pods that the workload creates anyway are not the plan's, even if they come to other nodes with it.
    for node in sorted(left, key=str):
        left[node] -= min(left[node], max(left.total() - max(new.total() - anyway.total(), 0), 0))
    waiting = left.pop(None, 0)
    return _CreatedPods(label, {node: left[node] for node in sorted(filter(None, left)) if left[node]}, waiting)


def _new_pods(result: Result, other: Result, label: str) -> Counter[str | None]:
    """Return by node, None for those that wait, how many pods of a workload are in one run and not in the other.

    Both runs draw uids from one sequence, so that a uid alone may stand for different pods: name and uid identify one.
    """
    new, known = ({(pod["pod"], pod["uid"]): pod for pod in _created(run)} for run in (result, other))
    return Counter(
        pod["node"]
        for name, pod in new.items()
        if pod["workload"] == label and pod["state"] != "terminated" and name not in known
    )


def _created(result: Result) -> list[dict[str, Any]]:
    """Return the pods that a run has created, in this order."""
    pods = {(pod["pod"], pod["createdAt"]): pod for pod in result.pods}
    places = ((event.pod, event.time) for event in result.events if event.reason == "Created")
    return [pods[place] for place in places if place in pods]


def _headline(
    played: PlayedPlan, labels: Sequence[str], created: Sequence[_CreatedPods], preemptions: Sequence[PlannedPreemption]
) -> str:
    what = labels[0] if len(labels) == 1 else f"{len(labels):,} workloads"
    total, waiting = sum(each.total for each in created), sum(each.waiting for each in created)
    refused = impact.refused_workloads(played.result, played.baseline)
    if not total:
        return f"deploying {what}: no pod is made" + (f": {refused[0]['reason']}" if refused else "")
    fits = f"all {total:,} pods find a node" if total > 1 else "its one pod finds a node"
    if waiting:
        fits = f"{waiting:,} of {counted(total, 'pod')} {agreeing(waiting, 'waits')} for a node"
    parts = [f"deploying {what}: {fits}"]
    without = [each.workload for each in created if not each.total]
    tops = played.result.measures.top_of
    short = [each for each in refused if tops.get(each["workload"], each["workload"]) in without]
    if short:
        parts.append(f"{without[0]} gets no pods: {short[0]['reason']}")
    if not preemptions:
        return "; ".join([*parts, "no pod is preempted"])
    last = max(preemption.round for preemption in preemptions)
    rounds = f" in {last:,} rounds" if last > 1 else ""
    parts.append(f"{counted(len(preemptions), 'pod', 'is')} preempted{rounds}")
    lost = sum(not preemption.went_to for preemption in preemptions)
    if lost:
        parts.append(f"{lost:,} of these {agreeing(lost, 'finds')} no other node")
    return "; ".join(parts)


def _cascade_section(preemptions: Sequence[PlannedPreemption]) -> Section:
    """Return the preemptions counted by round, preempting workload and preempted workload."""
    alike = by_key(((each.round, each.preemptor_workload, each.workload), each) for each in preemptions)
    rows: list[tuple[Part, ...]] = []
    for (number, preemptor, victim), some in sorted(alike.items(), key=lambda it: (it[0][0], -len(it[1]), it[0])):
        moved = sum(each.went_to is not None for each in some)
        outcome = [f"{moved:,} move"] if moved else []
        outcome += [f"{len(some) - moved:,} find no node"] if moved < len(some) else []
        victims = Name(victim, cells.WORKLOADS, before=f"{len(some):,} of ")
        rows.append((f"{number}", Name(preemptor, cells.WORKLOADS), victims, ", ".join(outcome)))
    data = msgspec.to_builtins(preemptions)
    headings = ("round", "preemptor", "victims", "outcome")
    return Section("cascade", "Preemptions", tuple(rows), headings, "round by round, to the end", data, most=_MAX_ROWS)


class PlannedPreemption(msgspec.Struct, frozen=True, rename="camel"):
    """One victim, its preemptor, the node, and the node of the victim's replacement, None for no node.

    `round` is 1 if the preemptor replaces no victim itself, 2 if it replaces a victim of round 1, and so on.
    """

    time: float
    pod: str
    workload: str
    node: str
    preemptor: str
    preemptor_workload: str
    round: int
    replacement: str | None
    went_to: str | None


_LIKENESSES: tuple[Callable[[PlannedPreemption], Hashable], ...] = (
    lambda each: (each.preemptor, each.pod),
    lambda each: each.pod,
    lambda each: (each.preemptor_workload, each.workload, each.went_to is None),
    lambda each: (each.preemptor_workload, each.workload),
    lambda each: each.workload,
)


def _preemptions(result: Result) -> list[PlannedPreemption]:
    """Return all preemptions of a run. The next pod that the victim's workload creates is the victim's replacement.

    The pod of a StatefulSet comes back under its own name, that of a Deployment under another.
    """
    pods_named = by_key((pod["pod"], pod) for pod in result.pods)

    def pod_at(name: str | None, time: float) -> dict[str, Any] | None:
        """Return the last pod of a name that was created by this time."""
        pods = reversed(pods_named.get(name or "", []))
        return next((pod for pod in pods if pod["createdAt"] <= time), None)

    alike = by_key((new["workload"], new) for new in _created(result))
    created = {workload: iter(pods) for workload, pods in alike.items()}
    found: list[PlannedPreemption] = []
    # The round of the victim that a pod replaces, by the replacement's uid.
    rounds: dict[str | None, int] = {}
    for event in result.events:
        victim = pod_at(event.pod, event.time) if event.reason == "Preempted" else None
        if victim is None or event.pod is None:
            continue
        preemptor = pod_at(event.by, event.time) or {"uid": None, "workload": event.by or ""}
        number = 1 + rounds.get(preemptor["uid"], 0)
        # The first pod created at this time or later; it replaces no other victim.
        later = (pod for pod in created.get(victim["workload"], ()) if pod["createdAt"] >= event.time)
        replacement = next(later, {"uid": "", "pod": None, "node": None})
        rounds[replacement["uid"]] = number
        found.append(
            PlannedPreemption(
                event.time,
                event.pod,
                victim["workload"],
                event.node or "",
                event.by or "",
                preemptor["workload"],
                number,
                replacement["pod"],
                replacement["node"],
            )
        )
    return found
