"""Nominated pods, by the node on which they wait for room, and the members of pod groups.

Source: pkg/scheduler/backend/queue/nominator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from podium.api.pod_group import PodGroup
from podium.cluster.arrays import discard, take_out
from podium.cluster.nodes import NodeColumns
from podium.cluster.pods import PodRecord

KeepsRoom = Callable[[PodRecord, PodRecord], bool]
"""Return whether the first pod, which is nominated, keeps the second one from the room that it waits for."""


class Nominations:
    """Nominated pods by node. A row changes when a nomination to it begins or ends.

    A nominated pod keeps room from pods of at most its priority, unless the plugin that preempted for it has its own
    rule: ``rules`` are by the nominated pod's scheduler name. A pod group can raise the priority
    (`PodGroups.priority_of`).

    With ``reach_domains``, less important pods see nominated pods as if they were on their nodes already, also where
    filters look at pods of other nodes. kube-scheduler counts them for their nodes only. With ``counts_gated``, those
    of new pods with scheduling gates count; kube-scheduler up to 1.36 ignores them.
    """

    def __init__(self, nodes: NodeColumns, groups: PodGroups) -> None:
        self.reach_domains = False
        self.counts_gated = False
        self._nodes = nodes
        self.priority = groups.priority_of
        """The function that returns the priority by which a nominated pod keeps its room."""
        self.rules: dict[str, KeepsRoom] = {}
        self._node_of: dict[str, str] = {}
        self.uids = self._node_of.keys()
        """A live view of the uids of all nominated pods, since every pod checks whether there are any."""
        self._pods_on: dict[str, dict[str, PodRecord]] = {}
        self._victims_of: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._node_of

    def put(self, pod: PodRecord, node_name: str, victims: Iterable[str] | None = None) -> None:
        """Nominate ``pod`` to ``node_name``, instead of an earlier nomination.

        ``victims`` are the uids of the pods deleted for it; None keeps the earlier ones if the node is the same.
        """
        uid, before = pod.uid, self._node_of.get(pod.uid)
        if victims is None and before == node_name:
            if self._pods_on[node_name][uid] is pod:
                return
            victims = self._victims_of.get(uid)
        if before is not None:
            self.remove(uid)
        going = tuple(victims or ())
        if going:
            self._victims_of[uid] = going
        self._node_of[uid] = node_name
        self._pods_on.setdefault(node_name, {})[uid] = pod
        pod.nominated_node_name = node_name
        self._touch(node_name)

    def remove(self, uid: str) -> str:
        """End a pod's nomination and return its node, or ""."""
        node_name = self._node_of.pop(uid, "")
        if node_name:
            self._victims_of.pop(uid, None)
            self._pods_on[node_name][uid].nominated_node_name = ""
            take_out(self._pods_on, node_name, uid)
            self._touch(node_name)
        return node_name

    def node_of(self, uid: str) -> str:
        """Return the node that the pod is nominated to, or ""."""
        return self._node_of.get(uid, "")

    def victims_of(self, uid: str) -> tuple[str, ...]:
        """Return the uids of the pods that are deleted for a nominated pod."""
        return self._victims_of.get(uid, ())

    def victims(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the uid of each nominated pod with victims, and the uids of these."""
        return list(self._victims_of.items())

    def on(self, node_name: str) -> list[PodRecord]:
        """Return the pods nominated to a node, by falling priority, then key."""
        on_node = self._pods_on.get(node_name)
        if on_node is None:
            return []
        pods = list(on_node.values())
        return pods if len(pods) < 2 else sorted(pods, key=self._order)

    def rivals(self, row: int, pod: PodRecord, own_uid: str) -> list[PodRecord]:
        """Return the pods nominated to a row's node that count for ``pod``, ordered as `on`, without ``own_uid``."""
        on_node = self._pods_on.get(self._nodes.names[row])
        if on_node is None:
            return []
        least, rules = pod.priority, self.rules
        pods: list[PodRecord] = []
        # A loop, since most nodes have at most one. A group never lowers a priority.
        for uid, other in on_node.items():
            if uid != own_uid and ((other.priority >= least and not rules) or self.counts_for(other, pod)):
                pods.append(other)
        return pods if len(pods) < 2 else sorted(pods, key=self._order)

    def counts_for(self, nominated: PodRecord, pod: PodRecord) -> bool:
        """Return whether ``nominated`` keeps ``pod`` from its room. Raises PluginError if a plugin's rule fails."""
        if (rule := self.rules.get(nominated.scheduler_name)) is not None:
            return rule(nominated, pod)
        return nominated.priority >= pod.priority or self.priority(nominated) >= pod.priority

    def depend_on_pods(self) -> bool:
        """Return whether verdicts may differ for pods of one class and priority, so that they hold for one pod only."""
        return len(self.rules) > 0 and len(self.uids) > 0

    def rows(self) -> list[int]:
        """Return the rows of existing nodes with nominated pods, ascending."""
        row_of = self._nodes.row_of
        return sorted(row_of[name] for name in self._pods_on if name in row_of)

    def on_row(self, row: int) -> list[PodRecord]:
        """Return the pods nominated to a row's node, ordered as `on`."""
        return self.on(self._nodes.names[row])

    def all(self) -> list[tuple[PodRecord, str]]:
        """Return every nominated pod with its node, ordered by node, then as `on`."""
        return [(pod, node_name) for node_name in sorted(self._pods_on) for pod in self.on(node_name)]

    def _order(self, pod: PodRecord) -> tuple[int, str]:
        return -self.priority(pod), pod.key

    def _touch(self, node_name: str) -> None:
        if (row := self._nodes.row_of.get(node_name)) is not None:
            self._nodes.changes.touch(row)


_NO_MEMBERS: Mapping[str, PodRecord] = {}


class PodGroups:
    """The PodGroups by key, and the pods that name each group, even if it does not exist.

    The pods are those that have not ended, by uid, as last observed.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, PodGroup] = {}
        # Counts the changes of groups and their pods.
        self.version = 0
        # True if any profile schedules by groups; if not, groups have no effect.
        self.are_scheduled = False
        self._stating: set[str] = set()
        self._members: dict[str, dict[str, PodRecord]] = {}
        self._leaving: dict[str, dict[str, None]] = {}
        self._group_of: dict[str, str] = {}

    def put(self, group: PodGroup) -> None:
        self.by_key[group.key] = group
        (self._stating.discard if group.spec.priority is None else self._stating.add)(group.key)
        self.version += 1

    def remove(self, key: str) -> None:
        """Remove a group; its pods keep naming it."""
        self.by_key.pop(key, None)
        self._stating.discard(key)
        self.version += 1

    def put_pod(self, record: PodRecord) -> None:
        """Record a pod, which may name another group than before."""
        uid, key = record.uid, record.pod_class.pod_group
        if self._group_of.get(uid, key) != key:
            self.drop_pod(uid)
        if not key:
            return
        self.version += 1
        self._group_of[uid] = key
        self._members.setdefault(key, {})[uid] = record
        if record.terminating:
            self._leaving.setdefault(key, {})[uid] = None

    def drop_pod(self, uid: str) -> None:
        """Remove a pod that has ended or was deleted."""
        key = self._group_of.pop(uid, None)
        if key is None:
            return
        self.version += 1
        take_out(self._members, key, uid)
        discard(self._leaving, key, uid)

    def members(self, key: str) -> Mapping[str, PodRecord]:
        """Return the pods that name a group, by uid, in the order of first observation."""
        return self._members.get(key, _NO_MEMBERS)

    def live(self, key: str) -> int:
        """Return the number of a group's pods that are not terminating."""
        return len(self._members.get(key, ())) - len(self._leaving.get(key, ()))

    def state_priorities(self) -> bool:
        """Return whether some effective group has a priority."""
        return self.are_scheduled and bool(self._stating)

    def stated_priority(self, key: str) -> int | None:
        """Return a group's priority; None if it has none or groups have no effect."""
        if not self.are_scheduled or key not in self._stating:
            return None
        return self.by_key[key].spec.priority

    def priority_of(self, pod: PodRecord) -> int:
        """Return the priority with which a pod keeps its room: its own, or its group's if that is higher.

        A group preempts with its own priority. If its pods kept their room by a lower one, the preempted pods would
        take it back, without end. Source: pkg/scheduler/framework/preemption/types.go (NewPodVictim, by
        getPodPriority).
        """
        if not self._stating:
            return pod.priority
        stated = self.stated_priority(pod.pod_class.pod_group)
        return pod.priority if stated is None else max(pod.priority, stated)

    def of(self, pod: PodRecord) -> PodGroup | None:
        """Return the existing group that a pod names; None if there is none."""
        key = pod.pod_class.pod_group
        return self.by_key.get(key) if key else None
