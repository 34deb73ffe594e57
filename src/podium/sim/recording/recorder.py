"""Makes of what is seen of a cluster what has to be written of it.

It is told all objects there are, then that this was all, and from then on each change. What others ask for becomes
steps, what schedulers and controllers do becomes events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from podium.api.meta import Kubernetes, Raw
from podium.api.node import Node
from podium.api.node_health import READY, condition_status
from podium.api.pod import Pod
from podium.api.times import format_duration
from podium.cluster.pods import PREEMPTED
from podium.machines.observations import Changed
from podium.requests.observations import Seen
from podium.sim.recording.asked import change, creation
from podium.sim.recording.authors import is_made_by_controller, workload_of
from podium.sim.recording.tape import EVICTED, Entry, RecordedEvent, What, event
from podium.sim.recording.terminations import Terminations

_DISRUPTED = "DisruptionTarget"
_NOTHING = Entry()


class _Known(msgspec.Struct):
    """An object: its last version, whether its name is one that a simulation has, too, and what was told of it."""

    object: Kubernetes
    raw: Raw
    is_made_by_controller: bool
    has_its_name: bool
    is_ending: bool = False
    is_disrupted: bool = False
    # When a pod was deleted that ran until then.
    stopped_ns: int | None = None


class Recorder:
    """Knows all objects, and tells of each change what has to be written.

    ``slim`` leaves out of an object what is not to be written. Times are nanoseconds since the start.
    """

    def __init__(self, slim: Callable[[Raw], Raw]) -> None:
        self._slim = slim
        self._known: dict[tuple[str, str], _Known] = {}
        self._objects: dict[tuple[str, str], Kubernetes] = {}
        self._has_begun = False
        self._terminations = Terminations()

    @property
    def termination_ns(self) -> int | None:
        """How long pods usually took to end, None where that is all of their grace period, or not known."""
        return self._terminations.usual_ns

    def begin(self) -> Iterator[Raw]:
        """All objects are known: these, as they are now."""
        self._has_begun = True
        for known in self._known.values():
            known.is_made_by_controller = is_made_by_controller(known.object, self._objects)
            yield known.raw

    def see(self, seen: Seen, at_ns: int) -> Entry:
        """What has to be written of a change; nothing before `begin`."""
        object_ = seen.object
        place = (object_.kind, object_.key)
        known = self._known.get(place)
        steps: list[Raw] = []
        events: list[RecordedEvent] = []
        if known is not None and known.object.metadata.uid != object_.metadata.uid:
            if not isinstance(seen, Changed):
                return _NOTHING
            # Its end was not seen.
            self._gone(known, at_ns, steps, events)
            known = None
        if not isinstance(seen, Changed):
            if known is not None:
                self._gone(known, at_ns, steps, events)
        elif known is None:
            self._came(object_, self._slim(seen.raw), at_ns, steps, events)
        else:
            self._changed(known, object_, self._slim(seen.raw), at_ns, steps, events)
        if not self._has_begun:
            return _NOTHING
        at = format_duration(at_ns)
        return Entry(steps=tuple({"at": at, **step} for step in steps), events=tuple(events))

    def _came(self, object_: Kubernetes, raw: Raw, at_ns: int, steps: list[Raw], events: list[RecordedEvent]) -> None:
        place = (object_.kind, object_.key)
        is_made = self._has_begun and is_made_by_controller(object_, self._objects)
        self._known[place] = _Known(object_, raw, is_made, not (is_made and self._has_begun))
        self._objects[place] = object_
        if not self._has_begun:
            return
        uid = object_.metadata.uid
        if is_made:
            events.append(event(at_ns, "created", *place, uid=uid, object=raw))
        else:
            steps.append({"apply": [creation(raw, object_)]})
            events.append(event(at_ns, "created", *place, uid=uid))
        if isinstance(object_, Pod) and object_.spec.node_name:
            events.append(event(at_ns, "bound", *place, uid=uid, node=object_.spec.node_name))

    def _changed(
        self, known: _Known, object_: Kubernetes, raw: Raw, at_ns: int, steps: list[Raw], events: list[RecordedEvent]
    ) -> None:
        before, was = known.object, known.raw
        known.object, known.raw = object_, raw
        self._objects[object_.kind, object_.key] = object_
        if not self._has_begun:
            return
        if object_.metadata.deletion_timestamp and not before.metadata.deletion_timestamp:
            is_running = isinstance(object_, Pod) and object_.status.phase == "Running"
            known.stopped_ns = at_ns if is_running else None
        if isinstance(object_, Pod) and isinstance(before, Pod):
            self._pod_changed(known, before, object_, at_ns, steps, events)
        if isinstance(object_, Node) and isinstance(before, Node):
            steps.extend(_power(before, object_))
        if object_.metadata.deletion_timestamp and not known.is_ending:
            self._ends(known, at_ns, steps, events)
        elif not known.is_ending:
            self._edited(known, was, at_ns, steps, events)

    def _edited(self, known: _Known, was: Raw, at_ns: int, steps: list[Raw], events: list[RecordedEvent]) -> None:
        """Take note of what somebody has written into an object, its status apart."""
        object_ = known.object
        if known.is_made_by_controller:
            if not isinstance(object_, Pod) and was.get("spec") != known.raw.get("spec"):
                uid = object_.metadata.uid
                events.append(event(at_ns, "changed", object_.kind, object_.key, uid=uid, object=known.raw))
            return
        step = change(was, known.raw)
        if step is not None:
            steps.append(step)

    def _pod_changed(
        self, known: _Known, before: Pod, pod: Pod, at_ns: int, steps: list[Raw], events: list[RecordedEvent]
    ) -> None:
        uid = pod.metadata.uid
        if pod.spec.node_name and not before.spec.node_name:
            events.append(event(at_ns, "bound", "Pod", pod.key, uid=uid, node=pod.spec.node_name))
        phase = pod.status.phase
        if phase != before.status.phase and phase in ("Failed", "Succeeded"):
            events.append(event(at_ns, "finished" if phase == "Succeeded" else "failed", "Pod", pod.key, uid=uid))
            if phase == "Succeeded" and not known.is_ending:
                steps.append({"finish": self._named(known)})
        self._disrupted(known, pod, at_ns, steps, events)

    def _disrupted(self, known: _Known, pod: Pod, at_ns: int, steps: list[Raw], events: list[RecordedEvent]) -> None:
        """Take note of who has a pod go, where its condition says so."""
        condition = pod.status.condition(_DISRUPTED)
        if condition is None or condition.status != "True" or known.is_disrupted:
            return
        known.is_disrupted = True
        reason, uid = condition.reason, pod.metadata.uid
        what: What = "preempted" if reason == PREEMPTED else "evicted" if reason == EVICTED else "disrupted"
        events.append(event(at_ns, what, "Pod", pod.key, uid=uid, reason=reason))
        if reason == EVICTED:
            steps.append({"evict": self._named(known)})

    def _ends(self, known: _Known, at_ns: int, steps: list[Raw], events: list[RecordedEvent]) -> None:
        """Take note of an object's deletion: whoever asked for it, if it was nobody who is simulated."""
        known.is_ending = True
        object_ = known.object
        if known.is_made_by_controller or known.is_disrupted or self._goes_with_its_namespace(object_):
            return
        place = _place(object_)
        outright = {"outright": True} if isinstance(object_, Pod) else {}
        steps.append({"delete": {"kind": object_.kind, **place, **outright}})

    def _gone(self, known: _Known, at_ns: int, steps: list[Raw], events: list[RecordedEvent]) -> None:
        object_ = known.object
        place = (object_.kind, object_.key)
        del self._known[place], self._objects[place]
        if isinstance(object_, Pod) and known.stopped_ns is not None:
            self._terminations.count(object_, at_ns - known.stopped_ns)
        if self._has_begun and not known.is_ending:
            self._ends(known, at_ns, steps, events)
        if self._has_begun:
            events.append(event(at_ns, "gone", *place, uid=object_.metadata.uid))

    def _goes_with_its_namespace(self, object_: Kubernetes) -> bool:
        namespace = self._objects.get(("Namespace", object_.metadata.namespace))
        return namespace is not None and bool(namespace.metadata.deletion_timestamp)

    def _named(self, known: _Known) -> Raw:
        """How a step names a pod: by its workload where a simulation gives it another name."""
        if not known.has_its_name:
            workload = workload_of(known.object, self._objects)
            if workload is not None:
                return {"kind": workload.kind, **_place(workload)}
        return _place(known.object)


def _place(object_: Kubernetes) -> Raw:
    metadata = object_.metadata
    return {"namespace": metadata.namespace, "name": metadata.name} if metadata.namespace else {"name": metadata.name}


def _power(before: Node, node: Node) -> Iterator[Raw]:
    """The step that a node's machine stopped or started again, as far as others have noticed."""
    was_silent, is_silent = (condition_status(seen, READY) == "Unknown" for seen in (before, node))
    if was_silent != is_silent:
        yield {"nodeDown" if is_silent else "nodeUp": {"name": node.metadata.name}}
