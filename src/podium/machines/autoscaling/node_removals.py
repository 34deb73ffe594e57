"""Nodes that are being removed: marked, emptied, deleted; or left in place again when that cannot be done.

That a node is being removed, and since when, stands in its taint. So whoever starts anew goes on, or takes it back.

Source: autoscaler cluster-autoscaler/core/scaledown/actuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from podium.api.meta import Raw
from podium.cluster.pods import PodRecord
from podium.decide.scaling.node_groups import REMOVAL_TAINT, removal_taint
from podium.decide.scaling.scale_down import Residents
from podium.machines.actions import Action, DeleteObject, Evict, PatchObject
from podium.machines.autoscaling.cluster_picture import ClusterPicture, GroupNode
from podium.machines.disruption.evictions import STUCK_AFTER, Evictions, EvictionSettings
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue

_SECOND = 10**9
_RETRY_NS = 10 * _SECOND
# How long after their grace period pods are waited for.
_HEADROOM_NS = 30 * _SECOND


@dataclass(frozen=True, slots=True)
class RemovalSettings:
    """How long a removal may take, in nanoseconds.

    Evictions that are refused are repeated for ``max_eviction_ns``. Pods get their own grace period, but not more than
    ``max_graceful_termination_ns``.
    """

    max_eviction_ns: int
    max_graceful_termination_ns: int


class NodeRemovals:
    """Removes nodes of groups.

    ``residents`` says what the removal of a node means to its pods; ``why_kept`` why they can no longer be moved, or
    "". What was true when the node was chosen is asked again once it is marked, and whenever a pod has come since: it
    may have been bound before the scheduler saw the mark.
    """

    def __init__(
        self,
        picture: ClusterPicture,
        settings: RemovalSettings,
        cause: str,
        residents: Callable[[str], Residents],
        why_kept: Callable[[str], str],
    ) -> None:
        self._picture = picture
        self._settings = settings
        self._cause = cause
        self._residents = residents
        self._why_kept = why_kept
        self._queue: WorkQueue[str] = WorkQueue()
        self._evictions = Evictions(EvictionSettings(cause, _RETRY_NS))
        # By name: when the removal began; the pods whose move was found to be possible; writes that failed in a row.
        self._began_ns: dict[str, int] = {}
        self._checked: dict[str, frozenset[str]] = {}
        self._failed: Counter[str] = Counter()
        # By name, the version of the node that a write was made from which has not failed.
        self._written: dict[str, str] = {}
        # By name, the pods because of whom the removal is taken back, and how often that has been so.
        self._kept_for: dict[str, frozenset[str]] = {}
        self._taken_back: Counter[str] = Counter()

    def under_way(self) -> list[str]:
        """The nodes that are being removed, or are about to be marked, by name."""
        return sorted({*self._began_ns, *self._written})

    def begin(self, name: str, now: int) -> Action:
        """Mark a node, so that no more pods come to it."""
        group_node = self._picture.nodes[name]
        taint = {"key": REMOVAL_TAINT, "value": str(now // _SECOND), "effect": "NoSchedule"}
        return self._write_taints(group_node, [*_taints(group_node), taint], "scale-down: it is not needed")

    def seen(self, name: str) -> None:
        """The API shows a node as it is now, or that it is no more."""
        group_node = self._picture.nodes.get(name)
        if group_node is not None and not self._is_written(name, group_node):
            self._written.pop(name, None)
        if group_node is None:
            self._forget(name)
            self._failed.pop(name, None)
            self._taken_back.pop(name, None)
            self._kept_for.pop(name, None)
            self._queue.forget(name)
        elif group_node.is_leaving:
            self._queue.add(name)
        elif name in self._began_ns:
            self._taken_back[name] += 1
            self._forget(name)

    def look_again(self) -> None:
        """Something has changed that the removals under way may depend on."""
        for name in self._began_ns:
            self._queue.add(name)

    def answered(self, answered: Answered, now: int) -> str:
        """Take in how an action ended; the name of a node that could not be marked, or ""."""
        action = answered.action
        if isinstance(action, Evict):
            self._evictions.answered(answered, now)
            self.look_again()
        if not isinstance(action, PatchObject | DeleteObject):
            return ""
        name = action.key
        if answered.problem is None:
            self._failed.pop(name, None)
            self._queue.succeed(name)
            return ""
        was_written = self._written.pop(name, None) is not None
        self._failed[name] += was_written
        if name in self._began_ns:
            self._queue.answer(name, answered, now)
            return ""
        return name if was_written else ""

    def work(self, now: int) -> list[Action]:
        """Do what is due."""
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            group_node = self._picture.nodes.get(name)
            if group_node is not None and group_node.is_leaving and not self._is_written(name, group_node):
                actions += self._go_on(name, group_node, now)
        return actions

    def deadline(self) -> Deadline:
        """When something is due for some node; that a removal is not to be written down once more is no news."""
        time_ns = self._queue.deadline().time_ns
        is_stuck = time_ns != 0 and all(
            self._failed[name] >= STUCK_AFTER for names in (self._began_ns, self._written) for name in names
        )
        return Deadline(time_ns, not is_stuck)

    def is_hopeless(self, name: str) -> bool:
        """Whether the node could not be marked, or was kept for the same pods as now, again and again."""
        if self._failed[name] >= STUCK_AFTER:
            return True
        return self._taken_back[name] >= STUCK_AFTER and self._kept_for.get(name) == _uids(self._residents(name))

    def _go_on(self, name: str, group_node: GroupNode, now: int) -> list[Action]:
        """Evict the node's pods; delete it when they are gone; or take it all back."""
        residents = self._residents(name)
        reason = self._why_not(name, group_node, residents, now)
        if reason:
            self._kept_for[name] = _uids(residents)
            taints = [taint for taint in _taints(group_node) if taint["key"] != REMOVAL_TAINT]
            return [self._write_taints(group_node, taints, f"scale-down is taken back: {reason}")]
        if residents.is_empty:
            self._written[name] = group_node.node.metadata.resource_version
            message = "scale-down: it is empty"
            return [DeleteObject("Node", name, group_node.node.metadata.uid, self._cause, message=message)]
        actions: list[Action] = []
        for pod in residents.to_evict:
            actions += self._evictions.ask(pod.key, pod.uid, now, self._grace_seconds(pod))
        self._plan(name, residents, now)
        return actions

    def _why_not(self, name: str, group_node: GroupNode, residents: Residents, now: int) -> str:
        """Why the removal has to be taken back, or ""."""
        self._began_ns.setdefault(name, _began_ns(group_node, now))
        if residents.obstacle:
            return residents.obstacle
        uids = _uids(residents)
        if name not in self._checked or not uids <= self._checked[name]:
            reason = self._why_kept(name)
            if reason:
                return reason
            self._checked[name] = uids
        refused = [pod for pod in residents.to_evict if self._evictions.of(pod.uid).next_ns is not None]
        if refused and now >= self._eviction_end_ns(name):
            message = self._evictions.of(refused[0].uid).message or "no answer"
            return f"{refused[0].key} could not be evicted: {message}"
        return "its pods take too long to end" if not residents.is_empty and now >= self._end_ns(name) else ""

    def _plan(self, name: str, residents: Residents, now: int) -> None:
        """Look again when an eviction is to be repeated, and when time is up."""
        for pod in residents.to_evict:
            next_ns = self._evictions.of(pod.uid).next_ns
            if next_ns is not None:
                self._queue.add_at(name, next_ns)
        ends = (self._eviction_end_ns(name), self._end_ns(name))
        self._queue.add_at(name, next(end for end in ends if end > now))

    def _eviction_end_ns(self, name: str) -> int:
        return self._began_ns[name] + self._settings.max_eviction_ns

    def _end_ns(self, name: str) -> int:
        return self._eviction_end_ns(name) + self._settings.max_graceful_termination_ns + _HEADROOM_NS

    def _grace_seconds(self, pod: PodRecord) -> int | None:
        """The longest that a pod with a longer grace period gets; None leaves it its own."""
        longest = self._settings.max_graceful_termination_ns // _SECOND
        return longest if pod.spec.termination_grace_period_seconds > longest else None

    def _write_taints(self, group_node: GroupNode, taints: list[Raw], message: str) -> PatchObject:
        meta = group_node.node.metadata
        self._written[meta.name] = meta.resource_version
        patch = {"metadata": {"resourceVersion": meta.resource_version}, "spec": {"taints": taints}}
        return PatchObject("Node", meta.name, meta.uid, patch, self._cause, message=message)

    def _is_written(self, name: str, group_node: GroupNode) -> bool:
        """Whether a write has been asked for whose effect is still to be seen."""
        return self._written.get(name) == group_node.node.metadata.resource_version

    def _forget(self, name: str) -> None:
        self._evictions.forget(self._checked.pop(name, ()))
        self._began_ns.pop(name, None)
        self._written.pop(name, None)


def _taints(group_node: GroupNode) -> list[Raw]:
    taints: list[Raw] = group_node.raw.get("spec", {}).get("taints", [])
    return taints


def _began_ns(group_node: GroupNode, now: int) -> int:
    """When the removal began, as its taint says; now where that cannot be read."""
    taint = removal_taint(group_node.node)
    return int(taint.value) * _SECOND if taint is not None and taint.value.isdecimal() else now


def _uids(residents: Residents) -> frozenset[str]:
    return frozenset(pod.uid for pod in residents.to_evict)
