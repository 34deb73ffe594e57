"""Pods that a node cannot do without, and which of its other pods make room for one.

Source: pkg/kubelet/types/pod_update.go; pkg/kubelet/preemption/preemption.go; priorityclass-preemption-policies.md for
pods that are not preemptible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podium.api.pod import MIRROR_ANNOTATION, SOURCE_ANNOTATION, Pod
from podium.api.policy import NEVER_PREEMPTED, preemption_policy
from podium.api.qos import qos_class
from podium.api.resources import CPU, MEMORY

CRITICAL_PRIORITY = 2_000_000_000
"""From this priority on a pod is critical."""


def is_static(pod: Pod) -> bool:
    """Whether the kubelet has the pod from a file rather than from the API, or it is the mirror of such a one."""
    annotations = pod.metadata.annotations
    return MIRROR_ANNOTATION in annotations or annotations.get(SOURCE_ANNOTATION, "api") != "api"


def is_critical(pod: Pod) -> bool:
    """Whether the kubelet makes room for the pod, and never evicts it."""
    return is_static(pod) or pod.priority >= CRITICAL_PRIORITY


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that may have to make room, and its requests by resource."""

    pod: Pod
    amounts: Mapping[str, int]


def make_room(
    preemptor: Pod, holders: Iterable[Holder], lacking: Mapping[str, int], *, honors_policy: bool = True
) -> list[Pod] | None:
    """The pods that end so that as much becomes free as is ``lacking``; None when there are not enough.

    Guaranteed pods end only for what Burstable and BestEffort ones cannot give, Burstable ones only for what
    BestEffort ones cannot. Within a class the pod goes first that gives most of what is lacking, the smaller of equals.
    Pods whose policy says that they are not preemptible do not end for anybody, where that is honored.
    """
    classes: dict[str, list[Holder]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for holder in holders:
        is_spared = honors_policy and preemption_policy(holder.pod) in NEVER_PREEMPTED
        if not is_spared and _gives_way(holder.pod, preemptor):
            classes[qos_class(holder.pod.spec)].append(holder)
    best_effort, burstable, guaranteed = classes.values()
    if _left(lacking, [*best_effort, *burstable, *guaranteed]):
        return None
    chosen_guaranteed = _nearest(guaranteed, _left(lacking, [*best_effort, *burstable]))
    chosen_burstable = _nearest(burstable, _left(lacking, [*best_effort, *chosen_guaranteed]))
    chosen_best_effort = _nearest(best_effort, _left(lacking, [*chosen_burstable, *chosen_guaranteed]))
    return [holder.pod for holder in (*chosen_best_effort, *chosen_burstable, *chosen_guaranteed)]


def _gives_way(pod: Pod, preemptor: Pod) -> bool:
    if is_critical(preemptor) and not is_critical(pod):
        return True
    return preemptor.priority > pod.priority


def _left(lacking: Mapping[str, int], holders: Sequence[Holder]) -> dict[str, int]:
    """What is still lacking when the holders are gone."""
    left = {name: amount - sum(holder.amounts.get(name, 0) for holder in holders) for name, amount in lacking.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(holders: Sequence[Holder], lacking: Mapping[str, int]) -> list[Holder]:
    """The holders that together give all that is lacking; they must suffice."""
    left, chosen, rest = dict(lacking), list[Holder](), list(holders)
    while left:
        best = min(rest, key=lambda holder: (_distance(holder, left), *_size(holder)))
        rest.remove(best)
        chosen.append(best)
        left = _left(left, [best])
    return chosen


def _distance(holder: Holder, lacking: Mapping[str, int]) -> float:
    """How far the holder falls short of what is lacking, each resource counting alike."""
    shares = ((amount - holder.amounts.get(name, 0)) / amount for name, amount in sorted(lacking.items()))
    return sum(max(0.0, share) ** 2 for share in shares)


def _size(holder: Holder) -> tuple[int, int, str]:
    return holder.amounts.get(MEMORY, 0), holder.amounts.get(CPU, 0), holder.pod.key
