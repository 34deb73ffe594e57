"""What those who rest have yet to be told."""

from __future__ import annotations

from itertools import takewhile
from operator import attrgetter

import msgspec

from podium.driver.component import Component
from podium.machines.concerns import ADDED, PLACED
from podium.machines.machine import does_watch
from podium.machines.observations import Changed, Gone, Observation

_Key = str | tuple[str, str]


class _Entry(msgspec.Struct, eq=False):
    """What happened last to an object, in the order in which it is told.

    ``place`` is its number in that order, ``number`` that among all that has happened, and ``added`` that of when the
    object was added, 0 where it was there before.
    """

    place: int
    number: int
    added: int
    kind: str
    aspects: int
    observation: Changed | Gone


_BY_PLACE = attrgetter("place")


class Unread:
    """Who rests, and what has happened meanwhile: of each object what happened last.

    It is told in the order in which the objects were first heard of; pods that got a node, in that in which they got
    it, which is the order in which they are kept by node. Of what is gone as much is kept as there are resting
    components that know of it, so that there is never more than there are objects, and were when they began to rest.
    """

    def __init__(self) -> None:
        self.bits = 0
        """Those who rest, as one number: the bit of each component's place."""
        # In the order of their numbers.
        self._entries: dict[_Key, _Entry] = {}
        self._happened = 0
        # How much had happened when each began to rest.
        self._since: dict[Component, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def begin(self, component: Component) -> None:
        """A component rests from here on."""
        component.is_at_rest = True
        self.bits |= 1 << component.place
        self._since[component] = self._happened

    def end(self, component: Component) -> list[Observation]:
        """A component rests no more; what it missed."""
        component.is_at_rest = False
        self.bits ^= 1 << component.place
        since = self._since.pop(component)
        missed = []
        for key, entry in reversed(self._entries.items()):
            if entry.number <= since:
                break
            missed.append((key, entry))
        for key, entry in missed:
            if isinstance(entry.observation, Gone) and not self._is_known(entry):
                del self._entries[key]
        self._forget(since)
        machine = component.machine
        return [
            entry.observation
            for entry in sorted((entry for _, entry in missed), key=_BY_PLACE)
            if machine is not None and does_watch(machine, entry.kind)
        ]

    def put(self, kind: str, observation: Changed | Gone, aspects: int) -> None:
        """Something has happened that can wait."""
        self._happened = number = self._happened + 1
        object_ = observation.object
        key = object_.metadata.uid or (kind, object_.key)
        entry = self._entries.pop(key, None)
        if entry is None:
            entry = _Entry(number, number, number if aspects & ADDED else 0, kind, aspects, observation)
        else:
            if (aspects ^ entry.aspects) & PLACED:
                entry.place = number
            entry.number, entry.aspects, entry.observation = number, aspects, observation
        if type(observation) is Changed or self._is_known(entry):
            self._entries[key] = entry

    def _is_known(self, entry: _Entry) -> bool:
        """Whether somebody rests who was told of the object before."""
        return any(entry.added <= since < entry.number for since in self._since.values())

    def _forget(self, since: int) -> None:
        """Somebody rests no more who began then: what that alone did not know is nothing to anybody."""
        known = min(self._since.values(), default=self._happened)
        if since < known:
            stale = takewhile(lambda item: item[1].number <= known, self._entries.items())
            for key in [key for key, _ in stale]:
                del self._entries[key]
