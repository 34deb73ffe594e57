"""What a drain does with each pod of a node: evict it, wait for its end, leave it, or refuse to drain at all.

Source: kubectl pkg/drain/filters.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from podium.api.pod import MIRROR_ANNOTATION, Pod
from podium.api.times import parse_time
from podium.cluster.taints import UNSCHEDULABLE_TAINT, tolerated

DAEMON_SET = "DaemonSet"

Fate = Literal["evict", "wait", "leave", "refuse"]


@dataclass(frozen=True, slots=True)
class DrainOptions:
    """Which pods a drain may evict.

    ``force`` lets go pods that nobody will make again, ``delete_empty_dir_data`` those whose emptyDir goes with them.
    Without ``ignore_daemon_sets``, a DaemonSet's pod is a reason to refuse. ``skip_wait_for_delete_ns``: for how long
    after its deletion was due a terminating pod is waited for; None: to its end.
    """

    force: bool = False
    ignore_daemon_sets: bool = True
    delete_empty_dir_data: bool = False
    skip_wait_for_delete_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod of the node. ``came_late``: it was first seen when the node had been cordoned already."""

    pod: Pod
    has_empty_dir: bool = False
    came_late: bool = False


@dataclass(frozen=True, slots=True)
class PodFate:
    """What becomes of one pod, and why. ``recheck_ns`` is when that will change by itself, None for never."""

    pod: Pod
    fate: Fate
    reason: str
    recheck_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """What becomes of each pod of a node, by the pods' keys."""

    fates: tuple[PodFate, ...]

    def of(self, fate: Fate) -> list[PodFate]:
        """The pods that meet this fate."""
        return [pod_fate for pod_fate in self.fates if pod_fate.fate == fate]

    @property
    def is_refused(self) -> bool:
        """Whether some pod is a reason not to drain the node."""
        return any(fate.fate == "refuse" for fate in self.fates)


def plan_drain(pods: Iterable[PodOnNode], daemon_sets: Collection[str], options: DrainOptions, now: int) -> DrainPlan:
    """What a drain at ``now`` does with the pods of one node. ``daemon_sets`` are the keys of those that exist."""
    fates = (_fate(pod, daemon_sets, options, now) for pod in pods)
    return DrainPlan(tuple(sorted(fates, key=lambda fate: fate.pod.key)))


def _fate(on_node: PodOnNode, daemon_sets: Collection[str], options: DrainOptions, now: int) -> PodFate:
    pod, owner = on_node.pod, on_node.pod.metadata.controller
    if MIRROR_ANNOTATION in pod.metadata.annotations:
        return PodFate(pod, "leave", "it mirrors a pod of the kubelet's own")
    is_daemon = owner is not None and owner.kind == DAEMON_SET and not pod.is_terminal
    is_orphan = owner is None or f"{pod.metadata.namespace}/{owner.name}" not in daemon_sets
    if is_daemon and not is_orphan and options.ignore_daemon_sets:
        return PodFate(pod, "leave", "it belongs to a DaemonSet")
    if pod.is_terminating:
        return _wait(pod, options, now)
    if pod.is_terminal:
        return PodFate(pod, "evict", "it has ended")
    if on_node.came_late and tolerated(pod.spec.tolerations, UNSCHEDULABLE_TAINT):
        return PodFate(pod, "leave", "it tolerates the cordon and came after it, as its replacement would")
    refusal = _refusal(on_node, is_daemon, is_orphan, options)
    return PodFate(pod, "refuse" if refusal else "evict", refusal)


def _refusal(on_node: PodOnNode, is_daemon: bool, is_orphan: bool, options: DrainOptions) -> str:
    """Why a running pod may not be evicted; "" if it may. An orphan's DaemonSet is no more: it is nobody's pod."""
    if is_daemon and not is_orphan:
        return "it belongs to a DaemonSet; ignoreDaemonSets: true leaves it"
    if is_daemon and not options.force:
        return "its DaemonSet is not there to make it again; force: true allows that"
    if on_node.has_empty_dir and not options.delete_empty_dir_data:
        return "its emptyDir would be lost; deleteEmptyDirData: true allows that"
    if on_node.pod.metadata.controller is None and not options.force:
        return "no controller makes it again; force: true allows that"
    return ""


def _wait(pod: Pod, options: DrainOptions, now: int) -> PodFate:
    patience_ns, due = options.skip_wait_for_delete_ns, pod.metadata.deletion_timestamp
    if patience_ns is None or due is None:
        return PodFate(pod, "wait", "it is terminating")
    given_up_ns = parse_time(due) + patience_ns
    if now < given_up_ns:
        return PodFate(pod, "wait", "it is terminating", given_up_ns)
    return PodFate(pod, "leave", "it should have ended long ago")
