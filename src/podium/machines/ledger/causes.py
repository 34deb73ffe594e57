"""Why a pod ends: by its condition DisruptionTarget, and by who has asked for it.

Source: pkg/apis/core/types.go (PodReasonPreemptionByScheduler and others), KEP-3329.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podium.api.left_behind import EVICTED
from podium.api.pod import Pod, PodCondition
from podium.cluster.pods import PREEMPTED
from podium.machines.grounds import GANG_RELEASE
from podium.machines.ledger.announced import Announcement
from podium.machines.ledger.disruption import Cause

_KUBELET = "TerminationByKubelet"
_BY_REASON: Mapping[str, tuple[Cause, str]] = {
    PREEMPTED: ("preemption", "scheduler"),
    EVICTED: ("eviction", ""),
    _KUBELET: ("pressure", "kubelet"),
    "DeletionByTaintManager": ("taint", "taint-eviction-controller"),
    "DeletionByPodGC": ("node-gone", "pod-garbage-collector"),
}
_BY_COMPONENT: Mapping[str, Cause] = {
    "drain": "drain",
    "autoscaler": "autoscaler",
    "rescheduler": "rescheduler",
    GANG_RELEASE: "gang-release",
}
_RULES: Mapping[Cause, str] = {"drain": "its node is drained", "autoscaler": "its node is to be removed"}


class Why(NamedTuple):
    """What brought a disruption about, who did it, and what is said of it."""

    cause: Cause
    by: str
    message: str


def is_disrupted(pod: Pod) -> bool:
    """Whether a pod ends, or has ended, for another reason than its own."""
    if pod.metadata.deletion_timestamp is not None:
        return pod.status.phase != "Succeeded" and (pod.status.phase != "Failed" or is_ended_by_kubelet(pod))
    return is_ended_by_kubelet(pod)


def is_ended_by_kubelet(pod: Pod) -> bool:
    """Whether a kubelet has ended the pod, which deletes nothing."""
    if pod.status.phase != "Failed":
        return False
    target = _target(pod)
    return target is not None and target.reason == _KUBELET


def why(pod: Pod, announced: Announcement | None) -> Why | None:
    """Why a pod ends, as far as components say so; None for a deletion of which they say nothing."""
    target = _target(pod)
    by = "" if announced is None else announced.by
    component = "" if announced is None else announced.component or announced.by
    if target is not None and target.reason in _BY_REASON:
        cause, usual = _BY_REASON[target.reason]
        if cause == "preemption" or (announced is not None and announced.whom):
            return Why("preemption", _scheduler_in(target.message) or by or usual, target.message)
        if cause == "eviction":
            # What the API server says of an eviction is the same for all.
            cause = _BY_COMPONENT.get(component, cause)
            return Why(cause, by, _RULES.get(cause, ""))
        return Why(cause, by or usual, target.message)
    if component in _BY_COMPONENT:
        cause = _BY_COMPONENT[component]
        return Why(cause, by, _RULES.get(cause, ""))
    if announced is not None and announced.whom:
        return Why("preemption", by, "")
    return None


def _target(pod: Pod) -> PodCondition | None:
    target = pod.status.condition("DisruptionTarget") if pod.status.conditions else None
    return target if target is not None and target.status == "True" else None


def _scheduler_in(message: str) -> str:
    """The scheduler that a preemption's message names, as in `default-scheduler: preempting to ...`."""
    name, colon, _ = message.partition(": preempting to ")
    return name if colon else ""
