"""When what happened to a pod, counted in events: the place of an event in its run is a finer clock than its time.

Much of a run happens at one instant, and in order. A moment is the place of an event, `BEFORE` for what was so before
the run; what has not happened has none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.sim.sim_event import SimEvent

BEFORE = -1
CREATED = "Created"
_ENDS = frozenset(("Finished", "Failed", "Terminated", "Deleted"))
_ENDED = frozenset(("Succeeded", "Failed"))


@dataclass(slots=True)
class PodMoments:
    """A pod's moments: when it was made, got its node, ran, began to be deleted, and was over."""

    created: int | None = None
    scheduled: int | None = None
    started: int | None = None
    killing: int | None = None
    ended: int | None = None


class PodFinder:
    """Which pod of a result is meant by a key, event by event: a name may be used again when its pod is gone."""

    def __init__(self, pods: Sequence[dict[str, Any]], events: Sequence[SimEvent]) -> None:
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, pod in enumerate(pods):
            self._places[pod["pod"]].append(place)
        made = Counter(event.pod for event in events if event.reason == CREATED)
        # By key, which of its pods bears the name now: -1 where none has been made yet.
        self._bearer = {key: -1 if len(places) == made[key] else 0 for key, places in self._places.items()}

    def of(self, key: str | None) -> int | None:
        """The place of the pod that bears the name now, of the first if none does yet; None for what is no pod."""
        bearer = None if key is None else self._bearer.get(key)
        return None if key is None or bearer is None else self._places[key][max(bearer, 0)]

    def make(self, key: str) -> None:
        """A pod of that name is made."""
        if key in self._bearer:
            self._bearer[key] = min(self._bearer[key] + 1, len(self._places[key]) - 1)


def moments_of(
    pods: Sequence[dict[str, Any]], events: Sequence[SimEvent]
) -> tuple[list[PodMoments], list[int], list[int]]:
    """The moments of the pods of a result, and for each event the place of its pod and of the pod by which it came.

    The places are -1 where there is none.
    """
    finder, found = PodFinder(pods, events), [PodMoments() for _ in pods]
    whose: list[int] = []
    by_whom: list[int] = []
    for moment, event in enumerate(events):
        if event.reason == CREATED and event.pod is not None:
            finder.make(event.pod)
        place, by = finder.of(event.pod), finder.of(event.by)
        whose.append(-1 if place is None else place)
        by_whom.append(-1 if by is None else by)
        if place is not None:
            _note(found[place], event.reason, moment)
    for pod, moments in zip(pods, found, strict=True):
        _complete(moments, pod)
    return found, whose, by_whom


def _note(moments: PodMoments, reason: str, moment: int) -> None:
    if reason == CREATED:
        moments.created = moment
    elif reason == "Scheduled":
        moments.scheduled = moment
    elif reason == "Started":
        moments.started = moment if moments.started is None else moments.started
    elif reason == "Killing":
        moments.killing = moment if moments.killing is None else moments.killing
    elif reason in _ENDS:
        moments.ended = moment if moments.ended is None else moments.ended


def _complete(moments: PodMoments, pod: dict[str, Any]) -> None:
    """What no event tells was so before the run, or from the pod's creation on."""
    if moments.created is None:
        moments.created = BEFORE
    if pod["node"] and moments.scheduled is None:
        moments.scheduled = moments.created
    if pod["startedAt"] is not None and moments.started is None:
        moments.started = moments.scheduled
    if pod["phase"] in _ENDED and moments.ended is None:
        moments.ended = BEFORE
