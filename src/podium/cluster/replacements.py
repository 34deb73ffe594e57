"""Replacements of evicted pods, and the entries that evictions leave for them.

Derived from objects alone: the annotations of nodes, and the pods of the controllers named there. The pods of a
controller take, in the order of creation (then key), what the earliest eviction left for them. So there are never more
replacements than evictions, even during a scale-up. A taken entry stays taken when its pod gets a node; if the pod goes
without ever having had one, the next pod may take it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from sys import maxsize
from typing import NamedTuple

from msgspec import Struct

from podium.api.avoid_list import Replacement, avoid_list, avoid_list_text
from podium.api.node import Node
from podium.api.pod import Pod, deletion_ns
from podium.api.times import format_exact_time, parse_time
from podium.cluster.pods import PodRecord, workload_of


class ControlledPod(NamedTuple):
    """A pod of a controller; sorts in the order in which pods take entries."""

    created_ns: int
    key: str
    uid: str
    controller_uid: str

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]


def controlled_pod(pod: Pod) -> ControlledPod | None:
    """Return the pod as one that may be a replacement; None without a controller."""
    meta = pod.metadata
    controller, created = meta.controller, meta.creation_timestamp
    if controller is None:
        return None
    return ControlledPod(parse_time(created) if created else 0, pod.key, meta.uid or pod.key, controller.uid)


PodLookup = Callable[[str], Iterable[ControlledPod]]
"""Return the known pods of a controller, by its uid."""

# Node, and uid of the evicted pod.
_Place = tuple[str, str]


class Awaited(Struct):
    """The entries that evictions left for the pods of one controller, in order, and the pods that may take them.

    ``left`` is not taken yet, ``last`` is the last pod that took something. ``settled`` pods have or had a node.
    """

    places: dict[_Place, Replacement] = {}
    pods: dict[str, ControlledPod] = {}
    settled: set[str] = set()
    taken: dict[str, _Place] = {}
    left: dict[_Place, Replacement] = {}
    last: ControlledPod | None = None

    def match(self) -> None:
        """Assign the entries to the pods, in the order of the evictions."""
        self.places = dict(sorted(self.places.items(), key=lambda item: (item[1].eviction_ns, item[0])))
        since_ns, until_ns = self.window()
        self.pods = {uid: pod for uid, pod in self.pods.items() if since_ns <= pod.created_ns <= until_ns}
        self.settled &= self.pods.keys()
        self.taken, self.left, self.last = {}, dict(self.places), None
        for pod in sorted(self.pods.values()):
            if not self.left:
                break
            self.take(pod)

    def take(self, pod: ControlledPod) -> bool:
        """Assign the first suitable entry to a pod later in order than ``last``; return whether there was one."""
        for place, replacement in self.left.items():
            if replacement.serves(pod.name, pod.uid, pod.created_ns):
                del self.left[place]
                self.taken[pod.uid] = place
                self.last = pod
                return True
        return False

    def window(self) -> tuple[int, int]:
        """Return the times between which suitable pods are created."""
        left = self.places.values()
        return min(entry.eviction_ns for entry in left), max(entry.expiry_ns for entry in left)


class Replacements:
    """The entries that evictions left, and the pods that take them. ``version`` changes with them.

    ``by_pod`` maps a pod's uid to its entry; pods in ``first`` are scheduled first. Controllers without entries are
    not tracked.
    """

    def __init__(self) -> None:
        self._on_node: dict[str, tuple[Replacement, ...]] = {}
        self.awaited: dict[str, Awaited] = {}
        # By uid of the evicted pod, where something was left for its replacement.
        self._place_of: dict[str, _Place] = {}
        self.by_pod: dict[str, Replacement] = {}
        self.first: set[str] = set()
        self.version = 0

    def hint(self, uid: str) -> str:
        """Return the node where room for a pod is expected, or ""."""
        left = self.by_pod.get(uid)
        return "" if left is None else left.node_name

    def is_used(self, node_name: str, replacement: Replacement) -> bool:
        """Return whether the pod that took an entry has or had a node."""
        awaited = self.awaited.get(replacement.controller.uid)
        place = (node_name, replacement.evicted_pod.uid)
        return awaited is not None and any(awaited.taken.get(uid) == place for uid in awaited.settled)

    def is_awaited(self, evicted_uid: str) -> bool:
        """Return whether an evicted pod has an entry whose replacement has had no node yet."""
        place = self._place_of.get(evicted_uid)
        return place is not None and not self.is_used(place[0], self._left_at(place))

    def awaits_until_ns(self, evicted_uid: str) -> int | None:
        """Return until when the replacement of an evicted pod is awaited; None if it is not."""
        return self._left_at(self._place_of[evicted_uid]).expiry_ns if self.is_awaited(evicted_uid) else None

    def nodes_of(self, controller_uid: str) -> list[str]:
        """Return the nodes with entries for the pods of a controller, by name."""
        awaited = self.awaited.get(controller_uid)
        return [] if awaited is None else sorted({node_name for node_name, _ in awaited.places})

    def put_node(self, node: Node, known: PodLookup) -> None:
        """Record an added or changed node."""
        text = avoid_list_text(node)
        if text or node.metadata.name in self._on_node:
            self._put_list(node.metadata.name, avoid_list(text).replacements, known)

    def drop_node(self, node_name: str) -> None:
        """Remove a node with its entries."""
        if node_name in self._on_node:
            self._put_list(node_name, (), lambda _: ())

    def put_pod(self, pod: ControlledPod, *, is_settled: bool) -> None:
        """Record a controller's pod; ``is_settled``: it has a node or has ended."""
        awaited = self.awaited.get(pod.controller_uid)
        if awaited is None:
            return
        if pod.uid not in awaited.pods:
            self._add(awaited, pod)
        if is_settled and pod.uid in awaited.pods:
            awaited.settled.add(pod.uid)

    def drop_pod(self, controller_uid: str, uid: str, *, is_settled: bool) -> None:
        """Remove a controller's pod. What it took stays taken if it had a node."""
        awaited = self.awaited.get(controller_uid)
        if awaited is None or uid not in awaited.pods or uid in awaited.settled:
            return
        if is_settled:
            awaited.settled.add(uid)
            return
        del awaited.pods[uid]
        if uid in awaited.taken:
            self._rematch(awaited)

    def _left_at(self, place: _Place) -> Replacement:
        node_name, evicted_uid = place
        return next(left for left in self._on_node[node_name] if left.evicted_pod.uid == evicted_uid)

    def _add(self, awaited: Awaited, pod: ControlledPod) -> None:
        since_ns, until_ns = awaited.window()
        if not since_ns <= pod.created_ns <= until_ns:
            return
        awaited.pods[pod.uid] = pod
        if awaited.last is not None and pod < awaited.last:
            self._rematch(awaited)
        elif awaited.left and awaited.take(pod):
            self._give(pod.uid, awaited.places[awaited.taken[pod.uid]])

    def _put_list(self, node_name: str, replacements: tuple[Replacement, ...], known: PodLookup) -> None:
        before = self._on_node.pop(node_name, ())
        if replacements:
            self._on_node[node_name] = replacements
        if before == replacements:
            return
        uids = list(dict.fromkeys(left.controller.uid for left in (*before, *replacements)))
        # Pods of tracked controllers are known since the beginning of their windows.
        known_since = {uid: self.awaited[uid].window()[0] for uid in uids if uid in self.awaited}
        for left in before:
            del self.awaited[left.controller.uid].places[node_name, left.evicted_pod.uid]
            if self._place_of.get(left.evicted_pod.uid) == (node_name, left.evicted_pod.uid):
                del self._place_of[left.evicted_pod.uid]
        for left in replacements:
            awaited = self.awaited.setdefault(left.controller.uid, Awaited())
            awaited.places[node_name, left.evicted_pod.uid] = left
            self._place_of[left.evicted_pod.uid] = node_name, left.evicted_pod.uid
        for uid in [uid for uid in uids if not self.awaited[uid].places]:
            uids.remove(uid)
            self._take_back(self.awaited.pop(uid))
        for uid in uids:
            awaited = self.awaited[uid]
            if awaited.window()[0] < known_since.get(uid, maxsize):
                # Pods that were created before they were tracked.
                awaited.pods = {pod.uid: pod for pod in known(uid)} | awaited.pods
            self._rematch(awaited)

    def _rematch(self, awaited: Awaited) -> None:
        self._take_back(awaited)
        awaited.match()
        for uid, place in awaited.taken.items():
            self._give(uid, awaited.places[place])

    def _give(self, uid: str, left: Replacement) -> None:
        self.by_pod[uid] = left
        if left.first:
            self.first.add(uid)
        self.version += 1

    def _take_back(self, awaited: Awaited) -> None:
        for uid in awaited.taken:
            self.by_pod.pop(uid, None)
            self.first.discard(uid)
        self.version += 1


WORKLOAD_DISRUPTED_AT = "podium.dev/workload-disrupted-at"
"""Annotation of a pod: when a pod of the same workload was last disrupted, an RFC 3339 time."""

_FEW = 64


class DisruptedWorkloads:
    """The time of each workload's last disruption, for as long as it counts.

    A pod counts as disrupted once it terminates with the condition DisruptionTarget: by preemption, the eviction API, a
    taint or garbage collection. Such pods soon disappear, so the scheduler writes the time into the annotation
    `WORKLOAD_DISRUPTED_AT` of a pod that takes their place, where a restarted scheduler finds it.
    """

    def __init__(self) -> None:
        self.span_ns = 0
        """How long a disruption counts; 0 if none does."""
        self.counts = False
        """Whether disruptions are remembered."""
        self._last: dict[str, int] = {}
        # The times that a pod of the workload has in its annotation.
        self._noted: dict[str, int] = {}
        self._most = _FEW

    def remember(self, span_ns: int) -> None:
        """Remember disruptions for at least so long."""
        self.span_ns = max(self.span_ns, span_ns)
        self.counts = self.span_ns > 0

    def see(self, pod: Pod) -> None:
        """Record a pod that is disrupted or has the annotation."""
        meta = pod.metadata
        target = None if meta.deletion_timestamp is None else pod.status.condition("DisruptionTarget")
        is_marked = target is not None and target.status == "True"
        if not is_marked and WORKLOAD_DISRUPTED_AT not in meta.annotations:
            return
        workload = workload_of(meta.namespace, meta.name, meta.controller, meta.labels)
        # An invalid time does not count.
        with suppress(KeyError, ValueError):
            annotated_ns = parse_time(meta.annotations[WORKLOAD_DISRUPTED_AT])
            self._noted[workload] = max(annotated_ns, self._noted.get(workload, 0))
            self._put(workload, annotated_ns)
        deleted_ns = deletion_ns(pod) if is_marked else None
        if deleted_ns is not None:
            self._put(workload, deleted_ns)

    def last_ns(self, workload: str, now: int, span_ns: int) -> int | None:
        """Return when a workload was last disrupted; None if unknown or at least ``span_ns`` ago."""
        time_ns = self._last.get(workload)
        return None if time_ns is None or now - time_ns >= span_ns else time_ns

    def next_end_ns(self, now: int, span_ns: int) -> int | None:
        """Return when the next disruption becomes ``span_ns`` old; None if none will."""
        ends = (time_ns + span_ns for time_ns in self._last.values())
        return min((end_ns for end_ns in ends if end_ns > now), default=None)

    def note_for(self, pod: PodRecord, now: int) -> str | None:
        """Return the annotation to write into a pod; None if it is not needed or another pod has it."""
        workload = pod.workload
        time_ns = self.last_ns(workload, now, self.span_ns)
        if time_ns is None or self._noted.get(workload, -1) >= time_ns or pod.controller is None:
            return None
        self._noted[workload] = time_ns
        return format_exact_time(time_ns)

    def _put(self, workload: str, time_ns: int) -> None:
        self._last[workload] = max(time_ns, self._last.get(workload, 0))
        if len(self._last) > self._most:
            oldest_ns = max(self._last.values()) - self.span_ns
            self._last = {name: last_ns for name, last_ns in self._last.items() if last_ns > oldest_ns}
            self._noted = {name: annotated_ns for name, annotated_ns in self._noted.items() if name in self._last}
            self._most = max(_FEW, 2 * len(self._last))
