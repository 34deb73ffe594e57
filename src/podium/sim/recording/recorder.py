"""Recording of an observed cluster.

The recorder receives all objects, then the end of the list, then each change. Requests of users become steps; actions
of schedulers and controllers become events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import accumulate
from math import inf
from typing import Any

import msgspec

from podium.api.avoid_list import EVICTED, PREFER_AVOID_PODS
from podium.api.disruption_policy import DISRUPTION_RATE
from podium.api.meta import Kubernetes, Raw
from podium.api.node import READY, REGION_LABEL, ZONE_LABEL, Node, condition_status
from podium.api.pod import NOMINATED_NODE_ANNOTATION, Pod
from podium.api.times import SECOND, format_duration
from podium.api.workloads import WORKLOADS, ReplicaSet, ReplicationController, StatefulSet
from podium.apirequests.observations import ObjectObservation
from podium.cluster.pods import PREEMPTED
from podium.controllers.indexes import MultiMap
from podium.controllers.kubelets.pod_run import TERMINATION
from podium.controllers.nodes.node_lifecycle import MANAGED
from podium.controllers.observations import Changed
from podium.controllers.scheduling.futile_preemptions import ANNOTATION as FUTILE_PREEMPTIONS
from podium.controllers.workloads.stateful_sets import ordinal_of
from podium.controllers.workloads.template_revisions import REVISION_LABEL
from podium.sim.recording import tape

_DISRUPTED = "DisruptionTarget"
_NOTHING = tape.RecordingEntry()


class _RecordedObject(msgspec.Struct):
    """An object, its JSON (a quarter of the dictionary's size), and what was recorded of it."""

    object: Kubernetes
    text: bytes
    is_made_by_controller: bool
    is_ending: bool = False
    is_disrupted: bool = False
    # When a pod was bound, and when a running one was deleted.
    bound_ns: int | None = None
    stopped_ns: int | None = None


class ClusterRecorder:
    """Tracks all objects and returns what to write for each change.

    ``slim`` removes what is not written from an object. Times are nanoseconds since the start.
    """

    def __init__(self, slim: Callable[[Raw], Raw]) -> None:
        self._slim = slim
        self._known: dict[tuple[str, str], _RecordedObject] = {}
        self._has_begun = False
        self.terminations = Terminations()
        # By the uid of their controller, the keys of pods that have neither ended nor been deleted.
        self._active: MultiMap[str, str] = MultiMap()
        # The steps and events to write for the current change.
        self._at_ns = 0
        self._steps: list[Raw] = []
        self._events: list[tape.RecordedEvent] = []

    def begin(self, elapsed_ns: int = 0) -> Iterator[Raw]:
        """Yield all objects in their present state, once all are known: a recording begins, or another one.

        ``elapsed_ns`` is the time since the start of the one before; times count from now on.
        """
        self._has_begun = True
        for known in self._known.values():
            known.is_made_by_controller = tape.is_made_by_controller(known.object, self._find)
            known.bound_ns = None
            if known.stopped_ns is not None:
                known.stopped_ns -= elapsed_ns
            yield msgspec.json.decode(known.text)

    def see(self, seen: ObjectObservation, at_ns: int) -> tape.RecordingEntry:
        """Return what to write for a change; nothing before `begin`."""
        self._at_ns, self._steps, self._events = at_ns, [], []
        object_ = seen.object
        known = self._known.get((object_.kind, object_.key))
        if known is not None and known.object.metadata.uid != object_.metadata.uid:
            if not isinstance(seen, Changed):
                return _NOTHING
            # Its deletion was not observed.
            self._on_delete(known)
            known = None
        if not isinstance(seen, Changed):
            if known is not None:
                self._on_delete(known)
        elif known is None:
            self._came(object_, self._slim(seen.raw))
        else:
            self._on_update(known, object_, self._slim(seen.raw))
        if isinstance(object_, Pod) and (controller := object_.metadata.controller) is not None:
            has_ended = not isinstance(seen, Changed) or object_.is_terminating or object_.is_terminal
            change = self._active.discard if has_ended else self._active.add
            change(controller.uid, object_.key)
        if not self._has_begun:
            return _NOTHING
        at = format_duration(at_ns)
        return tape.RecordingEntry(steps=tuple({"at": at, **step} for step in self._steps), events=tuple(self._events))

    def _event(self, what: tape.What, object_: Kubernetes, **others: Any) -> None:
        at, uid = format_duration(self._at_ns), object_.metadata.uid
        self._events.append(tape.RecordedEvent(at=at, what=what, kind=object_.kind, key=object_.key, uid=uid, **others))

    def _came(self, object_: Kubernetes, raw: Raw) -> None:
        is_made = self._has_begun and tape.is_made_by_controller(object_, self._find)
        self._known[object_.kind, object_.key] = _RecordedObject(object_, msgspec.json.encode(raw), is_made)
        if not self._has_begun:
            return
        if is_made:
            self._event("created", object_, object=raw)
        else:
            self._steps.append({"apply": [creation(raw, object_)]})
            self._event("created", object_)
        if isinstance(object_, Pod) and object_.spec.node_name:
            self._event("bound", object_, node=object_.spec.node_name)

    def _on_update(self, known: _RecordedObject, object_: Kubernetes, raw: Raw) -> None:
        before, text = known.object, known.text
        known.object, known.text = object_, msgspec.json.encode(raw)
        if not self._has_begun:
            return
        if object_.metadata.deletion_timestamp and not before.metadata.deletion_timestamp:
            is_running = isinstance(object_, Pod) and object_.status.phase == "Running"
            known.stopped_ns = self._at_ns if is_running else None
        if isinstance(object_, Pod) and isinstance(before, Pod):
            self._pod_changed(known, before, object_)
        if isinstance(object_, Node) and isinstance(before, Node):
            self._node_changed(before, object_)
        if known.is_ending:
            return
        if object_.metadata.deletion_timestamp:
            self._ends(known)
        elif not known.is_made_by_controller:
            step = change(msgspec.json.decode(text), raw)
            if step is not None:
                self._steps.append(step)
        elif not isinstance(object_, Pod) and msgspec.json.decode(text).get("spec") != raw.get("spec"):
            self._event("changed", object_, object=raw)

    def _pod_changed(self, known: _RecordedObject, before: Pod, pod: Pod) -> None:
        if pod.spec.node_name and not before.spec.node_name:
            known.bound_ns = self._at_ns
            self._event("bound", pod, node=pod.spec.node_name)
        elif pod.nominated_node_name not in ("", before.nominated_node_name):
            self._event("nominated", pod, node=pod.nominated_node_name)
        phase = pod.status.phase
        if phase != before.status.phase and phase in ("Failed", "Succeeded"):
            self._event("finished" if phase == "Succeeded" else "failed", pod)
            if phase == "Succeeded" and not known.is_ending:
                after = {} if known.bound_ns is None else {"after": format_duration(self._at_ns - known.bound_ns)}
                # A simulation may give it another name, if it makes more pods of the workload.
                top = tape.workload_of(pod, self._find)
                named = _place(pod) if top is None else {"kind": top.kind, **_place(top), "pod": pod.metadata.name}
                self._steps.append({"finish": {**named, **after}})
        condition = pod.status.condition(_DISRUPTED)
        if condition is None or condition.status != "True" or known.is_disrupted:
            return
        known.is_disrupted = True
        reason = condition.reason
        what: tape.What = "preempted" if reason == PREEMPTED else "evicted" if reason == EVICTED else "disrupted"
        self._event(what, pod, reason=reason)
        if reason == EVICTED:
            self._steps.append({"evict": _place(pod)})

    def _node_changed(self, before: Node, node: Node) -> None:
        """Record that the machine stopped or started, as far as the API shows it."""
        was_silent, is_silent = (condition_status(seen, READY) == "Unknown" for seen in (before, node))
        if was_silent != is_silent:
            self._steps.append({"nodeDown" if is_silent else "nodeUp": {"name": node.metadata.name}})

    def _ends(self, known: _RecordedObject) -> None:
        """Record an object's deletion, unless a simulated component caused it."""
        known.is_ending = True
        object_ = known.object
        namespace = self._find("Namespace", object_.metadata.namespace)
        is_emptied = namespace is not None and bool(namespace.metadata.deletion_timestamp)
        if (known.is_made_by_controller and self._may_be_surplus(object_)) or known.is_disrupted or is_emptied:
            return
        outright = {"outright": True} if isinstance(object_, Pod) else {}
        self._steps.append({"delete": {"kind": object_.kind, **_place(object_), **outright}})

    def _may_be_surplus(self, object_: Kubernetes) -> bool:
        """Return False if the controller of this pod wants it, and so did not delete it.

        A ReplicaSet or ReplicationController wants all its pods if they are not too many, a StatefulSet those of its
        ordinals and of its newest revision.
        """
        controller = object_.metadata.controller
        if not isinstance(object_, Pod) or controller is None:
            return True
        pods = self._active.get(controller.uid, {})
        set_ = self._find(controller.kind, f"{object_.metadata.namespace}/{controller.name}")
        if set_ is None or set_.metadata.uid != controller.uid or set_.metadata.deletion_timestamp:
            return True
        if isinstance(set_, StatefulSet):
            first, revision = set_.spec.ordinals.start, object_.metadata.labels.get(REVISION_LABEL)
            ordinal = ordinal_of(controller.name, object_.metadata.name)
            is_wanted = ordinal in range(first, first + set_.spec.replicas) and revision == set_.status.update_revision
        else:
            is_wanted = isinstance(set_, ReplicaSet | ReplicationController) and len(pods) <= set_.spec.replicas
        return object_.key not in pods or not is_wanted

    def _on_delete(self, known: _RecordedObject) -> None:
        object_ = known.object
        del self._known[object_.kind, object_.key]
        if isinstance(object_, Pod) and known.stopped_ns is not None:
            self.terminations.count(object_, self._at_ns - known.stopped_ns)
        if self._has_begun and not known.is_ending:
            self._ends(known)
        if self._has_begun:
            self._event("gone", object_)

    def _find(self, kind: str, key: str) -> Kubernetes | None:
        known = self._known.get((kind, key))
        return None if known is None else known.object


def _place(object_: Kubernetes) -> Raw:
    metadata = object_.metadata
    return {"namespace": metadata.namespace, "name": metadata.name} if metadata.namespace else {"name": metadata.name}


# The resolution of the measurement.
_STEP_NS = SECOND // 10
_LONGEST = 36_000


class Terminations:
    """Measures how long pods take from deletion to their end."""

    def __init__(self) -> None:
        # By time, in tenths of a second; infinite for the whole grace period.
        self._took: Counter[float] = Counter()

    def count(self, pod: Pod, took_ns: int) -> None:
        """Count the end of a pod that ran when it was deleted."""
        grace_ns = (pod.metadata.deletion_grace_period_seconds or 0) * SECOND
        if not grace_ns or TERMINATION in pod.metadata.annotations or pod.metadata.finalizers:
            return
        steps = round(took_ns / _STEP_NS)
        self._took[inf if steps * _STEP_NS >= grace_ns or steps > _LONGEST else steps] += 1

    @property
    def usual_ns(self) -> int | None:
        """Return the median; None if that is the whole grace period, or no pod ended."""
        half = (self._took.total() + 1) // 2
        sums = zip(sorted(self._took), accumulate(number for _, number in sorted(self._took.items())), strict=True)
        steps = next((steps for steps, so_far in sums if so_far >= half), inf)
        return None if steps == inf else int(steps) * _STEP_NS


_KEPT_METADATA = ("name", "namespace", "labels", "annotations")
# Spec fields that controllers set.
_WRITTEN: dict[str, tuple[str, ...]] = {
    "Namespace": ("finalizers",),
    "Node": ("podCIDR", "podCIDRs"),
    "PersistentVolume": ("claimRef",),
    "PersistentVolumeClaim": ("volumeName",),
    "Pod": ("nodeName",),
}
# Status fields of nodes that other components use.
_REPORTED = ("allocatable", "capacity", "images")
_OF_ITS_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "job-name")
# Prefixes of annotations that controllers use for themselves.
_CONTROLLER_ANNOTATIONS = (
    "deployment.kubernetes.io/",
    DISRUPTION_RATE,
    FUTILE_PREEMPTIONS,
    "pv.kubernetes.io/",
    PREFER_AVOID_PODS,
    NOMINATED_NODE_ANNOTATION,
    "volume.kubernetes.io/",
)


def creation(raw: Raw, object_: Kubernetes) -> Raw:
    """Return the object as its creator requested it."""
    made = _plain(raw)
    if isinstance(object_, Pod) and object_.spec.node_name and object_.status.condition("PodScheduled") is None:
        # Created with its node, without a scheduler.
        made["spec"] = {**made["spec"], "nodeName": object_.spec.node_name}
    if raw.get("kind") == "Job":
        spec = made.get("spec", {})
        if not spec.get("manualSelector"):
            # Without what its uid determines (pkg/registry/batch/job, generateSelector).
            template = spec.get("template", {})
            metadata = template.get("metadata", {})
            labels = {name: value for name, value in metadata.get("labels", {}).items() if name not in _OF_ITS_JOB}
            plain = {name: value for name, value in spec.items() if name != "selector"}
            spec = {**plain, "template": {**template, "metadata": {**metadata, "labels": labels}}}
        made["spec"] = spec
    return made


def change(before: Raw, after: Raw) -> Raw | None:
    """Return the step that makes this change; None if no user requested one."""
    kind = after["kind"]
    was, is_ = _plain(before), _plain(after)
    if was == is_:
        return None
    metadata = is_["metadata"]
    place = {name: metadata[name] for name in ("namespace", "name") if name in metadata}
    if kind == "Pod":
        # Few fields of an existing pod can change; those of containers name volumes and claims.
        spec = {name: is_["spec"][name] for name in ("containers", "volumes", "resourceClaims") if name in is_["spec"]}
        return {"apply": [{**is_, "spec": spec}]}
    # The only changed field of the spec, "" if more changed.
    old, new = was.get("spec", {}), is_.get("spec", {})
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    only = names[0] if len(names) == 1 and {**was, "spec": None} == {**is_, "spec": None} else ""
    if kind in WORKLOADS and only == "replicas":
        return {"scale": {"kind": kind, **place, "replicas": is_["spec"].get("replicas", 1)}}
    if kind == "Node" and only == "unschedulable":
        return {"cordon" if is_["spec"].get("unschedulable") else "uncordon": place}
    return {"apply": [is_]}


def _plain(raw: Raw) -> Raw:
    """Return the object without its identity and without what a simulation sets."""
    kind = raw["kind"]
    plain = {name: value for name, value in raw.items() if name not in ("metadata", "status")}
    metadata = {name: value for name, value in raw["metadata"].items() if name in _KEPT_METADATA}
    annotations = metadata.pop("annotations", None) or {}
    kept = {name: value for name, value in annotations.items() if not name.startswith(_CONTROLLER_ANNOTATIONS)}
    if kind == "Pod" and "labels" in metadata:
        # Without what a binding sets.
        labels = metadata["labels"].items()
        metadata["labels"] = {name: value for name, value in labels if name not in (ZONE_LABEL, REGION_LABEL)}
    plain["metadata"] = {**metadata, "annotations": kept} if kept else metadata
    spec, status = raw.get("spec"), raw.get("status")
    if isinstance(spec, dict):
        plain["spec"] = {name: value for name, value in spec.items() if name not in _WRITTEN.get(kind, ())}
    if kind == "Node":
        # Without taints of the node's state and without empty fields.
        spec = plain.get("spec") or {}
        taints = [taint for taint in spec.get("taints", ()) if (taint.get("key"), taint.get("effect")) not in MANAGED]
        spec = {**spec, "taints": taints}
        plain["spec"] = {name: value for name, value in spec.items() if value not in ([], False)}
        if isinstance(status, dict):
            plain["status"] = {name: status[name] for name in _REPORTED if name in status}
    return plain
