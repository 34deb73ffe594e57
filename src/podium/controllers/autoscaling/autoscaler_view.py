"""The autoscaler's view of the cluster: observed objects, and upcoming nodes as if they existed."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from podium.api.meta import Kubernetes, OwnerReference, Raw
from podium.api.node import READY, Node, condition_status
from podium.api.pod import Pod
from podium.api.reading import read
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.api.workloads import DaemonSet
from podium.cluster.pods import PodRecord
from podium.controllers.cluster_view import ClusterView
from podium.controllers.scheduling.queue.hints import node_changes
from podium.decide import autoscaling as scaling
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
