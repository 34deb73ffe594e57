"""Events as they are written (core/v1 Event).

Source: k8s.io/client-go/tools/record (makeEvent).
"""

from __future__ import annotations

from podium.api.kinds import KEPT_KINDS, KINDS
from podium.api.meta import Raw
from podium.api.times import format_time
from podium.machines.actions import Record

_API_VERSION = {kind.name: kind.api_version for kind in (*KINDS.values(), *KEPT_KINDS)}


def event_body(action: Record, component: str, now: int) -> Raw:
    """The Event that a component records; its name is made of its object's and the time."""
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
