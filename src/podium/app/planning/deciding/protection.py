"""The pods that may preempt running ones, and the smallest changes that keep these from being preempted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec.structs import replace

from podium.api.meta import ObjectMeta
from podium.api.pod import Pod
from podium.api.policy import (
    NEVER_PREEMPTS,
    POLICY_ANNOTATION,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PriorityClass,
)
from podium.api.selectors import LabelSelector
from podium.api.versions.gates import Gate
from podium.app.explaining.attempts import Effect, effect_on, explain_decision, may_preempt
from podium.app.planning.deciding import candidates, capacity, causes
from podium.app.planning.deciding.attempts import kind_of
from podium.app.planning.deciding.decisions import Decisions, QueueResult, replacement
from podium.app.planning.deciding.search import VerifiedChange, verify
from podium.cluster.pods import PodRecord
from podium.store.admission.quotas import written_amount

NON_PREEMPTIBLE = "NonPreemptible"
MAX_NODES = 16
"""The maximum number of nodes to add."""

_NEVER = "Never"
# A pod cannot state a policy that its class does not have.
_OF_CLASS = "a PriorityClass of the same value with preemptionPolicy"
_MAX_SHAPES = 8
_MAX_ALLOWED = 20


class PriorityClassThreat(msgspec.Struct, frozen=True, rename="camel"):
    """The effect of a pod ``like`` one of those in question, but of a priority class, and the node that it gets.

    ``can_preempt`` is whether any pod of the class, however large, could preempt them at all.
    """

    priority_class: str
    value: int
    can_preempt: bool
    like: Effect
    node: str | None


def priority_class_threats(decisions: Decisions, targets: Sequence[PodRecord]) -> list[PriorityClassThreat]:
    """Return the effect of a pod like the first target for each priority class, the highest class first."""
    classes = [item for item in decisions.objects if isinstance(item, PriorityClass)]
    model, uids, found = targets[0], {pod.uid for pod in targets}, []
    for item in sorted(classes, key=lambda item: (-item.value, item.metadata.name)):
        names = {"uid": f"{model.uid}/like", "name": f"{model.name}-like"}
        like = replacement(model, **names, priority=item.value, preemption_policy=item.preemption_policy)
        runner = decisions.runners.get(like.scheduler_name) or next(iter(decisions.runners.values()))
        decision = explain_decision(runner, like)
        may = any(
            pod.is_preemptible and not pod.is_mirror and may_preempt(decisions.runners, like, pod.priority)
            for pod in targets
        )
        found.append(
            PriorityClassThreat(item.metadata.name, item.value, may, effect_on(decision, uids), decision.node or None)
        )
    return found


def pods_before(decisions: Decisions, targets: Sequence[PodRecord]) -> list[PodRecord]:
    """Return the pending pods that come before some target or may preempt pods of equal priority."""
    least = min(pod.priority for pod in targets)
    return [pod for pod in decisions.pending if pod.priority > least or may_preempt(decisions.runners, pod, least)]


@dataclass(frozen=True)
class ProtectionSearch:
    """The search for changes that protect pods; ``result`` is what happens to them without a change."""

    decisions: Decisions
    targets: tuple[PodRecord, ...]
    label: str
    result: QueueResult

    def changes(self, shapes: Sequence[capacity.NodeShape]) -> list[VerifiedChange]:
        """Return the smallest change of each type: of priority, policies, budgets, requests and nodes."""
        policies = (self._non_preemptible(), self._never())
        requests = (self._own_requests(), self._preemptors_requests())
        found = [
            *map(self._first, (self._priorities(), *policies, self._budgets(), *requests)),
            self._fewest_nodes(shapes),
        ]
        return sorted(
            filter(None, found), key=lambda each: (each.change.objects, candidates.TYPES.index(each.change.type))
        )

    @property
    def uids(self) -> set[str]:
        return {pod.uid for pod in self.targets}

    def _first(self, changes: Iterable[candidates.ProposedChange]) -> VerifiedChange | None:
        """Return the first change, in order of size, that protects all targets."""
        for change in changes:
            verified = verify(self.decisions, change, pods_before(self.decisions, self.targets), protects=True)
            if verified is not None and not self.uids & verified.result.preemptors.keys():
                return verified
        return None

    def _preemptors(self) -> list[PodRecord]:
        """Return the pods that preempt targets, in queue order."""
        return [each.pod for each in self.result.placed if any(victim.uid in self.uids for victim in each.victims)]

    def _change(
        self, type_: str, text: str, record: Callable[[PodRecord], PodRecord], manifest: Callable[[Pod], Pod]
    ) -> candidates.ProposedChange:
        """Return the change of the targets that have a node, as records and as manifests."""

        def apply(decisions: Decisions) -> None:
            placed = decisions.cluster.placed
            for pod in [placed[pod.uid] for pod in self.targets if pod.uid in placed]:
                changed = record(pod)
                if changed is not pod:
                    decisions.scratch.replace_pod(changed)

        def written(decisions: Decisions) -> list[Pod]:
            pods = (decisions.pods[pod.key] for pod in self.targets if pod.key in decisions.pods)
            return [changed for pod in pods if (changed := manifest(pod)) is not pod]

        return candidates.ProposedChange(type_, text, apply, written=written)

    def _priorities(self) -> Iterator[candidates.ProposedChange]:
        """Yield the priorities at which fewer pods preempt them, the lowest first, with a class of that value."""
        least = min(pod.priority for pod in self.targets)
        pending = pods_before(self.decisions, self.targets)
        others = {pod.priority for pod in pending}
        # Pods that preempt equals do not preempt pods above them.
        others |= {pod.priority + 1 for pod in pending if may_preempt(self.decisions.runners, pod, pod.priority)}
        others |= {victim.priority for each in self.result.placed for victim in each.victims}
        classes = [item for item in self.decisions.objects if isinstance(item, PriorityClass)]
        for priority in sorted(value for value in others if value > least):
            enough = sorted((item.value, item.metadata.name) for item in classes if item.value >= priority)
            hint = f" (PriorityClass {enough[0][1]} has {enough[0][0]})" if enough else ""
            of_class = enough[0][1] if enough and enough[0][0] == priority else ""
            raised, written = (
                partial(_raised, priority=priority),
                partial(_with_class, priority=priority, name=of_class),
            )
            yield self._change("priority", f"priority {priority} for {self.label}{hint}", raised, written)

    def _non_preemptible(self) -> Iterator[candidates.ProposedChange]:
        """Yield Podium's own policy of pods that no preemption removes."""
        if self.decisions.loaded.release.enabled(Gate.NON_PREEMPTING_PRIORITY):
            text = f"{_OF_CLASS} {NON_PREEMPTIBLE} for {self.label}"
            protected = partial(replace, preemption_policy=NON_PREEMPTIBLE)
            yield self._change("policy", text, protected, partial(_with_policy, policy=NON_PREEMPTIBLE))

    def _never(self) -> Iterator[candidates.ProposedChange]:
        """Yield the policy with which the preemptors wait for room instead."""
        preemptors = [pod for pod in self._preemptors() if pod.preemption_policy not in NEVER_PREEMPTS]
        kinds = frozenset(map(kind_of, preemptors))
        pending = [pod for pod in self.decisions.pending if kind_of(pod) in kinds]
        if pending:
            workloads = list(dict.fromkeys(map(self.decisions.workloads.of, pending)))
            more = f" and {len(workloads) - 1:,} more" if len(workloads) > 1 else ""
            text = f"{_OF_CLASS} {_NEVER} for {workloads[0]}{more}"
            to_pod = partial(_with_policy, policy=_NEVER)
            yield candidates.ProposedChange("policy", text, to_pod=to_pod, kinds=kinds, objects=len(kinds))

    def _budgets(self) -> Iterator[candidates.ProposedChange]:
        """Yield a budget that allows fewer disruptions, or a new one; kube-scheduler respects budgets if it can."""
        decisions, pod_class = self.decisions, self.targets[0].pod_class
        known = [budget for budget in decisions.cluster.budgets.over(pod_class) if budget.covers(pod_class)]
        if known:
            budget = decisions.cluster.budgets.objects[known[0].key]
            allowed_now = budget.status.disruptions_allowed
            for allowed in range(min(allowed_now, _MAX_ALLOWED) - 1, -1, -1):
                tighter = replace(budget, status=replace(budget.status, disruptions_allowed=allowed))
                text, written = _tightened(budget, allowed_now - allowed)
                yield candidates.ProposedChange("budget", text, partial(Decisions.put, item=tighter), written=written)
        elif pod_class.labels:
            pod = self.targets[0]
            for allowed in range(min(len(self.targets), _MAX_ALLOWED) - 1, -1, -1):
                selector = LabelSelector(match_labels=dict(pod.labels))
                new = PodDisruptionBudget(
                    metadata=ObjectMeta(name=f"plan-{pod.name}", namespace=pod.namespace),
                    spec=PodDisruptionBudgetSpec(max_unavailable=allowed, selector=selector),
                    status=PodDisruptionBudgetStatus(disruptions_allowed=allowed),
                )
                text = f"a budget for {self.label} with maxUnavailable {allowed}"
                yield candidates.ProposedChange("budget", text, partial(Decisions.put, item=new))

    def _own_requests(self) -> Iterator[candidates.ProposedChange]:
        """Yield their requests lowered by what a preemptor lacks on its node."""
        decisions, columns, uids = self.decisions, self.decisions.cluster.nodes, self.uids
        smaller: dict[tuple[str, int], int] = {}
        for each in self.result.placed:
            victims = [victim for victim in each.victims if victim.uid in uids]
            row = columns.row_of.get(each.node)
            if not victims or row is None:
                continue
            for index, wanted in each.pod.pod_class.requests.items():
                requested = victims[0].pod_class.requests.get(index, 0)
                lacking = wanted - int(columns.allocatable[index, row] - columns.requested[index, row])
                on_node = sum(pod.uid in uids for pod in decisions.cluster.pods_on(row))
                amount = requested - -(-lacking // max(on_node, 1))
                if 0 < amount < requested:
                    smaller[columns.resources[index], candidates.rounded(amount, columns.resources[index])] = requested
        for (resource, amount), requested in sorted(smaller.items(), key=lambda item: (item[0][0], -item[0][1])):
            text = f"{written_amount(resource, requested)} -> {written_amount(resource, amount)}"
            lower = partial(candidates.with_request, resource=resource, amount=amount)
            shrunk = partial(decisions.rewritten, change=lower)
            yield self._change("request", f"{self.label} requests.{resource} {text}", shrunk, lower)

    def _preemptors_requests(self) -> Iterator[candidates.ProposedChange]:
        """Yield the preemptors' requests lowered so that they fit, the greatest amount first."""
        decisions = self.decisions
        kinds = frozenset(map(kind_of, self._preemptors()))
        with decisions.what_if():
            result = decisions.schedule(pods_before(decisions, self.targets))
            waiting = [each for each in causes.blocked_pods(decisions, result) if kind_of(each.pods[0]) in kinds]
            changes = [change for change in candidates.manifest_changes(decisions, waiting) if change.type == "request"]
        yield from reversed(changes)

    def _fewest_nodes(self, shapes: Sequence[capacity.NodeShape]) -> VerifiedChange | None:
        """Return the fewest more nodes of one shape that protect them; of equal numbers the first shape's.

        More nodes of a shape are assumed to do no harm, so that a binary search suffices.
        """
        best: VerifiedChange | None = None
        most = MAX_NODES
        for shape in shapes[:_MAX_SHAPES]:
            found = self._first([candidates.more_nodes(shape, most)])
            low = 1
            while found is not None and low < most:
                middle = (low + most) // 2
                fewer = self._first([candidates.more_nodes(shape, middle)])
                if fewer is None:
                    low = middle + 1
                else:
                    found, most = fewer, middle
            if found is not None:
                best, most = found, found.change.objects - 1
            if not most:
                break
        return best


def _raised(pod: PodRecord, priority: int) -> PodRecord:
    return replace(pod, priority=priority) if pod.priority < priority else pod


def _with_class(pod: Pod, priority: int, name: str) -> Pod:
    """Return the pod with a priority and its class, or the same pod if it has as much already."""
    if (pod.spec.priority or 0) >= priority:
        return pod
    return replace(pod, spec=replace(pod.spec, priority=priority, priority_class_name=name))


def _with_policy(pod: Pod, policy: str) -> Pod:
    """Return the pod with a policy as annotation: admission refuses one in the spec that its class does not have."""
    annotations = {**pod.metadata.annotations, POLICY_ANNOTATION: policy}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def _tightened(budget: PodDisruptionBudget, fewer: int) -> tuple[str, list[PodDisruptionBudget]]:
    """Return the change with which a budget allows so much less, and its manifest if that is a number in its spec."""
    least, most = budget.spec.min_available, budget.spec.max_unavailable
    if isinstance(most, int) and most >= fewer:
        spec = replace(budget.spec, max_unavailable=most - fewer)
        return f"budget {budget.key} maxUnavailable {most} -> {most - fewer}", [replace(budget, spec=spec)]
    if isinstance(least, int):
        spec = replace(budget.spec, min_available=least + fewer)
        return f"budget {budget.key} minAvailable {least} -> {least + fewer}", [replace(budget, spec=spec)]
    allowed = budget.status.disruptions_allowed
    return f"budget {budget.key} allowing {allowed - fewer:,} disruptions, not {allowed:,}", []
