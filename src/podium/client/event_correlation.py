"""Events that say the same as one before are counted in that one, and nobody is told of one object without end.

Source: k8s.io/client-go/tools/record (events_cache.go: EventCorrelator, with its limits).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.times import format_time
from podium.machines.actions import Record
from podium.requests.events import event_body
from podium.requests.request import Request

_MOST_KEPT = 4_096
_SECOND = 10**9
_SAME_FOR_NS = 600 * _SECOND
_BURST, _REFILL_NS = 25, 300 * _SECOND


@dataclass(slots=True)
class _Written:
    key: str
    count: int
    last_ns: int


class EventCorrelation:
    """What becomes of each event that a component records: a request, or nothing.

    It remembers the 4,096 events and objects that came last, no more.
    """

    def __init__(self) -> None:
        self._written: OrderedDict[tuple[str, ...], _Written] = OrderedDict()
        # By object, when its bucket of events is full again.
        self._full_ns: OrderedDict[str, int] = OrderedDict()

    def request(self, action: Record, component: str, now: int) -> Request | None:
        """The request that writes an event; None where there were too many about its object."""
        if not self._is_allowed(action.uid or action.workload, now):
            return None
        body = event_body(action, component, now)
        same = (action.pod or action.workload, action.uid, action.type, action.reason, action.message)
        before = self._written.get(same)
        if before is not None and now - before.last_ns < _SAME_FOR_NS:
            before.count, before.last_ns = before.count + 1, now
            self._written.move_to_end(same)
            patch: Raw = {"count": before.count, "lastTimestamp": format_time(now)}
            return Request(verb="patch", kind="Event", key=before.key, body=patch)
        metadata: Raw = body["metadata"]
        self._written[same] = _Written(f"{metadata['namespace']}/{metadata['name']}", 1, now)
        _shorten(self._written)
        return Request(verb="create", kind="Event", body=body)

    def is_gone(self, action: Record) -> None:
        """The event that was to be counted in is not there any more: the next one is written anew."""
        self._written.pop((action.pod or action.workload, action.uid, action.type, action.reason, action.message), None)

    def _is_allowed(self, about: str, now: int) -> bool:
        full_ns = max(self._full_ns.get(about, 0), now) + _REFILL_NS
        if full_ns - now > _BURST * _REFILL_NS:
            return False
        self._full_ns[about] = full_ns
        self._full_ns.move_to_end(about)
        _shorten(self._full_ns)
        return True


def _shorten(kept: OrderedDict[tuple[str, ...], _Written] | OrderedDict[str, int]) -> None:
    if len(kept) > _MOST_KEPT:
        kept.popitem(last=False)
