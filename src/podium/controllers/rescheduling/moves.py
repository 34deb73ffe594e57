"""Moves that were started: under way until the replacement is ready, and kept as long as limits count them.

Their state is also stored in objects. An eviction adds the pod's controller to its node's avoid list, with the time and
the evicting component. After a restart the rescheduler finds recent moves there, and their progress in the pods.

Source: controlled-rescheduling.md, "/evict subresource and PreferAvoidPods".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from podium.api.avoid_list import AvoidEntry, avoid_list
from podium.api.times import SECOND, parse_time
from podium.cluster.pods import NOT_STARTED_NS, PodRecord
from podium.controllers.actions import RESCHEDULER
from podium.controllers.deadlines import Deadlines, earliest
from podium.controllers.indexes import MultiMap, exchange
from podium.controllers.rescheduling.rescheduler_view import ReschedulerView
from podium.decide.rescheduling.guards import PastMove
from podium.framework.rescheduling.settings import MoveCriteria, ReschedulerSettings

HOUR_NS = 3_600 * SECOND
"""How long moves count against the hourly limits."""

# After this time, an eviction without an answer whose pod still exists counts as not carried out.
_UNANSWERED_NS = 60 * SECOND


@dataclass(slots=True, eq=False)
class Move:
    """A pod's move. ``pod_uid`` and ``pod`` (as it would wait for a node) describe the evicted pod, if known.

    ``entry_time`` is the time of its entry on the node's avoid list, "" until that is observed. ``is_doubtful``: the
    eviction got no answer, and nothing has shown that it was carried out. ``known`` are the uids of the owner's pods of
    the same second that existed before; none of them is the replacement. ``guided_uid`` is the replacement that was
    bound or nominated, ``made_uid`` the one that completed the move.
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
    guided_uid: str = ""
    made_uid: str = ""

    def may_have_made(self, pod: PodRecord) -> bool:
        """Return whether a pod of the owner was created after the eviction; times in objects are in whole seconds."""
        came_after = pod.created_ns >= _second(self.evicted_ns)
        return came_after and pod.uid != self.pod_uid and pod.uid not in self.known


class Moves:
    """The moves of the last hour or under way. An update examines those that are due or whose owner's pods changed."""

    def __init__(self, view: ReschedulerView) -> None:
        self._view = view
        view.on_pod_changed = self._pod_changed
        self.returns = Returns(view)
        # Each move with the record that a plan counts.
        self._moves: dict[Move, PastMove] = {}
        self._of_owner: MultiMap[str, Move] = MultiMap()
        # When a move's record changes by time alone.
        self._due: Deadlines[Move] = Deadlines()
        # The owners that changed since the last update.
        self._changed: dict[str, None] = {}
        # The moves that are not complete, by the uid of the evicted pod.
        self._leaving: dict[str, Move] = {}
        # The text of each node's avoid list when it was last read, by node name.
        self._read: dict[str, str] = {}

    def begin(self, pod: PodRecord, target: str, now: int, *, has_ended: bool = False) -> Move:
        """Record that a pod is about to be evicted; one that ``has_ended`` needs no replacement."""
        move = Move(
            namespace=pod.namespace,
            owner_uid=pod.owner_uid,
            source=pod.node_name,
            evicted_ns=now,
            has_budget=self._view.budgets.counts(pod.pod_class),
            target=target,
            pod_uid=pod.uid,
            pod=pod.without_node(),
            known=frozenset(
                other.uid for other in self._view.pods_of(pod.owner_uid) if other.created_ns >= _second(now)
            ),
            is_over=has_ended,
        )
        self._add(move)
        self._leaving[pod.uid] = move
        return move

    def on_no_answer(self, move: Move) -> None:
        """Record that the eviction of a move got no answer."""
        move.is_doubtful = not move.entry_time
        self._changed[move.owner_uid] = None

    def drop(self, move: Move) -> None:
        """Forget a move, whose pod was not evicted or which no longer counts."""
        self._moves.pop(move, None)
        self._of_owner.discard(move.owner_uid, move)
        self._leaving.pop(move.pod_uid, None)
        self._due.set(move, None)
        self._changed[move.owner_uid] = None

    def read_avoid_list(self, name: str) -> None:
        """Read the avoid list of a node: unknown moves were started before a restart."""
        text = self._view.avoid_lists.get(name, "")
        if text == (exchange(self._read, name, text or None) or ""):
            return
        found = avoid_list(text)
        for entry in found.entries:
            self._read_entry(name, entry)
        for left in found.replacements:
            # Complete a move from before a restart with the data left for its replacement.
            theirs = (move for move in self._at(left.controller.uid, name) if not move.pod_uid)
            for move in [move for move in theirs if move.entry_time == left.eviction_time][:1]:
                move.pod_uid, move.target = left.evicted_pod.uid, left.node_name
                self._changed[move.owner_uid] = None

    def update(self, now: int, settings: ReschedulerSettings) -> None:
        """Update the progress of the moves, find pods that returned, and forget moves that no longer count."""
        while (late := self._due.take_due(now)) is not None:
            self._changed[late.owner_uid] = None
        moves = self._of(self._changed)
        self._changed.clear()
        self.returns.update(moves, now, settings)
        taken = {move.made_uid for move in moves}
        for move in moves:
            end_ns = self._progress(move, taken, now, settings.move_timeout_ns)
            if end_ns <= now:
                self.drop(move)
                continue
            exchange(self._leaving, move.pod_uid, None if move.is_over else move)
            self._moves[move] = _past(move)
            self._due.set(move, end_ns)

    def look_again(self) -> None:
        """Look at all moves the next time, since the settings have changed."""
        self._changed.update(dict.fromkeys(self._of_owner))

    def past(self) -> tuple[PastMove, ...]:
        """Return the moves as a plan counts them."""
        return tuple(sorted(self._moves.values(), key=_evicted_ns))

    def expects(self, pod: PodRecord) -> bool:
        """Return whether a move of the pod's owner has a replacement without a node, which may be this one."""
        moves = self._of_owner.get(pod.owner_uid, ())
        return any(map(_needs_room, moves)) and all(move.guided_uid != pod.uid for move in moves)

    def is_leaving(self, pod: PodRecord) -> bool:
        """Return whether the pod's eviction was requested, though it may not be observed as terminating yet."""
        return pod.uid in self._leaving

    def under_way(self, owner_uids: Iterable[str] | None = None) -> list[Move]:
        """Return the moves under way, of some owners or all, in the order of their evictions."""
        return [move for move in self._of(self._of_owner if owner_uids is None else owner_uids) if not move.is_over]

    def next_time(self, now: int, timeout_ns: int, *, counts_past: bool) -> int | None:
        """Return when the next move times out.

        With ``counts_past`` also when one becomes an hour old and no longer counts.
        """
        ends = [move.evicted_ns + timeout_ns for move in self._moves if not move.is_over]
        if counts_past:
            ends += [move.evicted_ns + HOUR_NS for move in self._moves]
        doubts = (move.evicted_ns + _UNANSWERED_NS for move in self._moves if move.is_doubtful)
        return earliest(time for time in (*ends, *doubts) if time > now)

    def _pod_changed(self, pod: PodRecord) -> None:
        """Record that a pod changes or goes, which concerns the moves of its owner and its own, if it was adopted."""
        move = self._leaving.get(pod.uid)
        owners = (pod.owner_uid, pod.owner_uid if move is None else move.owner_uid)
        self._changed.update((owner_uid, None) for owner_uid in owners if owner_uid in self._of_owner)

    def _of(self, owner_uids: Iterable[str]) -> list[Move]:
        """Return the moves of some owners, in the order of their evictions."""
        return sorted((move for each in owner_uids for move in self._of_owner.get(each, ())), key=_evicted_ns)

    def _at(self, owner_uid: str, node: str) -> list[Move]:
        """Return the moves of an owner's pods off a node, in the order of their evictions."""
        return [move for move in self._of([owner_uid]) if move.source == node]

    def _add(self, move: Move) -> None:
        self._moves[move] = _past(move)
        self._of_owner.add(move.owner_uid, move)
        self._changed[move.owner_uid] = None

    def _read_entry(self, node: str, entry: AvoidEntry) -> None:
        known = Counter(move.entry_time for move in self._at(entry.controller.uid, node))
        for eviction in entry.evictions:
            time = eviction.eviction_time
            if eviction.reason != RESCHEDULER:
                continue
            if known[time]:
                known[time] -= 1
            else:
                self._take_in(node, entry, time)

    def _take_in(self, node: str, entry: AvoidEntry, time: str) -> None:
        """Record a move that is not known with this time: it has just been started, or was started before a restart."""
        requested = next((move for move in self._at(entry.controller.uid, node) if not move.entry_time), None)
        if requested is not None:
            requested.entry_time, requested.is_doubtful = time, False
            return
        # Times in objects are truncated to seconds: a move known only from them counts a second longer.
        evicted_ns = _second(parse_time(time)) + SECOND - 1
        # The message of an entry names the pod.
        namespace = next((word.partition("/")[0] for word in entry.message.split() if "/" in word), "")
        self._add(Move(namespace, entry.controller.uid, node, evicted_ns, entry_time=time))

    def _progress(self, move: Move, taken: set[str], now: int, timeout_ns: int) -> int:
        """Update the progress of a move; return when time alone changes it, or when it ceased to count."""
        pod, doubted_ns = self._view.pod(move.pod_uid), move.evicted_ns + _UNANSWERED_NS
        move.is_doubtful &= pod is not None and not pod.terminating
        if move.is_doubtful and doubted_ns <= now:
            return doubted_ns
        end_ns = move.evicted_ns + timeout_ns
        if not move.is_over:
            self._follow(move, taken)
            move.is_over |= end_ns <= now
            if move.is_over:
                move.pod = move.replacement = None
        end_ns = move.evicted_ns + HOUR_NS if move.is_over else end_ns
        return min(end_ns, doubted_ns) if move.is_doubtful else end_ns

    def _follow(self, move: Move, taken: set[str]) -> None:
        """Find the move's replacement and check whether the move is complete.

        The replacement is the oldest pod of the owner that no other move claims. An unknown evicted pod is gone if none
        of its owner's pods is terminating on its node.
        """
        pods = self._view.pods_of(move.owner_uid)
        if pods and not move.pod_uid:
            # An avoid list entry from before a restart describes the owner, not the pod.
            move.namespace, move.has_budget = pods[0].namespace, self._view.budgets.counts(pods[0].pod_class)
        found = (pod for pod in pods if pod.uid not in taken and not pod.terminating and move.may_have_made(pod))
        move.replacement = next(found, None)
        if move.replacement is None:
            return
        taken.add(move.replacement.uid)
        if move.pod_uid:
            has_left = self._view.pod(move.pod_uid) is None
        else:
            has_left = not any(pod.terminating and pod.node_name == move.source for pod in pods)
        move.is_over = move.replacement.ready and has_left
        move.made_uid = move.replacement.uid if move.is_over else ""


_evicted_ns = attrgetter("evicted_ns")


def _second(time_ns: int) -> int:
    """Return a time as objects store it."""
    return time_ns // SECOND * SECOND


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


# How long after its end a cool-down counts towards the length of the next one: longer than a replacement takes to
# return again.
_REMEMBERED_NS = 7_200 * 10**9
_LONGEST_COOL_DOWN_NS = 7 * 24 * 3_600 * 10**9


@dataclass(frozen=True, slots=True)
class CoolDown:
    """The length and the end of a cool-down."""

    length_ns: int
    until_ns: int

    @staticmethod
    def after(before: CoolDown | None, first_ns: int, begin_ns: int) -> CoolDown:
        """Return a cool-down of ``first_ns``, or of twice the one before it."""
        length_ns = first_ns if before is None else min(2 * before.length_ns, _LONGEST_COOL_DOWN_NS)
        return CoolDown(length_ns, begin_ns + length_ns)

    def counts(self, now: int) -> bool:
        """Return whether it lasts, or counts towards the next one."""
        return now < self.until_ns + max(self.length_ns, _REMEMBERED_NS)


@dataclass(frozen=True, slots=True)
class _Return:
    """The pods that returned and are still there, their nodes, and how long they are left alone."""

    pod_uids: frozenset[str]
    nodes: frozenset[str]
    cool_down: CoolDown


class Returns:
    """The returns, by owner and node ("" for any)."""

    def __init__(self, view: ReschedulerView) -> None:
        self._view = view
        self._returns: dict[tuple[str, str], _Return] = {}

    def update(self, moves: Iterable[Move], now: int, settings: ReschedulerSettings) -> None:
        """Find the replacements that have returned since the moves began to a node that a pod was evicted from.

        Without computed targets, any node of the owner's pods counts.
        """
        by_owner: dict[str, list[Move]] = {}
        for move in moves:
            by_owner.setdefault(move.owner_uid, []).append(move)
        for owner, of_owner in by_owner.items():
            placed = [pod for pod in self._view.pods_of(owner) if pod.node_name]
            if settings.judgement is MoveCriteria.BLIND:
                made = [pod for pod in placed if any(move.may_have_made(pod) for move in of_owner)]
                self._look_at((owner, ""), made, placed, now, settings.cool_down_ns)
                continue
            for move in of_owner:
                there = [pod for pod in placed if pod.node_name == move.source]
                made = [pod for pod in there if move.may_have_made(pod)]
                self._look_at((owner, move.source), made, there, now, settings.cool_down_ns)
        self._returns = {place: found for place, found in self._returns.items() if found.cool_down.counts(now)}

    def cooling(self, now: int) -> frozenset[tuple[str, str]]:
        """Return the owners, with nodes, whose pods are left alone."""
        left = ((owner, found.nodes) for (owner, _), found in self._returns.items() if now < found.cool_down.until_ns)
        return frozenset((owner, node) for owner, nodes in left for node in nodes)

    def _look_at(
        self, place: tuple[str, str], made: Sequence[PodRecord], there: Sequence[PodRecord], now: int, cool_down_ns: int
    ) -> None:
        """Record the pods that arrived at a place after a move, among those that are there."""
        before = self._returns.get(place)
        known = frozenset[str]() if before is None else before.pod_uids
        anew = [pod for pod in made if pod.uid not in known]
        if not anew:
            return
        # After a restart, the arrivals may have been long ago.
        came_ns = max(now if pod.start_ns == NOT_STARTED_NS else min(pod.start_ns, now) for pod in anew)
        cool_down = CoolDown.after(None if before is None else before.cool_down, cool_down_ns, came_ns)
        if before is not None and before.cool_down.until_ns > cool_down.until_ns:
            cool_down = CoolDown(cool_down.length_ns, before.cool_down.until_ns)
        uids = known.union(pod.uid for pod in anew)
        back = [pod for pod in there if pod.uid in uids]
        nodes = frozenset(pod.node_name for pod in back)
        self._returns[place] = _Return(frozenset(pod.uid for pod in back), nodes, cool_down)
