"""The controllers that delete pods: those that no kubelet will end, and those that do not tolerate a taint.

Source: pkg/controller/podgc, pkg/controller/tainteviction, pkg/controller/devicetainteviction.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podium.api.devices import DeviceTaint, DeviceTaintRule, ResourceClaim, ResourceSlice
from podium.api.meta import Kubernetes, Raw, objects_at
from podium.api.node import OUT_OF_SERVICE, Node, Taint, is_ready
from podium.api.pod import Pod, PodCondition
from podium.api.times import SECOND, time_of
from podium.cluster.devices import DeviceObject, Devices
from podium.cluster.view import tolerates
from podium.controllers.actions import Action, DeleteObject, ReportStatus, deletion_of
from podium.controllers.controller import NO_CHANGE, ON_MISSING_NODE, PLACED, UNPLACED, IdleDeferral, Reconciler
from podium.controllers.deadlines import earliest
from podium.controllers.indexes import MultiMap, exchange
from podium.controllers.ledger.disruption import since
from podium.controllers.nodes.node_lifecycle import BoundPods
from podium.controllers.observations import ActionFinished, Changed
from podium.decide.kubelet import is_static


class PodDeleter(Reconciler[str]):
    """A controller that deletes pods (by key) in two steps: it writes their status, then deletes them.

    No step is repeated while one is pending, nor after the deletion was carried out.
    """

    awaits_answers = True

    def __init__(self) -> None:
        super().__init__()
        self._pods = BoundPods()
        # By uid, the pods that were marked, and those that were deleted or are gone.
        self._marked: set[str] = set()
        self._deleted: set[str] = set()

    def _delete(self, mark: ReportStatus | None, delete: DeleteObject) -> list[Action]:
        """Return the next step; ``mark`` is None if the status is written already."""
        if delete.uid in self._deleted:
            return []
        return [delete if mark is None or delete.uid in self._marked else mark]

    def _handle_answer(self, key: str, finished: ActionFinished, now: int) -> list[Action]:
        action = finished.action
        if isinstance(action, ReportStatus) and finished.problem is None:
            self._marked.add(action.uid)
            self._queue.add(key)
        elif isinstance(action, ReportStatus | DeleteObject) and finished.answer.is_over:
            self._deleted.add(action.uid)
        # A failed step is retried with the pod's current state.
        return super()._handle_answer(key, finished, now)

    def _forget_pod(self, pod: Pod) -> None:
        self._pods.remove(pod.key)
        self._forget_deletion(pod.metadata.uid)
        self._forget(pod.key)

    def _forget_deletion(self, uid: str) -> None:
        """Forget a pod that is gone, or need not be deleted any more."""
        self._marked.discard(uid)
        self._deleted.discard(uid)


_COLLECTOR = "pod-garbage-collector"
_ORPHAN = PodCondition(
    type="DisruptionTarget", status="True", reason="DeletionByPodGC", message="PodGC: node no longer exists"
)
_FAILED: Raw = {"phase": "Failed"}

QUARANTINE_NS = 40 * 10**9
"""How long a node must be missing before its pods are orphans."""


class PodGarbageCollector(PodDeleter):
    """Fails and force-deletes orphaned pods.

    These are the pods of nodes missing for `QUARANTINE_NS`; deleted pods on nodes that are not ready and tainted
    out-of-service; and deleted pods without a node.
    """

    watches = frozenset(("Node", "Pod"))
    pod_aspects = PLACED
    idle_deferral = IdleDeferral(frozenset(("Pod",)), UNPLACED | ON_MISSING_NODE, ahead=frozenset(("Node",)))

    def __init__(self) -> None:
        super().__init__()
        # The names of the nodes, and of those out of service; by missing node with pods, the end of its quarantine.
        self._nodes: set[str] = set()
        self._out_of_service: set[str] = set()
        self._missing: dict[str, int] = {}
        # By key, deleted pods without a node.
        self._unbound: dict[str, Pod] = {}

    @property
    def is_idle(self) -> bool:
        """Return whether no node is out of service, and no pod on a missing node, or deleted without a node."""
        return not self._out_of_service and not self._missing and not self._unbound

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        if isinstance(object_, Pod) and shown is not None:
            return [] if self._pod_changed(object_, shown, now) else NO_CHANGE
        if isinstance(object_, Pod):
            name = object_.spec.node_name
            self._unbound.pop(object_.key, None)
            self._forget_pod(object_)
            if not self._pods.on(name):
                self._missing.pop(name, None)
        elif isinstance(object_, Node) and shown is None:
            self._nodes.discard(object_.metadata.name)
            self._out_of_service.discard(object_.metadata.name)
            self._begin_quarantine(object_.metadata.name, now)
        elif isinstance(object_, Node):
            name = object_.metadata.name
            is_out = not is_ready(object_) and any(taint.key == OUT_OF_SERVICE for taint in object_.spec.taints)
            if is_out and name not in self._out_of_service:
                self._queue.add_all(found.pod.key for found in self._pods.on(name))
            self._nodes.add(name)
            (self._out_of_service.add if is_out else self._out_of_service.discard)(name)
            if self._missing.pop(name, None) is not None:
                self._set_timers(name, None)
        return []

    def _pod_changed(self, pod: Pod, shown: Changed, now: int) -> bool:
        """Take in a pod; return whether it or others of its node may be due."""
        name, is_terminating = pod.spec.node_name, pod.is_terminating
        self._pods.put(pod, shown)
        exchange(self._unbound, pod.key, pod if is_terminating and not name else None)
        if is_terminating:
            self._queue.add(pod.key)
        if not name or name in self._nodes:
            return is_terminating
        if name in self._missing:
            self._queue.add_at(pod.key, self._missing[name])
        else:
            self._begin_quarantine(name, now)
        return True

    def _begin_quarantine(self, name: str, now: int) -> None:
        """Start the quarantine of a missing node with pods."""
        if name not in self._nodes and name not in self._missing and self._pods.on(name):
            self._missing[name] = now + QUARANTINE_NS
            self._set_timers(name, self._missing[name])

    def _set_timers(self, name: str, time_ns: int | None) -> None:
        for found in self._pods.on(name):
            self._queue.add_at(found.pod.key, time_ns)

    def _reconcile(self, key: str, now: int) -> list[Action]:
        found = self._pods.find(key)
        pod = self._unbound.get(key) if found is None else found.pod
        why = None if pod is None else self._why(pod, now)
        if pod is None or why is None:
            return []
        message, conditions = why
        uid = pod.metadata.uid
        mark = None if pod.is_terminal else ReportStatus("Pod", key, uid, _COLLECTOR, conditions, _FAILED)
        return self._delete(mark, DeleteObject("Pod", key, uid, _COLLECTOR, 0, message))

    def _why(self, pod: Pod, now: int) -> tuple[str, tuple[PodCondition, ...]] | None:
        """Return why a pod is collected, in words and as conditions; None if it is not."""
        name = pod.spec.node_name
        if pod.is_terminal and pod.is_terminating and not pod.metadata.deletion_grace_period_seconds:
            # Only finalizers hold it.
            return None
        if not name:
            return "it never had a node", ()
        if name not in self._nodes:
            is_orphan = name in self._missing and self._missing[name] <= now
            return (f"its node {name} is gone", (_ORPHAN,)) if is_orphan else None
        if name in self._out_of_service and pod.is_terminating:
            return f"its node {name} is out of service", ()
        return None


_EVICTION = "taint-eviction-controller"
_MESSAGE = "Taint manager: deleting due to NoExecute taint"
_BY_NODE = replace(_ORPHAN, reason="DeletionByTaintManager", message=_MESSAGE)
_BY_DEVICE = replace(_ORPHAN, reason="DeletionByDeviceTaintManager", message=f"Device {_MESSAGE}")
_NoExecuteTaints = dict[tuple[Taint, str], int]
"""Since when each taint counts, by the taint and its timeAdded ("" for none)."""


class TaintEviction(PodDeleter):
    """Deletes each pod of a tainted node or device when it, or its claim, no longer tolerates one of the taints.

    Toleration seconds count from the later of the taint's addition and the pod's binding, so that a restart does not
    reset them. A time once set for a node's taints stands until the pod tolerates all of them for good, or not all any
    more (processPodOnNode): neither another taint nor other seconds change it. Static pods are ignored.
    """

    watches = frozenset(("DeviceTaintRule", "Node", "Pod", "ResourceClaim", "ResourceSlice"))
    pod_aspects = PLACED
    idle_deferral = IdleDeferral(frozenset(("Pod",)), ahead=frozenset(("Node", "ResourceClaim")))

    def __init__(self) -> None:
        super().__init__()
        self._taints: dict[str, _NoExecuteTaints] = {}
        # The pods on tainted nodes or with claims, by key: the uid and since when they are there.
        self._since: dict[str, tuple[str, int]] = {}
        # By key, when pods that tolerate the taints of their nodes for some time are evicted.
        self._ends: dict[str, int] = {}
        # Devices and claims; by pod, the claims that it uses.
        self._devices = Devices()
        self._used_by: MultiMap[str, str] = MultiMap()

    @property
    def is_idle(self) -> bool:
        """Return whether no node has NoExecute taints, and no pod uses a claim."""
        return not self._taints and not self._used_by

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        if isinstance(object_, Pod) and shown is not None:
            self._pods.put(object_, shown)
            if object_.spec.node_name not in self._taints and object_.key not in self._used_by:
                return NO_CHANGE
            self._add(object_, shown, now)
        elif isinstance(object_, Pod):
            self._since.pop(object_.key, None)
            self._ends.pop(object_.key, None)
            self._forget_pod(object_)
        elif isinstance(object_, Node):
            name = object_.metadata.name
            taints = {} if shown is None else self._no_execute_taints(object_, shown.raw, now)
            if taints != (exchange(self._taints, name, taints or None) or {}):
                for bound in self._pods.on(name):
                    self._add(*bound, now)
        elif isinstance(object_, ResourceClaim | ResourceSlice | DeviceTaintRule):
            self._devices_changed(object_, now, is_gone=shown is None)
        return []

    def _devices_changed(self, object_: DeviceObject, now: int, *, is_gone: bool) -> None:
        before, after = self._devices.find(object_), None if is_gone else object_
        (self._devices.remove if is_gone else self._devices.put)(object_)
        if isinstance(object_, ResourceClaim):
            self._used_by.replace(object_.key, _users(before), _users(after))
        evicts = any(taint.effect == "NoExecute" for item in (before, after) for taint in _taints_of(item))
        for key in self._used_by if evicts else (*_users(before), *_users(after)):
            if (found := self._pods.find(key)) is not None:
                self._add(*found, now)

    def _add(self, pod: Pod, shown: Changed, now: int) -> None:
        """Check a pod of a tainted node or with a claim; record once since when it is there."""
        uid, known = pod.metadata.uid, self._since.get(pod.key)
        if known is None or known[0] != uid:
            since_ns = since(shown.raw, "PodScheduled") or time_of(pod.metadata.creation_timestamp)
            self._since[pod.key] = uid, _since_ns(since_ns, now)
            self._ends.pop(pod.key, None)
        self._queue.add(pod.key)

    def _no_execute_taints(self, node: Node, raw: Raw, now: int) -> _NoExecuteTaints:
        """Return the node's NoExecute taints; known ones keep their time."""
        before = self._taints.get(node.metadata.name, {})
        times = (str(taint.get("timeAdded") or "") for taint in objects_at(raw, "spec", "taints"))
        found = (dated for dated in zip(node.spec.taints, times, strict=True) if dated[0].effect == "NoExecute")
        return {dated: before.get(dated, _since_ns(time_of(dated[1]), now)) for dated in found}

    def _reconcile(self, key: str, now: int) -> list[Action]:
        found = self._pods.find(key)
        if found is None:
            return []
        pod = found.pod
        may_stay = pod.is_terminating or is_static(pod)
        on_node, on_devices = self._end_on_node(pod), min(self._ends_on_devices(pod), default=None)
        due_ns = None if may_stay else earliest((on_node, on_devices))
        if due_ns is None or due_ns > now:
            self._queue.add_at(key, due_ns)
            self._forget_deletion(pod.metadata.uid)
            return []
        wanted, target = _BY_NODE if due_ns == on_node else _BY_DEVICE, pod.status.condition("DisruptionTarget")
        is_marked = target is not None and (target.status, target.reason) == ("True", wanted.reason)
        mark = None if is_marked else ReportStatus("Pod", key, pod.metadata.uid, _EVICTION, (wanted,))
        return self._delete(mark, deletion_of(pod, _EVICTION))

    def _end_on_node(self, pod: Pod) -> int | None:
        """Return when the pod is evicted for its node's taints: 0 for at once, None for never."""
        ends: list[int] = []
        for (taint, _), since_ns in self._taints.get(pod.spec.node_name, {}).items():
            toleration = next((each for each in pod.spec.tolerations if tolerates(each, taint)), None)
            if toleration is None:
                return 0
            if toleration.toleration_seconds is not None:
                ends.append(max(since_ns, self._since[pod.key][1]) + toleration.toleration_seconds * SECOND)
        if not ends:
            self._ends.pop(pod.key, None)
            return None
        return self._ends.setdefault(pod.key, min(ends))

    def _ends_on_devices(self, pod: Pod) -> Iterator[int]:
        """Yield when each NoExecute taint of the pod's devices is no longer tolerated."""
        claims = (self._devices.claims[key] for key in self._used_by.get(pod.key, ()))
        held = (claim.status.allocation for claim in claims if claim.is_reserved_for(pod.metadata.uid))
        for result in (one for allocation in held if allocation is not None for one in allocation.devices.results):
            slices = self._devices.in_pool((result.driver, result.pool))
            for taint in (taint for item in slices for taint in _taints_of(item, result.device)):
                matching = [each.toleration_seconds for each in result.tolerations if tolerates(each, taint)]
                if taint.effect != "NoExecute" or None in matching:
                    continue
                since_ns = max(time_of(taint.time_added) or 0, self._since[pod.key][1])
                yield since_ns + min(each or 0 for each in matching) * SECOND if matching else 0


def _users(item: DeviceObject | None) -> list[str]:
    """Return the keys of the pods that use a claim; none for another object."""
    consumers = item.status.reserved_for if isinstance(item, ResourceClaim) else ()
    return [f"{item.metadata.namespace}/{one.name}" for one in consumers if item is not None and one.resource == "pods"]


def _taints_of(item: DeviceObject | None, name: str = "") -> list[DeviceTaint]:
    """Return the taints of a rule, or of the devices of a slice, of all without a ``name``."""
    devices = item.spec.devices if isinstance(item, ResourceSlice) else ()
    own = [item.spec.taint] if isinstance(item, DeviceTaintRule) else []
    return own + [taint for device in devices if name in ("", device.name) for taint in device.taints]


def _since_ns(said_ns: int | None, now: int) -> int:
    """Return since when something counts that is first observed now; times in objects are truncated to seconds."""
    return now if said_ns is None else min(now, said_ns + SECOND)
