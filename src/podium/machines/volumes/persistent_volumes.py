"""The persistent volume controller, with provisioners: it completes the bindings that schedulers have begun.

A scheduler names the claim in the volume, or the node in the claim. The controller then makes the volume, if there is
none, and binds the claim to it. Claims that no scheduler looks at (class mode Immediate) are left alone.

Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncUnboundClaim, syncBoundClaim, syncVolume).
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from podium.api.meta import Raw
from podium.api.storage import PersistentVolume, PersistentVolumeClaim
from podium.api.volume_annotations import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from podium.machines.actions import Action, CreateObject, DeleteObject, PatchObject
from podium.machines.observations import Answered, Changed, Gone, Observation, Tick
from podium.machines.parts.deadlines import Deadline, soonest
from podium.machines.parts.work_queue import WorkQueue
from podium.machines.volumes.provisioners import Provisioners
from podium.machines.volumes.volume_phases import VolumePhases

_NAME = "persistentvolume-controller"
_CLAIM, _VOLUME = "PersistentVolumeClaim", "PersistentVolume"
_BOUND, _AVAILABLE = "Bound", "Available"


class PersistentVolumes:
    """Makes volumes for claims that a scheduler has chosen a node for, and binds claims to the volumes kept for them.

    What was asked for a claim is answered before anything else is asked for it. With `reports_all` it also sees
    to volumes that no claim has: that they are available, or released, and gone where that is their policy.
    """

    watches = frozenset((_CLAIM, _VOLUME, "StorageClass", "CSINode", "Node"))

    def __init__(self, *, reports_all: bool = False) -> None:
        self._phases = VolumePhases(_NAME) if reports_all else None
        self._claims: dict[str, tuple[PersistentVolumeClaim, Raw]] = {}
        self._key_of: dict[str, str] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        # By the uid of a claim, the names of the volumes that are kept for it.
        self._kept_for: dict[str, dict[str, None]] = {}
        self._provisioners = Provisioners()
        # By the kind and name of what they wait for, the keys of claims.
        self._waiting: dict[tuple[str, str], dict[str, None]] = {}
        # The claim for which an object is written, and how many answers are awaited for a claim.
        self._asked: dict[tuple[str, str], str] = {}
        self._outstanding: Counter[str] = Counter()
        self._queue: WorkQueue[str] = WorkQueue()

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now``; on a Tick, say what to do."""
        match observation:
            case Changed(object=PersistentVolumeClaim() as claim, raw=raw):
                self._claim_changed(claim, raw, now)
            case Gone(object=PersistentVolumeClaim() as claim):
                self._forget_claim(claim.key, now)
            case Changed(object=PersistentVolume() as volume):
                self._volume_changed(volume, now)
            case Gone(object=PersistentVolume() as volume):
                self._forget_volume(volume.metadata.name)
            case Changed(object=other):
                self._provisioners.changed(other)
                for key in self._waiting.pop((type(other).__name__, other.metadata.name), ()):
                    self._queue.add(key)
            case Gone(object=other):
                self._provisioners.gone(other)
            case Answered():
                self._answered(observation, now)
            case Tick():
                return self._tick(now)
        return []

    def deadline(self) -> Deadline:
        """When there is something to look at; that it is refused once more is no news."""
        own = self._queue.deadline()
        return own if self._phases is None else soonest(own, self._phases.deadline())

    # What the API shows

    def _claim_changed(self, claim: PersistentVolumeClaim, raw: Raw, now: int) -> None:
        known = self._claims.get(claim.key)
        if known is not None and known[0].metadata.uid != claim.metadata.uid:
            self._forget_claim(claim.key, now)
        if self._phases is not None:
            self._phases.see_claim(claim.metadata.uid)
        self._claims[claim.key] = claim, raw
        self._key_of[claim.metadata.uid] = claim.key
        self._queue.add(claim.key)

    def _forget_claim(self, key: str, now: int) -> None:
        known = self._claims.pop(key, None)
        if known is None:
            return
        if self._phases is not None:
            self._phases.forget_claim(known[0].metadata.uid, now)
        self._key_of.pop(known[0].metadata.uid, None)
        if self._outstanding.pop(key, 0):
            self._asked = {about: claim for about, claim in self._asked.items() if claim != key}
        self._queue.forget(key)
        self._stop_waiting(key)

    def _volume_changed(self, volume: PersistentVolume, now: int) -> None:
        self._take_out(volume.metadata.name)
        if self._phases is not None:
            self._phases.see(volume, now)
        name = volume.metadata.name
        self._volumes[name] = volume
        if volume.spec.claim_ref is not None and volume.spec.claim_ref.uid:
            uid = volume.spec.claim_ref.uid
            self._kept_for.setdefault(uid, {})[name] = None
            if uid in self._key_of:
                self._queue.add(self._key_of[uid])

    def _forget_volume(self, name: str) -> None:
        self._take_out(name)
        if self._phases is not None:
            self._phases.forget(name)

    def _take_out(self, name: str) -> None:
        volume = self._volumes.pop(name, None)
        if volume is None or volume.spec.claim_ref is None:
            return
        kept = self._kept_for.get(volume.spec.claim_ref.uid)
        if kept is not None:
            kept.pop(name, None)
            if not kept:
                del self._kept_for[volume.spec.claim_ref.uid]

    def _stop_waiting(self, key: str) -> None:
        for subject in [subject for subject, keys in self._waiting.items() if key in keys]:
            del self._waiting[subject][key]
            if not self._waiting[subject]:
                del self._waiting[subject]

    # What is done

    def _answered(self, answered: Answered, now: int) -> None:
        if self._phases is not None and self._phases.answered(answered, now):
            return
        key = self._asked.pop(_about(answered.action), None)
        if key is None:
            return
        self._outstanding[key] -= 1
        if not self._outstanding[key]:
            del self._outstanding[key]
            # What was seen meanwhile is looked at, too.
            self._queue.add(key)
        self._queue.answer(key, answered, now)

    def _tick(self, now: int) -> list[Action]:
        actions: list[Action] = [] if self._phases is None else self._phases.due(now)
        while (key := self._queue.take(now)) is not None:
            if key in self._outstanding or key not in self._claims:
                continue
            asked = self._for_claim(*self._claims[key])
            for action in asked:
                self._asked[_about(action)] = key
                self._outstanding[key] += 1
            actions += asked
        return actions

    def _for_claim(self, claim: PersistentVolumeClaim, raw: Raw) -> list[Action]:
        """What a claim lacks next."""
        kept = sorted(self._kept_for.get(claim.metadata.uid, ()))
        bound_to = claim.spec.volume_name
        if bound_to:
            actions = [action for name in kept if name != bound_to for action in self._release(self._volumes[name])]
            if bound_to in kept and not actions:
                return self._bind(claim, raw, self._volumes[bound_to])
            return actions
        if kept:
            return self._bind(claim, raw, self._volumes[kept[0]])
        return self._provision(claim, raw)

    def _provision(self, claim: PersistentVolumeClaim, raw: Raw) -> list[Action]:
        """Make a volume for the node that a scheduler has chosen, once all is known that it takes."""
        node_name = claim.metadata.annotations.get(SELECTED_NODE, "")
        if not node_name or claim.metadata.deletion_timestamp is not None:
            return []
        lacking = self._provisioners.lacking(claim.class_name, node_name)
        if lacking is not None:
            self._waiting.setdefault(lacking, {})[claim.key] = None
            return []
        volume = self._provisioners.volume(claim, raw, node_name)
        return [] if volume is None else [CreateObject(volume, _NAME)]

    def _bind(self, claim: PersistentVolumeClaim, raw: Raw, volume: PersistentVolume) -> list[Action]:
        """Bind the claim to the volume that is kept for it: the volume's phase, the claim, then the claim's phase."""
        actions: list[Action] = []
        if volume.status.phase != _BOUND:
            actions.append(_patch_volume(volume, {"status": {"phase": _BOUND}}, "status"))
        name, meta = volume.metadata.name, claim.metadata
        if not claim.spec.volume_name or BIND_COMPLETED not in meta.annotations:
            annotations = {BIND_COMPLETED: "yes"}
            if not claim.spec.volume_name:
                annotations[BOUND_BY_CONTROLLER] = "yes"
            patch = {
                "metadata": {"resourceVersion": meta.resource_version, "annotations": annotations},
                "spec": {"volumeName": name},
            }
            actions.append(PatchObject(_CLAIM, claim.key, meta.uid, patch, _NAME))
        elif claim.status.phase != _BOUND:
            status = {
                "phase": _BOUND,
                "accessModes": list(volume.spec.access_modes),
                "capacity": dict(volume.spec.capacity),
            }
            actions.append(PatchObject(_CLAIM, claim.key, meta.uid, {"status": status}, _NAME, "status"))
        return actions

    def _release(self, volume: PersistentVolume) -> list[Action]:
        """Let others have a volume that was kept for a claim which has another (unbindVolume)."""
        if volume.metadata.annotations.get(BOUND_BY_CONTROLLER) != "yes":
            return []
        if volume.status.phase != _AVAILABLE:
            return [_patch_volume(volume, {"status": {"phase": _AVAILABLE}}, "status")]
        metadata = {"resourceVersion": volume.metadata.resource_version, "annotations": {BOUND_BY_CONTROLLER: None}}
        return [_patch_volume(volume, {"metadata": metadata, "spec": {"claimRef": None}})]


def _patch_volume(volume: PersistentVolume, patch: Raw, subresource: Literal["", "status"] = "") -> PatchObject:
    return PatchObject(_VOLUME, volume.metadata.name, volume.metadata.uid, patch, _NAME, subresource)


def _about(action: Action) -> tuple[str, str]:
    """The kind and key of the object that is written."""
    if isinstance(action, CreateObject):
        return _VOLUME, str(action.raw["metadata"]["name"])
    if isinstance(action, PatchObject | DeleteObject):
        return action.kind, action.key
    raise TypeError(f"the {_NAME} does not ask for {action}")
