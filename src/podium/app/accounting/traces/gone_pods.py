"""Pods that are gone, as far as Events and what is left of their workloads tell what they were like.

Source: pkg/controller/controller_utils.go, pkg/controller/statefulset/stateful_pod_control.go (SuccessfulCreate,
SuccessfulDelete), pkg/scheduler/schedule_one.go (Scheduled).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from podium.api.meta import ObjectMeta, OwnerReference
from podium.api.pod import Pod, PodCondition, PodSpec, PodStatus
from podium.api.times import format_time
from podium.api.workloads import ReplicaSet
from podium.app.accounting.traces.sightings import ENDED_BY_KUBELET, Sighting
from podium.app.accounting.traces.told_events import ToldEvent
from podium.machines.ledger.wishes import Find

_MADE = re.compile(r"(?:Created pod: |create Pod )(\S+)")
_DELETED = re.compile(r"(?:Deleted pod: |delete Pod )(\S+)")
_PLACED = re.compile(r"Successfully assigned (\S+) to (\S+)")
_ABOUT_NS = 60 * 10**9
_HASH = "pod-template-hash"


class GonePods:
    """What is known of pods that are no more: whose they were, where, and since when."""

    def __init__(self, events: Iterable[ToldEvent], pods: Iterable[Pod], find: Find) -> None:
        self._find = find
        # By the pods' key; pods of StatefulSets come again under theirs.
        self._owners: dict[str, OwnerReference] = {}
        self._placed: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
        self._let_go: defaultdict[str, list[int]] = defaultdict(list)
        # By the uid of the owner: when it made pods, and a pod of it that is left.
        self._made_ns: defaultdict[str, list[int]] = defaultdict(list)
        self._siblings: dict[str, Pod] = {}
        for pod in pods:
            if pod.metadata.controller is not None:
                self._siblings.setdefault(pod.metadata.controller.uid, pod)
        for event in events:
            self._take_in(event)

    def _take_in(self, event: ToldEvent) -> None:
        namespace = event.key.partition("/")[0]
        if event.reason == "SuccessfulCreate" and (said := _MADE.match(event.message)) is not None:
            name = event.key.partition("/")[2]
            self._owners[f"{namespace}/{said[1]}"] = OwnerReference(
                kind=event.kind, name=name, uid=event.uid, controller=True
            )
            self._made_ns[event.uid].append(event.time_ns)
        elif event.reason == "SuccessfulDelete" and (said := _DELETED.match(event.message)) is not None:
            self._let_go[f"{namespace}/{said[1]}"].append(event.time_ns)
        elif event.reason == "Scheduled" and (said := _PLACED.match(event.message)) is not None:
            self._placed[event.key].append((event.time_ns, event.uid, said[2]))

    def is_let_go(self, key: str, time_ns: int) -> bool:
        """Whether its own workload has deleted the pod about then."""
        return any(abs(deleted_ns - time_ns) <= _ABOUT_NS for deleted_ns in self._let_go.get(key, ()))

    def is_replaced(self, key: str, time_ns: int) -> bool:
        """Whether its workload has made a pod since; a pod on its own, of which that is known, is not to come again."""
        owner = self._owners.get(key)
        if owner is None:
            return bool(self._placed.get(key))
        return any(made_ns >= time_ns for made_ns in self._made_ns[owner.uid])

    def is_known(self, key: str) -> bool:
        """Whether somebody is left to tell what the pod asked for, and how important it was."""
        owner = self._owners.get(key)
        return owner is not None and owner.uid in self._siblings

    def placed(self, key: str, uid: str, time_ns: int) -> tuple[int, str] | None:
        """When after a time a pod that is gone was placed, and where; None where it was not."""
        for placed_ns, of, node in self._placed.get(key, ()):
            if placed_ns >= time_ns and (not uid or not of or of == uid):
                return placed_ns, node
        return None

    def pod(self, key: str, uid: str, node: str = "") -> Pod:
        """The pod as it was while it ran, on a node ("" for one that waits)."""
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
        """The pod as it began to end; None where nobody knows from which node."""
        places = [place for place in self._placed.get(seen.key, ()) if place[0] <= seen.time_ns]
        start_ns, _, node = places[-1] if places else (None, "", seen.node)
        if not node:
            return None
        start = None if start_ns is None else format_time(start_ns)
        return ending(self.pod(seen.key, uid, node), seen, start)

    def _labels(self, namespace: str, owner: OwnerReference | None) -> dict[str, str]:
        """The label by which a Deployment's ReplicaSet is known."""
        found = None if owner is None else self._find(owner.kind, f"{namespace}/{owner.name}")
        template_hash = found.metadata.labels.get(_HASH, "") if isinstance(found, ReplicaSet) else ""
        return {_HASH: template_hash} if template_hash else {}


def ending(pod: Pod, seen: Sighting, start: str | None) -> Pod:
    """The pod, marked and terminating as it was seen to be; one that its kubelet has ended has failed."""
    conditions: tuple[PodCondition, ...] = ()
    if seen.reason:
        mark = PodCondition(type="DisruptionTarget", status="True", reason=seen.reason, message=seen.message)
        conditions = (mark,)
    is_failed = seen.reason == ENDED_BY_KUBELET
    metadata = replace(pod.metadata, deletion_timestamp=None if is_failed else format_time(seen.time_ns))
    status = PodStatus(phase="Failed" if is_failed else "Running", start_time=start, conditions=conditions)
    return replace(pod, metadata=metadata, status=status)
