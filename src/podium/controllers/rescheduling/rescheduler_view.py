"""The cluster as the rescheduler sees it: placement, signals of pods and nodes, and ownership."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

from msgspec import structs

from podium.api.avoid_list import avoid_list_text
from podium.api.disruption_policy import full_times
from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node, maintenance_ns
from podium.api.pod import Pod
from podium.api.use import WELL, Use, pod_health
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.cluster.arrays import take_out
from podium.cluster.cluster import Cluster
from podium.cluster.devices import DeviceObject
from podium.cluster.nodes import CPU, MEMORY
from podium.cluster.pods import PodRecord
from podium.controllers.actions import RESCHEDULER
from podium.controllers.cluster_view import ClusterView
from podium.controllers.deadlines import earliest
from podium.controllers.indexes import exchange
from podium.controllers.kubelets.pod_run import cpu_want, is_running, memory_used, says_use
from podium.controllers.observations import Measured
from podium.controllers.scheduling.queue.hints import node_changes
from podium.decide.kubelet import CPUWant, cpu_pressure, shared_cpu
from podium.decide.rescheduling.guards import off_duty
from podium.decide.rescheduling.replacement_placement import SOFT_TAINT
from podium.framework.rescheduling.policy import NO_NODE_SIGNALS, NO_POD_SIGNALS, NodeSignals, PodSignals, Signals

DISRUPTION_MEMORY_NS = 7 * 24 * 3600 * 10**9
"""For how long disruptions of workloads are remembered; settings may ask for less and change meanwhile."""


class ReschedulerView(ClusterView):
    """The observed state of the cluster, kept for one rescheduler.

    ``avoid_lists`` are the texts of the nodes' avoid lists, by name.
    """

    relevant = ClusterView.relevant | DeviceObject

    def __init__(self, release: Release = DEFAULT_RELEASE) -> None:
        super().__init__(release)
        self.cluster.disrupted.remember(DISRUPTION_MEMORY_NS)
        self.observed = ObservedSignals()
        self.avoid_lists: dict[str, str] = {}
        self.measured = MeasuredUse()
        self._use = ReportedUse()
        # By the uid of their owner, the pods as `pods_of` last returned them, if none of them has changed.
        self._sorted: dict[str, list[PodRecord]] = {}
        self.on_pod_changed: Callable[[PodRecord], None] = lambda _: None
        """Called with each pod after a change, also as it was before, and with each pod that is gone."""

    def observe(self, object_: Kubernetes, raw: Raw | None) -> bool:
        is_relevant = False
        if isinstance(object_, Pod) and raw is not None:
            is_relevant = self.observed.pod_changed(object_, raw, self.cluster.read)
            is_relevant |= self._use.pod_changed(object_)
        elif isinstance(object_, Pod):
            is_relevant = self.observed.pod_gone(object_)
        return super().observe(object_, raw) or is_relevant

    def pod(self, uid: str) -> PodRecord | None:
        """Return a pod that has not ended; None if it is unknown."""
        return self._updater.pods.get(uid)

    def pods(self) -> Iterator[PodRecord]:
        """Yield all pods that have not ended, in the order in which they were observed."""
        return iter(self._updater.pods.values())

    def pods_of(self, owner_uid: str) -> list[PodRecord]:
        """Return the pods of an owner that have not ended: the oldest first, then by key."""
        if owner_uid not in self._sorted and (pods := self._updater.pods_of(owner_uid)):
            self._sorted[owner_uid] = sorted(pods, key=lambda pod: (pod.created_ns, pod.key))
        return self._sorted.get(owner_uid, [])

    def signals(self, now: int) -> Signals:
        """Return the signals of pods and nodes now. Measured use takes precedence over stated use."""
        stated_use = self._use.with_use(self.observed.signals, self.cluster)
        return self.measured.with_use(stated_use, self.cluster, now)

    def may_evict(self, now: int) -> int | None:
        """Return how many disruptions of pods with a budget the cluster's caps allow; None for any number."""
        full = full_times(self._policy.status.caps)
        caps = (cap for cap in self._policy.spec.caps if cap.counts(RESCHEDULER) and cap.per == "Cluster")
        left = (max(0, cap.rate.tokens(full.get(cap.bucket(""), 0), now)) for cap in caps)
        return min(left, default=None)

    def next_token_ns(self, now: int) -> int | None:
        """Return when an exhausted rate of a budget or cap allows a disruption again; None if none is exhausted."""
        full = full_times(self._policy.status.caps)
        rates = {cap.scope: cap.rate for cap in self._policy.spec.caps if cap.counts(RESCHEDULER)}
        times = [rates[bucket.scope].next_ns(full_ns, now) for bucket, full_ns in full.items() if bucket.scope in rates]
        return earliest((self.budgets.next_free_ns(now), *(time for time in times if time > now)))

    def capped_namespaces(self, now: int) -> frozenset[str]:
        """Return the namespaces in which a cap now forbids disruptions of pods with a budget."""
        if not self._policy.spec.caps:
            return frozenset()
        found = {pod.namespace for pod in self._updater.pods.values()}
        return frozenset(name for name in found if self._policy.exhausted_cap(RESCHEDULER, name, now) is not None)

    def _difference(self, pod: Pod, record: PodRecord) -> tuple[object, ...]:
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

    def _pod_changed(self, pod: Pod, raw: Raw) -> bool:
        before = self.pod(pod.metadata.uid)
        makes_difference = super()._pod_changed(pod, raw)
        for record in (before, self.pod(pod.metadata.uid)):
            self._changed(record)
        return makes_difference

    def _forget_pod(self, record: PodRecord | None) -> bool:
        if record is not None:
            self._use.pod_gone(record.uid)
            self._changed(record)
        return super()._forget_pod(record)

    def _changed(self, record: PodRecord | None) -> None:
        if record is not None:
            self._sorted.pop(record.owner_uid, None)
            self.on_pod_changed(record)

    def _node_changed(self, node: Node, raw: Raw) -> bool:
        name = node.metadata.name
        before = self._updater.known_node(name)
        # The rescheduler's own taint is temporary, and no reason to move pods.
        taints = tuple(taint for taint in node.spec.taints if taint.key != SOFT_TAINT.key)
        if len(taints) < len(node.spec.taints):
            node = structs.replace(node, spec=structs.replace(node.spec, taints=taints))
        self._updater.update_object(node)
        exchange(self.avoid_lists, name, avoid_list_text(node) or None)
        is_relevant = self.observed.node_changed(node)
        return (
            before is None
            or is_relevant
            or off_duty(before) != off_duty(node)
            or bool(node_changes(before, node))
            or before.metadata.annotations != node.metadata.annotations
        )

    def _node_gone(self, node: Node) -> bool:
        self.avoid_lists.pop(node.metadata.name, None)
        self.observed.node_gone(node.metadata.name)
        return self._updater.delete_object(node) is not None


# The reasons with which a kubelet rejects a pod (pkg/kubelet/lifecycle, pkg/kubelet/cm).
_REJECTIONS = frozenset(
    """
    AppArmor NodeAffinity NodeName NodePorts PodOSNotSupported PodOSSelectorNodeLabelDoesNotMatch TaintToleration
    TopologyAffinityError UnexpectedAdmissionError
    """.split()
)
_SHORTAGE = "OutOf"


@dataclass(frozen=True, slots=True)
class _Seen:
    """The facts of one pod; ``rejected``: the owner and the node of a rejected pod, and that pod."""

    uid: str
    signals: PodSignals = NO_POD_SIGNALS
    rejected: tuple[str, str] | None = None
    record: PodRecord | None = field(default=None, compare=False)


class ObservedSignals:
    """Derives the signals of pods and nodes from observations.

    Pods are identified by key, so that a pod whose deletion was missed gives way to the next one of its name.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._pods: dict[str, PodSignals] = {}
        self._nodes: dict[str, NodeSignals] = {}
        self._turned_away: dict[tuple[str, str], dict[str, PodRecord]] = {}
        self.signals = Signals(self._pods, self._nodes, self._turned_away)
        """The signals; they follow the observations."""

    def pod_changed(self, pod: Pod, raw: Raw, read: Callable[[Pod], PodRecord]) -> bool:
        """Record a pod; return whether its signals have changed. ``read`` makes its record."""
        uid = pod.metadata.uid
        if pod.is_terminal:
            owner, reason = pod.metadata.controller, str(raw.get("status", {}).get("reason", ""))
            is_rejected = pod.status.phase == "Failed" and (reason in _REJECTIONS or reason.startswith(_SHORTAGE))
            if owner is None or not is_rejected:
                return self._put(pod.key, None)
            return self._put(pod.key, _Seen(uid, rejected=(owner.uid, pod.spec.node_name), record=read(pod)))
        health = pod_health(raw)
        if health is WELL:
            return self._put(pod.key, None)
        signals = PodSignals(**asdict(health))
        return self._put(pod.key, None if signals == NO_POD_SIGNALS else _Seen(uid, signals))

    def pod_gone(self, pod: Pod) -> bool:
        """Forget a pod; return whether it had signals."""
        seen = self._seen.get(pod.key)
        return seen is not None and seen.uid == pod.metadata.uid and self._put(pod.key, None)

    def node_changed(self, node: Node) -> bool:
        """Record a node; return whether its signals have changed."""
        signals = NodeSignals(maintenance_ns=maintenance_ns(node.metadata.annotations))
        found = None if signals == NO_NODE_SIGNALS else signals
        return exchange(self._nodes, node.metadata.name, found) != found

    def node_gone(self, name: str) -> None:
        self._nodes.pop(name, None)

    def has_turned_away(self, pod: PodRecord) -> bool:
        """Return whether a rejected pod is still known."""
        seen = self._seen.get(pod.key)
        return seen is not None and seen.uid == pod.uid and seen.rejected is not None

    def _put(self, key: str, seen: _Seen | None) -> bool:
        before = exchange(self._seen, key, seen)
        if before == seen:
            return False
        if before is not None:
            self._pods.pop(before.uid, None)
        if before is not None and before.rejected is not None:
            take_out(self._turned_away, before.rejected, before.uid)
        if seen is not None and seen.rejected is not None and seen.record is not None:
            self._turned_away.setdefault(seen.rejected, {})[seen.uid] = seen.record
        elif seen is not None:
            self._pods[seen.uid] = seen.signals
        return True


_StatedUse = tuple[CPUWant, int]
"""The cpu and the bytes of memory that a pod states for the case that it is alone on its node."""


class ReportedUse:
    """Keeps the stated use of pods, and computes their use beside the other pods on their nodes.

    Pods without a statement use what they request. If no pod states its use, nothing is measured.
    """

    def __init__(self) -> None:
        self._stated: dict[str, _StatedUse] = {}

    def pod_changed(self, pod: Pod) -> bool:
        """Record a pod; return whether its statement has changed."""
        usage = (cpu_want(pod), memory_used(pod)) if says_use(pod) and is_running(pod) else None
        return exchange(self._stated, pod.metadata.uid, usage) != usage

    def pod_gone(self, uid: str) -> None:
        self._stated.pop(uid, None)

    def with_use(self, signals: Signals, cluster: Cluster) -> Signals:
        """Return the signals, with the present use of all pods and nodes."""
        if not self._stated:
            return signals
        pods, nodes = dict(signals.pods), dict(signals.nodes)
        saying = {pod.row for uid in self._stated if (pod := cluster.placed.get(uid)) is not None}
        for name, row in cluster.nodes.row_of.items():
            if row in saying:
                used = self._on_row(cluster, row, pods)
            else:
                cpu = min(int(cluster.nodes.requested[CPU, row]), int(cluster.nodes.allocatable[CPU, row]))
                used = Use(cpu, int(cluster.nodes.requested[MEMORY, row]))
            nodes[name] = _measured_node(nodes, name, used)
        return replace(signals, pods=pods, nodes=nodes)

    def _on_row(self, cluster: Cluster, row: int, found: dict[str, PodSignals]) -> Use:
        """Return the use of everything on a node; the signals of its pods are added to ``found``."""
        pods = cluster.pods_on(row)
        usages: list[_StatedUse] = []
        for pod in pods:
            cpu_milli, memory_bytes = (pod.pod_class.requests.get(resource, 0) for resource in (CPU, MEMORY))
            usages.append(self._stated.get(pod.uid) or (CPUWant(cpu_milli, cpu_milli), memory_bytes))
        got = shared_cpu([want for want, _ in usages], int(cluster.nodes.allocatable[CPU, row]))
        for pod, (want, memory_bytes), cpu_milli in zip(pods, usages, got, strict=True):
            found[pod.uid] = replace(
                found.get(pod.uid, NO_POD_SIGNALS),
                cpu_used_milli=cpu_milli,
                memory_used_bytes=memory_bytes,
                cpu_pressure=cpu_pressure(want, cpu_milli),
            )
        return Use(sum(got), sum(memory_bytes for _, memory_bytes in usages))


def _measured_node(nodes: Mapping[str, NodeSignals], name: str, used: Use) -> NodeSignals:
    known = nodes.get(name, NO_NODE_SIGNALS)
    return replace(known, cpu_used_milli=used.cpu_milli, memory_used_bytes=used.memory_bytes)


# Use is measured every half minute; an older measurement does not describe the present.
_HOLDS_NS = 300 * 10**9
_NOTHING = Measured({}, {})


@dataclass(slots=True)
class MeasuredUse:
    """The last measurement."""

    _last: Measured = _NOTHING
    _time_ns: int = 0

    def take(self, measured: Measured, now: int) -> None:
        """Record a measurement, which replaces the one before."""
        self._last, self._time_ns = measured, now

    def with_use(self, signals: Signals, cluster: Cluster, now: int) -> Signals:
        """Return the signals, with the measured use of the pods and nodes that exist."""
        last = self._last
        if now - self._time_ns > _HOLDS_NS or not (last.pods or last.nodes):
            return signals
        pods, nodes = dict(signals.pods), dict(signals.nodes)
        for uid, pod in cluster.placed.items():
            use = last.pods.get(pod.key)
            if use is not None:
                known = pods.get(uid, NO_POD_SIGNALS)
                pods[uid] = replace(known, cpu_used_milli=use.cpu_milli, memory_used_bytes=use.memory_bytes)
        for name in cluster.nodes.row_of:
            if (use := last.nodes.get(name)) is not None:
                nodes[name] = _measured_node(nodes, name, use)
        return replace(signals, pods=pods, nodes=nodes)
