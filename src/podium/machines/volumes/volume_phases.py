"""What volumes say of themselves that nobody has claimed yet: that they can be had.

Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncVolume).
"""

from __future__ import annotations

from podium.api.storage import PersistentVolume
from podium.machines.actions import Action, PatchObject
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import Deadline
from podium.machines.parts.work_queue import WorkQueue

_PENDING, _AVAILABLE = "Pending", "Available"


class VolumePhases:
    """The volumes that are Pending though no claim has them: they become Available."""

    def __init__(self, author: str) -> None:
        self._author = author
        self._pending: dict[str, PersistentVolume] = {}
        # By the name of a volume, what was asked for it last and is not answered.
        self._asked: dict[str, Action] = {}
        self._queue: WorkQueue[str] = WorkQueue()

    def see(self, volume: PersistentVolume) -> None:
        """The API shows a volume."""
        name, claim = volume.metadata.name, volume.spec.claim_ref
        if volume.status.phase != _PENDING or (claim is not None and claim.uid):
            self.forget(name)
        elif name not in self._pending or self._pending[name].metadata.uid != volume.metadata.uid:
            self._pending[name] = volume
            self._queue.add(name)

    def forget(self, name: str) -> None:
        """The volume is gone, or no longer Pending."""
        if self._pending.pop(name, None) is not None:
            self._queue.forget(name)

    def answered(self, answered: Answered, now: int) -> bool:
        """Take in an answer; whether it is one to what was asked here."""
        action = answered.action
        if not isinstance(action, PatchObject) or self._asked.get(action.key) is not action:
            return False
        del self._asked[action.key]
        if action.key in self._pending:
            self._queue.answer(action.key, answered, now)
        return True

    def due(self, now: int) -> list[Action]:
        """What is to be written by now."""
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            volume = self._pending.get(name)
            if volume is not None:
                patch = {"status": {"phase": _AVAILABLE}}
                asked = PatchObject("PersistentVolume", name, volume.metadata.uid, patch, self._author, "status")
                self._asked[name] = asked
                actions.append(asked)
        return actions

    def deadline(self) -> Deadline:
        """When `due` next has something."""
        return self._queue.deadline()
