"""The cluster as one scheduler knows it, brought up to date event by event.

There is no snapshot: a scheduling cycle is synchronous, so the live columns are what it decides on.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from podium.api.disruption_policy import DisruptionPolicy
from podium.api.meta import Kubernetes
from podium.api.node import Namespace, Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from podium.cluster.affinity_term import NamespaceLabels
from podium.cluster.arrays import Int64s
from podium.cluster.budgets import Budget, Budgets
from podium.cluster.carried_terms import CarriedTerms
from podium.cluster.devices import DeviceObject, Devices
from podium.cluster.disruption_cap import DisruptionCap
from podium.cluster.groups import Groups
from podium.cluster.matchers import Matcher, Matchers, Predicate
from podium.cluster.nodes import NodeColumns
from podium.cluster.nominations import Nominations
from podium.cluster.pod_class import PodClass, PodClasses
from podium.cluster.pods import NO_ROW, PodRecord, PodTable, read_pod
from podium.cluster.storage import Storage, StorageObject


class Cluster:
    """Nodes, the pods on them, and everything else that placement depends on.

    Without ``honors_policy`` no pod's preemption policy counts. ``placed`` holds the pods that occupy room
    (running, bound or assumed) by uid; pending pods are the queue's. ``claim_users`` counts, by a claim's key, the
    volumes of pods on nodes that mount it; unused claims are absent.
    """

    def __init__(self, *, honors_policy: bool = True) -> None:
        self._honors_policy = honors_policy
        self.nodes = NodeColumns()
        self.namespaces = NamespaceLabels()
        self.classes = PodClasses(self.nodes)
        self.matchers = Matchers(self.nodes, self.namespaces)
        self.carried = CarriedTerms(self.namespaces)
        self.pods = PodTable()
        self.placed: dict[str, PodRecord] = {}
        self.claim_users: dict[str, int] = {}
        self.nominations = Nominations(self.nodes)
        self.budgets = Budgets()
        self.cap = DisruptionCap()
        self.storage = Storage()
        self.devices = Devices()
        self.groups = Groups()
        self._on_row: list[dict[int, PodRecord]] = []
        self._astray: dict[str, dict[str, PodRecord]] = {}

    def read(self, pod: Pod) -> PodRecord:
        """The record of a pod as the API shows it; the cluster itself does not change but for learning its class."""
        known = len(self.classes)
        pod_class = self.classes.of(pod)
        if pod_class.id == known:
            self._admit(pod_class)
        return read_pod(pod, pod_class, honors_policy=self._honors_policy)

    def put(self, item: Kubernetes) -> None:
        """Add or replace any object but a pod; kinds that placement does not depend on are passed over."""
        match item:
            case Node():
                self.put_node(item)
            case Namespace():
                self.put_namespace(item)
            case PodDisruptionBudget():
                self.budgets.put(item)
            case DisruptionPolicy():
                self.cap.observe(item)
            case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
                self.groups.put(item)
            case _ if isinstance(item, StorageObject):
                self.storage.put(item)
            case _ if isinstance(item, DeviceObject):
                self._backed_anew(self.devices.put(item))

    def find(self, item: Kubernetes) -> Kubernetes | None:
        """What is known of an object of storage or devices; None where it is new, or of another kind."""
        if isinstance(item, StorageObject):
            return self.storage.find(item)
        return self.devices.find(item) if isinstance(item, DeviceObject) else None

    def remove(self, item: Kubernetes) -> None:
        """Forget any object but a pod."""
        match item:
            case Node():
                self.remove_node(item.metadata.name)
            case Namespace():
                self._relabelled(self.namespaces.remove(item.metadata.name))
            case PodDisruptionBudget():
                self.budgets.remove(item.key)
            case DisruptionPolicy():
                self.cap.observe(None)
            case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
                self.groups.remove(item)
            case _ if isinstance(item, StorageObject):
                self.storage.remove(item)
            case _ if isinstance(item, DeviceObject):
                self._backed_anew(self.devices.remove(item))

    def pass_time(self, now: int) -> None:
        """What is left of rates is as of ``now`` (nanoseconds) from here on; nothing else depends on time."""
        self.budgets.pass_time(now)
        self.cap.now = now

    def rows_of(self, budgets: Iterable[Budget]) -> Int64s:
        """The rows with pods that some of the budgets count, ascending."""
        classes = np.zeros(len(self.classes.all), dtype=np.bool_)
        for budget in budgets:
            classes[[one.id for one in self.classes.all if budget.counts(one)]] = True
        count = self.pods.count
        rows = self.pods.row[:count][classes[self.pods.pod_class[:count]]]
        return np.unique(rows[rows != NO_ROW]).astype(np.int64)

    def put_namespace(self, namespace: Namespace) -> None:
        """Learn a namespace's labels."""
        self._relabelled(self.namespaces.put(namespace.metadata.name, namespace.metadata.labels))

    def put_node(self, node: Node) -> int:
        """Add or replace a node; pods that were waiting for it under its name are on it now. Returns its row."""
        name = node.metadata.name
        row = self.nodes.row_of.get(name)
        relabelled = row is None or self.nodes.node(row).metadata.labels != node.metadata.labels
        capacity = self.nodes.capacity
        row = self.nodes.put(node)
        if self.nodes.capacity != capacity:
            self.matchers.grow()
        if relabelled:
            self.matchers.forget_domains()
        while len(self._on_row) <= row:
            self._on_row.append({})
        for record in self._astray.pop(name, {}).values():
            self._settle(record, row)
        return row

    def remove_node(self, name: str) -> None:
        """Forget a node. Its pods stay known, on no row, until they are removed or the node comes back."""
        row = self.nodes.row_of[name]
        for record in list(self._on_row[row].values()):
            self._unsettle(record)
            self._astray.setdefault(name, {})[record.uid] = record
        self.nodes.remove(name)
        self.matchers.forget_domains()

    def add_pod(self, record: PodRecord) -> None:
        """Let a pod with a node name occupy its node. Raises ValueError for a uid that does so already."""
        if record.uid in self.placed:
            raise ValueError(f"pod {record.key} ({record.uid}) is placed already")
        self.placed[record.uid] = record
        row = self.nodes.row_of.get(record.node_name, NO_ROW)
        if row == NO_ROW:
            self.pods.put(record)
            self._astray.setdefault(record.node_name, {})[record.uid] = record
        else:
            self.pods.put(record)
            self._settle(record, row)

    def remove_pod(self, uid: str) -> PodRecord:
        """Let a placed pod leave its node; returns its record. Raises KeyError for one that is not placed."""
        record = self.placed.pop(uid)
        if record.row == NO_ROW:
            astray = self._astray[record.node_name]
            del astray[uid]
            if not astray:
                del self._astray[record.node_name]
        else:
            self._unsettle(record)
        self.pods.remove(record)
        return record

    def replace_pod(self, record: PodRecord) -> None:
        """Put a newer reading in place of a placed pod. Little is done where only its start or its marks changed."""
        old = self.placed[record.uid]
        kept = (old.node_name, old.pod_class, old.priority, old.terminating)
        if kept != (record.node_name, record.pod_class, record.priority, record.terminating):
            self.remove_pod(record.uid)
            self.add_pod(record)
            return
        record.row, record.slot = old.row, old.slot
        self.placed[record.uid] = record
        self.pods.replace(record)
        if record.row == NO_ROW:
            self._astray[record.node_name][record.uid] = record
        else:
            self._on_row[record.row][record.slot] = record
            before, now = ((one.start_ns, one.is_preemptible, one.is_mirror, one.owner_uid) for one in (old, record))
            if before != now or (old.ready != record.ready and self.budgets.counts(record.pod_class)):
                self.nodes.changes.touch(record.row)

    def pods_on(self, row: int) -> list[PodRecord]:
        """The pods on a node, by slot."""
        on_row = self._on_row[row]
        return [on_row[slot] for slot in sorted(on_row)]

    def matcher(self, predicate: Predicate) -> Matcher:
        """The counts of the pods that match a predicate, from now on kept up to date."""
        matcher = self.matchers.find(predicate)
        if matcher is None:
            matcher = self.matchers.register(predicate, self.classes.all)
            for record in self.placed.values():
                if record.row != NO_ROW and matcher.classes[record.pod_class.id]:
                    matcher.count[record.row] += not (record.terminating and predicate.live_only)
        return matcher

    def domain_counts(self, predicate: Predicate, key: str) -> Int64s:
        """``[codes]`` pods that match in each domain of a topology key; code 0 holds nodes without the label."""
        return self.matchers.domain(self.matcher(predicate), key)

    def _relabelled(self, changed: bool) -> None:
        """Ask anew which pods the terms mean, where the labels of a namespace ``changed``."""
        if changed:
            self.matchers.clear()
            self.carried.forget_selections()

    def _backed_anew(self, changed: bool) -> None:
        """Look at all nodes anew, where classes of devices came to stand for other extended resources."""
        if changed:
            for row in self.nodes.row_of.values():
                self.nodes.changes.touch(row)
                self.nodes.node_changes.touch(row)

    def _admit(self, pod_class: PodClass) -> None:
        self.matchers.admit(pod_class)
        self.carried.admit(pod_class)

    def _settle(self, record: PodRecord, row: int) -> None:
        record.row = row
        self.pods.row[record.slot] = row
        self._on_row[row][record.slot] = record
        self._count(record, 1)

    def _unsettle(self, record: PodRecord) -> None:
        self._count(record, -1)
        del self._on_row[record.row][record.slot]
        record.row = NO_ROW
        self.pods.row[record.slot] = NO_ROW

    def _count(self, record: PodRecord, sign: int) -> None:
        nodes, row, pod_class = self.nodes, record.row, record.pod_class
        for resource, amount in pod_class.requests.items():
            nodes.requested[resource, row] += sign * amount
        nodes.nonzero_requested[0, row] += sign * pod_class.nonzero[0]
        nodes.nonzero_requested[1, row] += sign * pod_class.nonzero[1]
        nodes.pod_count[row] += sign
        for name in pod_class.claims:
            key = f"{pod_class.namespace}/{name}"
            self.claim_users[key] = users = self.claim_users.get(key, 0) + sign
            if not users:
                del self.claim_users[key]
        for matcher in self.matchers.counting(pod_class):
            if not (record.terminating and matcher.predicate.live_only):
                matcher.add(row, sign, nodes)
        nodes.changes.touch(row)
