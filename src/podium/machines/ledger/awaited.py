"""Which pods come in place of victims: of a controller's pods the first that is made after each has begun to end."""

from __future__ import annotations

from collections import deque

from podium.api.pod import Pod
from podium.api.times import parse_time

_SECOND = 10**9
_KEEPS_NAMES = frozenset(("StatefulSet",))


class Awaited:
    """Victims whose replacement is yet to come, by the uid of their controller, the earliest first."""

    def __init__(self) -> None:
        # By controller: the victim's uid, its name, and when it began to end.
        self._victims: dict[str, deque[tuple[str, str, int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._victims)

    def put(self, victim: Pod, now: int, *, first: bool = False) -> None:
        """A pod has begun to end; one that nobody controls is not replaced."""
        controller = victim.metadata.controller
        if controller is None:
            return
        waiting = self._victims.setdefault(controller.uid, deque())
        entry = (victim.metadata.uid, victim.metadata.name, now)
        if first:
            waiting.appendleft(entry)
        else:
            waiting.append(entry)

    def take(self, pod: Pod, *, is_added: bool | None) -> str:
        """The uid of the victim in whose place a pod has come; "" for none.

        ``is_added`` says whether the pod was made just now. Where that is not known (None), one counts that was made
        in a later second than the victim began to end in, or in the same and has no node yet.
        """
        controller = pod.metadata.controller if pod.metadata.owner_references else None
        waiting = None if controller is None else self._victims.get(controller.uid)
        if controller is None or waiting is None or is_added is False or pod.is_terminating:
            return ""
        for entry in waiting:
            uid, name, began_ns = entry
            if controller.kind in _KEEPS_NAMES and name != pod.metadata.name:
                continue
            if uid != pod.metadata.uid and (is_added or _is_later(pod, began_ns)):
                waiting.remove(entry)
                if not waiting:
                    del self._victims[controller.uid]
                return uid
        return ""

    def drop(self, victim: Pod) -> None:
        """Nobody waits for that replacement any more."""
        controller = victim.metadata.controller
        waiting = None if controller is None else self._victims.get(controller.uid)
        if controller is None or waiting is None:
            return
        left = deque(entry for entry in waiting if entry[0] != victim.metadata.uid)
        if left:
            self._victims[controller.uid] = left
        else:
            del self._victims[controller.uid]


def _is_later(pod: Pod, began_ns: int) -> bool:
    created = pod.metadata.creation_timestamp
    created_ns = parse_time(created) if created else 0
    began_ns -= began_ns % _SECOND
    return created_ns > began_ns or (created_ns == began_ns and not pod.spec.node_name)
