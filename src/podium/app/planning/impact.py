"""The impact of a plan on each workload and node, compared with the run without the plan, and its findings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from podium.api.times import seconds
from podium.app.console.cells import agreeing, by_key, counted, listed, whole_reason
from podium.app.planning.constants import FINDING_CODES
from podium.controllers.actions import GANG_RELEASE
from podium.decide.gang_placement import UNSCHEDULABLE
from podium.store.verbs.deletion import RATE_CAUSE

# Questions that are not played answer without loading the simulator.
if TYPE_CHECKING:
    from podium.sim.results.measures import RefusedEviction
    from podium.sim.results.readiness import WorkloadReadiness
    from podium.sim.results.result import FinalNode, Result

Item = TypeVar("Item")
PREEMPTION = "preemption"
DELETION = "deletion"
_MAX_SUBJECTS = 20
_MAX_NAMES = 3
_CAUSES = {
    "PreemptionByScheduler": PREEMPTION,
    "TerminationByKubelet": "pressure",
    "DeletionByTaintManager": "taint",
    "DeletionByDeviceTaintManager": "taint",
    "DeletionByPodGC": "node gone",
}
_EVICTORS = {"scenario": "eviction", GANG_RELEASE: "gang release"}
_NOT_READY = {
    **dict.fromkeys(("starting", "running"), "its pods are not ready yet"),
    "lost": "their nodes are down",
    "failed": "its pods have failed",
}
_DRAIN_CODES = {"timed-out": "timeout", "blocked": "blocked", "running": "blocked", "refused": "refused"}


class PlanFinding(msgspec.Struct, frozen=True):
    """A finding that may deserve a warning: its code, a sentence, and its objects."""

    code: str
    message: str
    subjects: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.code not in FINDING_CODES:
            raise ValueError(f"{self.code} is not a code of a finding")


class HeldEvictions(msgspec.Struct, frozen=True):
    """The seconds for which a budget refused evictions, and the number of pods; ``ended``: it allowed all later."""

    budget: str
    seconds: float
    pods: int
    ended: bool


class WorkloadImpact(msgspec.Struct, frozen=True, rename="camel"):
    """The impact on one workload, as in `Deployment default/web`, compared with the run without the plan.

    `ready_before` counts ready pods at the start, `lowest_ready` the fewest at any time, `ready_after` and `wanted`
    those at the end, `ready_without_plan` likewise. All other fields are differences to the run without the plan:
    `missing` pods at the end, `pending` pods that wait for a node at the end, of these `stuck` if none is missing (a
    rollout that cannot go on), `disruptions` by cause, and `held` evictions. `short_seconds` is how long the workload
    had fewer ready pods than it wants, `pending_seconds` how long its pods waited for nodes in sum; both are negative
    if the plan helps. `why` is the reason for missing or waiting pods, "" if there are none.
    """

    workload: str
    ready_before: int
    lowest_ready: int
    ready_after: int
    ready_without_plan: int
    wanted: int
    missing: int
    pending: int
    stuck: int
    short_seconds: float
    pending_seconds: float
    disruptions: dict[str, int]
    held: tuple[HeldEvictions, ...]
    is_new: bool
    why: str

    @property
    def short_lasts(self) -> bool:
        """Return whether the shortage that `short_seconds` measures continues past the end of the run."""
        return bool(self.missing and self.short_seconds)

    def to_dict(self) -> dict[str, Any]:
        return {**msgspec.to_builtins(self), "shortLasts": self.short_lasts, "why": self.why or None}


class NodeImpact(msgspec.Struct, frozen=True, rename="camel"):
    """The impact on one node: `change` is added, emptied, gone, down, not ready or cordoned."""

    node: str
    change: str
    pods_before: int
    pods_after: int


def impact_of(result: Result, baseline: Result) -> tuple[WorkloadImpact, ...]:
    """Return the affected workloads, the most affected first, then by name."""
    anyway = {workload.workload: workload for workload in baseline.measures.workloads}
    disrupted, disrupted_anyway = _disruptions(result), _disruptions(baseline)
    held, reasons = _held_by_budgets(result, baseline), _Reasons(result, baseline)
    found = []
    for workload in result.measures.workloads:
        label = workload.workload
        before = anyway.get(label)
        causes = disrupted[label] - disrupted_anyway[label]
        if causes or label in held or before is None or _state(workload) != _state(before):
            found.append(_impact(workload, before, causes, tuple(held.get(label, ())), reasons))

    def order(impact: WorkloadImpact) -> tuple[int, bool, int, float, str]:
        disrupted = sum(impact.disruptions.values())
        return (-impact.missing, not impact.is_new, -disrupted, -impact.short_seconds, impact.workload)

    return tuple(sorted(found, key=order))


def nodes_of(result: Result, baseline: Result) -> tuple[NodeImpact, ...]:
    """Return the affected nodes by name, without those that only gain or lose pods."""
    anyway = {node.node: _change(node) for node in baseline.nodes}
    changes = ((node, _change(node)) for node in result.nodes)
    return tuple(
        NodeImpact(node.node, change, node.pods_before, node.pods)
        for node, change in changes
        if change and change != anyway.get(node.node)
    )


def findings_of(result: Result, impact: Sequence[WorkloadImpact], baseline: Result) -> list[PlanFinding]:
    """Return the findings in the order of their codes."""
    found = [
        *_of_workloads(impact),
        *_budgets(result, baseline),
        *_drains(result, baseline),
        *_refusals(result, baseline),
    ]
    order = list(FINDING_CODES)
    return sorted(found, key=lambda finding: order.index(finding.code))


def impact_text(impact: Sequence[WorkloadImpact]) -> str:
    """Return the impact in a few words."""
    causes = sorted(counts_of(impact).items(), key=lambda item: (item[0] != PREEMPTION, -item[1], item[0]))
    parts = [f"{counted(number, 'pod')} disrupted by {cause}" for cause, number in causes]
    missing = sum(workload.missing for workload in impact)
    if missing:
        hit = sum(bool(workload.missing) for workload in impact)
        parts.append(f"{counted(missing, 'pod')} of {counted(hit, 'workload')} missing at the end")
    stuck = [workload for workload in impact if workload.stuck]
    if stuck:
        some = stuck[0].workload if len(stuck) == 1 else f"{len(stuck):,} workloads"
        parts.append(f"the rollout of {some} is stuck")
    if impact and not missing and not stuck:
        parts.append("no further pod is missing at the end")
    return "; ".join(parts) or "no workload is affected"


def anyway_of(result: Result, baseline: Result) -> dict[str, int]:
    """Return how many pods wait at the end, are preempted and are evicted both with the plan and without it.

    Pods are counted by workload. These are the pods that the impact leaves out.
    """
    of: dict[str, Callable[[dict[str, Any]], bool]] = {
        "pending": lambda pod: pod["state"] == "pending",
        "preempted": lambda pod: cause_of(pod) == PREEMPTION,
        "evicted": lambda pod: bool(pod["evictedBy"]),
    }
    found = {}
    for what, counts in of.items():
        both = (Counter(pod["workload"] for pod in run.pods if counts(pod)) for run in (result, baseline))
        found[what] = (next(both) & next(both)).total()
    return found


def new_holds(result: Result, baseline: Result) -> list[RefusedEviction]:
    """Return the evictions that were refused with the plan, less those refused for as long without it."""
    return beyond(
        result.measures.holds,
        baseline.measures.holds,
        lambda hold: (hold.pod, hold.uid, hold.by, hold.budgets, hold.until_ns is None),
    )


def beyond(some: Iterable[Item], others: Iterable[Item], likeness: Callable[[Item], Hashable]) -> list[Item]:
    """Return the items without those that the others match, the first ones of each likeness."""
    anyway, found = Counter(map(likeness, others)), []
    for each in some:
        anyway[likeness(each)] -= 1
        if anyway[likeness(each)] < 0:
            found.append(each)
    return found


def refused_workloads(result: Result, baseline: Result) -> list[dict[str, Any]]:
    """Return the entries of `summary["short"]` of workloads that are refused more pods than without the plan."""
    anyway = {short["workload"]: short["wants"] - short["has"] for short in baseline.summary["short"]}
    return [
        short for short in result.summary["short"] if short["wants"] - short["has"] > anyway.get(short["workload"], 0)
    ]


def counts_of(impact: Sequence[WorkloadImpact]) -> Counter[str]:
    """Return the number of disrupted pods by cause, over all workloads."""
    found: Counter[str] = Counter()
    for workload in impact:
        found.update(workload.disruptions)
    return found


def _state(workload: WorkloadReadiness) -> tuple[int, ...]:
    counts = (workload.lowest, workload.ready, workload.wanted, workload.pending)
    return (*counts, workload.short_ns, workload.pending_ns)


def _impact(
    workload: WorkloadReadiness,
    known: WorkloadReadiness | None,
    causes: Counter[str],
    held: tuple[HeldEvictions, ...],
    reasons: _Reasons,
) -> WorkloadImpact:
    from podium.sim.results.readiness import WorkloadReadiness

    before = known or WorkloadReadiness(workload.workload)
    missing, missing_before = max(workload.wanted - workload.ready, 0), max(before.wanted - before.ready, 0)
    waiting = max(workload.pending - before.pending, 0)
    return WorkloadImpact(
        workload.workload,
        ready_before=workload.before,
        lowest_ready=workload.lowest,
        ready_after=workload.ready,
        ready_without_plan=before.ready,
        wanted=workload.wanted,
        missing=max(missing - missing_before, 0),
        pending=waiting,
        short_seconds=seconds(workload.short_ns - before.short_ns),
        pending_seconds=seconds(workload.pending_ns - before.pending_ns),
        disruptions=dict(sorted(causes.items())),
        held=held,
        is_new=known is None,
        why=reasons.of(workload) if missing or workload.pending else "",
        stuck=0 if missing else waiting,
    )


def _disruptions(result: Result) -> defaultdict[str, Counter[str]]:
    """Return by workload the number of pods disrupted in the run, by cause."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in result.pods:
        cause = cause_of(pod)
        if cause:
            found[pod["workload"]][cause] += 1
    return found


def cause_of(pod: dict[str, Any]) -> str:
    """Return why a pod of a result was disrupted, in a word or two; "" if it was not."""
    if pod["evictedBy"]:
        return _EVICTORS.get(pod["evictedBy"], str(pod["evictedBy"]))
    if pod["disruption"]:
        return _CAUSES.get(pod["disruption"], str(pod["disruption"]))
    was_running = pod["startedAt"] is not None
    return DELETION if was_running and pod["state"] in ("terminated", "terminating") else ""


def _held_by_budgets(result: Result, baseline: Result) -> dict[str, list[HeldEvictions]]:
    """Return by workload which budgets held its pods, and would not without the plan."""
    measures = result.measures
    holds = new_holds(result, baseline)
    alike = by_key(((measures.workload_of[hold.uid], budget), hold) for hold in holds for budget in hold.budgets)
    found = []
    for (workload, budget), some in sorted(alike.items(), key=lambda item: item[0]):
        lasted = [
            seconds((measures.end_ns if hold.until_ns is None else hold.until_ns) - hold.from_ns) for hold in some
        ]
        has_ended = all(hold.until_ns is not None for hold in some)
        found.append((workload, HeldEvictions(budget, max(lasted), len(some), has_ended)))
    return by_key(found)


class _Reasons:
    def __init__(self, result: Result, baseline: Result) -> None:
        self._pods = by_key((pod["workload"], pod) for pod in result.pods)
        self._pending_anyway = {pod["pod"] for pod in baseline.pods if pod["state"] == "pending"}
        self._failed = {event.pod: event.message for event in result.events if event.reason == "FailedScheduling"}
        self._held = result.held
        self._refused: dict[str, str] = {}
        for short in result.summary["short"]:
            self._refused[result.measures.top_of.get(short["workload"], short["workload"])] = short["reason"]
        self._down = {node.node for node in result.nodes if {"down", "not ready", "gone"} & set(node.marks)}

    def of(self, workload: WorkloadReadiness) -> str:
        """Return the most frequent reason of the pods that are not ready.

        A gang's pods that wait for others count only if no pod has a better reason; pods that terminate count only if
        there are no others, and those that are pending without the plan, too, come last.
        """
        if workload.workload in self._refused:
            return self._refused[workload.workload]
        pods = self._pods.get(workload.workload, [])
        for rank in range(3):
            alike = Counter(filter(None, (self._why(pod) for pod in pods if self._rank(pod) == rank)))
            specific = [why for why in alike if not why.startswith(UNSCHEDULABLE)]
            if alike:
                return min(specific or alike, key=lambda why: (-alike[why], why))
        # A brief result has no pods that have stayed ready.
        return "no controller replaces its pods" if pods or workload.pods else "it has no pods"

    def _rank(self, pod: dict[str, Any]) -> int:
        return 2 if pod["pod"] in self._pending_anyway else int(pod["state"] == "terminating")

    def _why(self, pod: dict[str, Any]) -> str:
        if pod["state"] == "pending":
            message = self._failed.get(pod["pod"])
            return self._held.get(pod["pod"], whole_reason(message) if message else "no scheduler has tried its pods")
        if pod["state"] == "terminating" and pod["node"] in self._down:
            return "its old pods cannot end while their nodes are down, and new ones wait for that"
        return _NOT_READY.get(pod["state"], "")


def _change(node: FinalNode) -> str:
    if node.gone_at is not None:
        return "gone"
    if node.added_at is not None:
        return "added"
    for mark in ("down", "not ready"):
        if mark in node.marks:
            return mark
    if node.pods_before and not node.pods:
        return "emptied"
    return "cordoned" if "cordoned" in node.marks else ""


def _of_workloads(impact: Sequence[WorkloadImpact]) -> Iterator[PlanFinding]:
    causes = counts_of(impact).keys() - {DELETION}
    for code, of_code in (("preempt", causes & {PREEMPTION}), ("evict", causes - {PREEMPTION})):
        workloads = [workload.workload for workload in impact if of_code & workload.disruptions.keys()]
        if workloads:
            number = sum(counts_of(impact)[cause] for cause in of_code)
            message = f"{counted(number, 'pod', 'is')} {code}ed: {listed(workloads, _MAX_NAMES)}"
            yield PlanFinding(code, message, tuple(workloads[:_MAX_SUBJECTS]))
    waiting = [workload for workload in impact if workload.pending and (workload.missing or workload.stuck)]
    for workload in waiting[:_MAX_SUBJECTS]:
        waits = f"{counted(workload.pending, 'pod')} of {workload.workload} {agreeing(workload.pending, 'waits')}"
        yield PlanFinding("unschedulable", f"{waits}: {workload.why}", (workload.workload,))
    for workload in impact:
        if workload.short_seconds > 0 and not workload.is_new:
            short = f"{workload.workload} has fewer ready pods than it wants ({workload.wanted:,})"
            yield PlanFinding("short", f"{short}, {workload.lowest_ready:,} at the least", (workload.workload,))
        if workload.missing:
            message = f"{workload.workload} ends with {workload.ready_after:,} of {workload.wanted:,} ready"
            yield PlanFinding("not-ready", f"{message}: {workload.why}", (workload.workload,))


def _budgets(result: Result, baseline: Result) -> Iterator[PlanFinding]:
    held = by_key((budget, hold) for hold in new_holds(result, baseline) for budget in hold.budgets)
    for budget, holds in sorted(held.items(), key=lambda item: item[0]):
        names = sorted({hold.pod for hold in holds})
        why = next((f": {hold.message.partition(': ')[2]}" for hold in holds if hold.cause == RATE_CAUSE), "")
        message = f"budget {budget} holds {listed(names, _MAX_NAMES)}{why}"
        yield PlanFinding("budget", message, (budget, *names[:_MAX_SUBJECTS]))
    anyway = {budget.budget: budget.below_ns for budget in baseline.measures.budgets}
    for health in result.measures.budgets:
        below_ns = health.below_ns - anyway.get(health.budget, 0)
        if below_ns > 0 or (health.healthy < health.desired and not anyway.get(health.budget)):
            message = f"budget {health.budget} wants {health.desired:,} healthy pods and has {health.lowest:,}"
            yield PlanFinding("budget", message, (health.budget,))


def _drains(result: Result, baseline: Result) -> Iterator[PlanFinding]:
    anyway = {(drain["node"], drain["state"]) for drain in baseline.summary["drains"]}
    for drain in result.summary["drains"]:
        if drain["state"] in _DRAIN_CODES and (drain["node"], drain["state"]) not in anyway:
            message = f"drain of {drain['node']}, {drain['state']}: {drain_reason(result, drain)}"
            pods = (pod["pod"] for pod in pods_left(drain))
            yield PlanFinding(_DRAIN_CODES[drain["state"]], message, (drain["node"], *pods))


def pods_left(drain: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pods of a drain that are still on its node."""
    return [pod for pod in drain["pods"] if pod["state"] not in ("gone", "left")]


def drain_reason(result: Result, drain: dict[str, Any]) -> str:
    """Return the reason that a drain is held: the budget and its pods, or the first pod's own reason."""
    left = pods_left(drain)
    holds = {hold.pod: hold for hold in result.measures.holds if hold.until_ns is None and hold.budgets}
    held = [holds[pod["pod"]] for pod in left if pod["pod"] in holds]
    if held:
        more = f" and {len(held) - 1:,} more" if len(held) > 1 else ""
        return f"budget {held[0].budgets[0]} holds {held[0].pod}{more}"
    refused = [pod for pod in left if pod["reason"]]
    if refused:
        more = f" (and {len(refused) - 1:,} more)" if len(refused) > 1 else ""
        return f"{refused[0]['pod']}: {refused[0]['reason']}{more}"
    return f"{left[0]['pod']} is {left[0]['state']}" if left else drain["message"] or "no pod is left"


def _refusals(result: Result, baseline: Result) -> Iterator[PlanFinding]:
    for short in refused_workloads(result, baseline):
        message = f"{short['workload']} wants {short['wants']:,} pods and has {short['has']:,}: {short['reason']}"
        yield PlanFinding("refused", message, (short["workload"],))
    skipped, anyway = (
        [(event.pod or "", event.message) for event in run.events if event.reason == "StepSkipped"]
        for run in (result, baseline)
    )
    for subject, message in beyond(skipped, anyway, lambda each: each):
        yield PlanFinding("refused", f"{subject}: {message}", (subject,))
