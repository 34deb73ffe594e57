"""The pods of each owner."""

from __future__ import annotations

from podium.api.pod import Pod
from podium.store.watch_log import WatchEvent


class OwnedPods:
    """Pods by the uid of the object that controls them; a pod without one is left out."""

    def __init__(self) -> None:
        self._active: dict[str, dict[str, Pod]] = {}
        self._all: dict[str, dict[str, Pod]] = {}
        self._ended: dict[tuple[str, str], set[str]] = {}

    def observe(self, pod: Pod, event: WatchEvent) -> str:
        """Take in a pod's change; returns the uid of its controller, "" when it has none."""
        owner = pod.metadata.controller
        if owner is None:
            return ""
        uid = pod.metadata.uid
        if event.type == "DELETED":
            self._all.get(owner.uid, {}).pop(uid, None)
        else:
            self._all.setdefault(owner.uid, {})[uid] = pod
        if event.type == "DELETED" or pod.is_terminal or pod.is_terminating:
            self._active.get(owner.uid, {}).pop(uid, None)
        else:
            self._active.setdefault(owner.uid, {})[uid] = pod
        if pod.is_terminal:
            self._ended.setdefault((owner.uid, pod.status.phase), set()).add(uid)
        return owner.uid

    def active(self, owner_uid: str) -> dict[str, Pod]:
        """The pods by uid that have not ended and are not asked to."""
        return self._active.get(owner_uid, {})

    def all(self, owner_uid: str) -> dict[str, Pod]:
        """All pods by uid that exist."""
        return self._all.get(owner_uid, {})

    def ended(self, owner_uid: str, phase: str) -> int:
        """How many pods have ever ended in a phase, Succeeded or Failed; those count that are gone since."""
        return len(self._ended.get((owner_uid, phase), ()))
