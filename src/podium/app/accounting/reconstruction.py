"""The reconstruction of a cluster's disruptions without a ledger: its objects and Events, replayed to a ledger.

Source: pkg/scheduler/framework/preemption (Preempted), pkg/kubelet/eviction (Evicted), pkg/kubelet/preemption
(Preempting), pkg/controller/tainteviction (TaintManagerEviction), pkg/kubelet/kuberuntime (Killing); cluster-autoscaler
(ScaleDown), descheduler (action Descheduled).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from podium.api.avoid_list import EVICTED
from podium.api.meta import Kubernetes, ObjectMeta, OwnerReference, Raw, object_at
from podium.api.pod import Pod, PodCondition, PodSpec, PodStatus
from podium.api.times import SECOND, format_time, parse_time, time_of
from podium.api.workloads import ReplicaSet
from podium.cluster.pods import PREEMPTED, TEMPLATE_HASH
from podium.controllers.actions import DESCHEDULED, GANG_RELEASE, Rationale
from podium.controllers.disruption.budget import is_healthy
from podium.controllers.ledger.disruption import Disruption, FollowUp, since
from podium.controllers.ledger.ledger import DisruptionLedger, DisruptionRequest, ObjectLookup, is_disrupted, is_wanted
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
            victim = usual._replace(reason=PREEMPTED, message="", node=node)
            return victim._replace(beneficiary=event.related, beneficiary_uid=event.related_uid or uid)
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


_MADE = re.compile(r"(?:Created pod: |create Pod )(\S+)")
_DELETED = re.compile(r"(?:Deleted pod: |delete Pod )(\S+)")
_ASSIGNED = re.compile(r"Successfully assigned (\S+) to (\S+)")
_ABOUT_NS = 60 * 10**9


class DeletedPods:
    """The owners, nodes and placement times of deleted pods, as Events and sibling pods show them."""

    def __init__(self, events: Iterable[EventRecord], pods: Iterable[Pod], find: ObjectLookup) -> None:
        self._find = find
        # By the key of the pods; pods of a StatefulSet are recreated with the same key.
        self._owners: dict[str, OwnerReference] = {}
        self._placed: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
        self._deleted: defaultdict[str, list[int]] = defaultdict(list)
        # By the uid of the owner: the times at which it created pods, and one of its existing pods.
        self._made_ns: defaultdict[str, list[int]] = defaultdict(list)
        self._siblings: dict[str, Pod] = {}
        for pod in pods:
            if pod.metadata.controller is not None:
                self._siblings.setdefault(pod.metadata.controller.uid, pod)
        for event in events:
            namespace = event.key.partition("/")[0]
            if event.reason == "SuccessfulCreate" and (match := _MADE.match(event.message)) is not None:
                name = event.key.partition("/")[2]
                self._owners[f"{namespace}/{match[1]}"] = OwnerReference(
                    kind=event.kind, name=name, uid=event.uid, controller=True
                )
                self._made_ns[event.uid].append(event.time_ns)
            elif event.reason == "SuccessfulDelete" and (match := _DELETED.match(event.message)) is not None:
                self._deleted[f"{namespace}/{match[1]}"].append(event.time_ns)
            elif event.reason == "Scheduled" and (match := _ASSIGNED.match(event.message)) is not None:
                self._placed[event.key].append((event.time_ns, event.uid, match[2]))

    def is_deleted_by_owner(self, key: str, time_ns: int) -> bool:
        """Return whether the pod's workload deleted it at about that time."""
        return any(abs(deleted_ns - time_ns) <= _ABOUT_NS for deleted_ns in self._deleted.get(key, ()))

    def is_replaced(self, key: str, time_ns: int) -> bool:
        """Return whether its workload created a pod since; without a known workload, whether it was scheduled."""
        owner = self._owners.get(key)
        if owner is None:
            return bool(self._placed.get(key))
        return any(made_ns >= time_ns for made_ns in self._made_ns[owner.uid])

    def is_known(self, key: str) -> bool:
        """Return whether a sibling pod shows the pod's priority and requests."""
        owner = self._owners.get(key)
        return owner is not None and owner.uid in self._siblings

    def placed(self, key: str, uid: str, time_ns: int) -> tuple[int, str] | None:
        """Return when and on which node a deleted pod was placed after a time; None if it was not."""
        for placed_ns, of, node in self._placed.get(key, ()):
            if placed_ns >= time_ns and (not uid or not of or of == uid):
                return placed_ns, node
        return None

    def pod(self, key: str, uid: str, node: str = "") -> Pod:
        """Return the pod as it ran on a node; "": as it was pending."""
        namespace, _, name = key.partition("/")
        owner = self._owners.get(key)
        sibling = self._siblings.get(owner.uid) if owner is not None else None
        if sibling is not None:
            metadata = replace(sibling.metadata, name=name, uid=uid, deletion_timestamp=None, resource_version="")
            return replace(sibling, metadata=metadata, spec=replace(sibling.spec, node_name=node), status=PodStatus())
        owners = () if owner is None else (owner,)
        metadata = ObjectMeta(
            name=name, namespace=namespace, uid=uid, owner_references=owners, labels=self._labels(namespace, owner)
        )
        return Pod(metadata=metadata, spec=PodSpec(node_name=node))

    def ending(self, seen: Sighting, uid: str) -> Pod | None:
        """Return the pod when it started to terminate; None if its node is unknown."""
        places = [place for place in self._placed.get(seen.key, ()) if place[0] <= seen.time_ns]
        start_ns, _, node = places[-1] if places else (None, "", seen.node)
        if not node:
            return None
        start = None if start_ns is None else format_time(start_ns)
        return ending(self.pod(seen.key, uid, node), seen, start)

    def _labels(self, namespace: str, owner: OwnerReference | None) -> dict[str, str]:
        """Return the label pod-template-hash of a Deployment's ReplicaSet, if any."""
        found = None if owner is None else self._find(owner.kind, f"{namespace}/{owner.name}")
        template_hash = found.metadata.labels.get(TEMPLATE_HASH, "") if isinstance(found, ReplicaSet) else ""
        return {TEMPLATE_HASH: template_hash} if template_hash else {}


def ending(pod: Pod, seen: Sighting, start: str | None) -> Pod:
    """Return the pod with its DisruptionTarget condition, terminating, or Failed if its kubelet ended it."""
    conditions: tuple[PodCondition, ...] = ()
    if seen.reason:
        conditions = (PodCondition(type="DisruptionTarget", status="True", reason=seen.reason, message=seen.message),)
    is_failed = seen.reason == ENDED_BY_KUBELET
    metadata = replace(pod.metadata, deletion_timestamp=None if is_failed else format_time(seen.time_ns))
    status = PodStatus(phase="Failed" if is_failed else "Running", start_time=start, conditions=conditions)
    return replace(pod, metadata=metadata, status=status)


_AMBIGUOUS = "it is unknown whether it was deleted or evicted"
_AS_A_DRAIN = "its node was cordoned then, as for a drain"
_CORDONED = {"NodeNotSchedulable": True, "NodeSchedulable": False}
# A kubelet notices the cordon at its next status report, and a drain does not wait for that.
_NOTICED_WITHIN_NS = 10 * 10**9
# The order at one instant: pods end before others replace them.
_ENDS, _COMES, _PLACED, _READY = range(4)


class PodObject(NamedTuple):
    """A pod of the cluster: the typed object and its JSON."""

    pod: Pod
    raw: Raw


class _Step(NamedTuple):
    time_ns: int
    order: int
    key: str
    act: Callable[[int], None]


class Reconstruction:
    """Finds the disruptions of pods in objects and Events, and replays them by time.

    After `run`, the gaps are known: ``without_node`` are disrupted pods with an unknown node, which have no records,
    ``guessed`` pods with unknown priority and requests, and ``ambiguous`` pods that may have been deleted or evicted.
    """

    def __init__(
        self,
        seen: Sequence[PodObject],
        objects: dict[tuple[str, str], Kubernetes],
        events: Sequence[EventRecord],
        known: Collection[str] = (),
        last_id: int = 0,
    ) -> None:
        """Exclude pods with the uids ``known``; ``objects`` are all objects except pods, by kind and key.

        The ``events`` are sorted by time.
        """
        self._seen = {found.pod.key: found for found in seen}
        self._uids = {found.pod.metadata.uid: found.pod.key for found in seen}
        self._sightings = sightings(events)
        self._reported = {sighting.uid: sighting for sighting in reversed(self._sightings) if sighting.reason}
        self._known = set(known)
        self._objects = objects
        # The pods by key, as they are at the time of the replay.
        self._pods: dict[str, Pod] = {}
        self._records: dict[int, Disruption] = {}
        # By node, when its kubelet reported that it was cordoned, or no longer.
        self._cordons: defaultdict[str, list[tuple[int, bool]]] = defaultdict(list)
        for event in events:
            if event.kind == "Node" and event.host and event.reason in _CORDONED:
                is_cordoned = _CORDONED[event.reason]
                since_ns = event.time_ns - (_NOTICED_WITHIN_NS if is_cordoned else 0)
                self._cordons[event.host].append((since_ns, is_cordoned))
        self._gone = DeletedPods(events, [found.pod for found in seen], self._find)
        self._ledger = DisruptionLedger(self._keep, self._find, last_id=last_id)
        self._steps: list[_Step] = []
        self.without_node: list[str] = []
        self.guessed: list[str] = []
        self.ambiguous: list[str] = []

    def run(self) -> list[Disruption]:
        """Return the disruptions, sorted by time."""
        for found in self._seen.values():
            self._add_life(found)
        for found in self._seen.values():
            self._add_present(found)
        for sighting in self._sightings:
            self._add_sighting(sighting)
        # Most times are in whole seconds.
        for step in sorted(self._steps, key=lambda step: (step.time_ns // SECOND, step.order, step.time_ns, step.key)):
            step.act(step.time_ns)
        return [self._records[number] for number in sorted(self._records)]

    def _find(self, kind: str, key: str) -> Kubernetes | None:
        """Return an object as it is now, or a pod as it was at that time; None if unknown."""
        return self._pods.get(key) if kind == "Pod" else self._objects.get((kind, key))

    def _keep(self, record: Disruption, trail: FollowUp | None) -> None:
        self._records[record.id] = record

    def _add_life(self, found: PodObject) -> None:
        """Replay the creation, placement and readiness of an existing pod."""
        pod, raw = found
        created = pod.metadata.creation_timestamp
        if not created:
            return
        pending = _waiting(pod)
        created_ns = parse_time(created)
        self._steps.append(_Step(created_ns, _COMES, pod.key, partial(self._changes, pending, True)))
        if not pod.spec.node_name:
            return
        placed = replace(pending, spec=pod.spec)
        placed_ns = max(since(raw, "PodScheduled") or created_ns, created_ns)
        self._steps.append(_Step(placed_ns, _PLACED, pod.key, partial(self._changes, placed, False)))
        ready_ns = since(raw, "Ready")
        if ready_ns is not None and is_healthy(pod):
            self._steps.append(_Step(max(ready_ns, placed_ns), _READY, pod.key, partial(self._changes, pod, False)))

    def _add_present(self, found: PodObject) -> None:
        """Replay the disruption of an existing pod that terminates or that its kubelet ended."""
        pod, raw = found
        if not is_disrupted(pod) or pod.metadata.uid in self._known:
            return
        deleted = pod.metadata.deletion_timestamp
        grace_ns = (pod.metadata.deletion_grace_period_seconds or 0) * SECOND
        marked_ns = since(raw, "DisruptionTarget")
        if marked_ns is None and deleted is None:
            return
        time_ns = marked_ns if deleted is None or marked_ns is not None else parse_time(deleted) - grace_ns
        if time_ns is None:
            return
        target = pod.status.condition("DisruptionTarget")
        is_marked = target is not None and target.status == "True"
        if not is_marked:
            # It counts if it was deleted although its workload still wants it.
            deleted_ns = 0 if deleted is None else parse_time(deleted) - grace_ns
            if self._gone.is_deleted_by_owner(pod.key, deleted_ns):
                return
            wanted = is_wanted(pod, self._find)
            if wanted is False or (wanted is None and not self._gone.is_replaced(pod.key, deleted_ns)):
                return
        reported = self._reported.get(pod.metadata.uid)
        announced = None if reported is None else self._announcement(reported)
        if not is_marked:
            announced = DisruptionRequest("", is_outsider=True)
        self._add_end(time_ns, pod, announced, "" if reported is None else reported.beneficiary_uid)

    def _add_sighting(self, seen: Sighting) -> None:
        uid = seen.uid or self._uid_of(seen)
        if uid in self._known:
            return
        found = self._seen.get(seen.key)
        present = found.pod if found is not None and found.pod.metadata.uid == uid else None
        if present is not None and not (seen.reason and is_disrupted(present)):
            # Its containers were restarted, its disruption is already replayed, or the eviction was refused.
            return
        if not seen.reason and (
            self._gone.is_deleted_by_owner(seen.key, seen.time_ns) or not self._gone.is_replaced(seen.key, seen.time_ns)
        ):
            return
        if present is None:
            victim = self._gone.ending(seen, uid)
        else:
            victim = ending(present, seen, present.status.start_time) if present.spec.node_name else None
        if victim is None:
            self.without_node.append(seen.key)
            return
        if present is None and not self._gone.is_known(seen.key):
            self.guessed.append(seen.key)
        if not seen.reason:
            self.ambiguous.append(seen.key)
        self._add_end(seen.time_ns, victim, self._announcement(seen), seen.beneficiary_uid)

    def _add_end(self, time_ns: int, victim: Pod, announced: DisruptionRequest | None, beneficiary_uid: str) -> None:
        self._known.add(victim.metadata.uid)
        beneficiary = "" if announced is None else announced.beneficiary
        if beneficiary in self._seen:
            # It existed, although both times may be in the same second.
            self._pods.setdefault(beneficiary, _waiting(self._seen[beneficiary].pod))
        elif beneficiary:
            # It is deleted; Events show whether it was placed.
            uid = beneficiary_uid or f"{beneficiary}@gone"
            waiting = self._gone.pod(beneficiary, uid)
            self._pods.setdefault(beneficiary, waiting)
            placed = self._gone.placed(beneficiary, uid, time_ns)
            if placed is None:
                self._steps.append(_Step(time_ns, _READY, beneficiary, partial(self._goes, waiting)))
            else:
                there = replace(waiting, spec=replace(waiting.spec, node_name=placed[1]))
                self._steps.append(_Step(placed[0], _PLACED, beneficiary, partial(self._changes, there, False)))
        self._steps.append(_Step(time_ns, _ENDS, victim.key, partial(self._ends, victim, announced)))

    def _announcement(self, seen: Sighting) -> DisruptionRequest:
        """Return the request for the disruption, as Events show it."""
        if not seen.reason:
            states = [is_cordoned for since_ns, is_cordoned in self._cordons[seen.node] if since_ns <= seen.time_ns]
            rationale = Rationale(f"{_AMBIGUOUS}; {_AS_A_DRAIN}" if states and states[-1] else _AMBIGUOUS)
            return DisruptionRequest("", rationale=rationale, is_outsider=True)
        beneficiary = seen.beneficiary or self._uids.get(seen.beneficiary_uid, "")
        reported = Rationale(seen.message, room=seen.node) if seen.message or beneficiary else None
        return DisruptionRequest(seen.by, seen.component, beneficiary, reported)

    def _uid_of(self, seen: Sighting) -> str:
        """Return the uid of the pod with that name at the time of an Event without a uid."""
        found = self._seen.get(seen.key)
        created = None if found is None else found.pod.metadata.creation_timestamp
        if found is not None and created is not None and parse_time(created) <= seen.time_ns:
            return found.pod.metadata.uid
        return f"{seen.key}@{seen.time_ns}"

    def _changes(self, pod: Pod, is_added: bool, now: int) -> None:
        self._pods[pod.key] = pod
        self._ledger.on_update(pod, now, is_added=is_added)

    def _ends(self, victim: Pod, announced: DisruptionRequest | None, now: int) -> None:
        if announced is not None:
            self._ledger.announced(victim.metadata.uid, announced)
        self._pods[victim.key] = victim
        self._ledger.on_update(victim, now, is_added=False)

    def _goes(self, pod: Pod, now: int) -> None:
        self._pods.pop(pod.key, None)
        self._ledger.on_delete(pod, now)


def _waiting(pod: Pod) -> Pod:
    metadata, spec = replace(pod.metadata, deletion_timestamp=None), replace(pod.spec, node_name="")
    return replace(pod, metadata=metadata, spec=spec, status=PodStatus())
