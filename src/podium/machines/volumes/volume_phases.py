"""What volumes say of themselves that no claim has: that they can be had, or that their claim is gone.

What becomes of one whose claim is gone is its reclaim policy's to say: with Retain it stays as it is, with Delete it is
deleted as a provisioner does it.

Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncVolume, reclaimVolume).
"""

from __future__ import annotations

from podium.api.storage import PersistentVolume
from podium.machines.actions import Action, DeleteObject, PatchObject
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue

_KIND = "PersistentVolume"
_PENDING, _AVAILABLE, _RELEASED, _FAILED = "Pending", "Available", "Released", "Failed"
# Where the controller asks the API server before it takes a claim for gone that it has not seen, this one waits: a
# volume may be shown before its claim.
_UNSEEN_NS = 15 * 10**9


class VolumePhases:
    """Reports phases of volumes, and deletes those that are to go with their claims."""

    def __init__(self, author: str) -> None:
        self._author = author
        self._volumes: dict[str, PersistentVolume] = {}
        # The uids of the claims that there are; the names of the volumes that belong to one; and from when on the claim
        # of a volume is taken for gone that has not been seen.
        self._claims: set[str] = set()
        self._of_claim: dict[str, dict[str, None]] = {}
        self._gone_from: dict[str, int] = {}
        # By the name of a volume, what was asked for it last and is not answered.
        self._asked: dict[str, Action] = {}
        self._queue: WorkQueue[str] = WorkQueue()

    def see(self, volume: PersistentVolume, now: int) -> None:
        """The API shows a volume."""
        name, uid = volume.metadata.name, _claim_of(volume)
        known = self._volumes.get(name)
        if known is not None and (known.metadata.uid, _claim_of(known)) != (volume.metadata.uid, uid):
            self.forget(name)
        self._volumes[name] = volume
        if uid:
            self._of_claim.setdefault(uid, {})[name] = None
            if uid not in self._claims and name not in self._gone_from:
                self._gone_from[name] = now + _UNSEEN_NS
                self._queue.add_at(name, now + _UNSEEN_NS)
        if self._wanted(volume, now) is not None:
            self._queue.add(name)

    def forget(self, name: str) -> None:
        """The volume is gone."""
        volume = self._volumes.pop(name, None)
        if volume is None:
            return
        self._gone_from.pop(name, None)
        self._queue.forget(name)
        uid = _claim_of(volume)
        of_claim = self._of_claim.get(uid)
        if of_claim is not None:
            of_claim.pop(name, None)
            if not of_claim:
                del self._of_claim[uid]

    def see_claim(self, uid: str) -> None:
        """The API shows a claim."""
        self._claims.add(uid)
        for name in self._of_claim.get(uid, ()):
            self._gone_from.pop(name, None)

    def forget_claim(self, uid: str, now: int) -> None:
        """The claim is gone."""
        self._claims.discard(uid)
        for name in self._of_claim.get(uid, ()):
            self._gone_from[name] = now
            self._queue.add(name)

    def answered(self, answered: Answered, now: int) -> bool:
        """Take in an answer; whether it is one to what was asked here."""
        action = answered.action
        if not isinstance(action, PatchObject | DeleteObject) or self._asked.get(action.key) is not action:
            return False
        del self._asked[action.key]
        if action.key in self._volumes:
            self._queue.answer(action.key, answered, now)
        return True

    def due(self, now: int) -> list[Action]:
        """What is to be written by now."""
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            volume = self._volumes.get(name)
            asked = None if volume is None else self._wanted(volume, now)
            if asked is not None:
                self._asked[name] = asked
                actions.append(asked)
        return actions

    def deadline(self) -> Deadline:
        """When `due` next has something."""
        return self._queue.deadline()

    def _wanted(self, volume: PersistentVolume, now: int) -> Action | None:
        """What is to be written for a volume, None for nothing."""
        uid, phase = _claim_of(volume), volume.status.phase
        if not uid:
            return self._report(volume, _AVAILABLE) if phase in (_PENDING, _RELEASED) else None
        if uid in self._claims or now < self._gone_from.get(volume.metadata.name, now):
            return None
        if phase not in (_RELEASED, _FAILED):
            return self._report(volume, _RELEASED)
        if volume.spec.persistent_volume_reclaim_policy != "Delete" or volume.metadata.deletion_timestamp is not None:
            return None
        return DeleteObject(_KIND, volume.metadata.name, volume.metadata.uid, self._author)

    def _report(self, volume: PersistentVolume, phase: str) -> Action:
        meta = volume.metadata
        # As it was seen: whoever has claimed it meanwhile has it.
        patch = {"metadata": {"resourceVersion": meta.resource_version}, "status": {"phase": phase}}
        return PatchObject(_KIND, meta.name, meta.uid, patch, self._author, "status")


def _claim_of(volume: PersistentVolume) -> str:
    """The uid of the claim that has the volume; "" for none."""
    claim = volume.spec.claim_ref
    return "" if claim is None else claim.uid
