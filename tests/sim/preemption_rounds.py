"""How often a pod preempts, and why it does so again."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from podium.sim.history import SimEvent

# What ends a nomination: it is cleared, it moves to another node, or another pod has the room.
_LOST = ("NominationCleared", "NodeChanged", "NodeRemoved", "Scheduled")


def unjustified_rounds(events: Sequence[SimEvent]) -> list[str]:
    """E8: the pods that preempted again though nothing had taken from them what they preempted for, and when."""
    return [
        f"{pod} at {again.time} after {first.time}"
        for pod, rounds in sorted(_rounds(events).items())
        for first, again in pairwise(rounds)
        if not any(_justifies(event, pod, first) for event in _between(events, first, again))
    ]


def _rounds(events: Sequence[SimEvent]) -> dict[str, list[SimEvent]]:
    """By preemptor, the first deletion for it at each time."""
    found: dict[str, list[SimEvent]] = {}
    for event in events:
        if event.reason == "Preempted" and event.by:
            rounds = found.setdefault(event.by, [])
            if not rounds or rounds[-1].time != event.time:
                rounds.append(event)
    return found


def _between(events: Sequence[SimEvent], first: SimEvent, again: SimEvent) -> Iterator[SimEvent]:
    return (event for event in events if first.time <= event.time <= again.time)


def _justifies(event: SimEvent, pod: str, first: SimEvent) -> bool:
    if event.reason not in _LOST:
        return False
    return event.pod == pod if event.reason == "NominationCleared" else event.node == first.node
