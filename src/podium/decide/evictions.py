"""Evictions: the pods that a drain evicts, the disruptions that budgets allow, and the work that an evicted pod loses.

Source: kubectl pkg/drain/filters.go. For lost work controlled-rescheduling.md, Example use cases (a pod that makes
progress is moved at a price): a Job's pod starts its work again when it is recreated, unless it saves its work and
declares that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from podium.api.errors import shown
from podium.api.pod import MIRROR_ANNOTATION, Pod
from podium.api.times import parse_duration, parse_time
from podium.cluster.budgets import Budget, Budgets
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.cluster.view import UNSCHEDULABLE_TAINT, tolerated

DAEMON_SET = "DaemonSet"

DrainAction = Literal["evict", "wait", "leave", "refuse"]


@dataclass(frozen=True, slots=True)
class DrainOptions:
    """The options of a drain: the pods that it may evict.

    ``force`` allows pods without a controller, ``delete_empty_dir_data`` pods with an emptyDir. Without
    ``ignore_daemon_sets`` a DaemonSet's pod prevents the drain. ``skip_wait_for_delete_ns``: how long after its due
    deletion to wait for a terminating pod; None until it has ended.
    """

    force: bool = False
    ignore_daemon_sets: bool = True
    delete_empty_dir_data: bool = False
    skip_wait_for_delete_ns: int | None = None


class PodOnNode(Struct, frozen=True):
    """A pod of the node. ``came_late``: it was first seen after the node had been cordoned."""

    pod: Pod
    has_empty_dir: bool = False
    came_late: bool = False


class PodDrainAction(Struct, frozen=True):
    """The action for one pod, and why. ``recheck_ns`` is when it changes by itself, None for never."""

    pod: Pod
    action: DrainAction
    reason: str
    recheck_ns: int | None = None


class DrainPlan(Struct, frozen=True):
    """The actions for each pod of a node, by the pods' keys."""

    actions: tuple[PodDrainAction, ...]

    def of(self, action: DrainAction) -> list[PodDrainAction]:
        """Return the pods with this action."""
        return [each for each in self.actions if each.action == action]


def plan_drain(pods: Iterable[PodOnNode], daemon_sets: Collection[str], options: DrainOptions, now: int) -> DrainPlan:
    """Return the treatment of one node's pods by a drain at ``now``. ``daemon_sets`` are the keys of existing ones."""
    actions = (_action(pod, daemon_sets, options, now) for pod in pods)
    return DrainPlan(tuple(sorted(actions, key=lambda action: action.pod.key)))


def _action(on_node: PodOnNode, daemon_sets: Collection[str], options: DrainOptions, now: int) -> PodDrainAction:
    pod, owner = on_node.pod, on_node.pod.metadata.controller
    if MIRROR_ANNOTATION in pod.metadata.annotations:
        return PodDrainAction(pod, "leave", "it mirrors a pod of the kubelet's own")
    is_daemon = owner is not None and owner.kind == DAEMON_SET and not pod.is_terminal
    is_orphan = owner is None or f"{pod.metadata.namespace}/{owner.name}" not in daemon_sets
    if is_daemon and not is_orphan and options.ignore_daemon_sets:
        return PodDrainAction(pod, "leave", "it belongs to a DaemonSet")
    if pod.is_terminating:
        return _terminating_action(pod, options, now)
    if pod.is_terminal:
        return PodDrainAction(pod, "evict", "it has ended")
    if on_node.came_late and tolerated(pod.spec.tolerations, UNSCHEDULABLE_TAINT):
        return PodDrainAction(pod, "leave", "it tolerates the cordon and came after it, as its replacement would")
    refusal = _refusal(on_node, is_daemon, is_orphan, options)
    return PodDrainAction(pod, "refuse" if refusal else "evict", refusal)


def _refusal(on_node: PodOnNode, is_daemon: bool, is_orphan: bool, options: DrainOptions) -> str:
    """Return why a running pod may not be evicted, with the option of kubectl that allows it; "" if it may.

    The DaemonSet of an orphan no longer exists.
    """
    if is_daemon and not is_orphan:
        return "it belongs to a DaemonSet; --ignore-daemonsets leaves it"
    if is_daemon and not options.force:
        return "its DaemonSet no longer exists; --force evicts it"
    if on_node.has_empty_dir and not options.delete_empty_dir_data:
        return "the data of its emptyDir would be lost; --delete-emptydir-data evicts it"
    if on_node.pod.metadata.controller is None and not options.force:
        return "it has no controller; --force evicts it"
    return ""


def _terminating_action(pod: Pod, options: DrainOptions, now: int) -> PodDrainAction:
    """Return the action for a terminating pod: wait for its end, or leave it after too long."""
    patience_ns, due = options.skip_wait_for_delete_ns, pod.metadata.deletion_timestamp
    if patience_ns is None or due is None:
        return PodDrainAction(pod, "wait", "it is terminating")
    given_up_ns = parse_time(due) + patience_ns
    if now < given_up_ns:
        return PodDrainAction(pod, "wait", "it is terminating", given_up_ns)
    return PodDrainAction(pod, "leave", "it should have ended long ago")


class Allowance:
    """The evictions that budgets allow, minus those already planned."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._planned: Counter[str] = Counter()

    def why(self, pods: Collection[PodRecord]) -> str:
        """Return why the pods must not be evicted together; "" if they may be."""
        wanted: Counter[str] = Counter()
        for pod in pods:
            covering = list(self._budgets.over(pod.pod_class))
            if len(covering) > 1 and not self._budgets.requires_all:
                return f"{pod.key} has several disruption budgets: {', '.join(budget.key for budget in covering)}"
            for budget in covering:
                if not self._asks(budget, pod):
                    continue
                wanted[budget.key] += 1
                if why := self._why_not(budget, self._planned[budget.key] + wanted[budget.key]):
                    return f"{pod.key} may not be evicted: the disruption budget {budget.key} {why}"
        return ""

    def take(self, pods: Collection[PodRecord]) -> None:
        """Plan to evict the pods."""
        for pod in pods:
            self._planned.update(budget.key for budget in self._budgets_of(pod))

    def _budgets_of(self, pod: PodRecord) -> list[Budget]:
        """Return the budgets that count the eviction of a pod."""
        return [budget for budget in self._budgets.over(pod.pod_class) if self._asks(budget, pod)]

    def _asks(self, budget: Budget, pod: PodRecord) -> bool:
        """Return whether the eviction of the pod counts against a budget that covers it."""
        return True

    def _why_not(self, budget: Budget, number: int) -> str:
        """Return why a budget refuses this many evictions in total; "" if it allows them."""
        return "is used up" if number > budget.disruptions_allowed else ""


WORK_IN_PROGRESS = "podium.dev/work-in-progress"
"""Annotation of a pod: "true" if a move would undo its work, as for pods of Jobs; "false" if not."""

CHECKPOINT_TIME = "podium.dev/checkpoint-time"
"""Annotation of a pod: when it last saved its work, an RFC 3339 time. Later work is lost by a move."""

CHECKPOINT_INTERVAL = "podium.dev/checkpoint-interval"
"""Annotation of a pod: how often it saves its work, such as "10m". At most that much is lost by a move."""

_TRUTHS = {"true": True, "false": False}


def is_at_work(pod: PodRecord) -> bool:
    """Return whether the pod's work is in progress. Raises ValueError for an invalid annotation."""
    value = pod.annotations.get(WORK_IN_PROGRESS)
    if value is None:
        is_saving = CHECKPOINT_TIME in pod.annotations or CHECKPOINT_INTERVAL in pod.annotations
        return is_saving or (pod.controller is not None and pod.controller.kind == "Job")
    if value not in _TRUTHS:
        raise ValueError(f'its annotation {WORK_IN_PROGRESS} is {shown(value)}; it must be "true" or "false"')
    return _TRUTHS[value]


def lost_work_ns(pod: PodRecord, now: int) -> int | None:
    """Return how much work, in time, a move would lose; None if the pod does not declare it.

    The time of the last checkpoint takes precedence over the interval. The result is at most the time for which the pod
    has run. Raises ValueError for an invalid annotation.
    """
    return unsaved_ns(pod.annotations, None if pod.start_ns == NOT_STARTED_NS else pod.start_ns, now)


def unsaved_ns(annotations: Mapping[str, str], start_ns: int | None, now: int) -> int | None:
    """Return the same by a pod's annotations and its start, None for a pod that has not started. Raises ValueError."""
    last, interval = annotations.get(CHECKPOINT_TIME), annotations.get(CHECKPOINT_INTERVAL)
    if last is None and interval is None:
        return None
    if last is not None:
        lost_ns = now - _annotated(parse_time, CHECKPOINT_TIME, last, "a time such as 2026-01-31T08:00:00Z")
    else:
        lost_ns = _annotated(parse_duration, CHECKPOINT_INTERVAL, str(interval), 'a time such as "10m"')
    ran_ns = lost_ns if start_ns is None else now - start_ns
    return max(0, min(lost_ns, ran_ns))


def _annotated(parse: Callable[[str], int], name: str, text: str, right: str) -> int:
    try:
        return parse(text)
    except ValueError:
        raise ValueError(f"its annotation {name} is {shown(text)}; it must be {right}") from None
