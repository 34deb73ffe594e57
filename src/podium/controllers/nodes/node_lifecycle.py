"""The node lifecycle controller: it marks silent nodes as not ready, and taints nodes by their conditions.

Source: pkg/controller/nodelifecycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from podium.api import node as nodes
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.reading import Duration
from podium.api.times import SECOND, format_time
from podium.cluster.arrays import take_out
from podium.controllers.actions import Action, PatchObject, versioned_patch
from podium.controllers.controller import NO_CHANGE, PLACED, IdleDeferral, Reconciler
from podium.controllers.observations import ActionFinished, Changed, HeartbeatsResumed, HeartbeatsStopped, Observation
from podium.framework.settings.arguments import Strict
from podium.store.stored import with_conditions

TaintName = tuple[str, str]
"""Key and effect of a taint."""


# By type and status of a condition.
_OF_CONDITIONS: Mapping[tuple[str, str], str] = {
    ("Ready", "False"): nodes.NOT_READY,
    ("Ready", "Unknown"): nodes.UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
EVICTING: frozenset[TaintName] = frozenset((key, "NoExecute") for key in (nodes.NOT_READY, nodes.UNREACHABLE))
"""The taints that evict pods from a node that is not ready."""

MANAGED = EVICTING | {(key, "NoSchedule") for key in (*_OF_CONDITIONS.values(), nodes.UNSCHEDULABLE)}
"""All taints that follow from a node's state."""


def wanted_taints(node: nodes.Node) -> set[TaintName]:
    """Return the managed taints that the node should have."""
    states = {(condition.type, condition.status) for condition in node.status.conditions}
    keys = {key for state, key in _OF_CONDITIONS.items() if state in states}
    if node.spec.unschedulable:
        keys.add(nodes.UNSCHEDULABLE)
    return {(key, "NoSchedule") for key in keys} | {
        (key, "NoExecute") for key in keys & {nodes.NOT_READY, nodes.UNREACHABLE}
    }


def present_taints(node: nodes.Node) -> set[TaintName]:
    """Return the managed taints that the node has."""
    names: set[TaintName] = {(taint.key, taint.effect) for taint in node.spec.taints}
    return names & MANAGED


def changed_taints(taints: Sequence[Raw], changes: Collection[TaintName], now: int) -> tuple[list[Raw], str]:
    """Return the taints after toggling each of ``changes``, and a description."""
    left = [taint for taint in taints if (taint.get("key"), taint.get("effect")) not in changes]
    before = {(taint.get("key"), taint.get("effect")) for taint in taints}
    changes_text = []
    for key, effect in sorted(changes):
        is_new = (key, effect) not in before
        name = f"{key}:{effect}" if effect == "NoExecute" else key
        changes_text.append(f"taint {name} {'added' if is_new else 'removed'}")
        if is_new:
            added = {"timeAdded": format_time(now)} if effect == "NoExecute" else {}
            left.append({"key": key, "effect": effect, **added})
    return left, ", ".join(changes_text)


class BoundPod(NamedTuple):
    """A pod, and how it was last shown."""

    pod: Pod
    shown: Changed


class BoundPods:
    """Bound pods by key; on each node in the order in which they came."""

    def __init__(self) -> None:
        self._pods: dict[str, BoundPod] = {}
        self.find = self._pods.get
        """Returns a pod by key; None if it is gone or has no node."""
        self._on: dict[str, dict[str, BoundPod]] = {}

    def put(self, pod: Pod, shown: Changed) -> None:
        """Take in a pod; one without a node still replaces another one with its key."""
        key, uid, name = pod.key, pod.metadata.uid, pod.spec.node_name
        known = self._pods.get(key)
        if known is not None and (known.pod.metadata.uid != uid or (name and known.pod.spec.node_name != name)):
            self.remove(key)
        if name:
            self._pods[key] = self._on.setdefault(name, {})[key] = BoundPod(pod, shown)

    def remove(self, key: str) -> None:
        if (known := self._pods.pop(key, None)) is not None:
            take_out(self._on, known.pod.spec.node_name, key)

    def on(self, node: str) -> Collection[BoundPod]:
        return self._on.get(node, {}).values()


_NAME = "node-lifecycle-controller"


class NodeLifecycleSettings(Strict, frozen=True, kw_only=True):
    """Settings; ``grace_period_ns`` is --node-monitor-grace-period."""

    grace_period_ns: Duration = 50 * SECOND


class _TrackedNode(Struct):
    """A node as the API shows it.

    ``standing`` are the managed taints that deviated at the start, with whether they were wanted.
    """

    node: nodes.Node
    raw: Raw
    standing: Mapping[TaintName, bool]


class NodeLifecycle(Reconciler[str]):
    """Keeps conditions, taints and the readiness of pods consistent with the state of nodes.

    A node that is silent for too long gets conditions Unknown; while it is not ready, its pods are not. NoSchedule
    taints follow from conditions and `spec.unschedulable`. NoExecute taints follow from readiness, at the rates of
    `ZoneDisruption`, and are not added while no node is ready.

    ``given`` are the initial nodes by uid: their deviating taints stay until the wanted taints change. With
    ``reports_all``, kubelets post all conditions, and those that were never posted become Unknown, too.
    """

    watches = frozenset(("Node", "Pod"))
    pod_aspects = PLACED
    idle_deferral = IdleDeferral(frozenset(("Pod",)), ahead=frozenset(("Node",)))

    def __init__(
        self,
        settings: NodeLifecycleSettings = NodeLifecycleSettings(),  # noqa: B008 - an immutable value
        given: Mapping[str, nodes.Node] | None = None,
        *,
        reports_all: bool = False,
    ) -> None:
        super().__init__()
        self._reports_all = reports_all
        self._settings = settings
        self._given = given or {}
        self._nodes: dict[str, _TrackedNode] = {}
        # The names of the nodes that are not ready.
        self._not_ready: set[str] = set()
        self._pods = BoundPods()
        self._silent: dict[str, int] = {}
        self._zones = ZoneDisruption()
        # By uid, the version on which the last write of a node or pod was based, unless that failed.
        self._written: dict[str, str] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether all nodes are ready, so that pods have no effect."""
        return not self._not_ready

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        if shown is None:
            self._written.pop(object_.metadata.uid, None)
        if isinstance(object_, Pod):
            if shown is None:
                self._pods.remove(object_.key)
                return NO_CHANGE
            self._pods.put(object_, shown)
            name = object_.spec.node_name
            if name not in self._not_ready or not object_.is_ready:
                return NO_CHANGE
            self._queue.add(name)
        elif isinstance(object_, nodes.Node) and shown is not None:
            self._node_changed(object_, shown.raw, now)
        elif isinstance(object_, nodes.Node):
            name = object_.metadata.name
            self._nodes.pop(name, None)
            self._not_ready.discard(name)
            self._forget(name)
            self._end_wait(name)
            self._queue.add_all(self._zones.replace(name, None))
        return []

    def _node_changed(self, node: nodes.Node, raw: Raw, now: int) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        known = self._nodes.get(name)
        if known is None or known.node.metadata.uid != uid:
            given = self._given.get(uid)
            expected = set() if given is None else wanted_taints(given)
            deviating = set() if given is None else expected ^ present_taints(given)
            known = self._nodes[name] = _TrackedNode(node, raw, {taint: taint in expected for taint in deviating})
        wanted = wanted_taints(node)
        known.node, known.raw = node, raw
        (self._not_ready.discard if nodes.is_ready(node) else self._not_ready.add)(name)
        known.standing = {taint: was for taint, was in known.standing.items() if was == (taint in wanted)}
        self._queue.add(name)
        # All listed nodes count before the first one is tainted.
        self._count(node, now)

    def _on_other(self, observation: Observation) -> None:
        if isinstance(observation, HeartbeatsStopped):
            self._silent[observation.node] = observation.since_ns
            self._queue.add(observation.node)
        elif isinstance(observation, HeartbeatsResumed):
            self._silent.pop(observation.node, None)
            self._queue.add(observation.node)

    def _on_finished(self, finished: ActionFinished, now: int) -> list[Action]:
        if finished.problem is not None and isinstance(finished.action, PatchObject):
            self._written.pop(finished.action.uid, None)
        return super()._on_finished(finished, now)

    def _reconcile(self, key: str, now: int) -> list[Action]:
        known = self._nodes.get(key)
        if known is None:
            return []
        node = known.node
        is_late = self._count(node, now)
        if self._is_written(node):
            return []
        conditions = nodes.unknown_conditions(known.raw, now, reports_all=self._reports_all) if is_late else None
        if conditions is not None:
            return [self._write(node, {"status": {"conditions": conditions}}, "no heartbeats")]
        actions = self._taint(known, now)
        not_ready = {"type": "Ready", "status": "False", "reason": nodes.NODE_NOT_READY}
        for pod, shown in () if nodes.is_ready(node) else self._pods.on(key):
            if pod.is_ready and not self._is_written(pod):
                conditions = with_conditions(shown.raw["status"]["conditions"], (not_ready,), now)
                actions.append(self._write(pod, {"status": {"conditions": conditions}}, "its node is not ready"))
        return actions

    def _count(self, node: nodes.Node, now: int) -> bool:
        """Count a node for the rates of its zone; return whether it has been silent for too long."""
        name = node.metadata.name
        silent_ns = self._silent.get(name)
        late_ns = None if silent_ns is None else silent_ns + self._settings.grace_period_ns
        is_late = late_ns is not None and late_ns <= now
        self._queue.add_all(self._zones.replace(name, node, is_healthy=nodes.is_ready(node) and not is_late))
        self._queue.add_at(name, None if is_late else late_ns)
        return is_late

    def _taint(self, known: _TrackedNode, now: int) -> list[Action]:
        node, name = known.node, known.node.metadata.name
        wanted, present = wanted_taints(node), present_taints(node)
        if self._zones.is_total():
            wanted -= EVICTING
        changes = (wanted ^ present) - set(known.standing)
        is_evicted = bool(changes & wanted & EVICTING) and not present & EVICTING
        next_ns = self._zones.next_ns(name) if is_evicted else None
        if is_evicted and (next_ns is None or next_ns > now):
            changes -= EVICTING
            if self._zones.wait(name):
                # It is checked when its zone allows another node to be evicted, or earlier if it is silent.
                self._queue.add_by(name, self._zones.next_ns(name))
        else:
            if is_evicted:
                self._zones.give_up(name, now)
            self._end_wait(name)
        if not changes:
            return []
        taints, message = changed_taints(known.raw.get("spec", {}).get("taints", []), changes, now)
        return [self._write(node, {"spec": {"taints": taints or None}}, message)]

    def _end_wait(self, name: str) -> None:
        """End a node's wait for its eviction; the next one of its zone is checked when its turn comes."""
        if (following := self._zones.end_wait(name)) is not None:
            self._queue.add_by(following, self._zones.next_ns(following))

    def _is_written(self, object_: nodes.Node | Pod) -> bool:
        return self._written.get(object_.metadata.uid) == object_.metadata.resource_version

    def _write(self, object_: nodes.Node | Pod, patch: Raw, message: str) -> PatchObject:
        self._written[object_.metadata.uid] = object_.metadata.resource_version
        return versioned_patch(object_, patch, _NAME, "status" if "status" in patch else "", message)


# The defaults of --node-eviction-rate, --secondary-node-eviction-rate, --large-cluster-size-threshold and
# --unhealthy-zone-threshold.
_INTERVAL_NS = 10 * SECOND
_REDUCED_INTERVAL_NS = 100 * SECOND
_LARGE_ZONE = 50
_UNHEALTHY_PERCENT = 55

Zone = tuple[str, ...]


class _Counts(Struct):
    """The nodes of a zone; ``waiting`` ones must not be evicted yet, the longest waiting first."""

    healthy: int = 0
    unhealthy: int = 0
    excluded: int = 0
    given_up_ns: int | None = None
    waiting: dict[str, None] = {}


class ZoneDisruption:
    """Rates at which nodes are evicted.

    In a zone, one node is evicted every 10 s. If more than two nodes and at least 55% of them are unhealthy, it is one
    every 100 s in a zone of more than 50 nodes, and none in a smaller one; but every 10 s if no node of the zone is
    healthy. If no node of the cluster is healthy, none is evicted. Nodes with the label `EXCLUDED` do not count.
    """

    def __init__(self) -> None:
        # By name, the zone and whether the node is healthy, None if it is excluded.
        self._nodes: dict[str, tuple[Zone, bool | None]] = {}
        self._zones: dict[Zone, _Counts] = {}
        self._healthy = 0

    def is_total(self) -> bool:
        """Return whether no node of the cluster is healthy."""
        return not self._healthy

    def give_up(self, name: str, now: int) -> None:
        """Record that a node is evicted."""
        self._zones[self._nodes[name][0]].given_up_ns = now

    def wait(self, name: str) -> bool:
        """Queue a node behind the waiting ones of its zone, once; return whether it is the next."""
        waiting = self._zones[self._nodes[name][0]].waiting
        waiting[name] = None
        return next(iter(waiting)) == name

    def end_wait(self, name: str) -> str | None:
        """End a node's wait; return the next one if it was the first of its zone."""
        known = self._nodes.get(name)
        waiting = self._zones[known[0]].waiting if known is not None else {}
        if name not in waiting:
            return None
        was_first = next(iter(waiting)) == name
        del waiting[name]
        return next(iter(waiting), None) if was_first else None

    def next_ns(self, name: str) -> int | None:
        """Return when a node may be evicted; None for never."""
        counts = self._zones[self._nodes[name][0]]
        interval_ns = self._interval_ns(counts)
        if interval_ns is None:
            return None
        return 0 if counts.given_up_ns is None else counts.given_up_ns + interval_ns

    def eviction_delays_ns(self, names: Sequence[str]) -> dict[str, int]:
        """Return how long after the first of its zone each node is evicted if these fail, for those that ever are."""
        failed = Counter(zone for zone, is_healthy in map(self._nodes.__getitem__, names) if is_healthy)
        trial, turns, found = ZoneDisruption(), Counter[Zone](), {}
        trial._healthy = self._healthy - failed.total()
        for name in names:
            zone = self._nodes[name][0]
            known, more = self._zones[zone], failed[zone]
            interval_ns = trial._interval_ns(_Counts(known.healthy - more, known.unhealthy + more))
            if interval_ns is not None:
                found[name] = turns[zone] * interval_ns
                turns[zone] += 1
        return found

    def _interval_ns(self, counts: _Counts) -> int | None:
        if self.is_total():
            return None
        total = counts.healthy + counts.unhealthy
        is_partial = counts.unhealthy > 2 and counts.unhealthy * 100 >= _UNHEALTHY_PERCENT * total
        if not counts.healthy or not is_partial:
            return _INTERVAL_NS
        return _REDUCED_INTERVAL_NS if total > _LARGE_ZONE else None

    def replace(self, name: str, node: nodes.Node | None, *, is_healthy: bool = False) -> list[str]:
        """Count a node, None to forget it; return the unhealthy nodes if that changes the rates, else none."""
        zone: Zone = () if node is None else nodes.region_and_zone(node.metadata.labels)
        state = None if node is None or nodes.EXCLUDED in node.metadata.labels else is_healthy
        before, after = self._nodes.pop(name, None), None if node is None else (zone, state)
        has_moved = before is not None and after is not None and before[0] != after[0]
        if before is not None and has_moved:
            has_moved = name in self._zones[before[0]].waiting
            self._zones[before[0]].waiting.pop(name, None)
        if after is not None:
            self._nodes[name] = after
        counted = [each for each in (before, after) if each is not None]
        zones = [self._zones.setdefault(zone, _Counts()) for zone, _ in counted]
        paces = [self.is_total(), *map(self._interval_ns, zones)]
        for (place, state), step in zip(counted, (1,) if before is None else (-1, 1), strict=False):
            counts = self._zones[place]
            counts.healthy += step * (state is True)
            counts.unhealthy += step * (state is False)
            counts.excluded += step * (state is None)
            self._healthy += step * (state is True)
        has_changed = has_moved or paces != [self.is_total(), *map(self._interval_ns, zones)]
        for (zone, _), counts in zip(counted, zones, strict=True):
            if not (counts.healthy or counts.unhealthy or counts.excluded):
                # A later node is not evicted before the interval is over in any case.
                self._zones.pop(zone, None)
        return [name for name, (_, state) in self._nodes.items() if not state] if has_changed else []
