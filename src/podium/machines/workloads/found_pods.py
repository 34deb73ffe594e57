"""The pods that were there when a controller began."""

from __future__ import annotations

from podium.api.pod import Pod

_SECOND = 10**9


class FoundPods:
    """By uid, those that a controller was shown before it first acted, for the second in which pods count as new."""

    def __init__(self) -> None:
        self._uids: set[str] = set()
        self._until_ns: int | None = None

    def __contains__(self, uid: str) -> bool:
        return uid in self._uids

    def see(self, pod: Pod) -> None:
        """A pod is shown."""
        if self._until_ns is None:
            self._uids.add(pod.metadata.uid)

    def end(self, now: int) -> None:
        """The controller acts: whatever it is shown from now on has come since; after a second nobody asks any more."""
        if self._until_ns is None:
            self._until_ns = now + _SECOND
        elif self._uids and now >= self._until_ns:
            self._uids = set()
