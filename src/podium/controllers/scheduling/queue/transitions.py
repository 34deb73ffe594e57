"""The transitions of the scheduling queue as a table.

`podium.controllers.scheduling.queue.queue` looks up the events about single pods here; a test compares the queue with
the table for every place and event. Source: pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go,
backoff_queue.go, unschedulable_pods.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from podium.controllers.scheduling.queue.hints import NO, Wake
from podium.controllers.scheduling.queue.queued_pod import ACTIVE, BACKOFF, GATED, UNSCHEDULABLE, QueuePlace


class QueueEvent(Enum):
    """The events of a pod; the values are the methods of the queue."""

    ADDED = "add"
    UPDATED = "update"
    DELETED = "delete"
    POPPED = "pop"
    FAILED = "add_unschedulable"
    DONE = "done"
    EVENT = "move"
    ACTIVATED = "activate"
    GATE_ASKED = "ask_gate_again"
    REORDERED = "reorder"
    FLUSHED = "flush"
    JOINED = "join"
    WOKEN = "wake"
    GIVEN_BACK = "give_back"


class QueueTransition(Enum):
    """The results of events; the values describe them."""

    REFUSE = "an error"
    STAY = "stays"
    LEAVE = "leaves the queue"
    FLY = "in flight"
    FLY_EARLY = "in flight, if no pod is active and its backoff may be cut short"
    HEAR = "stays; counts once the attempt has failed"
    SORT = "stays, sorted again; gated if QueueSort fails"
    WAKE = "active, unless it was popped too often at this instant"
    RISE = "active, if its backoff has ended"
    LAND = "lands"
    LAND_IF_WOKEN = "lands, if it is woken"
    LAND_IF_LATE = "lands, if it has waited for 5 minutes"


_TABLE = """
                 unknown  active  backoff    unschedulable  gated         in-flight
added            land     refuse  refuse     refuse         refuse        refuse
updated          land     sort    sort       land_if_woken  land          hear
deleted          stay     leave   leave      leave          leave         leave
popped           stay     fly     fly_early  stay           stay          stay
failed           stay     refuse  refuse     refuse         refuse        land
done             stay     stay    stay       stay           stay          leave
event            stay     stay    stay       land_if_woken  land_if_woken hear
activated        stay     stay    wake       land           land          hear
gate_asked       stay     stay    stay       stay           land          stay
reordered        stay     sort    sort       stay           stay          stay
flushed          stay     stay    rise       land_if_late   land_if_late  stay
joined           stay     fly     fly        fly            stay          stay
woken            stay     stay    stay       land           land          hear
given_back       stay     refuse  refuse     refuse         refuse        land
"""
UNKNOWN = "unknown"
_HEAD, *_ROWS = (line.split() for line in _TABLE.strip().splitlines())

# By place (None for an unknown pod) and event.
TRANSITIONS: Mapping[tuple[QueuePlace | None, QueueEvent], QueueTransition] = {
    (None if column == UNKNOWN else QueuePlace(column), QueueEvent[row.upper()]): QueueTransition[cell.upper()]
    for row, *cells in _ROWS
    for column, cell in zip(_HEAD, cells, strict=True)
}


def landing(wake: Wake, *, is_held: bool, backs_off: bool) -> QueuePlace:
    """Return the new place of a pod.

    ``is_held``: a PreEnqueue plugin rejects it or QueueSort fails, which is asked if the pod is woken or was gated.
    ``backs_off``: its backoff has not ended.
    """
    if is_held:
        return GATED
    if wake is NO:
        return UNSCHEDULABLE
    return BACKOFF if backs_off else ACTIVE


def table() -> str:
    """Return the table in Markdown."""
    lines = [["", *_HEAD], ["---"] * (len(_HEAD) + 1)]
    for row, *cells in _ROWS:
        lines.append([f"`{QueueEvent[row.upper()].value}`", *(QueueTransition[cell.upper()].value for cell in cells)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
