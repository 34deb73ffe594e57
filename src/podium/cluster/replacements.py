"""Which pods come in place of evicted ones, and what the evictions have left for them.

It follows from objects alone: the lists in the annotations of nodes, and the pods of the controllers on them. Of a
controller's pods each takes, in the order in which they were created (of the same second: of their keys), what the
earliest eviction has left that is not taken and that it may have. So never more pods pass for replacements than there
were evictions, however many a scale-up makes at the same time. What is taken stays so whether or not its pod has a
node; of a pod that goes without ever having had one the next may have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_list
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.replacements import Replacement
from podium.api.times import parse_time


class Candidate(NamedTuple):
    """A pod of a controller; in the order in which they take what is left."""

    created_ns: int
    key: str
    uid: str
    controller_uid: str

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.key.rpartition("/")[2]


def candidate(pod: Pod) -> Candidate | None:
    """The pod as one that may take something; None where it belongs to nobody."""
    meta = pod.metadata
    controller, created = meta.controller, meta.creation_timestamp
    if controller is None:
        return None
    return Candidate(parse_time(created) if created else 0, pod.key, meta.uid or pod.key, controller.uid)


Known = Callable[[Mapping[str, int]], Iterable[Candidate]]
"""The pods that are known of some controllers (by uid) which were created at a time or later."""

# The node on which it was left, and the uid of the evicted pod.
_Place = tuple[str, str]


@dataclass(slots=True)
class _Awaited:
    """What was left for the pods of one controller, in order of the evictions, and the pods that might take it.

    ``left`` is what nobody has taken, ``last`` the pod that was the last in order to take something. ``settled`` are
    pods that have, or had, a node.
    """

    places: dict[_Place, Replacement] = field(default_factory=dict)
    pods: dict[str, Candidate] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    taken: dict[str, _Place] = field(default_factory=dict)
    left: dict[_Place, Replacement] = field(default_factory=dict)
    last: Candidate | None = None

    def match(self) -> None:
        """Let the pods take what there is, in the order of the evictions."""
        self.places = dict(sorted(self.places.items(), key=lambda item: (item[1].eviction_ns, item[0])))
        since_ns, until_ns = self.window()
        self.pods = {uid: pod for uid, pod in self.pods.items() if since_ns <= pod.created_ns <= until_ns}
        self.settled &= self.pods.keys()
        self.taken, self.left, self.last = {}, dict(self.places), None
        for pod in sorted(self.pods.values()):
            if not self.left:
                break
            self.take(pod)

    def take(self, pod: Candidate) -> bool:
        """Let a pod behind all that have taken something take what it may have; whether there is anything."""
        for place, replacement in self.left.items():
            if replacement.serves(pod.name, pod.uid, pod.created_ns):
                del self.left[place]
                self.taken[pod.uid] = place
                self.last = pod
                return True
        return False

    def window(self) -> tuple[int, int]:
        """When pods are created that might take something."""
        left = self.places.values()
        return min(entry.eviction_ns for entry in left), max(entry.expiry_ns for entry in left)


class Replacements:
    """What evictions left, and who takes it. ``version`` is another one whenever that has changed.

    ``by_pod`` says by uid of a pod what it gets, ``first`` are those of them that go first. Nothing is kept about pods
    of controllers for which nothing is left, and ``awaited`` is empty where there are none.
    """

    def __init__(self) -> None:
        self._on_node: dict[str, tuple[Replacement, ...]] = {}
        self._awaited: dict[str, _Awaited] = {}
        # Where something was left for the replacement of an evicted pod, by its uid.
        self._place_of: dict[str, _Place] = {}
        # Shown as it is, not as a proxy: it is asked about with every pod.
        self.awaited: Mapping[str, object] = self._awaited
        self._by_pod: dict[str, Replacement] = {}
        self.by_pod: Mapping[str, Replacement] = MappingProxyType(self._by_pod)
        self.first: set[str] = set()
        self.version = 0

    def hint(self, uid: str) -> str:
        """The node where room for a pod is thought to be, "" for none."""
        left = self._by_pod.get(uid)
        return "" if left is None else left.node_name

    def is_used(self, node_name: str, replacement: Replacement) -> bool:
        """Whether the pod that takes what was left on a node has, or had, a node."""
        awaited = self._awaited.get(replacement.controller.uid)
        place = (node_name, replacement.evicted_pod.uid)
        return awaited is not None and any(awaited.taken.get(uid) == place for uid in awaited.settled)

    def is_awaited(self, evicted_uid: str) -> bool:
        """Whether something was left for the replacement of an evicted pod that has had no node yet."""
        place = self._place_of.get(evicted_uid)
        return place is not None and not self.is_used(place[0], self._left_at(place))

    def awaits_until_ns(self, evicted_uid: str) -> int | None:
        """Until when the replacement of an evicted pod is awaited, None where it is not."""
        return self._left_at(self._place_of[evicted_uid]).expiry_ns if self.is_awaited(evicted_uid) else None

    def nodes_of(self, controller_uid: str) -> list[str]:
        """The nodes on which something was left for the pods of a controller, by name."""
        awaited = self._awaited.get(controller_uid)
        return [] if awaited is None else sorted({node_name for node_name, _ in awaited.places})

    def put_node(self, node: Node, known: Known) -> None:
        """A node was added or changed."""
        text = node.metadata.annotations.get(PREFER_AVOID_PODS, "")
        if text or node.metadata.name in self._on_node:
            self._put_list(node.metadata.name, avoid_list(text).replacements, known)

    def drop_node(self, node_name: str) -> None:
        """A node is gone, and what was left there with it."""
        if node_name in self._on_node:
            self._put_list(node_name, (), lambda _wanted: ())

    def put_pod(self, pod: Candidate, *, is_settled: bool) -> None:
        """A pod of a controller is there; ``is_settled``: it has a node, or has ended."""
        awaited = self._awaited.get(pod.controller_uid)
        if awaited is None:
            return
        if pod.uid not in awaited.pods:
            self._add(awaited, pod)
        if is_settled and pod.uid in awaited.pods:
            awaited.settled.add(pod.uid)

    def drop_pod(self, controller_uid: str, uid: str, *, is_settled: bool) -> None:
        """A pod of a controller is no more. What it has taken is taken for good where it had a node."""
        awaited = self._awaited.get(controller_uid)
        if awaited is None or uid not in awaited.pods or uid in awaited.settled:
            return
        if is_settled:
            awaited.settled.add(uid)
            return
        del awaited.pods[uid]
        if uid in awaited.taken:
            self._match_anew(awaited)

    def _left_at(self, place: _Place) -> Replacement:
        node_name, evicted_uid = place
        return next(left for left in self._on_node[node_name] if left.evicted_pod.uid == evicted_uid)

    def _add(self, awaited: _Awaited, pod: Candidate) -> None:
        since_ns, until_ns = awaited.window()
        if not since_ns <= pod.created_ns <= until_ns:
            return
        awaited.pods[pod.uid] = pod
        if awaited.last is not None and pod < awaited.last:
            self._match_anew(awaited)
        elif awaited.left and awaited.take(pod):
            self._give(pod.uid, awaited.places[awaited.taken[pod.uid]])

    def _put_list(self, node_name: str, replacements: tuple[Replacement, ...], known: Known) -> None:
        before = self._on_node.pop(node_name, ())
        if replacements:
            self._on_node[node_name] = replacements
        if before == replacements:
            return
        uids = list(dict.fromkeys(left.controller.uid for left in (*before, *replacements)))
        # Since when pods of these controllers are known here; those for whom nothing was left are not.
        known_since = {uid: self._awaited[uid].window()[0] for uid in uids if uid in self._awaited}
        for left in before:
            del self._awaited[left.controller.uid].places[node_name, left.evicted_pod.uid]
            if self._place_of.get(left.evicted_pod.uid) == (node_name, left.evicted_pod.uid):
                del self._place_of[left.evicted_pod.uid]
        for left in replacements:
            awaited = self._awaited.setdefault(left.controller.uid, _Awaited())
            awaited.places[node_name, left.evicted_pod.uid] = left
            self._place_of[left.evicted_pod.uid] = node_name, left.evicted_pod.uid
        for uid in [uid for uid in uids if not self._awaited[uid].places]:
            uids.remove(uid)
            self._forget(uid)
        since = {uid: self._awaited[uid].window()[0] for uid in uids}
        self._look_up(
            {uid: since_ns for uid, since_ns in since.items() if since_ns < known_since.get(uid, since_ns + 1)}, known
        )
        for uid in uids:
            self._match_anew(self._awaited[uid])

    def _look_up(self, wanted: Mapping[str, int], known: Known) -> None:
        """Learn of pods that were there before anybody asked for them."""
        for pod in known(wanted) if wanted else ():
            self._awaited[pod.controller_uid].pods.setdefault(pod.uid, pod)

    def _match_anew(self, awaited: _Awaited) -> None:
        self._take_back(awaited)
        awaited.match()
        for uid, place in awaited.taken.items():
            self._give(uid, awaited.places[place])

    def _forget(self, controller_uid: str) -> None:
        self._take_back(self._awaited.pop(controller_uid))

    def _give(self, uid: str, left: Replacement) -> None:
        self._by_pod[uid] = left
        if left.first:
            self.first.add(uid)
        self.version += 1

    def _take_back(self, awaited: _Awaited) -> None:
        for uid in awaited.taken:
            self._by_pod.pop(uid, None)
            self.first.discard(uid)
        self.version += 1
