"""The smallest changes with which pods that run would be spared, each found by deciding again about all that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from podium.api.meta import ObjectMeta
from podium.api.pod import Pod
from podium.api.policy import (
    NEVER_PREEMPTS,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PriorityClass,
)
from podium.api.selection import LabelSelector
from podium.app.explaining.placed import may_take_from
from podium.app.planning.deciding.causes import Blocked, blocked
from podium.app.planning.deciding.change import SORTS, Change
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Settled, kind_of
from podium.app.planning.deciding.pod_changes import rewritten, rounded, with_request
from podium.app.planning.deciding.shapes import Shape, add_several
from podium.cluster.pods import PodRecord
from podium.store.admission.usage import written_amount

NON_PREEMPTIBLE = "NonPreemptible"
MOST_NODES = 16
"""So many further nodes are tried at most."""

_NEVER = "Never"
_MOST_SHAPES = 8
_MOST_ALLOWED = 20


def above(decisions: Decisions, targets: Sequence[PodRecord]) -> list[PodRecord]:
    """The pending pods that come before some of the pods, or may take from their equals: those after them take none."""
    least = min(pod.priority for pod in targets)
    runners = decisions.runners
    return [pod for pod in decisions.pending if pod.priority > least or may_take_from(runners, pod, least)]


@dataclass(frozen=True, slots=True)
class Spared:
    """A change with which nobody takes the pods, and what becomes of all that are pending then."""

    change: Change
    settled: Settled


@dataclass(frozen=True)
class Sparing:
    """The pods that are to be spared, and what happens to them as things are."""

    decisions: Decisions
    targets: tuple[PodRecord, ...]
    whose: str
    settled: Settled

    @property
    def takers(self) -> list[PodRecord]:
        """For whom pods have to go, in the order of the queue."""
        uids = {pod.uid for pod in self.targets}
        return [fate.pod for fate in self.settled.fates if any(victim.uid in uids for victim in fate.victims)]

    def changes(self, shapes: Sequence[Shape]) -> list[Spared]:
        """Of each sort of change the smallest that was found: priority, policy, budget, requests, nodes."""
        found = [
            self._first(self._priorities()),
            self._first(self._non_preemptible()),
            self._first(self._never()),
            self._first(self._budgets()),
            self._first(self._own_requests()),
            self._first(self._their_requests()),
            self._fewest_nodes(shapes),
        ]
        return sorted(filter(None, found), key=lambda spared: (spared.change.objects, SORTS.index(spared.change.sort)))

    def _first(self, changes: Iterator[Change]) -> Spared | None:
        """The first of the changes, the smallest first, with which all of the pods are spared."""
        for change in changes:
            settled = self._settled(change)
            if settled is not None and not {pod.uid for pod in self.targets} & settled.victims.keys():
                return Spared(change, settled)
        return None

    def _settled(self, change: Change) -> Settled | None:
        decisions = self.decisions
        with decisions.supposing():
            pods = change.applied(decisions, above(decisions, self.targets))
            return None if pods is None else decisions.settle(pods, preempts=True, comes_back=True)

    def _priorities(self) -> Iterator[Change]:
        """The priorities at which pods stop to take them, the least first; a class of the value is named."""
        least = min(pod.priority for pod in self.targets)
        pending = above(self.decisions, self.targets)
        others = {pod.priority for pod in pending}
        # Whoever takes from equals takes none from those above it.
        others |= {pod.priority + 1 for pod in pending if may_take_from(self.decisions.runners, pod, pod.priority)}
        others |= {victim.priority for fate in self.settled.fates for victim in fate.victims}
        classes = [item for item in self.decisions.objects if isinstance(item, PriorityClass)]
        for priority in sorted(value for value in others if value > least):
            enough = sorted((item.value, item.metadata.name) for item in classes if item.value >= priority)
            hint = f" (PriorityClass {enough[0][1]} has {enough[0][0]})" if enough else ""
            of_class = enough[0][1] if enough and enough[0][0] == priority else ""
            yield Change(
                "priority",
                f"priority {priority} for {self.whose}{hint}",
                partial(self._raise, priority=priority),
                written=self._pods_with(priority=priority, priority_class_name=of_class),
            )

    def _raise(self, decisions: Decisions, priority: int) -> None:
        for pod in self._present():
            if pod.priority < priority:
                decisions.scratch.replace_pod(msgspec.structs.replace(pod, priority=priority))

    def _pods_with(self, **fields: Any) -> Callable[[Decisions], list[Pod]]:
        """The pods as they are written with these fields of their spec."""
        return lambda decisions: [
            msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))
            for pod in self._read_pods(decisions)
        ]

    def _read_pods(self, decisions: Decisions) -> list[Pod]:
        return [decisions.pods[target.key] for target in self.targets if target.key in decisions.pods]

    def _non_preemptible(self) -> Iterator[Change]:
        """Podium's own policy of pods that no preemption removes."""
        if self.decisions.loaded.settings.feature_gates.non_preempting_priority:
            written = self._pods_with(preemption_policy=NON_PREEMPTIBLE)
            yield Change(
                "policy", f"preemptionPolicy {NON_PREEMPTIBLE} for {self.whose}", self._protect, written=written
            )

    def _protect(self, decisions: Decisions) -> None:
        for pod in self._present():
            decisions.scratch.replace_pod(msgspec.structs.replace(pod, preemption_policy=NON_PREEMPTIBLE))

    def _never(self) -> Iterator[Change]:
        """Those who take them are to wait for room instead."""
        takers = [pod for pod in self.takers if pod.preemption_policy not in NEVER_PREEMPTS]
        kinds = frozenset(map(kind_of, takers))
        pending = [pod for pod in self.decisions.pending if kind_of(pod) in kinds]
        if pending:
            text = f"preemptionPolicy {_NEVER} for {_named(self.decisions, pending)}"
            yield Change("policy", text, to_pod=_patient, kinds=kinds, objects=len(kinds))

    def _budgets(self) -> Iterator[Change]:
        """A budget that lets fewer of them go, or a new one; kube-scheduler spares what budgets cover where it can."""
        decisions, pod_class = self.decisions, self.targets[0].pod_class
        known = [budget for budget in decisions.cluster.budgets.over(pod_class) if budget.covers(pod_class)]
        if known:
            budget = decisions.budgets[known[0].key]
            for allowed in range(min(budget.status.disruptions_allowed, _MOST_ALLOWED) - 1, -1, -1):
                tighter = msgspec.structs.replace(
                    budget, status=msgspec.structs.replace(budget.status, disruptions_allowed=allowed)
                )
                fewer = budget.status.disruptions_allowed - allowed
                text, spec = _tightened(budget, fewer)
                written = partial(_tighter, budget=budget, spec=spec)
                yield Change("budget", text, partial(_put_budget, budget=tighter), written=written)
        elif pod_class.labels:
            number = len(self.targets)
            for allowed in range(min(number, _MOST_ALLOWED) - 1, -1, -1):
                text = f"a budget for {self.whose} with maxUnavailable {allowed}"
                yield Change("budget", text, partial(_put_budget, budget=self._budget(allowed)))

    def _budget(self, allowed: int) -> PodDisruptionBudget:
        pod = self.targets[0]
        return PodDisruptionBudget(
            metadata=ObjectMeta(name=f"plan-{pod.name}", namespace=pod.namespace),
            spec=PodDisruptionBudgetSpec(
                max_unavailable=allowed, selector=LabelSelector(match_labels=dict(pod.labels))
            ),
            status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
        )

    def _own_requests(self) -> Iterator[Change]:
        """Their own requests lowered by what is missing on a node that somebody takes."""
        decisions, columns = self.decisions, self.decisions.cluster.nodes
        uids = {pod.uid for pod in self.targets}
        smaller: dict[tuple[str, int], int] = {}
        for fate in self.settled.fates:
            taken = [victim for victim in fate.victims if victim.uid in uids]
            row = columns.row_of.get(fate.node)
            if not taken or row is None:
                continue
            for index, wanted in fate.pod.pod_class.requests.items():
                asked = taken[0].pod_class.requests.get(index, 0)
                lacking = wanted - int(columns.allocatable[index, row] - columns.requested[index, row])
                on_node = sum(pod.uid in uids for pod in decisions.cluster.pods_on(row))
                amount = asked - -(-lacking // max(on_node, 1))
                if 0 < amount < asked:
                    smaller[columns.resources[index], rounded(amount, columns.resources[index])] = asked
        for (resource, amount), asked in sorted(smaller.items(), key=lambda item: (item[0][0], -item[0][1])):
            told = f"{written_amount(resource, asked)} -> {written_amount(resource, amount)}"
            text = f"{self.whose} requests.{resource} {told}"
            yield Change(
                "request",
                text,
                partial(self._shrink, resource=resource, amount=amount),
                written=partial(self._shrunk, resource=resource, amount=amount),
            )

    def _shrink(self, decisions: Decisions, resource: str, amount: int) -> None:
        for pod in self._present():
            changed = decisions.changed(pod, partial(_smaller, resource=resource, amount=amount))
            decisions.scratch.replace_pod(changed)

    def _shrunk(self, decisions: Decisions, resource: str, amount: int) -> list[Pod]:
        return [with_request(pod, resource, amount) for pod in self._read_pods(decisions)]

    def _their_requests(self) -> Iterator[Change]:
        """The requests of those who take them lowered so that they find room."""
        decisions = self.decisions
        kinds = frozenset(map(kind_of, self.takers))
        with decisions.supposing():
            settled = decisions.settle(decisions.pending)
            waiting: list[Blocked] = [each for each in blocked(decisions, settled) if kind_of(each.pods[0]) in kinds]
            changes = [change for change in rewritten(decisions, waiting) if change.sort == "request"]
        # The greatest amount first, as the smallest change.
        yield from reversed(changes)

    def _fewest_nodes(self, shapes: Sequence[Shape]) -> Spared | None:
        """The fewest more nodes that spare them, of one shape; of equally many those of the first shape.

        More nodes of a shape are taken not to do harm, so that few numbers have to be tried.
        """
        best: Spared | None = None
        most = MOST_NODES
        for shape in shapes[:_MOST_SHAPES]:
            found = self._first(iter((_nodes(shape, most),)))
            low = 1
            while found is not None and low < most:
                middle = (low + most) // 2
                fewer = self._first(iter((_nodes(shape, middle),)))
                if fewer is None:
                    low = middle + 1
                else:
                    found, most = fewer, middle
            if found is not None:
                best, most = found, found.change.objects - 1
            if not most:
                break
        return best

    def _present(self) -> list[PodRecord]:
        placed = self.decisions.cluster.placed
        return [placed[pod.uid] for pod in self.targets if pod.uid in placed]


def _nodes(shape: Shape, number: int) -> Change:
    what = "one more node" if number == 1 else f"{number:,} more nodes"
    return Change("node", f"{what} like {shape.like}", partial(add_several, shape=shape, number=number), objects=number)


def _named(decisions: Decisions, pods: Sequence[PodRecord]) -> str:
    workloads = list(dict.fromkeys(map(decisions.workloads.of, pods)))
    return workloads[0] if len(workloads) == 1 else f"{workloads[0]} and {len(workloads) - 1:,} more"


def _tightened(budget: PodDisruptionBudget, fewer: int) -> tuple[str, PodDisruptionBudgetSpec | None]:
    """What to write into a budget that is to let so many fewer pods go; None where that is not a number less."""
    least, most = budget.spec.min_available, budget.spec.max_unavailable
    if isinstance(most, int) and most >= fewer:
        spec = msgspec.structs.replace(budget.spec, max_unavailable=most - fewer)
        return f"budget {budget.key} maxUnavailable {most} -> {most - fewer}", spec
    if isinstance(least, int):
        spec = msgspec.structs.replace(budget.spec, min_available=least + fewer)
        return f"budget {budget.key} minAvailable {least} -> {least + fewer}", spec
    allowed = budget.status.disruptions_allowed
    return f"budget {budget.key} so that {allowed - fewer:,} may go, not {allowed:,}", None


def _tighter(
    _: Decisions, budget: PodDisruptionBudget, spec: PodDisruptionBudgetSpec | None
) -> list[PodDisruptionBudget]:
    return [] if spec is None else [msgspec.structs.replace(budget, spec=spec)]


def _put_budget(decisions: Decisions, budget: PodDisruptionBudget) -> None:
    decisions.put(budget)


def _patient(pod: Pod) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, preemption_policy=_NEVER))


def _smaller(pod: Pod, resource: str, amount: int) -> Pod:
    return with_request(pod, resource, amount)
