"""Who takes the place of pods that run: pending pods as things are, and pods of each priority class that might come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from podium.api.policy import PriorityClass
from podium.app.explaining.decided import explain_decision
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.placed import may_take_from
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.fates import Kind, kind_of
from podium.cluster.pods import NOT_STARTED_NS, PodRecord

MOST_ASKED = 200
"""So many kinds of pending pods are asked whom they would preempt, the most important first."""

Taking = Literal["takes", "may take", "takes others", "needs nobody", "cannot"]
"""What a pod does about others: it takes them now; it would on a node that is not the best; ..."""


@dataclass(frozen=True, slots=True)
class Taker:
    """Pending pods of one kind, alone with the cluster as it is, and what they do about the pods in question."""

    pods: tuple[PodRecord, ...]
    taking: Taking
    victims: tuple[PodRecord, ...]


@dataclass(frozen=True, slots=True)
class ClassThreat:
    """A priority class: what a pod like one of those in question does that is of this class.

    `may` is whether any pod of the class, however large, could take them at all.
    """

    name: str
    value: int
    may: bool
    taking: Taking
    node: str


def takers_of(decisions: Decisions, targets: Sequence[PodRecord]) -> tuple[list[Taker], int]:
    """The pending pods that would or may take some of the pods, by importance; and how many were not asked."""
    uids = {pod.uid for pod in targets if pod.is_preemptible}
    least = min((pod.priority for pod in targets if pod.uid in uids), default=None)
    kinds: dict[Kind, list[PodRecord]] = {}
    for pod in decisions.pending:
        if least is not None and may_take_from(decisions.runners, pod, least):
            kinds.setdefault(kind_of(pod), []).append(pod)
    found = []
    for pods in list(kinds.values())[:MOST_ASKED]:
        runner = decisions.runners.get(pods[0].scheduler_name)
        if runner is None or pods[0].terminating:
            continue
        told = explain_decision(runner, pods[0])
        taking = _taking(told, uids)
        if taking in ("takes", "may take"):
            chosen = told.plan.chosen if told.plan is not None else None
            found.append(Taker(tuple(pods), taking, () if chosen is None else chosen.victims))
    return found, sum(len(pods) for pods in list(kinds.values())[MOST_ASKED:])


def threats_of(decisions: Decisions, targets: Sequence[PodRecord]) -> list[ClassThreat]:
    """What a pod like the first of the pods does that is of each priority class, the highest class first."""
    classes = sorted(
        (item for item in decisions.objects if isinstance(item, PriorityClass)),
        key=lambda item: (-item.value, item.metadata.name),
    )
    return [_threat(decisions, targets, item) for item in classes]


def _threat(decisions: Decisions, targets: Sequence[PodRecord], item: PriorityClass) -> ClassThreat:
    model = targets[0]
    like = model.without_node(
        uid=f"{model.uid}/like",
        name=f"{model.name}-like",
        priority=item.value,
        preemption_policy=item.preemption_policy,
        start_ns=NOT_STARTED_NS,
        ready=False,
        terminating=False,
        preempted=False,
    )
    runner = decisions.runners.get(like.scheduler_name) or next(iter(decisions.runners.values()))
    told = explain_decision(runner, like)
    may = any(
        pod.is_preemptible and not pod.is_mirror and may_take_from(decisions.runners, like, pod.priority)
        for pod in targets
    )
    return ClassThreat(item.metadata.name, item.value, may, _taking(told, {pod.uid for pod in targets}), told.node)


def _taking(told: Explanation, uids: set[str]) -> Taking:
    plan = told.plan
    if plan is None:
        return "needs nobody" if told.outcome == "schedulable" else "cannot"
    if plan.chosen is not None and any(victim.uid in uids for victim in plan.chosen.victims):
        return "takes"
    if any(victim.uid in uids for candidate in plan.candidates.values() for victim in candidate.victims):
        return "may take"
    return "cannot" if plan.chosen is None else "takes others"
