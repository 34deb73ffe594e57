"""Which Events tell that a pod had to go, and what they say of it.

Source: pkg/scheduler/framework/preemption (Preempted), pkg/kubelet/eviction (Evicted), pkg/kubelet/preemption
(Preempting), pkg/controller/tainteviction (TaintManagerEviction), pkg/kubelet/kuberuntime (Killing); cluster-autoscaler
(ScaleDown), descheduler (action Descheduled).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from podium.app.accounting.traces.told_events import ToldEvent
from podium.cluster.pods import PREEMPTED
from podium.machines.grounds import GANG_RELEASE
from podium.machines.rescheduling.names import DESCHEDULED
from podium.machines.scheduling.gangs import releases as released

EVICTED = "EvictionByEvictionAPI"
ENDED_BY_KUBELET = "TerminationByKubelet"
TAINTED = "DeletionByTaintManager"

_PREEMPTION = re.compile(r"Preempted by (?:pod|podgroup) (\S+)(?: on node (\S+))?")
_MARKED, _CANCELLED = "Marking for deletion Pod", "Cancelling deletion of Pod"
_AUTOSCALED, _STOPPED = "deleting pod for node scale down", "Stopping container"


class Sighting(NamedTuple):
    """A pod that is seen to end: when, which, and why.

    ``reason`` is that of a condition DisruptionTarget, "" for none; ``component`` what evicts. ``whom`` and
    ``whom_uid`` are the pod for whom it goes, ``node`` where it was, as far as that is told.
    """

    time_ns: int
    key: str
    uid: str
    reason: str
    by: str
    message: str = ""
    component: str = ""
    whom: str = ""
    whom_uid: str = ""
    node: str = ""


def sightings(events: Iterable[ToldEvent]) -> list[Sighting]:
    """What Events, by time, tell of pods that end; those that only say that containers are stopped come last."""
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


def _sighting(event: ToldEvent) -> Sighting | None:
    usual = Sighting(event.time_ns, event.key, event.uid, EVICTED, event.by, event.message, node=event.host)
    match event.reason:
        case "Preempted":
            return _preemption(event)
        case "Evicted" if event.by == "kubelet":
            return usual._replace(reason=ENDED_BY_KUBELET)
        case "Evicted" if not event.is_warning or event.by != "":
            return usual
        case "Preempting" if event.by == "kubelet":
            return usual._replace(reason=ENDED_BY_KUBELET)
        case "TaintManagerEviction" if event.message.startswith(_MARKED):
            return usual._replace(reason=TAINTED, by=event.by or "taint-eviction-controller", message="")
    component, message = _component(event)
    return usual._replace(component=component, message=message) if component else None


def _component(event: ToldEvent) -> tuple[str, str]:
    """Which component evicts the pod, "" for none, and why."""
    if event.reason == "ScaleDown" and event.message.startswith(_AUTOSCALED):
        return "autoscaler", "its node is to be removed"
    if event.reason == released.REASON:
        return GANG_RELEASE, released.RULE
    is_descheduled = event.reason == DESCHEDULED or (event.action == "Descheduled" and not event.is_warning)
    return ("rescheduler", event.message) if is_descheduled else ("", "")


def _preemption(event: ToldEvent) -> Sighting:
    said = _PREEMPTION.match(event.message)
    uid, node = (said[1], said[2] or "") if said is not None else ("", "")
    return Sighting(
        event.time_ns,
        event.key,
        event.uid,
        PREEMPTED,
        event.by,
        whom=event.related,
        whom_uid=event.related_uid or uid,
        node=node,
    )
