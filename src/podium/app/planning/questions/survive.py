"""`podium plan survive`: which pods could preempt a pod or workload now, and the smallest changes that protect it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api.errors import PodiumError, likely
from podium.api.times import format_duration
from podium.app.answers import Frame, kinds
from podium.app.cluster import Cluster
from podium.app.console import cells
from podium.app.console.cells import Name, Part, agreeing, counted, listed
from podium.app.console.page import Section
from podium.app.explaining.attempts import PotentialPreemptor, potential_preemptors
from podium.app.explaining.gang import gang_plugin
from podium.app.explaining.workload import POD, find_workload, pods_of, read_target
from podium.app.planning.answer import PlanAnswer
from podium.app.planning.deciding import attempts, capacity, protection
from podium.app.planning.deciding.decisions import (
    Decisions,
    PlacedPod,
    QueueResult,
    decided_answer,
    sampled_decisions,
)
from podium.app.planning.deciding.search import VerifiedChange, remedy_of
from podium.app.planning.impact import PlanFinding
from podium.cluster.pods import PodRecord

_MAX_ROWS = 12
_MAX_NAMES = 2
_EFFECTS = {
    "preempts": "preempts it",
    "may-preempt": "preempts another",
    "preempts-others": "preempts others",
    "fits": "fits",
}


def survive_answer(loaded: Cluster, text: str, namespace: str = "default", *, samples: int = 0) -> PlanAnswer:
    """Return the answer about a pod that has a node, or a workload such as `deploy/web`.

    With `samples` all pending pods are decided about so often, with different tie-breaks. Raises PodiumError for an
    unknown target or one without a pod that has a node, and InputError as all decisions do.
    """
    decisions = Decisions(loaded)
    targets, label = _targets(loaded, decisions, text, namespace)
    pending_pods = (pod for pod in decisions.pending if not pod.terminating)
    preemptors, not_asked = potential_preemptors(targets, pending_pods, decisions.runners, attempts.kind_of)
    threats = protection.priority_class_threats(decisions, targets)
    pending = protection.pods_before(decisions, targets)
    outcomes = sampled_decisions(decisions, pending, samples, replaces=True)
    with decisions.what_if():
        result = decisions.schedule(pending, preempts=True, replaces=True)
    by_victim = result.preemptors
    preempted = [(pod, by_victim[pod.uid]) for pod in targets if pod.uid in by_victim]
    gangs = _incomplete_gangs(decisions, targets, result)
    changes: list[VerifiedChange] = []
    findings: list[PlanFinding] = []
    if preempted:
        shapes = capacity.shapes_of(decisions.cluster, decisions.pending)
        changes = protection.ProtectionSearch(decisions, tuple(targets), label, result).changes(shapes)
        message = f"{counted(len(preempted), 'pod')} of {label} would be preempted"
        findings.append(PlanFinding("preempt", message, tuple(pod.key for pod, _ in preempted)))
    for gang in gangs:
        if gang.release_after_ns is not None:
            survivors = tuple(pod.key for pod in gang.survivors)
            message = f"{counted(len(survivors), 'pod')} of the gang {gang.key} would survive, and be evicted with it"
            findings.append(PlanFinding("evict", message, survivors))
    pods, table = _each_pod(targets, preempted)
    return decided_answer(
        decisions,
        "survive",
        _headline(decisions, label, targets, preempted, preemptors, changes) + _gang_headline(gangs),
        (
            Section("survives", "", (), data=not preempted),
            _preempted_section(decisions, preempted),
            *((_gangs_section(gangs),) if gangs else ()),
            _preemptors_section(decisions, preemptors, not_asked),
            _changes_section(decisions, changes, result, is_preempted=bool(preempted)),
            _classes_section(threats),
        ),
        outcomes,
        findings=tuple(findings),
        caveats=(*loaded.caveats, *result.caveats),
        remedy=remedy_of(decisions, changes[0].change, decisions.pending) if changes else None,
        further=(pods,),
        table=table,
    )


def _targets(loaded: Cluster, decisions: Decisions, text: str, namespace: str) -> tuple[list[PodRecord], str]:
    """Return the pods with a node that are meant, by key, and their common label."""
    placed = {record.key: record for record in decisions.cluster.placed.values()}
    kind, key = read_target(text, namespace, loaded.explainer.is_pod)
    label = f"{kind} {key}"
    if kind == POD:
        if key in placed:
            return [placed[key]], label
        if any(pod.key == key for pod in decisions.pending):
            raise PodiumError(f"pod {key} is pending, and cannot be preempted; see podium explain")
        near = likely(key, sorted(placed))
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise loaded.explainer.unknown_pod(key, hint)
    workload = find_workload(loaded.read, kind, key)[1]
    records = [placed[pod.key] for pod in pods_of(decisions.objects, workload) if pod.key in placed]
    if not records:
        raise PodiumError(f"{label} has no pod with a node, and so none that could be preempted")
    return records, label


def _headline(
    decisions: Decisions,
    label: str,
    targets: Sequence[PodRecord],
    preempted: Sequence[tuple[PodRecord, PlacedPod]],
    preemptors: Sequence[PotentialPreemptor],
    changes: Sequence[VerifiedChange],
) -> str:
    several = len(targets) > 1
    if preempted:
        some = f"{len(preempted):,} of {counted(len(targets), 'pod')} of {label}" if several else label
        by = listed(list(dict.fromkeys(decisions.workloads.of(each.pod) for _, each in preempted)), _MAX_NAMES)
        does = agreeing(len(preempted), "does")
        text = f"{some} {does} not survive: {by} preempts {'them' if len(preempted) > 1 else 'it'}"
        return f"{text}; {changes[0].change.text} would protect {'them' if several else 'it'}" if changes else text
    text = f"all {counted(len(targets), 'pod')} of {label} survive" if several else f"{label} survives"
    if not decisions.pending:
        return f"{text}: no pod is pending"
    if preemptors:
        number = sum(len(each.pods) for each in preemptors)
        could = f"could preempt {'some of them' if several else 'it'}, and {agreeing(number, 'preempts')} others"
        return f"{text}: {counted(number, 'pending pod')} {could}"
    return f"{text}: none of {counted(len(decisions.pending), 'pending pod')} preempts {'any' if several else 'it'}"


def _preempted_section(decisions: Decisions, preempted: Sequence[tuple[PodRecord, PlacedPod]]) -> Section:
    rows, data = [], []
    for pod, by in preempted:
        preemptor, node = Name(by.pod.key, cells.PODS, before="for "), Name(by.node, cells.NODES, before="on ")
        priorities = f"priority {pod.priority}", f"priority {by.pod.priority}"
        rows.append((Name(pod.key, cells.PODS), priorities[0], preemptor, priorities[1], node))
        workload = decisions.workloads.of(by.pod)
        data.append(
            {
                **{"pod": pod.key, "priority": pod.priority, "node": by.node, "preemptor": by.pod.key},
                **{"preemptorWorkload": workload, "preemptorPriority": by.pod.priority},
            }
        )
    rest = "if all pending pods are decided about, in queue order"
    return Section("preempted", "Preempted", tuple(rows), rest=rest, data=data, most=_MAX_ROWS)


def _each_pod(targets: Sequence[PodRecord], preempted: Sequence[tuple[PodRecord, PlacedPod]]) -> tuple[Section, Frame]:
    """Return whether each pod survives, as a section and as a table."""
    rows: list[tuple[Part, ...]] = []
    table: list[dict[str, Any]] = []
    by = {pod.uid: each.pod.key for pod, each in preempted}
    for pod in targets:
        preemptor = by.get(pod.uid)
        outcome = f"preempted for {preemptor}" if preemptor else "stays"
        rows.append((Name(pod.key, cells.PODS), f"{pod.priority}", Name(pod.node_name, cells.NODES), outcome))
        survives = {"survives": "no" if preemptor else "yes", "preemptor": preemptor}
        table.append({"pod": pod.key, "node": pod.node_name, "priority": pod.priority, **survives})
    section = Section("pods", "Pods", tuple(rows), ("pod", "priority", "node", ""), counted(len(rows), "pod"))
    return section, Frame.of_rows("table", table, {**kinds("pod node", "priority"), **kinds("survives preemptor")})


def _preemptors_section(decisions: Decisions, preemptors: Sequence[PotentialPreemptor], not_asked: int) -> Section:
    rows = []
    for each in preemptors[:_MAX_ROWS]:
        text = "would, on the node that is best for it"
        if each.effect != "preempts":
            others = Counter(map(decisions.workloads.of, each.victims))
            victims = ", ".join(f"{others[name]:,} of {name}" for name in sorted(others))
            text = f"could, and preempts {victims}" if others else "could, on its node"
        workload = decisions.workloads.of_kind(each.pods)
        rows.append((f"{len(each.pods):,}", workload, f"priority {each.pods[0].priority}", text))
    left = sum(len(each.pods) for each in preemptors[_MAX_ROWS:])
    if left:
        rows.append((f"{left:,}", "more", "", ""))
    if not_asked:
        rows.append((f"{not_asked:,}", "not tried", "", ""))
    data = [
        {
            "pods": [pod.key for pod in each.pods],
            "workload": decisions.workloads.of(each.pods[0]),
            "priority": each.pods[0].priority,
            "effect": each.effect,
            "victims": [victim.key for victim in each.victims],
        }
        for each in preemptors
    ]
    return Section("preemptors", "Possible preemptors", tuple(rows), rest="pending pods, each by itself", data=data)


def _changes_section(
    decisions: Decisions, changes: Sequence[VerifiedChange], result: QueueResult, *, is_preempted: bool
) -> Section:
    rows: list[tuple[str, ...]] = [("nothing", "that was tried")] if is_preempted and not changes else []
    # The pods that get a node without a change.
    placed = {pod.uid for pod in decisions.pending} - {pod.uid for pod in result.waiting}
    for each in changes:
        victims = each.result.victims_by(decisions.workloads)
        waiting = Counter(decisions.workloads.of(pod) for pod in each.result.waiting if pod.uid in placed)
        parts = [f"{victims[name]:,} of {name} {agreeing(victims[name], 'is')} preempted" for name in sorted(victims)]
        parts += [f"{waiting[name]:,} of {name} {agreeing(waiting[name], 'waits')}" for name in sorted(waiting)]
        consequence = listed(parts, _MAX_NAMES) if parts else "no other pod is preempted or waits"
        rows += [(each.change.type, each.change.text), ("", f"-> {consequence}")]
    data = [each.to_dict() | {"waiting": len(each.result.waiting)} for each in changes]
    rest = "the smallest change of each type, decided again"
    return Section("changes", "Changes that would protect it", tuple(rows), rest=rest, data=data)


def _classes_section(threats: Sequence[protection.PriorityClassThreat]) -> Section:
    def row(threat: dict[str, Any]) -> tuple[Part, ...]:
        like: Part = "finds no node"
        if threat["like"] != "unschedulable":
            like = Name(threat["node"], cells.NODES, before=f"{_EFFECTS[threat['like']]}, on ")
        any_pod = "can, if it is large enough" if threat["canPreempt"] else "cannot"
        return threat["priorityClass"], f"{threat['value']}", like, any_pod

    headings = ("class", "value", "a pod like it", "any pod of it")
    rest = "the effect of a new pod of each priority class"
    return Section.of("classes", "Priority classes", msgspec.to_builtins(threats), row, headings, rest, most=_MAX_ROWS)


@dataclass(frozen=True, slots=True)
class IncompleteGang:
    """A gang of which ``left`` pods have nodes in the end, fewer than the ``least`` that it needs.

    It releases those nodes after ``release_after_ns``; None: it keeps them, as the configuration says or since no pod
    waits that would complete it. ``survivors`` are the targets among them.
    """

    key: str
    left: int
    least: int
    release_after_ns: int | None
    survivors: tuple[PodRecord, ...]

    @property
    def outcome(self) -> str:
        """The outcome for the remaining pods."""
        if self.release_after_ns is None:
            return "they keep their nodes"
        return f"they release their nodes after {format_duration(self.release_after_ns)}"


def _incomplete_gangs(decisions: Decisions, targets: Sequence[PodRecord], result: QueueResult) -> list[IncompleteGang]:
    """Return the targets' gangs that were complete and are not in the end, with surviving targets; by key."""
    placed, victims = decisions.cluster.placed, result.preemptors
    placed_members = Counter(each.pod.pod_class.pod_group for each in result.placed)
    waiting = {pod.pod_class.pod_group for pod in (*result.waiting, *decisions.pending)}
    found = []
    for key in sorted({pod.pod_class.pod_group for pod in targets if decisions.is_of_gang(pod)}):
        members = [uid for uid, pod in decisions.cluster.pod_groups.members(key).items() if uid in placed]
        survivors = tuple(pod for pod in targets if pod.pod_class.pod_group == key and pod.uid not in victims)
        left = sum(uid not in victims for uid in members) + placed_members[key]
        group = decisions.cluster.pod_groups.of(placed[members[0]])
        least = 0 if group is None else group.min_count
        if survivors and left < least <= len(members):
            plugin = gang_plugin(decisions.runners[survivors[0].scheduler_name])
            after_ns = plugin.release_after_ns if plugin is not None and key in waiting else None
            found.append(IncompleteGang(key, left, least, after_ns, survivors))
    return found


def _gang_headline(gangs: Sequence[IncompleteGang]) -> str:
    if not gangs:
        return ""
    first, more = gangs[0], f", and {len(gangs) - 1:,} more likewise" if len(gangs) > 1 else ""
    return f"; of the gang {first.key} {first.left:,} of {first.least:,} are left: {first.outcome}{more}"


def _gangs_section(gangs: Sequence[IncompleteGang]) -> Section:
    rows = [(gang.key, f"{gang.left:,} of the {gang.least:,} that it needs are left: {gang.outcome}") for gang in gangs]
    rest = "incomplete once others of them are preempted"
    data = [
        {
            **{"group": gang.key, "left": gang.left, "minCount": gang.least},
            "releasedAfterSeconds": None if gang.release_after_ns is None else gang.release_after_ns / 10**9,
            "survivors": [pod.key for pod in gang.survivors],
        }
        for gang in gangs
    ]
    return Section("gangs", "Gangs", tuple(rows), rest=rest, data=data)
