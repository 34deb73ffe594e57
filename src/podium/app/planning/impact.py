"""What a plan does to each workload and node, less what would have happened anyway; and what is to be found in that."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from podium.app.planning.answer import Finding, Held, NodeImpact, WorkloadImpact
from podium.app.planning.finding_codes import FINDING_CODES
from podium.app.simulating.timeline import whole_reason
from podium.decide.gangs.group_placement import UNSCHEDULABLE
from podium.machines.grounds import GANG_RELEASE
from podium.sim.results.final_nodes import FinalNode
from podium.sim.results.readiness import WorkloadReadiness
from podium.sim.results.result import Result
from podium.sim.sim_event import seconds

PREEMPTION = "preemption"
_MOST_SUBJECTS = 20
_CAUSES = {
    "PreemptionByScheduler": PREEMPTION,
    "TerminationByKubelet": "pressure",
    "DeletionByTaintManager": "taint",
    "DeletionByPodGC": "node gone",
}
_EVICTORS = {"scenario": "eviction", GANG_RELEASE: "gang release"}
_DELETION = "deletion"


def impact_of(result: Result, baseline: Result) -> tuple[WorkloadImpact, ...]:
    """The workloads to which the plan does something: the hardest hit first, then by name."""
    anyway = {workload.workload: workload for workload in baseline.measures.workloads}
    disrupted, disrupted_anyway = _disruptions(result), _disruptions(baseline)
    held, reasons = _held(result), _Reasons(result)
    found = []
    for workload in result.measures.workloads:
        label = workload.workload
        before = anyway.get(label)
        causes = disrupted[label] - disrupted_anyway[label]
        if causes or label in held or _is_other(workload, before):
            found.append(_impact(workload, before, causes, tuple(held.get(label, ())), reasons))
    return tuple(sorted(found, key=_by_weight))


def nodes_of(result: Result, baseline: Result) -> tuple[NodeImpact, ...]:
    """The nodes to which the plan does something, by name: whatever it does not only take pods from or add pods to."""
    anyway = {node.name: _change(node) for node in baseline.nodes}
    changes = ((node, _change(node)) for node in result.nodes)
    return tuple(
        NodeImpact(node.name, change, node.pods_before, node.pods)
        for node, change in changes
        if change and change != anyway.get(node.name)
    )


def findings_of(result: Result, impact: Sequence[WorkloadImpact], baseline: Result) -> list[Finding]:
    """What is found in the impact, in the order of the codes."""
    found = [
        *_disrupted(impact),
        *_of_workloads(impact),
        *_budgets(result, baseline),
        *_drains(result),
        *_refusals(result, baseline),
    ]
    order = list(FINDING_CODES)
    return sorted(found, key=lambda finding: order.index(finding.code))


def counts_of(impact: Sequence[WorkloadImpact]) -> Counter[str]:
    """How many pods are disrupted for which cause, over all workloads."""
    found: Counter[str] = Counter()
    for workload in impact:
        found.update(workload.disruptions)
    return found


def _is_other(workload: WorkloadReadiness, before: WorkloadReadiness | None) -> bool:
    return before is None or _state(workload) != _state(before)


def _state(workload: WorkloadReadiness) -> tuple[int, ...]:
    return (
        workload.lowest,
        workload.ready,
        workload.wanted,
        workload.pending,
        workload.short_ns,
        workload.pending_ns,
    )


def _impact(
    workload: WorkloadReadiness,
    before: WorkloadReadiness | None,
    causes: Counter[str],
    held: tuple[Held, ...],
    reasons: _Reasons,
) -> WorkloadImpact:
    short, pending = workload.short_ns, workload.pending_ns
    missing = max(_missing(workload) - (0 if before is None else _missing(before)), 0)
    waiting = max(workload.pending - (0 if before is None else before.pending), 0)
    return WorkloadImpact(
        workload.workload,
        ready_before=workload.before,
        lowest=workload.lowest,
        ready_after=workload.ready,
        ready_anyway=before.ready if before is not None else 0,
        wanted=workload.wanted,
        missing=missing,
        pending=workload.pending,
        short_seconds=seconds(short - (before.short_ns if before is not None else 0)),
        pending_seconds=seconds(pending - (before.pending_ns if before is not None else 0)),
        disruptions=dict(sorted(causes.items())),
        held=held,
        is_new=before is None,
        why=reasons.of(workload.workload) if workload.ready < workload.wanted or workload.pending else "",
        stuck=0 if _missing(workload) else waiting,
    )


def _missing(workload: WorkloadReadiness) -> int:
    return max(workload.wanted - workload.ready, 0)


def _by_weight(impact: WorkloadImpact) -> tuple[int, bool, int, float, str]:
    disrupted = sum(impact.disruptions.values())
    return (-impact.missing, not impact.is_new, -disrupted, -impact.short_seconds, impact.workload)


def _disruptions(result: Result) -> defaultdict[str, Counter[str]]:
    """By workload, how many pods were disrupted for which cause in the run."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in result.pods:
        cause = cause_of(pod)
        if cause:
            found[pod["workload"]][cause] += 1
    return found


def cause_of(pod: dict[str, Any]) -> str:
    """Why a pod of a result was disrupted, in a word or two; "" for one that was not."""
    if pod["evictedBy"]:
        return _EVICTORS.get(pod["evictedBy"], str(pod["evictedBy"]))
    if pod["disruption"]:
        return _CAUSES.get(pod["disruption"], str(pod["disruption"]))
    was_running = pod["startedAt"] is not None
    return _DELETION if was_running and pod["state"] in ("terminated", "terminating") else ""


def _held(result: Result) -> dict[str, list[Held]]:
    """By workload, which budgets held its pods."""
    measures = result.measures
    found: dict[str, dict[str, list[tuple[float, bool]]]] = {}
    for hold in measures.holds:
        workload = measures.workload_of[hold.uid]
        until = measures.end_ns if hold.until_ns is None else hold.until_ns
        entry = (seconds(until - hold.from_ns), hold.until_ns is not None)
        for budget in hold.budgets:
            found.setdefault(workload, {}).setdefault(budget, []).append(entry)
    return {
        workload: [
            Held(budget, max(lasted for lasted, _ in times), len(times), all(ended for _, ended in times))
            for budget, times in sorted(by_budget.items())
        ]
        for workload, by_budget in found.items()
    }


class _Reasons:
    """Why workloads have too few ready pods at the end of a run."""

    def __init__(self, result: Result) -> None:
        self._pods: dict[str, list[dict[str, Any]]] = {}
        for pod in result.pods:
            self._pods.setdefault(pod["workload"], []).append(pod)
        self._failed = {event.pod: event.message for event in result.events if event.reason == "FailedScheduling"}
        self._held = result.held
        self._refused: dict[str, str] = {}
        for short in result.summary["short"]:
            workload = result.measures.top_of.get(short["workload"], short["workload"])
            self._refused[workload] = short["reason"]

        self._down = {node.name for node in result.nodes if {"down", "not ready", "gone"} & set(node.marks)}

    def of(self, workload: str) -> str:
        """The reason, of the most pods that are not ready.

        Pods that wait for others of their gang count where none says why these do not fit; pods that end where none
        else is on its way.
        """
        if workload in self._refused:
            return self._refused[workload]
        pods = self._pods.get(workload, [])
        for ends in (False, True):
            alike = Counter(filter(None, (self._why(pod) for pod in pods if (pod["state"] == "terminating") is ends)))
            telling = [why for why in alike if not why.startswith(UNSCHEDULABLE)]
            if alike:
                return min(telling or alike, key=lambda why: (-alike[why], why))
        return "nobody makes its pods again" if pods else "it has no pods"

    def _why(self, pod: dict[str, Any]) -> str:
        match pod["state"]:
            case "pending":
                if pod["pod"] in self._held:
                    return self._held[pod["pod"]]
                message = self._failed.get(pod["pod"])
                return whole_reason(message) if message else "no scheduler has tried its pods"
            case "lost":
                return "their nodes are down"
            case "starting" | "running":
                return "its pods are not ready yet"
            case "terminating" if pod["node"] in self._down:
                return "its old pods cannot end while their nodes are down, and new ones wait for that"
            case "failed":
                return "its pods have failed"
        return ""


def _change(node: FinalNode) -> str:
    if node.gone_seconds is not None:
        return "gone"
    if node.added_seconds is not None:
        return "added"
    for mark in ("down", "not ready"):
        if mark in node.marks:
            return mark
    if node.was_emptied:
        return "emptied"
    return "cordoned" if "cordoned" in node.marks else ""


def _pods(number: int) -> str:
    return f"{number:,} pod{'' if number == 1 else 's'}"


def _named(workloads: Sequence[str], most: int = 3) -> str:
    if len(workloads) <= most + 1:
        return ", ".join(workloads)
    return f"{', '.join(workloads[:most])} and {len(workloads) - most:,} more"


def _disrupted(impact: Sequence[WorkloadImpact]) -> Iterator[Finding]:
    counts = counts_of(impact)
    evicted = sum(number for cause, number in counts.items() if cause not in (PREEMPTION, _DELETION))
    preempted = counts[PREEMPTION]
    for code, number, done in (("preempt", preempted, "preempted"), ("evict", evicted, "evicted")):
        if number:
            whose = [
                workload.workload
                for workload in impact
                if any(
                    (cause == PREEMPTION) is (code == "preempt") for cause in workload.disruptions if cause != _DELETION
                )
            ]
            verb = "is" if number == 1 else "are"
            message = f"{_pods(number)} {verb} {done}: {_named(whose)}"
            yield Finding(code, message, tuple(whose[:_MOST_SUBJECTS]))


def _of_workloads(impact: Sequence[WorkloadImpact]) -> Iterator[Finding]:
    waiting = [workload for workload in impact if workload.pending and (workload.missing or workload.stuck)]
    for workload in waiting[:_MOST_SUBJECTS]:
        message = f"{_pods(workload.pending)} of {workload.workload} wait: {workload.why}"
        yield Finding("unschedulable", message, (workload.workload,))
    for workload in impact:
        if workload.short_seconds > 0 and not workload.is_new:
            message = (
                f"{workload.workload} has fewer ready pods than it wants ({workload.wanted:,}), "
                f"{workload.lowest:,} at the least"
            )
            yield Finding("short", message, (workload.workload,))
        if workload.missing:
            message = f"{workload.workload} ends with {workload.ready_after:,} of {workload.wanted:,} ready"
            yield Finding("not-ready", f"{message}: {workload.why}", (workload.workload,))


def _budgets(result: Result, baseline: Result) -> Iterator[Finding]:
    held: dict[str, set[str]] = {}
    for hold in result.measures.holds:
        for budget in hold.budgets:
            held.setdefault(budget, set()).add(hold.pod)
    for budget, pods in sorted(held.items()):
        names = sorted(pods)
        yield Finding("budget", f"budget {budget} holds {_named(names)}", (budget, *names[:_MOST_SUBJECTS]))
    anyway = {budget.budget: budget.below_ns for budget in baseline.measures.budgets}
    for health in result.measures.budgets:
        below_ns = health.below_ns - anyway.get(health.budget, 0)
        if below_ns > 0 or (health.healthy < health.desired and not anyway.get(health.budget)):
            message = f"budget {health.budget} wants {health.desired:,} healthy pods and has {health.lowest:,}"
            yield Finding("budget", message, (health.budget,))


def _drains(result: Result) -> Iterator[Finding]:
    codes = {"timed-out": "timeout", "blocked": "blocked", "running": "blocked", "refused": "refused"}
    for drain in result.summary["drains"]:
        if drain["state"] in codes:
            left = [pod for pod in drain["pods"] if pod["state"] not in ("gone", "left")]
            first = next((pod for pod in left if pod["reason"]), None)
            reason = f"{first['pod']}: {first['reason']}" if first is not None else drain["message"] or "not at its end"
            message = f"the drain of {drain['node']} is {drain['state']}: {reason}"
            yield Finding(codes[drain["state"]], message, (drain["node"], *(pod["pod"] for pod in left)))


def _refusals(result: Result, baseline: Result) -> Iterator[Finding]:
    anyway = {short["workload"] for short in baseline.summary["short"]}
    for short in result.summary["short"]:
        if short["workload"] not in anyway:
            message = f"{short['workload']} wants {short['wants']:,} pods and has {short['has']:,}: {short['reason']}"
            yield Finding("refused", message, (short["workload"],))
    for event in result.events:
        if event.reason == "StepSkipped":
            yield Finding("refused", f"{event.pod}: {event.message}", (event.pod or "",))
