"""Moves that were begun: under way until the replacement is ready, and remembered for as long as limits count them.

What is known of them stands in objects too. An eviction puts the pod's controller on its node's avoid list, with the
time and with whose eviction it was; so whoever starts anew finds there which moves were begun of late, and in the pods
how far they are.

Source: controlled-rescheduling.md, "/evict subresource and PreferAvoidPods".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from podium.api.avoid_list import AvoidEntry, avoid_list
from podium.api.replacements import Replacement
from podium.api.times import parse_time
from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.standing import PastMove
from podium.machines.parts.deadlines import earliest
from podium.machines.rescheduling.names import RESCHEDULER
from podium.machines.rescheduling.picture.cluster_picture import ClusterPicture

_SECOND = 10**9
HOUR_NS = 3_600 * _SECOND
"""How long moves count against the limits of an hour."""

# After this time an eviction without an answer whose pod is still there has not been carried out.
_UNANSWERED_NS = 60 * _SECOND


@dataclass(slots=True, eq=False)
class Move:
    """A pod's move. ``pod_uid`` and ``pod`` (as it would wait for a node) are of the evicted one, where it is known.

    ``entry_time`` is the time of its entry on the node's avoid list, "" while that was not seen. ``is_doubtful``: no
    answer came to the eviction, and nothing has shown that it was carried out. ``known`` are the uids of the owner's
    pods of the same second that were there before, none of which is the replacement.
    """

    namespace: str
    owner_uid: str
    source: str
    evicted_ns: int
    has_budget: bool = False
    target: str = ""
    pod_uid: str = ""
    pod: PodRecord | None = None
    known: frozenset[str] = frozenset()
    entry_time: str = ""
    is_doubtful: bool = False
    is_over: bool = False
    replacement: PodRecord | None = field(default=None)

    def may_have_made(self, pod: PodRecord) -> bool:
        """Whether a pod of the owner came after the eviction; times in objects are in whole seconds."""
        came_after = pod.created_ns >= _second(self.evicted_ns)
        return came_after and pod.uid != self.pod_uid and pod.uid not in self.known


class Moves:
    """The moves that were begun within the last hour, or are under way for longer, in the order of their evictions."""

    def __init__(self, picture: ClusterPicture) -> None:
        self._picture = picture
        self._moves: list[Move] = []
        # The uids of the pods that were evicted, of moves that are not over.
        self._leaving: set[str] = set()
        # By node, the text of its avoid list as it was last read.
        self._read: dict[str, str] = {}

    def __iter__(self) -> Iterator[Move]:
        return iter(self._moves)

    def begin(self, pod: PodRecord, target: str, now: int, *, has_ended: bool = False) -> Move:
        """A pod is about to be evicted; one that ``has_ended`` leaves nothing that somebody would replace."""
        move = Move(
            namespace=pod.namespace,
            owner_uid=pod.owner_uid,
            source=pod.node_name,
            evicted_ns=now,
            has_budget=bool(self._picture.budgets.covering(pod)),
            target=target,
            pod_uid=pod.uid,
            pod=pod.without_node(),
            known=frozenset(
                other.uid for other in self._picture.pods_of(pod.owner_uid) if other.created_ns >= _second(now)
            ),
            is_over=has_ended,
        )
        self._moves.append(move)
        self._leaving.add(pod.uid)
        return move

    def doubt(self, pod_uid: str) -> None:
        """No answer came to a pod's eviction."""
        for move in self._moves:
            if move.pod_uid == pod_uid and not move.entry_time:
                move.is_doubtful = True

    def drop(self, pod_uid: str) -> None:
        """A pod was not evicted."""
        self._moves = [move for move in self._moves if move.pod_uid != pod_uid]
        self._leaving.discard(pod_uid)

    def read_avoid_lists(self, node_names: Iterable[str]) -> None:
        """Take in the avoid lists of some nodes: moves that are not known were begun in an earlier life."""
        for name in node_names:
            text = self._picture.avoid_lists.get(name, "")
            if text == self._read.get(name, ""):
                continue
            if text:
                self._read[name] = text
            else:
                del self._read[name]
            found = avoid_list(text)
            for entry in found.entries:
                self._read_entry(name, entry)
            for replacement in found.replacements:
                self._read_replacement(name, replacement)

    def look(self, now: int, timeout_ns: int) -> None:
        """Find out how far the moves are, and forget those that count for nothing any more."""
        for move in list(self._moves):
            if move.is_doubtful:
                self._look_at_doubtful(move, now)
            if not move.pod_uid:
                self._complete(move)
        taken: set[str] = set()
        for move in self._moves:
            if not move.is_over:
                self._follow(move, taken)
                move.is_over |= now >= move.evicted_ns + timeout_ns
                if move.is_over:
                    move.pod = move.replacement = None
        self._moves = [move for move in self._moves if not move.is_over or now < move.evicted_ns + HOUR_NS]
        self._leaving = {move.pod_uid for move in self._moves if not move.is_over}

    def past(self) -> tuple[PastMove, ...]:
        """The moves as a plan takes them into account."""
        return tuple(_past(move) for move in self._moves)

    def expects(self, owner_uid: str) -> bool:
        """Whether a move of the owner's pods is under way whose replacement has no node yet."""
        return any(move.owner_uid == owner_uid and _needs_room(move) for move in self._moves)

    def is_leaving(self, pod: PodRecord) -> bool:
        """Whether the pod was asked to go, though it may not be seen to go yet."""
        return pod.uid in self._leaving

    def under_way(self) -> list[Move]:
        """The moves that are not over."""
        return [move for move in self._moves if not move.is_over]

    def next_time(self, now: int, timeout_ns: int, *, counts_past: bool) -> int | None:
        """When the next move ends though nothing happens; or (``counts_past``) is an hour ago, and counts no longer."""
        ends = [move.evicted_ns + timeout_ns for move in self._moves if not move.is_over]
        if counts_past:
            ends += [move.evicted_ns + HOUR_NS for move in self._moves]
        doubts = (move.evicted_ns + _UNANSWERED_NS for move in self._moves if move.is_doubtful)
        return earliest(time for time in (*ends, *doubts) if time > now)

    def _read_entry(self, node: str, entry: AvoidEntry) -> None:
        place = entry.controller.uid, node
        known = Counter(move.entry_time for move in self._moves if (move.owner_uid, move.source) == place)
        for eviction in entry.evictions:
            time = eviction.eviction_time
            if eviction.reason != RESCHEDULER:
                continue
            if known[time]:
                known[time] -= 1
            else:
                self._take_in(node, entry, time)

    def _read_replacement(self, node: str, left: Replacement) -> None:
        """What was left for a replacement says more about a move of an earlier life."""
        for move in self._moves:
            is_of_it = (move.owner_uid, move.source) == (left.controller.uid, node)
            if is_of_it and not move.pod_uid and move.entry_time == left.eviction_time:
                move.pod_uid, move.target = left.evicted_pod.uid, left.node_name
                return

    def _take_in(self, node: str, entry: AvoidEntry, time: str) -> None:
        """A move is told of that is not known by this time: it was begun here just before, or in an earlier life."""
        of_entry = (move for move in self._moves if (move.owner_uid, move.source) == (entry.controller.uid, node))
        asked = next((move for move in of_entry if not move.entry_time), None)
        if asked is not None:
            asked.entry_time, asked.is_doubtful = time, False
            return
        # Times in objects are cut to seconds: a move of which only that is known counts a second longer.
        evicted_ns = _second(parse_time(time)) + _SECOND - 1
        move = Move(_namespace_of(entry), entry.controller.uid, node, evicted_ns, entry_time=time)
        self._moves = sorted((*self._moves, move), key=lambda move: move.evicted_ns)

    def _complete(self, move: Move) -> None:
        """Say of a move of an earlier life what an entry does not: it is about the owner, not about the pod."""
        pods = self._picture.pods_of(move.owner_uid)
        if pods:
            move.namespace = pods[0].namespace
            move.has_budget = bool(self._picture.budgets.covering(pods[0]))

    def _look_at_doubtful(self, move: Move, now: int) -> None:
        pod = self._picture.pod(move.pod_uid)
        if pod is None or pod.terminating:
            move.is_doubtful = False
        elif now >= move.evicted_ns + _UNANSWERED_NS:
            self.drop(move.pod_uid)

    def _follow(self, move: Move, taken: set[str]) -> None:
        """Find the move's replacement, the oldest that is nobody else's, and see whether all is done."""
        found = (
            pod
            for pod in self._picture.pods_of(move.owner_uid)
            if pod.uid not in taken and not pod.terminating and move.may_have_made(pod)
        )
        move.replacement = next(found, None)
        if move.replacement is None:
            return
        taken.add(move.replacement.uid)
        move.is_over = move.replacement.ready and self._has_left(move)

    def _has_left(self, move: Move) -> bool:
        """Whether the evicted pod is gone; where it is not known, whether none of its owner's is going from there."""
        if move.pod_uid:
            return self._picture.pod(move.pod_uid) is None
        pods = self._picture.pods_of(move.owner_uid)
        return not any(pod.terminating and pod.node_name == move.source for pod in pods)


def _second(time_ns: int) -> int:
    """A time as objects have it."""
    return time_ns // _SECOND * _SECOND


def _namespace_of(entry: AvoidEntry) -> str:
    """The namespace of the pod that an entry was made for, which its message names; "" where it does not."""
    return next((word.partition("/")[0] for word in entry.message.split() if "/" in word), "")


def _needs_room(move: Move) -> bool:
    return not move.is_over and (move.replacement is None or not move.replacement.node_name)


def _past(move: Move) -> PastMove:
    needs_room = _needs_room(move) and bool(move.target)
    return PastMove(
        move.namespace,
        move.owner_uid,
        move.source,
        move.evicted_ns,
        is_in_flight=not move.is_over,
        has_budget=move.has_budget,
        target=move.target if needs_room else "",
        waiting=(move.replacement or move.pod) if needs_room else None,
    )
