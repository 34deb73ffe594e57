"""Which pods come in place of victims: of a controller's pods the first that is made after each has begun to end."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from podium.api.pod import Pod
from podium.api.times import parse_time

_SECOND = 10**9
_KEEPS_NAMES = frozenset(("StatefulSet",))


class Vacancy(NamedTuple):
    """A victim's place: its controller's uid, its own uid and name, and when it began to end."""

    controller: str
    uid: str
    name: str
    began_ns: int


class Awaited:
    """Victims whose replacement is yet to come, by the uid of their controller, the earliest first."""

    def __init__(self) -> None:
        self._places: dict[str, deque[Vacancy]] = {}
        # By the same controllers, the uids of pods that came in somebody's place: nobody comes for two.
        self._came: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def put(self, place: Vacancy, *, first: bool = False) -> None:
        """A pod has begun to end; one that nobody controls (no uid) is not replaced."""
        if not place.controller:
            return
        waiting = self._places.setdefault(place.controller, deque())
        if first:
            waiting.appendleft(place)
        else:
            waiting.append(place)

    def take(self, pod: Pod, *, is_added: bool | None, came_meanwhile: bool = False) -> str:
        """The uid of the victim in whose place a pod has come; "" for none.

        ``is_added`` says whether the pod was made just now. Where that is not known (None), one counts that was made
        in a later second than the victim began to end in, or in the same and has no node yet, or ``came_meanwhile``:
        while nobody looked.
        """
        controller = pod.metadata.controller if pod.metadata.owner_references else None
        waiting = None if controller is None else self._places.get(controller.uid)
        if controller is None or waiting is None or is_added is False or pod.is_terminating:
            return ""
        came = self._came.setdefault(controller.uid, set())
        if pod.metadata.uid in came:
            return ""
        for place in waiting:
            if controller.kind in _KEEPS_NAMES and place.name != pod.metadata.name:
                continue
            if place.uid != pod.metadata.uid and (is_added or _is_later(pod, place.began_ns, came_meanwhile)):
                came.add(pod.metadata.uid)
                waiting.remove(place)
                self._trim(controller.uid)
                return place.uid
        return ""

    def came(self, controller: str, uid: str) -> None:
        """A pod of a controller is known to have come in some place."""
        if controller in self._places:
            self._came.setdefault(controller, set()).add(uid)

    def gone(self, controller: str, uid: str) -> None:
        """A pod of a controller is no more."""
        if controller in self._came:
            self._came[controller].discard(uid)

    def drop(self, controller: str, uid: str) -> None:
        """Nobody waits for the replacement of that victim any more."""
        waiting = self._places.get(controller)
        if waiting is not None:
            self._places[controller] = deque(place for place in waiting if place.uid != uid)
            self._trim(controller)

    def _trim(self, controller: str) -> None:
        """Keep nothing of a controller of which nobody waits for a pod."""
        if not self._places[controller]:
            del self._places[controller]
            self._came.pop(controller, None)


def _is_later(pod: Pod, began_ns: int, came_meanwhile: bool) -> bool:
    created = pod.metadata.creation_timestamp
    created_ns = parse_time(created) if created else 0
    began_ns -= began_ns % _SECOND
    return created_ns > began_ns or (created_ns == began_ns and (came_meanwhile or not pod.spec.node_name))
