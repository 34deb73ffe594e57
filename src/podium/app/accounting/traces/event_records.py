"""The disruptions of pods that Events report.

Source: pkg/scheduler/framework/preemption (Preempted), pkg/kubelet/eviction (Evicted), pkg/kubelet/preemption
(Preempting), pkg/controller/tainteviction (TaintManagerEviction), pkg/kubelet/kuberuntime (Killing); cluster-autoscaler
(ScaleDown), descheduler (action Descheduled).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from podium.api.meta import Raw
from podium.api.nested import object_at
from podium.api.times import time_of
from podium.cluster.pods import PREEMPTED
from podium.controllers.actions import DESCHEDULED, GANG_RELEASE
from podium.controllers.scheduling.gangs.group_reports import RELEASE_REASON, RELEASE_RULE


class EventRecord(NamedTuple):
    """An Event: its last time, its object, and its reporter with the reporter's node ("" for none)."""

    time_ns: int
    reason: str
    message: str
    kind: str
    key: str
    uid: str
    by: str
    host: str
    related: str
    related_uid: str
    is_warning: bool
    action: str


def event_records(raws: Iterable[Raw]) -> list[EventRecord]:
    """Return the readable Events, sorted by time, then in input order."""
    found = (_event_record(raw) for raw in raws)
    return sorted((event for event in found if event is not None), key=lambda event: event.time_ns)


def _event_record(raw: Raw) -> EventRecord | None:
    metadata, series = object_at(raw, "metadata"), object_at(raw, "series")
    times = (
        *(series.get("lastObservedTime"), raw.get("lastTimestamp"), raw.get("eventTime")),
        *(raw.get("firstTimestamp"), metadata.get("creationTimestamp")),
    )
    time_ns = next((time_ns for text in times if (time_ns := time_of(text)) is not None), None)
    about, related = object_at(raw, "involvedObject"), object_at(raw, "related")
    if time_ns is None or not _text(about, "name"):
        return None
    source = object_at(raw, "source")
    return EventRecord(
        time_ns,
        _text(raw, "reason"),
        _text(raw, "message"),
        _text(about, "kind"),
        _key(about),
        _text(about, "uid"),
        _text(source, "component") or _text(raw, "reportingComponent"),
        _text(source, "host") or (_text(raw, "reportingInstance") if _text(source, "component") == "kubelet" else ""),
        _key(related),
        _text(related, "uid"),
        _text(raw, "type") == "Warning",
        _text(raw, "action"),
    )


def _key(reference: dict[str, Any]) -> str:
    namespace, name = _text(reference, "namespace"), _text(reference, "name")
    return f"{namespace}/{name}" if namespace and name else ""


def _text(raw: dict[str, Any], name: str) -> str:
    found = raw.get(name)
    return found if isinstance(found, str) else ""


EVICTED = "EvictionByEvictionAPI"
ENDED_BY_KUBELET = "TerminationByKubelet"
TAINTED = "DeletionByTaintManager"

_PREEMPTION = re.compile(r"Preempted by (?:pod|podgroup) (\S+)(?: on node (\S+))?")
_MARKED, _CANCELLED = "Marking for deletion Pod", "Cancelling deletion of Pod"
_AUTOSCALED, _STOPPED = "deleting pod for node scale down", "Stopping container"


class Sighting(NamedTuple):
    """The disruption of a pod in Events: its time, pod and reason.

    ``reason`` is that of a condition DisruptionTarget, "" for none; ``component`` evicts the pod. ``beneficiary`` and
    ``beneficiary_uid`` are the pod that benefits, ``node`` is the pod's node; "" if unknown.
    """

    time_ns: int
    key: str
    uid: str
    reason: str
    by: str
    message: str = ""
    component: str = ""
    beneficiary: str = ""
    beneficiary_uid: str = ""
    node: str = ""


def sightings(events: Iterable[EventRecord]) -> list[Sighting]:
    """Return the disruptions in Events, which are sorted by time; those known only from stopped containers last."""
    found: dict[tuple[str, str], Sighting] = {}
    stopped: dict[tuple[str, str], Sighting] = {}
    for event in events:
        if event.kind != "Pod" or not event.key:
            continue
        place = (event.key, event.uid)
        if event.reason == "TaintManagerEviction" and event.message.startswith(_CANCELLED):
            found.pop(place, None)
        elif event.reason == "Killing" and event.message.startswith(_STOPPED):
            stopped.setdefault(place, Sighting(event.time_ns, event.key, event.uid, "", "", node=event.host))
        elif (sighting := _sighting(event)) is not None:
            found.setdefault(place, sighting)
    return [*found.values(), *(sighting for place, sighting in stopped.items() if place not in found)]


def _sighting(event: EventRecord) -> Sighting | None:
    usual = Sighting(event.time_ns, event.key, event.uid, EVICTED, event.by, event.message, node=event.host)
    match event.reason:
        case "Preempted":
            preempted = _PREEMPTION.match(event.message)
            uid, node = (preempted[1], preempted[2] or "") if preempted is not None else ("", "")
            return Sighting(
                event.time_ns,
                event.key,
                event.uid,
                PREEMPTED,
                event.by,
                beneficiary=event.related,
                beneficiary_uid=event.related_uid or uid,
                node=node,
            )
        case "Evicted" | "Preempting" if event.by == "kubelet":
            return usual._replace(reason=ENDED_BY_KUBELET)
        case "Evicted" if not event.is_warning or event.by != "":
            return usual
        case "TaintManagerEviction" if event.message.startswith(_MARKED):
            return usual._replace(reason=TAINTED, by=event.by or "taint-eviction-controller", message="")
        case "ScaleDown" if event.message.startswith(_AUTOSCALED):
            return usual._replace(component="autoscaler", message="its node is to be removed")
        case reason if reason == RELEASE_REASON:
            return usual._replace(component=GANG_RELEASE, message=RELEASE_RULE)
        case reason if reason == DESCHEDULED or (event.action == "Descheduled" and not event.is_warning):
            return usual._replace(component="rescheduler")
    return None
