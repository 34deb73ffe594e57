"""The controller of persistent volumes: it completes the bindings that schedulers start.

A scheduler sets the claim in the volume, or the node in the claim. The controller then creates a missing volume, and
binds the claim. Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncUnboundClaim, syncBoundClaim,
syncVolume).
"""

from __future__ import annotations

from podium.api import storage
from podium.api.meta import Kubernetes, Raw, object_at, objects_at
from podium.api.node import CSINode, Node
from podium.api.quantity import parse_quantity
from podium.api.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from podium.api.times import format_time
from podium.controllers.actions import Action, CreateObject, PatchObject, deletion_of, versioned_patch
from podium.controllers.controller import Reconciler
from podium.controllers.indexes import MultiMap, exchange
from podium.controllers.observations import Changed
from podium.plugins.volumes.claims import is_for, volume_class, volumes_for
from podium.store.stored import with_conditions

_NAME = "persistentvolume-controller"
_CLAIM, _VOLUME = "PersistentVolumeClaim", "PersistentVolume"
_AVAILABLE, _BOUND, _RELEASED, _FAILED = "Available", "Bound", "Released", "Failed"
_RESIZES, _RESIZING = "allocatedResourceStatuses", "Resizing"
_AT_ONCE, _WAITS = "Immediate", "WaitForFirstConsumer"
# The wait before an unobserved claim counts as gone; upstream asks the API server instead.
_UNSEEN_NS = 15 * 10**9

_Key = tuple[str, str]
"""The kind and key of an object."""


class PersistentVolumes(Reconciler[_Key]):
    """Creates volumes for claims with a selected node, and binds claims to the volumes reserved for them.

    With `reports_all` it also binds claims that no scheduler binds: those that name a volume, and those of no class, or
    of class mode Immediate. And it maintains the phase of unbound volumes: available, released, or deleted by their
    policy.
    """

    watches = frozenset((_CLAIM, _VOLUME, "StorageClass", "CSINode", "Node"))
    awaits_answers = True

    def __init__(self, *, reports_all: bool = False) -> None:
        super().__init__()
        self._reports_all = reports_all
        self._claims: dict[str, tuple[PersistentVolumeClaim, Raw]] = {}
        # The keys of existing claims by uid.
        self._key_by_uid: dict[str, str] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        # By the uid of a claim, the names of the volumes reserved for it.
        self._reserved: MultiMap[str, str] = MultiMap()
        # By class, the volumes that are not reserved for the uid of a claim, and the claims that look for one.
        self._free: MultiMap[str, str] = MultiMap()
        self._seeking: MultiMap[str, str] = MultiMap()
        # By the name of a volume, when its claim, which does not exist or was not observed yet, counts as gone.
        self._gone_from: dict[str, int] = {}
        # Classes and nodes; and for what is missing, the keys of the claims that wait for it.
        self._surroundings: dict[_Key, Kubernetes] = {}
        self._waiting: MultiMap[_Key, str] = MultiMap()

    def _observe(self, object_: Kubernetes, shown: Changed | None, now: int) -> list[Action]:
        key = type(object_).__name__, object_.key
        if isinstance(object_, PersistentVolumeClaim):
            uid, known = object_.metadata.uid, self._claims.get(object_.key)
            if shown is None or (known is not None and known[0].metadata.uid != uid):
                self._forget_claim(object_.key, now)
            if shown is not None:
                self._claims[object_.key] = object_, shown.raw
                self._key_by_uid[uid] = object_.key
                self._queue.add(key)
        elif isinstance(object_, PersistentVolume) and shown is not None:
            self._volume_changed(object_, now)
        elif isinstance(object_, PersistentVolume):
            self._forget_volume(object_.metadata.name)
            self._forget(key)
        elif isinstance(object_, StorageClass | Node | CSINode):
            exchange(self._surroundings, key, None if shown is None else object_)
            if shown is not None:
                waiting = self._waiting.pop(key, ()), self._seeking.get("", ()) if key[0] == "StorageClass" else ()
                self._queue.add_all((_CLAIM, claim) for claims in waiting for claim in claims)
        return []

    def _forget_claim(self, key: str, now: int) -> None:
        known = self._claims.pop(key, None)
        if known is None:
            return
        uid = known[0].metadata.uid
        self._seeking.discard(known[0].class_name, key)
        del self._key_by_uid[uid]
        for name in self._reserved.get(uid, ()) if self._reports_all else ():
            self._gone_from[name] = now
            self._queue.add((_VOLUME, name))
        self._forget((_CLAIM, key))
        for subject in [subject for subject, keys in self._waiting.items() if key in keys]:
            self._waiting.discard(subject, key)

    def _volume_changed(self, volume: PersistentVolume, now: int) -> None:
        name, uid, known = volume.metadata.name, _claim_uid(volume), self._volumes.get(volume.metadata.name)
        if known is not None and (known.metadata.uid, _claim_uid(known)) != (volume.metadata.uid, uid):
            self._forget_volume(name)
        self._volumes[name] = volume
        if uid:
            self._free.discard(volume_class(volume), name)
            self._reserved.add(uid, name)
        elif self._reports_all:
            self._free.add(volume_class(volume), name)
            named, seeking = volume.spec.claim_ref, self._seeking.get(volume_class(volume), ())
            keys = seeking if named is None else (f"{named.namespace}/{named.name}",)
            self._queue.add_all((_CLAIM, key) for key in keys)
        if uid in self._key_by_uid:
            self._queue.add((_CLAIM, self._key_by_uid[uid]))
        elif self._reports_all:
            if uid and name not in self._gone_from:
                self._gone_from[name] = now + _UNSEEN_NS
                self._queue.add_at((_VOLUME, name), now + _UNSEEN_NS)
            if self._for_unbound(volume, now):
                self._queue.add((_VOLUME, name))

    def _forget_volume(self, name: str) -> None:
        volume = self._volumes.pop(name, None)
        self._gone_from.pop(name, None)
        if volume is not None:
            self._free.discard(volume_class(volume), name)
            self._reserved.discard(_claim_uid(volume), name)

    def _reconcile(self, key: _Key, now: int) -> list[Action]:
        kind, name = key
        if kind == _CLAIM:
            return self._for_claim(*self._claims[name], now) if name in self._claims else []
        return self._for_unbound(self._volumes[name], now) if name in self._volumes else []

    def _for_claim(self, claim: PersistentVolumeClaim, raw: Raw, now: int) -> list[Action]:
        reserved = sorted(self._reserved.get(claim.metadata.uid, ()))
        bound_to = claim.spec.volume_name
        classes = (each for each in self._surroundings.values() if isinstance(each, StorageClass))
        if self._reports_all and not bound_to and (default := storage.default_class(claim, classes)):
            # The class has become the default after the claim was created (assignDefaultStorageClass).
            return [versioned_patch(claim, {"spec": {"storageClassName": default}}, _NAME)]
        if bound_to:
            actions = [action for name in reserved if name != bound_to for action in _release(self._volumes[name], now)]
            if not actions and bound_to in reserved:
                mine = self._volumes[bound_to]
                return _bind(claim, mine, now) or (_grow(claim, raw, mine, now) if self._reports_all else [])
            if actions:
                return actions
            volume = self._volumes.get(bound_to)
            if volume is None or not self._reports_all or BIND_COMPLETED in claim.metadata.annotations:
                # The claim waits for the volume, or has lost it.
                self._seeking.add(claim.class_name, claim.key)
                return []
            owner = volume.spec.claim_ref
            return [_reservation(volume, claim)] if owner is None or is_for(owner, claim) else []
        if reserved:
            self._seeking.discard(claim.class_name, claim.key)
            return _bind(claim, self._volumes[reserved[0]], now)
        return self._reserve_free(claim) or self._provision(claim, raw)

    def _reserve_free(self, claim: PersistentVolumeClaim) -> list[Action]:
        """Reserve the smallest volume that suits a claim which no scheduler binds."""
        if not self._reports_all or claim.metadata.deletion_timestamp is not None or self._mode_of(claim) == _WAITS:
            return []
        free = [self._volumes[name] for name in self._free.get(claim.class_name, ())]
        pending = {action.key for action, _ in self._requested.values() if isinstance(action, PatchObject)}
        left = (volume for volume in free if volume.metadata.name not in pending)
        if found := volumes_for(claim, left, lambda volume: volume.spec.claim_ref):
            return [_reservation(found[0], claim)]
        self._seeking.add(claim.class_name, claim.key)
        return []

    def _mode_of(self, claim: PersistentVolumeClaim) -> str:
        """Return when volumes of the claim's class are bound; an unknown class binds at once."""
        class_ = self._surroundings.get(("StorageClass", claim.class_name))
        return class_.volume_binding_mode if isinstance(class_, StorageClass) else _AT_ONCE

    def _provision(self, claim: PersistentVolumeClaim, raw: Raw) -> list[Action]:
        """Create a volume for the selected node, once class and node are known."""
        node_name = claim.metadata.annotations.get(storage.SELECTED_NODE, "")
        is_bound_at_once = self._reports_all and claim.class_name and self._mode_of(claim) == _AT_ONCE
        if not (node_name or is_bound_at_once) or claim.metadata.deletion_timestamp is not None:
            return []
        class_ = self._surroundings.get(("StorageClass", claim.class_name))
        node = None if is_bound_at_once else self._surroundings.get(("Node", node_name))
        if not isinstance(class_, StorageClass):
            self._waiting.add(("StorageClass", claim.class_name), claim.key)
        elif node is None and not is_bound_at_once:
            self._waiting.add(("Node", node_name), claim.key)
        elif class_.provisioner != storage.NO_PROVISIONER:
            csi_node = None if node is None else self._surroundings.get(("CSINode", node_name))
            return [CreateObject(provisioned(claim, raw, class_, node, csi_node), _NAME)]
        return []

    def _for_unbound(self, volume: PersistentVolume, now: int) -> list[Action]:
        """Return the next action for a volume without a claim, or whose claim is gone."""
        uid, phase = _claim_uid(volume), volume.status.phase
        if not uid:
            return [_set_phase(volume, _AVAILABLE, now, unless_changed=True)] if phase != _AVAILABLE else []
        if uid in self._key_by_uid or now < self._gone_from.get(volume.metadata.name, now):
            return []
        if phase not in (_RELEASED, _FAILED):
            return [_set_phase(volume, _RELEASED, now, unless_changed=True)]
        is_kept = volume.spec.persistent_volume_reclaim_policy != "Delete"
        return [] if is_kept or volume.metadata.deletion_timestamp is not None else [deletion_of(volume, _NAME)]


def _bind(claim: PersistentVolumeClaim, volume: PersistentVolume, now: int) -> list[Action]:
    """Bind the claim to its volume: the volume's phase, the claim, then the claim's phase."""
    actions: list[Action] = [] if volume.status.phase == _BOUND else [_set_phase(volume, _BOUND, now)]
    if not claim.spec.volume_name or BIND_COMPLETED not in claim.metadata.annotations:
        annotations = {BIND_COMPLETED: "yes", **({} if claim.spec.volume_name else {BOUND_BY_CONTROLLER: "yes"})}
        patch = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.metadata.name}}
        actions.append(versioned_patch(claim, patch, _NAME))
    elif claim.status.phase != _BOUND:
        spec = volume.spec
        status = {"phase": _BOUND, "accessModes": list(spec.access_modes), "capacity": dict(spec.capacity)}
        if spec.volume_attributes_class_name:
            status["currentVolumeAttributesClassName"] = spec.volume_attributes_class_name
        actions.append(PatchObject(_CLAIM, claim.key, claim.metadata.uid, {"status": status}, _NAME, "status"))
    return actions


def _grow(claim: PersistentVolumeClaim, raw: Raw, volume: PersistentVolume, now: int) -> list[Action]:
    """Return the next step by which a claim gets the size that it requests: claim, volume, then claim again.

    A node has nothing to do for it: volumes have no file systems. Source: kubernetes-csi/external-resizer.
    """
    wanted, status = claim.spec.resources.requests.get("storage"), object_at(raw, "status")
    has, is_growing = object_at(status, "capacity").get("storage"), "storage" in object_at(status, _RESIZES)
    if has is None or not (is_growing or parse_quantity(has) < claim.size):
        return []
    conditions, size = objects_at(status, "conditions"), {"storage": wanted}
    if not is_growing:
        conditions = with_conditions(conditions, ({"type": _RESIZING, "status": "True"},), now)
        patch = {"allocatedResources": size, _RESIZES: {"storage": "ControllerResizeInProgress"}}
    elif parse_quantity(volume.spec.capacity.get("storage", 0)) < claim.size:
        return [versioned_patch(volume, {"spec": {"capacity": size}}, _NAME)]
    else:
        conditions = [one for one in conditions if one.get("type") not in (_RESIZING, "FileSystemResizePending")]
        patch = {"capacity": size, _RESIZES: None}
    return [versioned_patch(claim, {"status": {**patch, "conditions": conditions or None}}, _NAME, "status")]


def _reservation(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PatchObject:
    """Reserve a volume for a claim, unless it has changed."""
    patch: Raw = {"spec": {"claimRef": _reference_to(claim)}}
    if volume.spec.claim_ref is None:
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return versioned_patch(volume, patch, _NAME)


def _reference_to(claim: PersistentVolumeClaim) -> Raw:
    meta = claim.metadata
    return {"apiVersion": "v1", "kind": _CLAIM, "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}


def _release(volume: PersistentVolume, now: int) -> list[Action]:
    """Free a volume reserved for a claim that has another one (unbindVolume)."""
    if volume.metadata.annotations.get(BOUND_BY_CONTROLLER) != "yes":
        return []
    if volume.status.phase != _AVAILABLE:
        return [_set_phase(volume, _AVAILABLE, now)]
    patch = {"metadata": {"annotations": {BOUND_BY_CONTROLLER: None}}, "spec": {"claimRef": None}}
    return [versioned_patch(volume, patch, _NAME)]


def _set_phase(volume: PersistentVolume, phase: str, now: int, *, unless_changed: bool = False) -> PatchObject:
    """Set the phase of a volume; ``unless_changed``, because it may have been claimed meanwhile."""
    patch = {"status": {"phase": phase, "lastPhaseTransitionTime": format_time(now)}}
    if unless_changed:
        return versioned_patch(volume, patch, _NAME, "status")
    return PatchObject(_VOLUME, volume.metadata.name, volume.metadata.uid, patch, _NAME, "status")


def _claim_uid(volume: PersistentVolume) -> str:
    """Return the uid of the volume's claim; "" for none."""
    claim = volume.spec.claim_ref
    return "" if claim is None else claim.uid


def provisioned(
    claim: PersistentVolumeClaim, raw: Raw, class_: StorageClass, node: Kubernetes | None, csi_node: Kubernetes | None
) -> Raw:
    """Return a volume for the claim, made by the class's driver for a node; None for any."""
    spec, driver, name = raw.get("spec", {}), class_.provisioner, f"pvc-{claim.metadata.uid}"
    optional = {**spec, "mountOptions": list(class_.mount_options)}
    copied = ("volumeMode", "volumeAttributesClassName", "mountOptions")
    volume: Raw = {
        "capacity": spec.get("resources", {}).get("requests", {}),
        "accessModes": spec.get("accessModes", []),
        "storageClassName": spec.get("storageClassName", ""),
        "claimRef": _reference_to(claim),
        "persistentVolumeReclaimPolicy": class_.reclaim_policy,
        "csi": {"driver": driver, "volumeHandle": name},
        **{field: optional[field] for field in copied if optional.get(field)},
    }
    # The topology labels of the driver on the node.
    labels = {} if node is None else node.metadata.labels
    drivers = csi_node.spec.drivers if isinstance(csi_node, CSINode) else ()
    keys = {key for known in drivers if known.name == driver for key in known.topology_keys}
    expressions = [{"key": key, "operator": "In", "values": [labels[key]]} for key in sorted(keys) if key in labels]
    if expressions:
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    metadata = {"name": name, "annotations": {storage.PROVISIONED_BY: driver}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": volume}
