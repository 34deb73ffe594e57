"""What becomes of the Events that components record: the same again is counted, and too many of one object are dropped.

Source: k8s.io/client-go/tools/record/events_cache.go.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.meta import Raw
from podium.api.times import format_time
from podium.machines.actions import Record
from podium.requests.conversation import Conversation
from podium.requests.events import event_body
from podium.requests.request import Request
from podium.store.errors import StoreError

_KEPT = 4_096
_BURST = 25
_REFILL_NS = 300 * 10**9


@dataclass(slots=True)
class _Known:
    """An Event that was written, and how often the same has happened."""

    key: str
    count: int = 1


@dataclass(slots=True)
class _Allowance:
    """How many Events of one component about one object may still be written, as it was at a time."""

    tokens: float
    since_ns: int


class EventRecorder:
    """Turns records into requests.

    An Event that says the same of the same object as one before, among the last 4,096, is a count of that one. A
    component writes 25 Events about an object at once, and one more each 5 minutes; what is beyond that is not written.
    """

    def __init__(self) -> None:
        # The newest last.
        self._known: dict[tuple[str, Record], _Known] = {}
        self._allowances: dict[tuple[str, str, str], _Allowance] = {}
        self._last_ns = 0

    def record(self, action: Record, component: str, now: int) -> Conversation:
        """Write what a component has recorded."""
        if not self._may_write(action, component, now):
            return None
        known = self._known.pop((component, action), None)
        if known is not None:
            known.count += 1
            counted: Raw = {"count": known.count, "lastTimestamp": format_time(now)}
            try:
                yield Request(verb="patch", kind="Event", key=known.key, body=counted)
            except StoreError as error:
                if error.code != 404:
                    raise
            else:
                self._keep(component, action, known)
                return None
        # Events are named after the time, and of one object several may come at one instant.
        self._last_ns = max(now, self._last_ns + 1)
        body = event_body(action, component, now)
        metadata: Raw = dict(body["metadata"])
        metadata["name"] = f"{metadata['name'].rpartition('.')[0]}.{self._last_ns:x}"
        yield Request(verb="create", kind="Event", body={**body, "metadata": metadata})
        self._keep(component, action, _Known(f"{metadata['namespace']}/{metadata['name']}"))
        return None

    def _keep(self, component: str, action: Record, known: _Known) -> None:
        self._known[component, action] = known
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]

    def _may_write(self, action: Record, component: str, now: int) -> bool:
        about = (component, action.uid, action.pod or action.workload)
        allowance = self._allowances.pop(about, None) or _Allowance(_BURST, now)
        tokens = min(_BURST, allowance.tokens + (now - allowance.since_ns) / _REFILL_NS)
        may = tokens >= 1
        self._allowances[about] = _Allowance(tokens - may, now)
        if len(self._allowances) > _KEPT:
            del self._allowances[next(iter(self._allowances))]
        return may
