"""Node removals (mark, empty and delete nodes, or keep them), and the autoscaler's view of the cluster.

The view has observed objects, and upcoming nodes as if they existed. A removal and its start are stored in the node's
taint, so that a restarted autoscaler continues. Source: autoscaler cluster-autoscaler/core/scaledown/actuation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from podium.api.meta import Kubernetes, OwnerReference, Raw, objects_at
from podium.api.node import READY, Node, condition_status
from podium.api.pod import Pod
from podium.api.reading import read
from podium.api.times import SECOND
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.api.workloads import DaemonSet
from podium.cluster.pods import PodRecord
from podium.controllers import controller, deadlines, observations
from podium.controllers.actions import Action, DeleteObject, Evict, PatchObject, deletion_of, versioned_patch
from podium.controllers.cluster_view import ClusterView
from podium.controllers.disruption.drain import STUCK_AFTER, EvictionRetries
from podium.controllers.scheduling.queue.hints import node_changes
from podium.decide import autoscaling as scaling
from podium.decide.autoscaling import REMOVAL_TAINT, Residents, ScaleDownSettings, removal_taint
from podium.decide.evictions import DAEMON_SET


class GroupNode(Struct, frozen=True):
    """A node of a group. ``is_expected``: it was requested and not observed yet."""

    node: Node
    raw: Raw
    group: str
    is_expected: bool = False

    @property
    def is_upcoming(self) -> bool:
        """Return whether it has not started yet."""
        return self.is_expected or scaling.is_starting(self.node)

    @property
    def taints(self) -> list[Raw]:
        return objects_at(self.raw, "spec", "taints")

    @property
    def is_leaving(self) -> bool:
        """Return whether it is being removed."""
        return scaling.removal_taint(self.node) is not None


class AutoscalerView(ClusterView):
    """The observed state for one autoscaler.

    ``nodes`` are the groups' nodes by name, ``upcoming`` those that have not started, ``nodes_of`` the names by group,
    with nodes that start or leave. ``daemons`` has a pod of each DaemonSet.
    """

    def __init__(self, groups: Iterable[str], release: Release = DEFAULT_RELEASE) -> None:
        super().__init__(release)
        self.nodes: dict[str, GroupNode] = {}
        self.upcoming: set[str] = set()
        self.nodes_of: dict[str, dict[str, None]] = {group: {} for group in groups}
        self.daemons: dict[str, PodRecord] = {}

    def observe(self, object_: Kubernetes, raw: Raw | None) -> bool:
        if not isinstance(object_, DaemonSet):
            return super().observe(object_, raw)
        meta, template, before = object_.metadata, object_.spec.template, self.daemons.pop(object_.key, None)
        if raw is None:
            return before is not None
        owner = OwnerReference(kind=DAEMON_SET, name=meta.name, uid=meta.uid, controller=True)
        own = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "owner_references": (owner,)}
        pod = Pod(metadata=replace(template.metadata, **own), spec=template.spec)
        daemon = self.daemons[object_.key] = self.cluster.read(pod)
        return before is None or (before.uid, before.pod_class) != (daemon.uid, daemon.pod_class)

    def pods_on(self, node_name: str) -> list[PodRecord]:
        """Return the pods on a node that have not ended."""
        row = self.cluster.nodes.row_of.get(node_name)
        return [] if row is None else self.cluster.pods_on(row)

    def expect(self, group: str, raw: Raw) -> None:
        """Add a node of a group that is about to be created."""
        self._put_node(GroupNode(read(raw, Node), raw, group, is_expected=True))

    def give_up(self, name: str) -> None:
        """Remove an expected node that was not created."""
        group_node = self.nodes.get(name)
        if group_node is not None and group_node.is_expected:
            self._forget_node(name)
            self._updater.delete_object(group_node.node)

    def _difference(self, pod: Pod, record: PodRecord) -> tuple[object, ...] | None:
        """Return the properties of a pod that affect decisions; None for one that was not attempted yet."""
        is_unschedulable = pod.is_unschedulable
        if not (record.node_name or record.nominated_node_name or is_unschedulable):
            return None
        return (
            record.node_name,
            record.nominated_node_name,
            is_unschedulable,
            record.pod_class.id,
            record.priority,
            record.terminating,
            record.annotations.get(scaling.SAFE_TO_EVICT),
            record.annotations.get(scaling.DAEMON_SET_POD),
        )

    def _node_changed(self, node: Node, raw: Raw) -> bool:
        name = node.metadata.name
        before = self._updater.known_node(name)
        was_upcoming = name in self.upcoming
        self._put_node(GroupNode(node, raw, node.metadata.labels.get(scaling.GROUP_LABEL, "")))
        after = scaling.started(node)
        return (
            before is None
            or was_upcoming != (name in self.upcoming)
            or bool(node_changes(before, after))
            or condition_status(before, READY) != condition_status(after, READY)
            or before.metadata.annotations.get(scaling.SCALE_DOWN_DISABLED)
            != after.metadata.annotations.get(scaling.SCALE_DOWN_DISABLED)
        )

    def _put_node(self, group_node: GroupNode) -> None:
        """Keep a node; a starting one is treated as started."""
        name = group_node.node.metadata.name
        self._forget_node(name)
        if group_node.group not in self.nodes_of:
            self._updater.update_object(group_node.node)
            return
        self.nodes[name] = group_node
        self.nodes_of[group_node.group][name] = None
        if group_node.is_upcoming:
            self.upcoming.add(name)
        self._updater.update_object(scaling.started(group_node.node))

    def _node_gone(self, node: Node) -> bool:
        name = node.metadata.name
        group_node = self.nodes.get(name)
        if group_node is not None and group_node.is_expected:
            return False
        self._forget_node(name)
        return self._updater.delete_object(node) is not None

    def _forget_node(self, name: str) -> None:
        group_node = self.nodes.pop(name, None)
        self.upcoming.discard(name)
        if group_node is not None:
            del self.nodes_of[group_node.group][name]


_RETRY_NS = 10 * SECOND
# The time that pods get beyond their grace period.
_HEADROOM_NS = 30 * SECOND


@dataclass(eq=False)
class NodeRemovals:
    """Removes nodes of groups.

    ``residents`` returns the pods affected by a removal; ``why_kept`` why they cannot be moved, or "". Both are checked
    again after the node is marked, and when pods arrive, which may have been bound before the scheduler observed the
    mark.
    """

    picture: AutoscalerView
    settings: ScaleDownSettings
    cause: str
    residents: Callable[[str], Residents]
    why_kept: Callable[[str], str]
    _queue: controller.WorkQueue[str] = field(default_factory=controller.WorkQueue)
    # By name: the start of the removal; the pods that can be moved; failed writes in a row.
    _began_ns: dict[str, int] = field(default_factory=dict)
    _checked: dict[str, frozenset[str]] = field(default_factory=dict)
    _failed: Counter[str] = field(default_factory=Counter)
    # By name, the version of a write that has not failed.
    _written: dict[str, str] = field(default_factory=dict)
    # By name, the pods that prevent the removal, and how often it was cancelled.
    _kept_for: dict[str, frozenset[str]] = field(default_factory=dict)
    _taken_back: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._evictions = EvictionRetries(self.cause, _RETRY_NS)

    def under_way(self) -> list[str]:
        """Return the nodes that are being removed or about to be marked, by name."""
        return sorted({*self._began_ns, *self._written})

    def begin(self, name: str, now: int) -> Action:
        """Mark a node, so that no more pods are bound to it."""
        group_node = self.picture.nodes[name]
        taint = {"key": REMOVAL_TAINT, "value": str(now // SECOND), "effect": "NoSchedule"}
        return self._write_taints(group_node, [*group_node.taints, taint], "scale-down: it is not needed")

    def on_node_change(self, name: str) -> None:
        """Record the observed state of a node, or its end."""
        group_node = self.picture.nodes.get(name)
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
        """Check all removals after a relevant change."""
        self._queue.add_all(self._began_ns)

    def on_finished(self, finished: observations.ActionFinished, now: int) -> str:
        """Handle an answer; return the name of a node that could not be marked, or ""."""
        action = finished.action
        if isinstance(action, Evict):
            self._evictions.on_finished(finished, now)
            self.look_again()
        if not isinstance(action, PatchObject | DeleteObject):
            return ""
        name = action.key
        if finished.problem is None:
            self._failed.pop(name, None)
            self._queue.succeed(name)
            return ""
        was_written = self._written.pop(name, None) is not None
        self._failed[name] += was_written
        if name in self._began_ns:
            self._queue.answer(name, finished, now)
            return ""
        return name if was_written else ""

    def work(self, now: int) -> list[Action]:
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            group_node = self.picture.nodes.get(name)
            if group_node is not None and group_node.is_leaving and not self._is_written(name, group_node):
                actions += self._go_on(name, group_node, now)
        return actions

    def deadline(self) -> deadlines.Deadline:
        """Return when a node is due; repeated failures do not keep a simulation running."""
        time_ns = self._queue.deadline().time_ns
        is_stuck = time_ns != 0 and all(
            self._failed[name] >= STUCK_AFTER for names in (self._began_ns, self._written) for name in names
        )
        return deadlines.Deadline(time_ns, not is_stuck)

    def is_hopeless(self, name: str) -> bool:
        """Return whether the node repeatedly could not be marked, or was kept for the same pods as now."""
        if self._failed[name] >= STUCK_AFTER:
            return True
        return self._taken_back[name] >= STUCK_AFTER and self._kept_for.get(name) == _uids(self.residents(name))

    def _go_on(self, name: str, group_node: GroupNode, now: int) -> list[Action]:
        """Evict the node's pods; delete it when they are gone; or cancel the removal."""
        residents = self.residents(name)
        if reason := self._why_not(name, group_node, residents, now):
            self._kept_for[name] = _uids(residents)
            taints = [taint for taint in group_node.taints if taint["key"] != REMOVAL_TAINT]
            return [self._write_taints(group_node, taints, f"scale-down is canceled: {reason}")]
        if residents.is_empty:
            self._written[name] = group_node.node.metadata.resource_version
            return [deletion_of(group_node.node, self.cause, message="scale-down: it is empty")]
        actions: list[Action] = []
        for pod in residents.to_evict:
            longest = self.settings.max_graceful_termination_ns // SECOND
            grace_seconds = longest if pod.spec.termination_grace_period_seconds > longest else None
            actions += self._evictions.ask(pod.key, pod.uid, now, grace_seconds)
        # Check again when an eviction is due, and when time is up.
        for pod in residents.to_evict:
            self._queue.add_by(name, self._evictions.of(pod.uid).next_ns)
        ends = (self._eviction_end_ns(name), self._end_ns(name))
        self._queue.add_by(name, next(end for end in ends if end > now))
        return actions

    def _why_not(self, name: str, group_node: GroupNode, residents: Residents, now: int) -> str:
        """Return why the removal must be cancelled, or ""."""
        self._began_ns.setdefault(name, _began_ns(group_node, now))
        if residents.obstacle:
            return residents.obstacle
        uids = _uids(residents)
        if name not in self._checked or not uids <= self._checked[name]:
            if reason := self.why_kept(name):
                return reason
            self._checked[name] = uids
        refused = [pod for pod in residents.to_evict if self._evictions.of(pod.uid).next_ns is not None]
        if refused and now >= self._eviction_end_ns(name):
            message = self._evictions.of(refused[0].uid).message or "no answer"
            return f"{refused[0].key} could not be evicted: {message}"
        return "its pods take too long to end" if not residents.is_empty and now >= self._end_ns(name) else ""

    def _eviction_end_ns(self, name: str) -> int:
        return self._began_ns[name] + self.settings.max_eviction_time_ns

    def _end_ns(self, name: str) -> int:
        return self._eviction_end_ns(name) + self.settings.max_graceful_termination_ns + _HEADROOM_NS

    def _write_taints(self, group_node: GroupNode, taints: list[Raw], message: str) -> PatchObject:
        node = group_node.node
        self._written[node.metadata.name] = node.metadata.resource_version
        return versioned_patch(node, {"spec": {"taints": taints or None}}, self.cause, message=message)

    def _is_written(self, name: str, group_node: GroupNode) -> bool:
        """Return whether the effect of a write was not observed yet."""
        return self._written.get(name) == group_node.node.metadata.resource_version

    def _forget(self, name: str) -> None:
        self._evictions.forget(self._checked.pop(name, ()))
        self._began_ns.pop(name, None)
        self._written.pop(name, None)


def _began_ns(group_node: GroupNode, now: int) -> int:
    """Return the start of the removal from its taint; now if that cannot be read."""
    taint = removal_taint(group_node.node)
    return int(taint.value) * SECOND if taint is not None and taint.value.isdecimal() else now


def _uids(residents: Residents) -> frozenset[str]:
    return frozenset(pod.uid for pod in residents.to_evict)
