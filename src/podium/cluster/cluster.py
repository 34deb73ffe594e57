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
from podium.api.pod_group import PodGroup
from podium.api.policy import PodDisruptionBudget
from podium.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from podium.cluster.affinity_term import NamespaceLabels
from podium.cluster.arrays import Int64s
from podium.cluster.budgets import Budget, Budgets
from podium.cluster.carried_terms import CarriedTerms
from podium.cluster.devices import DeviceObject, Devices
from podium.cluster.disruption_caps import DisruptionCaps
from podium.cluster.groups import Groups
from podium.cluster.marks import NAMESPACE
from podium.cluster.matchers import Matcher, Matchers, Predicate
from podium.cluster.node_view import NodeViews
from podium.cluster.nodes import NodeColumns
from podium.cluster.nominations import Nominations
from podium.cluster.pod_class import PodClass
from podium.cluster.pod_classes import PodClasses
from podium.cluster.pod_groups import PodGroups
from podium.cluster.pods import NO_ROW, PodRecord, PodTable, read_pod
from podium.cluster.replacements import Replacements
from podium.cluster.storage import Storage, StorageObject


class Cluster:
    """Nodes, the pods on them, and everything else that placement depends on.

    Without ``honors_policy`` no pod's preemption policy counts. ``placed`` holds the pods that occupy room
    (running, bound or assumed) by uid; pending pods are the queue's. ``claim_users`` counts, by a claim's key, the
    volumes of pods on nodes that mount it; unused claims are absent. With ``notes_every_reading`` a row counts as
    changed with every new reading of a pod on it, whatever has changed in it.
    """

    def __init__(self, *, honors_policy: bool = True) -> None:
        self._honors_policy = honors_policy
        self.nodes = NodeColumns()
        self.namespaces = NamespaceLabels()
        self.classes = PodClasses(self.nodes)
        self.matchers = Matchers(self.nodes, self.namespaces)
        self.carried = CarriedTerms(self.namespaces, self.classes)
        self.pods = PodTable()
        self.placed: dict[str, PodRecord] = {}
        self.claim_users: dict[str, int] = {}
        self.pod_groups = PodGroups()
        self.nominations = Nominations(self.nodes, self.pod_groups)
        self.replacements = Replacements()
        self.budgets = Budgets()
        self.caps = DisruptionCaps()
        self.now = 0
        self.storage = Storage()
        self.devices = Devices()
        self.groups = Groups()
        self._on_row: list[dict[int, PodRecord]] = []
        self.node_views = NodeViews(self.nodes, self._on_row)
        self.notes_every_reading = False
        self._astray: dict[str, dict[str, PodRecord]] = {}

    def read(self, pod: Pod, known_class: PodClass | None = None) -> PodRecord:
        """The record of a pod as the API shows it; the cluster itself does not change but for learning its class.

        The class is known for as long as there is such a record of some pod. ``known_class`` is the pod's class where
        that is known already.
        """
        if self.classes.ended:
            self._forget_ended()
        pod_class, is_new = (known_class, False) if known_class is not None else self.classes.of(pod)
        if is_new:
            self.matchers.admit(pod_class)
            self.carried.admit(pod_class)
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
                self.caps.observe(item)
            case PodGroup():
                self.pod_groups.put(item)
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
                if self.namespaces.remove(item.metadata.name):
                    self._ask_again(item.metadata.name)
            case PodDisruptionBudget():
                self.budgets.remove(item.key)
            case DisruptionPolicy():
                self.caps.observe(None)
            case PodGroup():
                self.pod_groups.remove(item.key)
            case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
                self.groups.remove(item)
            case _ if isinstance(item, StorageObject):
                self.storage.remove(item)
            case _ if isinstance(item, DeviceObject):
                self._backed_anew(self.devices.remove(item))

    def pass_time(self, now: int) -> None:
        """What is left of rates, and how long pods have run, is as of ``now`` (nanoseconds) from here on."""
        self.now = now
        self.budgets.pass_time(now)
        self.caps.now = now

    def rows_of(self, budgets: Iterable[Budget]) -> Int64s:
        """The rows with pods that some of the budgets count, ascending."""
        found = {
            candidate.id
            for budget in budgets
            for candidate in self.classes.candidates(budget.needs)
            if budget.counts(candidate)
        }
        rows = self.pods.row[self.pods.slots_of(found)]
        return np.unique(rows[rows != NO_ROW]).astype(np.int64)

    def put_namespace(self, namespace: Namespace) -> None:
        """Learn a namespace's labels."""
        name = namespace.metadata.name
        if self.namespaces.put(name, namespace.metadata.labels):
            self._ask_again(name)

    def put_node(self, node: Node) -> int:
        """Add or replace a node; pods that were waiting for it under its name are on it now. Returns its row."""
        name = node.metadata.name
        row = self.nodes.row_of.get(name)
        moving: list[PodRecord] = []
        if row is not None and self.nodes.node(row).metadata.labels != node.metadata.labels:
            moving = list(self._on_row[row].values())
        for record in moving:
            self._match(record, -1)
        capacity = self.nodes.capacity
        row = self.nodes.put(node)
        self.node_views.forget(row)
        if self.nodes.capacity != capacity:
            self.matchers.grow()
        for record in moving:
            self._match(record, 1)
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
        self.node_views.forget(row)

    def add_pod(self, record: PodRecord) -> None:
        """Let a pod with a node name occupy its node. Raises ValueError for a uid that does so already."""
        if record.uid in self.placed:
            raise ValueError(f"pod {record.key} ({record.uid}) is placed already")
        self.placed[record.uid] = record
        row = self.nodes.row_of.get(record.node_name)
        self.pods.put(record)
        if row is None:
            self._astray.setdefault(record.node_name, {})[record.uid] = record
        else:
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
        if self.classes.ended:
            self._forget_ended()
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
            self.node_views.forget(record.row)
            if self.notes_every_reading:
                self.nodes.touch(record.row)
            elif not record.ranks_as(old) or (old.ready != record.ready and self.budgets.counts(record.pod_class)):
                self.nodes.changes.touch(record.row)

    def pods_on(self, row: int) -> list[PodRecord]:
        """The pods on a node, by slot."""
        on_row = self._on_row[row]
        return [on_row[slot] for slot in sorted(on_row)]

    def matcher(self, predicate: Predicate) -> Matcher:
        """The counts of the pods that match a predicate, from now on kept up to date."""
        matcher = self.matchers.find(predicate)
        if matcher is None:
            matcher = self.matchers.register(predicate, self.classes)
            slots = self.pods.slots_of(matcher.classes)
            if len(slots):
                rows = self.pods.row[slots]
                counted = rows != NO_ROW
                if predicate.live_only:
                    counted &= ~self.pods.terminating[slots]
                np.add.at(matcher.count, rows[counted], 1)
        return matcher

    def domain_counts(self, predicate: Predicate, key: str) -> Int64s:
        """``[codes]`` pods that match in each domain of a topology key; code 0 holds nodes without the label."""
        return self.matchers.domain(self.matcher(predicate), key)

    def _ask_again(self, namespace: str) -> None:
        """Ask anew which terms mean the pods of a namespace whose labels changed."""
        for pod_class in self.classes.candidates([[(NAMESPACE, namespace)]]):
            self.matchers.ask_again(pod_class)
            self.carried.ask_again(pod_class)

    def _forget_ended(self) -> None:
        for reference in self.classes.take_ended():
            self.matchers.end(reference.id)
            self.carried.end(reference.id, reference.carried)

    def _backed_anew(self, changed: bool) -> None:
        """Look at all nodes anew, where classes of devices came to stand for other extended resources."""
        if changed:
            for row in self.nodes.row_of.values():
                self.nodes.touch(row)
                self.nodes.node_changes.touch(row)

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
        nodes.count_pod(row, pod_class.requests, pod_class.nonzero, sign)
        if pod_class.claims:
            self._count_claims(pod_class, sign)
        self._match(record, sign)
        nodes.touch(row)
        self.node_views.forget(row)

    def _count_claims(self, pod_class: PodClass, sign: int) -> None:
        for name in pod_class.claims:
            key = f"{pod_class.namespace}/{name}"
            self.claim_users[key] = users = self.claim_users.get(key, 0) + sign
            if not users:
                del self.claim_users[key]

    def _match(self, record: PodRecord, sign: int) -> None:
        for matcher in self.matchers.counting(record.pod_class):
            if not (record.terminating and matcher.predicate.live_only):
                matcher.add(record.row, sign, self.nodes)
