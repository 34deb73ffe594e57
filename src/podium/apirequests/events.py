"""The Event recorder: repeated Events are counted, similar ones combined, and excess ones about an object dropped.

Source: k8s.io/client-go/tools/record/events_cache.go.
"""

from __future__ import annotations

from msgspec import structs

from podium.api.kinds import KEPT_KINDS, KINDS
from podium.api.meta import Raw, key_of
from podium.api.times import format_time
from podium.apirequests.request import Conversation, Request
from podium.controllers.actions import Record
from podium.store.errors import Suppressed

_KEPT = 4_096
_BURST = 25
_REFILL_NS = 300 * 10**9
_MOST_SIMILAR = 10
_SIMILAR_NS = 600 * 10**9


class EventRecorder:
    """A converter of records into requests.

    An Event that repeats one of the last 4,096 increments the count of that one. If a component writes ten messages
    with one reason about an object, at most 10 minutes apart, the tenth and further ones are one Event, which has the
    last message. A component can write a burst of 25 Events about an object, and one more every 5 minutes; further ones
    are dropped.
    """

    def __init__(self) -> None:
        # By all of a record but its message, the messages that count as similar, and the time of the last one.
        self._similar: dict[tuple[str, Record], tuple[set[str], int]] = {}
        # The key of each written Event, and the number of its occurrences; the newest last.
        self._known: dict[tuple[str, Record], tuple[str, int]] = {}
        # The tokens for Events of one component about one object, as of a time.
        self._allowances: dict[tuple[str, str, str], tuple[float, int]] = {}
        self._last_ns = 0

    def record(self, action: Record, component: str, now: int) -> Conversation:
        """Write an Event that a component has recorded."""
        about = (component, action.uid, action.pod or action.workload)
        left, since_ns = self._allowances.pop(about, (_BURST, now))
        tokens = min(_BURST, left + (now - since_ns) / _REFILL_NS)
        may_write = tokens >= 1
        self._allowances[about] = tokens - may_write, now
        if len(self._allowances) > _KEPT:
            del self._allowances[next(iter(self._allowances))]
        if not may_write:
            return None
        action, same = self._combined(action, component, now)
        known = self._known.pop((component, same), None)
        if known is not None:
            key, count = known[0], known[1] + 1
            counted: Raw = {"count": count, "lastTimestamp": format_time(now), "message": action.message}
            with Suppressed(404):
                yield Request(verb="patch", kind="Event", key=key, body=counted)
                self._keep(component, same, key, count)
                return None
        # Event names contain the time, and an object can have several Events at the same instant.
        self._last_ns = max(now, self._last_ns + 1)
        body = event_body(action, component, now)
        metadata: Raw = dict(body["metadata"])
        metadata["name"] = f"{metadata['name'].rpartition('.')[0]}.{self._last_ns:x}"
        yield Request(verb="create", kind="Event", body={**body, "metadata": metadata})
        self._keep(component, same, key_of(metadata), 1)
        return None

    def _combined(self, action: Record, component: str, now: int) -> tuple[Record, Record]:
        """Return the record with the message to write, and the record whose repetitions are counted."""
        alike = structs.replace(action, message="")
        messages, last_ns = self._similar.pop((component, alike), (set[str](), now))
        if now - last_ns > _SIMILAR_NS:
            messages.clear()
        is_combined = len(messages | {action.message}) >= _MOST_SIMILAR
        if not is_combined:
            messages.add(action.message)
        self._similar[component, alike] = messages, now
        if len(self._similar) > _KEPT:
            del self._similar[next(iter(self._similar))]
        message = f"(combined from similar events): {action.message}"
        return (structs.replace(action, message=message), alike) if is_combined else (action, action)

    def _keep(self, component: str, action: Record, key: str, count: int) -> None:
        self._known[component, action] = key, count
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]


_API_VERSION = {kind.name: kind.api_version for kind in (*KINDS.values(), *KEPT_KINDS)}


def event_body(action: Record, component: str, now: int) -> Raw:
    """Return the Event that a component records; its name is derived from its object's name and the time."""
    kind, key = "Pod", action.pod
    if action.workload:
        kind, _, key = action.workload.partition(" ")
    namespace, _, name = key.rpartition("/")
    time = format_time(now)
    about = {"apiVersion": _API_VERSION.get(kind, ""), "kind": kind, "name": name, "uid": action.uid}
    if namespace:
        about["namespace"] = namespace
    body: Raw = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{now:x}", "namespace": namespace or "default"},
        "involvedObject": about,
        "type": action.type,
        "reason": action.reason,
        "message": action.message,
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    }
    if action.related:
        related_namespace, _, related_name = action.related.rpartition("/")
        body["related"] = {"apiVersion": "v1", "kind": "Pod", "namespace": related_namespace, "name": related_name}
    return body
