"""Workloads and the objects that they own or may adopt, as their controllers hold them; pods in order of deletion.

A pod belongs to the workload that its controller reference names by uid. Source: for adoption and release,
pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cmp_to_key
from typing import Generic, TypeVar

from msgspec import Struct

from podium.api.meta import Kubernetes, Raw, plain
from podium.api.pod import Pod
from podium.api.selectors import Selector, parse_int64
from podium.api.times import SECOND, time_of
from podium.controllers.actions import PatchObject, owned_object, owner_reference, versioned_patch
from podium.controllers.indexes import LabelIndex, MultiMap
from podium.controllers.observations import Changed
from podium.store.stored import condition_of

Kind_co = TypeVar("Kind_co", bound=Kubernetes, covariant=True)


class WorkloadObject(Generic[Kind_co]):
    """An object with its wire form.

    ``label`` is its name as the cause of actions, such as `ReplicaSet default/web`. ``is_deleted``: it only waits for
    finalizers. ``spec``, ``template`` (of its pods), ``status`` and ``conditions`` are parts of the wire form.
    """

    __slots__ = ("conditions", "is_deleted", "label", "object", "raw", "spec", "status", "template", "uid")

    def __init__(self, object_: Kind_co, raw: Raw) -> None:
        self.object = object_
        self.raw = raw
        self.uid = object_.metadata.uid
        self.label = label_of(object_)
        self.is_deleted = object_.metadata.deletion_timestamp is not None
        self.spec: Raw = raw.get("spec", {})
        self.template: Raw = self.spec.get("template", {})
        self.status: Raw = raw.get("status", {})
        self.conditions: list[Raw] = self.status.get("conditions", [])

    def new_pod(self, template: Raw, metadata: Raw, labels: Mapping[str, str], spec: Raw | None = None) -> Raw:
        """Return a pod made from a template, with further labels, and ``spec`` instead of the template's.

        ``metadata`` has a name or `generateName`, and may replace annotations and finalizers of the template.
        """
        given = template.get("metadata", {})
        kept = {name: given[name] for name in ("annotations", "finalizers") if name in given}
        described = {**kept, **metadata, "labels": {**given.get("labels", {}), **labels}}
        return owned_object(self.object, Pod, described, spec=template.get("spec", {}) if spec is None else spec)


def label_of(object_: Kubernetes) -> str:
    """Return the object's kind and key, such as `ReplicaSet default/web`."""
    return f"{type(object_).__name__} {object_.key}"


def status_with(old: Raw, fields: Raw, always: Collection[str] = ()) -> Raw:
    """Return the status with these fields, without those that are None or empty, except ``always``."""
    kept = {name: value for name, value in old.items() if name not in fields}
    empty: tuple[object, ...] = (None, 0, "", [], {})
    return kept | {name: value for name, value in fields.items() if name in always or value not in empty}


Item = TypeVar("Item")


class OwnedChange(Struct, Generic[Item], frozen=True):
    """A change of an owned object: its state before, None if it is new, and now; its last state if it ``is_gone``."""

    owner_uid: str
    before: Item | None
    now: Item
    is_gone: bool = False


Kind = TypeVar("Kind", bound=Kubernetes)


class OwnedObjects(Generic[Kind]):
    """Objects by key, and by the uid of their controller."""

    def __init__(self) -> None:
        self._objects: dict[str, WorkloadObject[Kind]] = {}
        self.named = self._objects.get
        """Returns the object with a key, whatever its owner; or None."""
        # By the owner's uid, the keys of its objects.
        self._keys: MultiMap[str, str] = MultiMap()

    def see(self, object_: WorkloadObject[Kind]) -> list[OwnedChange[WorkloadObject[Kind]]]:
        """Take in an object; return the changes for its owner and for the owner of an object that it replaces."""
        key, owner = object_.object.key, object_.object.metadata.controller
        known = self._objects.get(key)
        is_same = known is not None and (known.uid, known.object.metadata.controller) == (object_.uid, owner)
        changes = [] if is_same else self.lose(object_.object)
        self._objects[key] = object_
        if owner is not None:
            self._keys.add(owner.uid, key)
            changes.append(OwnedChange(owner.uid, known if is_same else None, object_))
        return changes

    def lose(self, object_: Kubernetes) -> list[OwnedChange[WorkloadObject[Kind]]]:
        """Forget an object of that key; return the change for its owner."""
        known = self._objects.pop(object_.key, None)
        owner = known.object.metadata.controller if known is not None else None
        if known is None or owner is None:
            return []
        self._keys.discard(owner.uid, object_.key)
        return [OwnedChange(owner.uid, known, known, is_gone=True)]

    def of(self, owner_uid: str) -> list[WorkloadObject[Kind]]:
        return [self._objects[key] for key in sorted(self._keys.get(owner_uid, ()))]


class Orphans:
    """Objects of one type with labels and without a controller, which are not being deleted."""

    def __init__(self) -> None:
        self._objects: dict[str, Kubernetes] = {}
        self._index: LabelIndex[str] = LabelIndex()

    def put(self, object_: Kubernetes) -> bool:
        """Take in an object; return whether it is an orphan, or was one."""
        meta = object_.metadata
        if not meta.labels or meta.controller is not None or meta.deletion_timestamp is not None:
            return self.remove(object_)
        self._objects[object_.key] = object_
        self._index.put(object_.key, meta.labels, meta.namespace)
        return True

    def remove(self, object_: Kubernetes) -> bool:
        """Remove the object with that key; return whether there was one."""
        if self._objects.pop(object_.key, None) is None:
            return False
        self._index.remove(object_.key)
        return True

    def matching(self, namespace: str, selector: Selector) -> list[Kubernetes]:
        """Return the objects that a selector matches, by key."""
        return [self._objects[key] for key in sorted(self._index.matching(selector, namespace))]


def claim_of(object_: Kubernetes, uid: str, cause: str, finalizer: str, by: Kubernetes | None = None) -> PatchObject:
    """Return the patch that removes the reference to the workload with that uid, and a finalizer.

    With ``by``, that workload becomes the object's controller, and a finalizer other than "" is added instead.
    """
    references = [plain(each) for each in object_.metadata.owner_references if each.uid != uid]
    finalizers = [each for each in object_.metadata.finalizers if each != finalizer]
    if by is not None:
        references.append(owner_reference(by))
        finalizers += [finalizer] if finalizer else []
    metadata: Raw = {"ownerReferences": references or None}
    if finalizers != list(object_.metadata.finalizers):
        metadata["finalizers"] = finalizers or None
    return versioned_patch(object_, {"metadata": metadata}, cause)


class OwnedPod:
    """A pod with the wire form of its status, which has times, restarts and exit codes.

    ``is_active``: it has neither ended nor been deleted (IsPodActive). ``is_ready``: its condition Ready is True.
    """

    __slots__ = ("_shown", "is_active", "is_ready", "pod", "uid")

    def __init__(self, pod: Pod, shown: Changed) -> None:
        self.pod = pod
        self._shown = shown
        self.uid = pod.metadata.uid
        self.is_active = not pod.is_terminal and not pod.is_terminating
        self.is_ready = pod.is_ready

    @property
    def status(self) -> Raw:
        """Return the wire form of its status."""
        status: Raw = self._shown.raw.get("status", {})
        return status

    @property
    def created_ns(self) -> int:
        """Return when it was created, in whole seconds; 0 if unknown."""
        return time_of(self.pod.metadata.creation_timestamp) or 0

    def ready_since_ns(self) -> int:
        """Return since when it is ready, or not ready; 0 if unknown."""
        return time_of(condition_of(self.status.get("conditions", ()), "Ready").get("lastTransitionTime")) or 0

    def available_ns(self, min_ready_seconds: int) -> int | None:
        """Return when it becomes available (ready for some seconds); None while it is not ready (IsPodAvailable)."""
        if not self.is_ready:
            return None
        return self.ready_since_ns() + min_ready_seconds * SECOND if min_ready_seconds else 0


class OwnerPods(Struct):
    """The pods of one owner by uid: all, the active ones, and the active ones that are ready."""

    all: dict[str, OwnedPod] = {}
    active: dict[str, OwnedPod] = {}
    ready: dict[str, OwnedPod] = {}

    def put(self, owned: OwnedPod) -> None:
        uid = owned.uid
        self.all[uid] = owned
        for group, belongs in ((self.active, owned.is_active), (self.ready, owned.is_active and owned.is_ready)):
            if belongs:
                group[uid] = owned
            else:
                group.pop(uid, None)

    def remove(self, uid: str) -> None:
        for group in (self.all, self.active, self.ready):
            group.pop(uid, None)


OwnedPodChange = OwnedChange[OwnedPod]


_NO_PODS = OwnerPods()


class OwnedPods:
    """Pods by the uid of their controller, if that is of one of the kinds."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds
        self._by_owner: dict[str, OwnerPods] = {}
        # By the pod's key, its uid and its owner's.
        self._places: dict[str, tuple[str, str]] = {}

    def concern(self, pod: Pod) -> bool:
        """Return whether the pod, or a known one with its key, has an owner of these kinds."""
        if pod.metadata.owner_references:
            owner = pod.metadata.controller
            if owner is not None and owner.kind in self._kinds:
                return True
        return bool(self._places) and pod.key in self._places

    def see(self, pod: Pod, shown: Changed) -> list[OwnedPodChange]:
        """Take in a pod; return the changes, also of a pod that it replaces."""
        owner = pod.metadata.controller
        owner_uid = owner.uid if owner is not None and owner.kind in self._kinds else ""
        place = pod.metadata.uid, owner_uid
        changes = self.lose(pod) if self._places.get(pod.key, place) != place else []
        if owner_uid:
            pods = self._by_owner.setdefault(owner_uid, OwnerPods())
            owned = OwnedPod(pod, shown)
            changes.append(OwnedChange(owner_uid, pods.all.get(owned.uid), owned))
            pods.put(owned)
            self._places[pod.key] = place
        return changes

    def lose(self, pod: Pod) -> list[OwnedPodChange]:
        """Forget the pod with that key; return the change."""
        if pod.key not in self._places:
            return []
        uid, owner_uid = self._places.pop(pod.key)
        pods = self._by_owner[owner_uid]
        known = pods.all[uid]
        pods.remove(uid)
        if not pods.all:
            del self._by_owner[owner_uid]
        return [OwnedChange(owner_uid, known, known, is_gone=True)]

    def of(self, owner_uid: str) -> OwnerPods:
        return self._by_owner.get(owner_uid, _NO_PODS)

    def named(self, key: str) -> OwnedPod | None:
        place = self._places.get(key)
        return None if place is None else self._by_owner[place[1]].all[place[0]]


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation of a pod: pods with a lower cost are deleted first."""

_Ranked = tuple[tuple[bool, int, bool, int, int], OwnedPod]

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def first_to_go(pods: Iterable[OwnedPod], count: int, related: Iterable[OwnedPod] | None, now: int) -> list[OwnedPod]:
    """Return the ``count`` pods to delete, in order (ActivePodsWithRanks; without ``related``, ActivePods).

    The order is: pods without a node, by phase, not ready, by deletion cost, by the number of ``related`` active pods
    on their node, ready for a shorter time, more restarts, younger, lower uid. Times are compared by the powers of two
    of their nanoseconds; the uid decides between different times with equal powers. So three pods may each precede the
    next; the lowest uid then comes first. Without ``related``, costs do not count, and times are compared exactly.
    """
    neighbours = Counter(pod.pod.spec.node_name for pod in related or ())
    scale_ns = None if related is None else now

    def rank(pod: OwnedPod) -> tuple[bool, int, bool, int, int]:
        node_name, cost = pod.pod.spec.node_name, 0 if related is None else _cost(pod)
        phase = _PHASES.get(pod.pod.status.phase, 0)
        return bool(node_name), phase, pod.is_ready, cost, -neighbours[node_name]

    def compare(one_: _Ranked, other_: _Ranked) -> int:
        if one_[0] != other_[0]:
            return -1 if one_[0] < other_[0] else 1
        one, other, found = one_[1], other_[1], 0
        if one.is_ready and other.is_ready:
            found = _compare_times(one, other, scale_ns, one.ready_since_ns(), other.ready_since_ns())
        found = found or _restarts(other) - _restarts(one)
        found = found or _compare_times(one, other, scale_ns, one.created_ns, other.created_ns)
        return found or _order(one.uid, other.uid)

    ranked = [(rank(pod), pod) for pod in sorted(pods, key=lambda pod: pod.uid)]
    return [pod for _, pod in sorted(ranked, key=cmp_to_key(compare))[:count]]


def _compare_times(one: OwnedPod, other: OwnedPod, now: int | None, since: int, other_since: int) -> int:
    """Compare times, exactly without ``now``: unknown first, then the later; 0 if equal."""
    if since == other_since:
        return 0
    if not since or not other_since:
        return -1 if not since else 1
    if now is None:
        return other_since - since
    magnitude, other_magnitude = (max(now - time, 0).bit_length() for time in (since, other_since))
    return magnitude - other_magnitude or _order(one.uid, other.uid)


def _order(one: str, other: str) -> int:
    return (one > other) - (one < other)


def _cost(pod: OwnedPod) -> int:
    """Return the annotation's value; 0 if there is none or it is no number."""
    cost = parse_int64(pod.pod.metadata.annotations.get(DELETION_COST, "0"))
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _restarts(pod: OwnedPod) -> int:
    """Return the largest restart count of its containers; between equal ones, that of its sidecars decides."""
    names = {container.name for container in pod.pod.spec.init_containers if container.restart_policy == "Always"}
    sidecars = [each for each in pod.status.get("initContainerStatuses", ()) if each.get("name") in names]
    statuses = pod.status.get("containerStatuses", ()), sidecars
    counts = ([each.get("restartCount", 0) for each in listed] for listed in statuses)
    most, of_sidecars = (max((count for count in each if isinstance(count, int)), default=0) for each in counts)
    return most << 32 | of_sidecars
