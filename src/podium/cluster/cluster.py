"""The cluster as one scheduler knows it, updated event by event.

There is no snapshot: a scheduling cycle is synchronous, so that it can use the live columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from msgspec import structs

from podium.api.disruption_policy import SCHEDULER, CapBucket, CapScope, DisruptionPolicy, Rate, full_times
from podium.api.meta import Kubernetes
from podium.api.node import Namespace, Node
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import PodDisruptionBudget
from podium.api.selectors import EVERYTHING, Selector, compile_label_selector, selector_from_labels
from podium.api.versions.apis import is_served, read_as_kept
from podium.api.versions.gates import Gate
from podium.api.versions.release import DEFAULT_RELEASE, Behavior, Release
from podium.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from podium.cluster.arrays import Int64s, add_count, take_out
from podium.cluster.budgets import Budget, Budgets
from podium.cluster.devices import DeviceObject, Devices
from podium.cluster.matchers import CarriedTerms, Matcher, Matchers, Predicate
from podium.cluster.nodes import NodeColumns
from podium.cluster.nominations import Nominations, PodGroups
from podium.cluster.pod_classes import NamespaceLabels, Owner, PodClass, PodClasses
from podium.cluster.pods import NO_ROW, PodRecord, PodTable, has_same_class, read_pod
from podium.cluster.replacements import ControlledPod, DisruptedWorkloads, Replacements, controlled_pod
from podium.cluster.selector_index import NAMESPACE, QueryIndex, selector_keys
from podium.cluster.storage import Storage, StorageObject
from podium.cluster.view import NodeViews


class Cluster:
    """Nodes, the pods on them, and everything else that placement depends on.

    ``release`` is the version of the scheduler that it is for. ``placed`` are the pods that occupy a node (running,
    bound or assumed) by uid; pending pods are in the queue. ``claim_users`` counts the volumes of placed pods by claim
    key. With ``notes_every_reading`` every update of a pod marks its row as changed, whatever changed in the pod.
    """

    def __init__(self, release: Release = DEFAULT_RELEASE) -> None:
        self.release = release
        self._honors_policy = release.enabled(Gate.NON_PREEMPTING_PRIORITY)
        self.nodes = NodeColumns()
        self.namespaces = NamespaceLabels(release)
        self.classes = PodClasses(self.nodes, release)
        self.matchers = Matchers(self.nodes, self.namespaces)
        self.carried = CarriedTerms(self.namespaces, self.classes)
        self.pods = PodTable()
        self.placed: dict[str, PodRecord] = {}
        # By uid: deleted victims whose deletion the API does not show yet, and until when they count as ending.
        self.deleted_victims: dict[str, int] = {}
        self.claim_users: dict[str, int] = {}
        self.pod_groups = PodGroups()
        self.nominations = Nominations(self.nodes, self.pod_groups)
        self.nominations.counts_gated = release.has(Behavior.GATED_NOMINATIONS_COUNT)
        self.replacements = Replacements()
        # In replays: the uid of the pod to attempt, and its recorded node, which is taken if chance may choose it.
        self.recorded_choice = ("", "")
        self.budgets = Budgets()
        self.disrupted = DisruptedWorkloads()
        self.caps = DisruptionCaps()
        self.now = 0
        self.storage = Storage()
        self.devices = Devices(release)
        self.groups = DefaultSelectors()
        self._on_row: list[dict[int, PodRecord]] = []
        self.node_views = NodeViews(self.nodes, self._on_row)
        self.notes_every_reading = False
        self._of_unknown_nodes: dict[str, dict[str, PodRecord]] = {}

    def read(self, pod: Pod, known_class: PodClass | None = None) -> PodRecord:
        """Return the record of a pod as the API shows it, and register its class.

        The class is registered as long as a record refers to it. ``known_class`` is the pod's class if the caller knows
        it.
        """
        if self.classes.ended:
            self._forget_ended()
        pod_class, is_new = (known_class, False) if known_class is not None else self.classes.of(pod)
        if is_new:
            self.matchers.admit(pod_class)
            self.carried.admit(pod_class)
            if self.classes.counted_spec(pod) is not pod.spec:
                unbound = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))
                pod_class.recreated = self.read(unbound).pod_class
        return read_pod(pod, pod_class, honors_policy=self._honors_policy)

    def put(self, item: Kubernetes) -> None:
        """Add or replace any object but a pod; kinds that do not affect placement are ignored.

        Claims, volumes and devices count as the version's API server keeps them.
        """
        match item:
            case Node():
                self.put_node(item)
            case Namespace():
                if self.namespaces.put(item.metadata.name, item.metadata.labels):
                    self._rematch(item.metadata.name)
            case PodDisruptionBudget():
                self.budgets.put(item)
            case DisruptionPolicy():
                self.caps.observe(item)
            case PodGroup():
                self.pod_groups.put(item)
            case Service() | ReplicationController() | ReplicaSet() | StatefulSet():
                self.groups.put(item)
            case _ if isinstance(item, StorageObject):
                self.storage.put(read_as_kept(item, self.release))
            case _ if isinstance(item, DeviceObject) and is_served(item.kind, self.release):
                self._extended_resources_changed(self.devices.put(read_as_kept(item, self.release)))

    def find(self, item: Kubernetes) -> Kubernetes | None:
        """Return the known version of a node, a budget, or a storage or device object; None for new and other ones."""
        if isinstance(item, Node):
            row = self.nodes.row_of.get(item.metadata.name)
            return None if row is None else self.nodes.node(row)
        if isinstance(item, PodDisruptionBudget):
            return self.budgets.objects.get(item.key)
        if isinstance(item, StorageObject):
            return self.storage.find(item)
        return self.devices.find(item) if isinstance(item, DeviceObject) else None

    def remove(self, item: Kubernetes) -> None:
        """Remove any object but a pod."""
        match item:
            case Node():
                self.remove_node(item.metadata.name)
            case Namespace():
                if self.namespaces.remove(item.metadata.name):
                    self._rematch(item.metadata.name)
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
            case _ if isinstance(item, DeviceObject) and is_served(item.kind, self.release):
                self._extended_resources_changed(self.devices.remove(item))

    def pass_time(self, now: int) -> None:
        """Set the time (nanoseconds) as of which tokens and pods' running times are counted."""
        self.now = now
        self.budgets.pass_time(now)
        self.caps.now = now

    def rows_of(self, budgets: Iterable[Budget]) -> Int64s:
        """Return the rows with pods that some of the budgets count, ascending."""
        found = {
            pod_class.id
            for budget in budgets
            for pod_class in self.classes.candidates(budget.required_keys)
            if budget.counts(pod_class)
        }
        rows = self.pods.row[self.pods.slots_of(found)]
        return np.unique(rows[rows != NO_ROW]).astype(np.int64)

    def put_node(self, node: Node) -> int:
        """Add or replace a node, place the pods that named it before it was known, and return its row."""
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
        for record in self._of_unknown_nodes.pop(name, {}).values():
            self._settle(record, row)
        return row

    def remove_node(self, name: str) -> None:
        """Remove a node. Its pods stay known, without a row, until they are removed or the node returns."""
        row = self.nodes.row_of[name]
        for record in list(self._on_row[row].values()):
            self._unsettle(record)
            self._of_unknown_nodes.setdefault(name, {})[record.uid] = record
        self.nodes.remove(name)
        self.node_views.forget(row)

    def add_pod(self, record: PodRecord) -> None:
        """Place a pod on its node. Raises ValueError for a uid that is placed already."""
        if record.uid in self.placed:
            raise ValueError(f"pod {record.key} ({record.uid}) is placed already")
        self.placed[record.uid] = record
        row = self.nodes.row_of.get(record.node_name)
        self.pods.put(record)
        if row is None:
            self._of_unknown_nodes.setdefault(record.node_name, {})[record.uid] = record
        else:
            self._settle(record, row)

    def remove_pod(self, uid: str) -> PodRecord:
        """Take a placed pod off its node and return its record. Raises KeyError if it is not placed."""
        record = self.placed.pop(uid)
        if record.row == NO_ROW:
            take_out(self._of_unknown_nodes, record.node_name, uid)
        else:
            self._unsettle(record)
        self.pods.remove(record)
        if self.classes.ended:
            self._forget_ended()
        return record

    def replace_pod(self, record: PodRecord) -> None:
        """Replace a placed pod's record with a newer one; cheap unless class, priority, node or deletion changed."""
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
            self._of_unknown_nodes[record.node_name][record.uid] = record
        else:
            self._on_row[record.row][record.slot] = record
            self.node_views.forget(record.row)
            if self.notes_every_reading:
                self.nodes.changes.touch(record.row)
            elif not record.ranks_as(old) or (old.ready != record.ready and self.budgets.counts(record.pod_class)):
                self.nodes.changes.rerank(record.row)

    def is_ending(self, record: PodRecord) -> bool:
        """Return whether a pod terminates: the API shows that, or a preemption has deleted the pod."""
        return record.terminating or self.deleted_victims.get(record.uid, self.now) > self.now

    def is_ending_victim(self, record: PodRecord) -> bool:
        """Return whether a pod terminates because a scheduler's preemption deleted it."""
        return record.preempted if record.terminating else self.is_ending(record)

    def pods_on(self, row: int) -> list[PodRecord]:
        """Return the pods on a node, by slot."""
        on_row = self._on_row[row]
        return list(map(on_row.__getitem__, sorted(on_row)))

    def matcher(self, predicate: Predicate) -> Matcher:
        """Return the counts of the pods that match a predicate, updated from now on."""
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
        """Return ``[codes]`` the matching pods in each domain of a topology key; code 0 is for nodes without it."""
        return self.matchers.domain(self.matcher(predicate), key)

    def _rematch(self, namespace: str) -> None:
        """Match the pod classes of a namespace again after its labels changed."""
        for pod_class in self.classes.candidates([[(NAMESPACE, namespace)]]):
            self.matchers.rematch(pod_class)
            self.carried.rematch(pod_class)

    def _forget_ended(self) -> None:
        for reference in self.classes.take_ended():
            self.matchers.end(reference.id)
            self.carried.end(reference.id, reference.carried)

    def _extended_resources_changed(self, changed: bool) -> None:
        """Mark all nodes as changed if device classes now provide other extended resources."""
        if changed:
            for row in self.nodes.row_of.values():
                self.nodes.changes.touch(row)
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
        for name in pod_class.claims:
            add_count(self.claim_users, f"{pod_class.namespace}/{name}", sign)
        self._match(record, sign)
        nodes.changes.touch(row)
        self.node_views.forget(row)

    def _match(self, record: PodRecord, sign: int) -> None:
        for matcher in self.matchers.counting(record.pod_class):
            if not (record.terminating and matcher.predicate.live_only):
                matcher.add(record.row, sign, self.nodes)


PodSelectingObject = Service | ReplicationController | ReplicaSet | StatefulSet
_API_GROUPS = {ReplicationController: "", ReplicaSet: "apps", StatefulSet: "apps"}


class DefaultSelectors:
    """The selectors of Services and owners, from which default spread constraints are made.

    ``generation`` changes whenever one of them does. Source: pkg/scheduler/framework/plugins/helper/spread.go.
    """

    def __init__(self) -> None:
        # By namespace and owner, as in `PodClass.owner`: the selector as written, and compiled.
        self._owners: dict[tuple[str, Owner], tuple[object, Selector]] = {}
        # By namespace and name.
        self._services: dict[tuple[str, str], Selector] = {}
        self._queries: QueryIndex[tuple[str, str]] = QueryIndex()
        self.generation = 0

    def put(self, group: PodSelectingObject) -> None:
        place = (group.metadata.namespace, group.metadata.name)
        if isinstance(group, Service):
            self._put_service(place, selector_from_labels(group.spec.selector))
            return
        owner = (group.metadata.namespace, _owner(group))
        known = self._owners.get(owner)
        if known is not None and known[0] == group.spec.selector:
            # Most updates change the status alone.
            return
        if isinstance(group, ReplicationController):
            selector = selector_from_labels(group.spec.selector)
        else:
            selector = compile_label_selector(group.spec.selector)
        self._owners[owner] = group.spec.selector, selector
        self.generation += 1

    def remove(self, group: PodSelectingObject) -> None:
        if isinstance(group, Service):
            self._put_service((group.metadata.namespace, group.metadata.name), EVERYTHING)
        elif self._owners.pop((group.metadata.namespace, _owner(group)), None) is not None:
            self.generation += 1

    def selector(self, pod_class: PodClass) -> Selector:
        """Return the selector of the pods that belong with a class; the empty one if there are none.

        It combines all requirements of the class's services and owner.
        """
        matching = ((pod_class.namespace, name) for name in self.services(pod_class))
        requirements = [requirement for place in matching for requirement in self._services[place].requirements]
        if pod_class.owner is not None:
            _, selector = self._owners.get((pod_class.namespace, pod_class.owner), (None, EVERYTHING))
            requirements += selector.requirements
        return Selector(tuple(requirements))

    def services(self, pod_class: PodClass) -> list[str]:
        """Return the names of the Services that select the pods of a class, in order."""
        places = sorted(self._queries.candidates(pod_class.index_keys))
        return [
            name
            for namespace, name in places
            if namespace == pod_class.namespace and self._services[namespace, name].matches(pod_class.labels)
        ]

    def _put_service(self, place: tuple[str, str], selector: Selector) -> None:
        """Set a service's selector; the empty one removes it."""
        if self._services.get(place, EVERYTHING) == selector:
            return
        self.generation += 1
        if selector == EVERYTHING:
            del self._services[place]
            self._queries.remove(place)
        else:
            self._services[place] = selector
            self._queries.put(place, [*selector_keys(selector), [(NAMESPACE, place[0])]])


def _owner(group: ReplicationController | ReplicaSet | StatefulSet) -> Owner:
    return (_API_GROUPS[type(group)], type(group).__name__, group.metadata.name)


class DisruptionCaps:
    """The disruptions that the DisruptionPolicy still allows to schedulers at ``now``.

    For each bucket that is not full, keeps when it will be: as the API shows it, or later if disruptions that were
    begun here have not reached the API yet.
    """

    def __init__(self) -> None:
        self.now = 0
        self.limits = False
        """Whether schedulers have any cap."""
        self._rates: dict[CapScope, Rate] = {}
        self.full: dict[CapBucket, int] = {}
        """When each bucket that is not full will be full again."""

    def observe(self, policy: DisruptionPolicy | None) -> bool:
        """Update the caps from the policy (None if deleted); return whether they changed."""
        caps = () if policy is None else policy.spec.caps
        rates = {cap.scope: cap.rate for cap in caps if cap.counts(SCHEDULER)}
        before, self._rates, self.limits = self._rates, rates, bool(rates)
        shown = full_times(() if policy is None else policy.status.caps)
        kept = {bucket: own for bucket, own in self.full.items() if before[bucket.scope] == rates.get(bucket.scope)}
        self.full = {
            bucket: full_ns
            for bucket in (shown | kept)
            if bucket.scope in rates and (full_ns := max(shown.get(bucket, 0), kept.get(bucket, 0))) > self.now
        }
        return before != rates

    def assume(self, full: Mapping[CapBucket, int]) -> None:
        """Replace the times at which buckets are full again."""
        self.full = {bucket: full_ns for bucket, full_ns in full.items() if bucket.scope in self._rates}

    def used(self) -> list[CapBucket]:
        """Return the buckets that are not full, in order."""
        return sorted(bucket for bucket, full_ns in self.full.items() if full_ns > self.now)

    def rate(self, bucket: CapBucket) -> Rate:
        return self._rates[bucket.scope]

    def tokens_left(self, bucket: CapBucket) -> int:
        """Return the number of tokens in a bucket."""
        return max(self.rate(bucket).tokens(self.full.get(bucket, 0), self.now), 0)

    def needs(self, by_namespace: Mapping[str, int]) -> dict[CapBucket, int]:
        """Return the tokens that disrupting so many pods per namespace takes; a full bucket suffices for any number."""
        found: dict[CapBucket, int] = {}
        for scope in self._rates:
            for namespace, pods in by_namespace.items():
                bucket = CapBucket(scope.component, namespace if scope.by_namespace else "")
                found[bucket] = found.get(bucket, 0) + pods
        return {bucket: min(pods, self.rate(bucket).count) for bucket, pods in sorted(found.items()) if pods}

    def shortage(self, needs: Mapping[CapBucket, int]) -> CapBucket | None:
        """Return the bucket that lacks tokens for the longest time; None if none lacks any."""
        short = [bucket for bucket in sorted(needs) if needs[bucket] > self.tokens_left(bucket)]
        return max(short, key=lambda bucket: self.next_ns(bucket, needs[bucket]), default=None)

    def take(self, needs: Mapping[CapBucket, int]) -> None:
        """Take tokens. Raises ValueError if there are too few."""
        if (short := self.shortage(needs)) is not None:
            raise ValueError(f"{needs[short]} disruptions are more than the {self.tokens_left(short)} that are left")
        for bucket, tokens in needs.items():
            for _ in range(tokens):
                self.full[bucket] = self.rate(bucket).taken(self.full.get(bucket, 0), self.now)

    def next_ns(self, bucket: CapBucket, victims: int) -> int:
        """Return when a bucket has enough tokens for so many pods: ``now`` or later."""
        rate = self.rate(bucket)
        needed = min(victims, rate.count)
        return max(self.now, self.full.get(bucket, 0) - (rate.count - needed) * rate.interval_ns)


class PodChange(NamedTuple):
    """The effect of a pod's observation.

    ``before`` is None for an unknown pod, ``after`` for one that has ended or was deleted. ``replaced`` is an older pod
    of the same name whose deletion was not observed.
    """

    before: PodRecord | None
    after: PodRecord | None
    replaced: PodRecord | None = None


class ObjectChange(NamedTuple):
    """The effect of another object's observation.

    ``before`` is None if it was unknown or the cluster does not store its kind, ``after`` if it was deleted.
    """

    before: Kubernetes | None
    after: Kubernetes | None


class ClusterUpdater:
    """Applies observations to a cluster. ``pods`` are all pods that have not ended, by uid (or key without one)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._replacements = cluster.replacements
        self._pod_groups = cluster.pod_groups
        self.pods: dict[str, PodRecord] = {}
        self._uid_of: dict[str, str] = {}
        # By the uid of their owner, the uids of the pods.
        self._owned: dict[str, dict[str, None]] = {}

    def pods_of(self, owner_uid: str) -> list[PodRecord]:
        """Return the pods of an owner (`PodRecord.owner_uid`) that have not ended."""
        return [self.pods[uid] for uid in self._owned.get(owner_uid, ())]

    def pod_changed(self, pod: Pod) -> PodChange:
        """Record an added or changed pod and its class; `settle` places it."""
        if self._cluster.disrupted.counts:
            self._cluster.disrupted.see(pod)
        key = pod.key
        uid = pod.metadata.uid or key
        namesake = self._uid_of.get(key)
        replaced = None if namesake is None or namesake == uid else self.forget(namesake)
        # It may be, or have been, the replacement of an evicted one.
        candidate = controlled_pod(pod) if self._replacements.awaited else None
        if pod.is_terminal:
            if candidate is not None and pod.spec.node_name:
                self._replacements.put_pod(candidate, is_settled=True)
            return PodChange(self.forget(uid), None, replaced)
        before = self.pods.get(uid)
        known_class = before.pod_class if before is not None and has_same_class(before, pod) else None
        record = self.pods[uid] = self._cluster.read(pod, known_class)
        if before is not None:
            take_out(self._owned, before.owner_uid, uid)
        self._owned.setdefault(record.owner_uid, {})[uid] = None
        self._uid_of[key] = uid
        if record.pod_class.pod_group or (before is not None and before.pod_class.pod_group):
            self._pod_groups.put_pod(record)
        if candidate is not None:
            self._replacements.put_pod(candidate, is_settled=bool(record.node_name))
        return PodChange(before, record, replaced)

    def pod_gone(self, pod: Pod) -> PodChange:
        return PodChange(self.forget(pod.metadata.uid or pod.key), None)

    def forget(self, uid: str) -> PodRecord | None:
        """Remove a pod that has ended or was deleted; return its record, None if unknown."""
        record = self.pods.pop(uid, None)
        if record is None:
            return None
        take_out(self._owned, record.owner_uid, uid)
        if self._uid_of.get(record.key) == uid:
            del self._uid_of[record.key]
        if record.pod_class.pod_group:
            self._pod_groups.drop_pod(uid)
        if self._replacements.awaited and record.controller is not None:
            self._replacements.drop_pod(record.controller.uid, uid, is_settled=bool(record.node_name))
        return record

    def settle(self, change: PodChange) -> None:
        """Place the pod as the API shows it: on its node, nominated, or neither.

        Schedulers do this themselves, since they assume pods on nodes before the API shows them there.
        """
        for gone in (change.replaced, change.before if change.after is None else None):
            if gone is not None:
                self._unsettle(gone.uid)
        record = change.after
        if record is None:
            return
        cluster, nominated = self._cluster, record.nominated_node_name
        if not record.node_name:
            if nominated:
                cluster.nominations.put(record, nominated)
            else:
                cluster.nominations.remove(record.uid)
            return
        cluster.nominations.remove(record.uid)
        record.nominated_node_name = ""
        if record.uid in cluster.placed:
            cluster.replace_pod(record)
        else:
            cluster.add_pod(record)

    def update_object(self, item: Kubernetes) -> ObjectChange:
        """Record an added or changed object that is not a pod."""
        if isinstance(item, Node):
            before: Kubernetes | None = self.known_node(item.metadata.name)
            self._replacements.put_node(item, self._controlled_pods)
        else:
            before = self._cluster.find(item)
        self._cluster.put(item)
        return ObjectChange(before, item)

    def delete_object(self, item: Kubernetes) -> ObjectChange | None:
        """Record the deletion of an object that is not a pod; None for an unknown node."""
        if isinstance(item, Node):
            if item.metadata.name not in self._cluster.nodes.row_of:
                return None
            self._replacements.drop_node(item.metadata.name)
        self._cluster.remove(item)
        return ObjectChange(item, None)

    def known_node(self, name: str) -> Node | None:
        """Return the node as last observed; None if unknown."""
        row = self._cluster.nodes.row_of.get(name)
        return None if row is None else self._cluster.nodes.node(row)

    def _controlled_pods(self, controller_uid: str) -> list[ControlledPod]:
        pods = self.pods_of(controller_uid)
        return [ControlledPod(pod.created_ns, pod.key, pod.uid, controller_uid) for pod in pods]

    def _unsettle(self, uid: str) -> None:
        self._cluster.nominations.remove(uid)
        if uid in self._cluster.placed:
            self._cluster.remove_pod(uid)
