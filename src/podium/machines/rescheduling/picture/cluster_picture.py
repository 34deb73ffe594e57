"""The cluster as the rescheduler sees it: what placement depends on, how all fare, and who belongs to whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from podium.api.avoid_list import PREFER_AVOID_PODS
from podium.api.disruption_cap import full_times
from podium.api.disruption_policy import POLICY_NAME, DisruptionPolicy
from podium.api.meta import Kubernetes, Raw
from podium.api.node import Namespace, Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.cluster.cluster import Cluster
from podium.cluster.devices import DeviceObject
from podium.cluster.feed import Feed
from podium.cluster.pods import PodRecord
from podium.cluster.storage import StorageObject
from podium.decide.eviction_budgets import EvictionBudgets
from podium.decide.local_storage import has_local_storage
from podium.decide.rescheduling.landing import SOFT_TAINT
from podium.decide.rescheduling.node_duty import off_duty
from podium.framework.rescheduling.signals import Signals
from podium.machines.parts.deadlines import earliest
from podium.machines.rescheduling.names import RESCHEDULER
from podium.machines.rescheduling.picture.measured_use import MeasuredUse
from podium.machines.rescheduling.picture.observed_signals import ObservedSignals
from podium.machines.rescheduling.picture.said_use import SaidUse
from podium.machines.scheduling.shown.node_changes import node_changes


class ClusterPicture:
    """What the API shows, kept for one rescheduler.

    ``keeps_data`` are the pods (uids) that would lose data by a move, ``unschedulable`` those that no node can take, by
    uid. ``avoid_lists`` are the texts of the nodes' avoid lists, by name.
    """

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.budgets = EvictionBudgets()
        self.observed = ObservedSignals()
        self.keeps_data: set[str] = set()
        self.unschedulable: dict[str, PodRecord] = {}
        self.avoid_lists: dict[str, str] = {}
        self.measured = MeasuredUse()
        self._use = SaidUse()
        self._feed = Feed(self.cluster)
        self._owned: dict[str, dict[str, None]] = {}
        self._differences: dict[str, tuple[object, ...]] = {}
        self._policy = DisruptionPolicy()

    # What the API shows

    def changed(self, object_: Kubernetes, raw: Raw) -> bool:
        """Take in an object; whether it might change a plan."""
        match object_:
            case Pod():
                fares_otherwise = self.observed.pod_changed(object_, raw, self.cluster.read)
                fares_otherwise |= self._use.pod_changed(object_)
                return self._pod_changed(object_, raw) or fares_otherwise
            case Node():
                return self._node_changed(object_)
            case PodDisruptionBudget():
                return self.budgets.put(object_)
            case DisruptionPolicy() if object_.metadata.name == POLICY_NAME:
                return self._set_policy(object_)
        self._feed.changed(object_)
        return isinstance(object_, StorageObject | DeviceObject | Namespace)

    def gone(self, object_: Kubernetes) -> bool:
        """Forget an object; whether that might change a plan."""
        match object_:
            case Pod():
                fared = self.observed.pod_gone(object_)
                change = self._feed.pod_gone(object_)
                self._feed.settle(change)
                return self._forget_pod(change.before) or fared
            case Node():
                name = object_.metadata.name
                self.avoid_lists.pop(name, None)
                self.observed.node_gone(name)
                return self._feed.gone(object_) is not None
            case PodDisruptionBudget():
                self.budgets.remove(object_)
                return True
            case DisruptionPolicy() if object_.metadata.name == POLICY_NAME:
                return self._set_policy(DisruptionPolicy())
        self._feed.gone(object_)
        return isinstance(object_, StorageObject | DeviceObject | Namespace)

    # What is asked

    def pod(self, uid: str) -> PodRecord | None:
        """A pod that has not ended; None for one that is not known."""
        return self._feed.pods.get(uid)

    def pods(self) -> Iterator[PodRecord]:
        """All pods that have not ended, in the order in which they were seen."""
        return iter(self._feed.pods.values())

    def pods_of(self, owner_uid: str) -> list[PodRecord]:
        """The pods of an owner that have not ended: the oldest first, then by key."""
        found = (self._feed.pods[uid] for uid in self._owned.get(owner_uid, ()))
        return sorted(found, key=lambda pod: (pod.created_ns, pod.key))

    def waiting(self) -> Sequence[PodRecord]:
        """The pods that no node can take."""
        return list(self.unschedulable.values())

    def signals(self, now: int) -> Signals:
        """How all fare at the moment. What was measured goes before what pods say."""
        said = self._use.told(self.observed.signals, self.cluster)
        return self.measured.told(said, self.cluster, now)

    def may_evict(self, now: int) -> int | None:
        """How many disruptions of pods with a budget the cluster's caps leave; None for any number."""
        full = full_times(self._policy.status.caps)
        caps = (cap for cap in self._policy.spec.caps if cap.counts(RESCHEDULER) and cap.per == "Cluster")
        left = (max(0, cap.rate.tokens(full.get(cap.bucket(""), 0), now)) for cap in caps)
        return min(left, default=None)

    def next_token_ns(self, now: int) -> int | None:
        """When a rate of a budget, or a cap, that is used up lets somebody go again; None where none is."""
        full = full_times(self._policy.status.caps)
        rates = {cap.scope: cap.rate for cap in self._policy.spec.caps if cap.counts(RESCHEDULER)}
        times = [rates[bucket.scope].next_ns(full_ns, now) for bucket, full_ns in full.items() if bucket.scope in rates]
        return earliest((self.budgets.next_token_ns(now), *(time for time in times if time > now)))

    def capped_namespaces(self, now: int) -> frozenset[str]:
        """The namespaces in which some cap forbids the disruption of pods with a budget for now."""
        if not self._policy.spec.caps:
            return frozenset()
        found = {pod.namespace for pod in self._feed.pods.values()}
        return frozenset(name for name in found if self._policy.exhausted_cap(RESCHEDULER, name, now) is not None)

    # Pods

    def _pod_changed(self, pod: Pod, raw: Raw) -> bool:
        change = self._feed.pod_changed(pod)
        record = change.after
        # Before it is settled, which takes the nomination from a pod that is on its node.
        difference = None if record is None else _difference(pod, record)
        waits = record is not None and not (record.node_name or record.nominated_node_name or record.terminating)
        self._feed.settle(change)
        has_gone = self._forget_pod(change.replaced)
        if record is None or difference is None:
            return self._forget_pod(change.before) or has_gone
        uid = record.uid
        if change.before is not None and change.before.owner_uid != record.owner_uid:
            self._disown(change.before)
        self._owned.setdefault(record.owner_uid, {})[uid] = None
        if has_local_storage(raw):
            self.keeps_data.add(uid)
        else:
            self.keeps_data.discard(uid)
        if waits and pod.is_unschedulable:
            self.unschedulable[uid] = record
        else:
            self.unschedulable.pop(uid, None)
        before = self._differences.get(uid)
        self._differences[uid] = difference
        return has_gone or difference != before

    def _forget_pod(self, record: PodRecord | None) -> bool:
        """Forget a pod that is gone, if there was one."""
        if record is None:
            return False
        self.unschedulable.pop(record.uid, None)
        self.keeps_data.discard(record.uid)
        self._use.pod_gone(record.uid)
        self._differences.pop(record.uid, None)
        self._disown(record)
        return True

    def _disown(self, record: PodRecord) -> None:
        owned = self._owned[record.owner_uid]
        del owned[record.uid]
        if not owned:
            del self._owned[record.owner_uid]

    # Nodes

    def _node_changed(self, node: Node) -> bool:
        name = node.metadata.name
        before = self._feed.known_node(name)
        node = _without_mark(node)
        self._feed.changed(node)
        text = node.metadata.annotations.get(PREFER_AVOID_PODS, "")
        if text:
            self.avoid_lists[name] = text
        else:
            self.avoid_lists.pop(name, None)
        fares_otherwise = self.observed.node_changed(node)
        return (
            before is None
            or fares_otherwise
            or off_duty(before) != off_duty(node)
            or bool(node_changes(before, node))
            or before.metadata.annotations != node.metadata.annotations
        )

    # Rules

    def _set_policy(self, policy: DisruptionPolicy) -> bool:
        before, self._policy = self._policy, policy
        self.budgets.requires_all = policy.spec.several_budgets == "RequireAll"
        return before.spec != policy.spec


def _without_mark(node: Node) -> Node:
    """The node as it is without the rescheduler's own mark: that will be gone, and is no reason to move anybody."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != SOFT_TAINT.key)
    if len(taints) == len(node.spec.taints):
        return node
    return replace(node, spec=replace(node.spec, taints=taints))


def _difference(pod: Pod, record: PodRecord) -> tuple[object, ...]:
    """What a plan may depend on of a pod."""
    return (
        record.node_name,
        record.nominated_node_name,
        pod.is_unschedulable,
        record.pod_class.id,
        record.priority,
        record.ready,
        record.terminating,
        record.annotations,
    )
