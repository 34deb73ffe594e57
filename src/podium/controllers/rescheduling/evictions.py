"""The execution of planned evictions, one after another: requested, continued, dropped, and reported.

Source: controlled-rescheduling.md, Rescheduler ("the action is eviction of a pod using the /evict subresource, with the
pod's signature enqueued in the node's PreferAvoidPods").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from podium.api.avoid_list import AwaitedPod, EvictionHints
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.times import SECOND
from podium.controllers.actions import DESCHEDULED, RESCHEDULER, Action, Evict, PatchObject, Record
from podium.controllers.controller import Backoff, WorkQueue
from podium.controllers.deadlines import AT_ONCE, Deadline, Deadlines
from podium.controllers.observations import ActionFinished, Answer
from podium.controllers.rescheduling.moves import Move, Moves
from podium.controllers.rescheduling.planning import Planners
from podium.controllers.rescheduling.rescheduler_view import ReschedulerView
from podium.decide.rescheduling.guards import PlanInputs
from podium.decide.rescheduling.replacement_placement import SOFT_TAINT
from podium.decide.rescheduling.round_robin import PlannedMove, PlannedMoves
from podium.framework.rescheduling.settings import Guidance, Steering

_FIRST_WAIT_NS = 10 * SECOND
_LONGEST_WAIT_NS = 300 * SECOND
# Refusals in a row after which a pod's eviction is not expected to succeed the next time.
_STUCK_AFTER = 2


Ordered = tuple[PlannedMoves, list[PlannedMove]]
"""Moves that are made together, and those of them that are still to be started, in this order."""


class Refusals:
    """Pods whose evictions were refused; they are left alone until the next attempt is due."""

    def __init__(self) -> None:
        self._backoff: Backoff[str] = Backoff(_FIRST_WAIT_NS, _LONGEST_WAIT_NS)
        self._until: Deadlines[str] = Deadlines()
        self.deadline = self._until.deadline
        self.uids = self._until.times.keys()
        """The uids of the pods; a live view."""

    def refuse(self, uid: str, now: int, wait_ns: int) -> None:
        """Record that a pod's eviction was refused and that the server asks to wait for ``wait_ns``.

        The attempt after another refusal does not keep a simulation running.
        """
        self._backoff.fail(uid, now, wait_ns)
        self._until.set(uid, self._backoff.until(uid, now) or now, recurs=self._backoff.failures(uid) >= _STUCK_AFTER)

    def pass_time(self, now: int) -> None:
        """Drop the refusals whose time has passed."""
        while self._until.take_due(now) is not None:
            pass

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone or terminating."""
        self._until.set(uid, None)
        self._backoff.forget(uid)


@dataclass(eq=False)
class PlannedEvictions:
    """The planned evictions that are not complete; true while any is left or an answer is pending.

    ``inputs`` returns the inputs of a plan at a time; ``update`` brings the progress of moves up to date before that.
    ``refusals`` are the pods whose evictions were refused.
    """

    picture: ReschedulerView
    planners: Planners
    moves: Moves
    soft_taints: SoftTaints
    inputs: Callable[[int], PlanInputs]
    update: Callable[[int], None]
    refusals: Refusals = field(default_factory=Refusals)
    # The node whose taint must be observed before pods are evicted from it.
    _marking: str = ""
    _orders: deque[Ordered] = field(default_factory=deque)
    # The move whose answer is pending, with those that it is made with.
    _requested: tuple[PlannedMove, PlannedMoves, Move] | None = None

    def __bool__(self) -> bool:
        return bool(self._orders) or self._requested is not None

    def deadline(self) -> Deadline:
        """Return when the next eviction is due: at once, unless an answer or a taint is pending."""
        return Deadline(None, True) if self._marking or self._next() is None else AT_ONCE

    def put(self, planned: Iterable[PlannedMoves]) -> None:
        """Add planned moves.

        The pod that finds its place last is evicted first: others may need the capacity that it frees, and it needs
        none of theirs.
        """
        self._orders.extend((moves, list(reversed(moves.moves))) for moves in planned)

    def clear(self) -> None:
        self._orders.clear()
        self._marking = ""

    def node_seen(self, name: str) -> None:
        """Record the observed state of a node, or its end."""
        if name == self._marking and name not in self.soft_taints.requested:
            self._marking = ""

    def not_marked(self, name: str) -> None:
        """Record that a node could not be tainted: its pods are not evicted."""
        if name == self._marking:
            self._marking = ""
            self._orders.popleft()

    def _next(self) -> Ordered | None:
        """Return the moves to request next; None while an answer is pending or if nothing is left."""
        return self._orders[0] if self._orders and self._requested is None else None

    def on_finished(self, evict: Evict, finished: ActionFinished, now: int) -> list[Action]:
        """Record the result of an eviction. A refused one is planned again when the next attempt is due."""
        if self._requested is None or self._requested[0].pod.uid != evict.uid:
            return []
        (move, planned, begun), self._requested = self._requested, None
        answer = finished.answer
        if answer is Answer.DONE:
            self.refusals.forget(evict.uid)
            if move.has_ended:
                controller = move.pod.controller
                owner = "its controller" if controller is None else f"{controller.kind} {controller.name}"
                message = f"{owner} avoids {move.source} by {planned.policy}: {planned.reason}"
            else:
                where = "" if move.target is None else f"; there is room on {move.target}"
                message = f"moved off {move.source} by {planned.policy}: {planned.reason}{where}"
            return [Record(move.pod.key, move.pod.uid, "Normal", DESCHEDULED, message, move.source)]
        if self._orders and self._orders[0][0] is planned:
            # The rest of its moves is dropped.
            self._orders.popleft()
        if answer is Answer.UNKNOWN:
            self.moves.on_no_answer(begun)
        else:
            self.moves.drop(begun)
        if answer not in (Answer.GONE, Answer.REPLACED):
            self.refusals.refuse(evict.uid, now, finished.wait_ns)
        return []

    def go_on(self, now: int) -> list[Action]:
        """Evict the next pod if that still holds and no taint is pending."""
        if self._marking:
            return []
        while (order := self._next()) is not None:
            if self._holds(*order, now):
                return self.begin(now)
            self._orders.popleft()
        return []

    def begin(self, now: int) -> list[Action]:
        """Evict the next pod, or taint its node first if a taint keeps the replacement away."""
        settings, (planned, left) = self.planners.settings, self._orders[0]
        source = left[0].source
        if source in self.nodes_to_mark() and source not in self.soft_taints.marked:
            self._marking = source
            return self.soft_taints.mark(source, now)
        move = left.pop(0)
        if not left:
            self._orders.popleft()
        pod, target = move.pod, move.target or ""
        self._requested = move, planned, self.moves.begin(pod, target, now, has_ended=move.has_ended)
        hint = "" if settings.guidance is Guidance.EVICT else target
        comes = planned.comes_after(move)
        # Other pods avoid the node until the pod that comes has its replacement there.
        awaited: AwaitedPod | None = None
        if comes is not None:
            awaited = AwaitedPod(namespace=comes.pod.namespace, name=comes.pod.name, uid=comes.pod.uid)
        hints = EvictionHints(
            avoid_node=settings.steering is not Steering.SCORES_ALONE,
            avoid_for_ns=planned.avoid_for_ns,
            until_replaced=awaited,
            first=settings.goes_first,
            node_name=hint,
            is_awaited=planned.is_awaited(move),
        )
        return [Evict(pod.key, pod.uid, RESCHEDULER, RESCHEDULER, hints=hints)]

    def nodes_to_mark(self) -> frozenset[str]:
        """Return the nodes that pods are being moved off, if such nodes are tainted."""
        settings = self.planners.settings
        if settings.steering is not Steering.SOFT_TAINT or settings.guidance is not Guidance.EVICT:
            return frozenset()
        under_way = (move.source for move in self.moves.under_way())
        return frozenset((*under_way, *(move.source for _, left in self._orders for move in left)))

    def _holds(self, planned: PlannedMoves, left: Sequence[PlannedMove], now: int) -> bool:
        """Return whether the rest of some moves should still be made.

        Moves that were started continue while their pods are in place: they were planned as one, and are half done.
        """
        if any(move.has_ended for move in left):
            return all(self.picture.observed.has_turned_away(move.pod) for move in left)
        pods = [(self.picture.pod(move.pod.uid), move.source) for move in left]
        present = [pod for pod, source in pods if pod and not pod.terminating and pod.node_name == source]
        if len(present) < len(pods):
            # A pod has left its node by itself.
            return False
        if len(left) < len(planned.moves):
            return True
        self.update(now)
        return self.planners.holds(planned, present, self.inputs(now), now)


_TAINT: Raw = {"key": SOFT_TAINT.key, "effect": SOFT_TAINT.effect}


class SoftTaints:
    """Taints nodes, and removes taints that are no longer needed."""

    def __init__(self) -> None:
        # The known nodes by name: their uid, resource version and taints.
        self._nodes: dict[str, tuple[str, str, list[Raw]]] = {}
        self.marked: dict[str, None] = {}
        """The tainted nodes, by name."""
        self.requested: dict[str, str] = {}
        """By name, the resource version on which a change is based that was not observed yet."""
        self._queue: WorkQueue[str] = WorkQueue()
        self.deadline = self._queue.deadline

    def observe(self, node: Node, raw: Raw | None) -> None:
        """Record the observed state of a node, or without its wire form its end."""
        meta = node.metadata
        if raw is None:
            for known in (self._nodes, self.marked, self.requested):
                known.pop(meta.name, None)
            self._queue.forget(meta.name)
            return
        taints: list[Raw] = raw.get("spec", {}).get("taints") or []
        self._nodes[meta.name] = meta.uid, meta.resource_version, taints
        if any(taint.key == SOFT_TAINT.key for taint in node.spec.taints):
            self.marked[meta.name] = None
        else:
            self.marked.pop(meta.name, None)
        if self.requested.get(meta.name, meta.resource_version) != meta.resource_version:
            del self.requested[meta.name]

    def mark(self, name: str, now: int) -> list[Action]:
        """Taint a node unless that is under way."""
        if name in self.marked or name in self.requested or name not in self._nodes:
            return []
        return [self._write(name, [*self._nodes[name][2], {**_TAINT, "value": str(now // SECOND)}], "marked")]

    def unmark(self, but_for: Collection[str]) -> None:
        """Remove the taints of all nodes but the given ones."""
        self._queue.add_all(name for name in self.marked if name not in but_for)

    def on_finished(self, finished: ActionFinished, now: int) -> None:
        """Record the result of a change of a node."""
        action = finished.action
        if not isinstance(action, PatchObject) or finished.problem is None:
            return
        self.requested.pop(action.key, None)
        self._queue.answer(action.key, finished, now)

    def work(self, now: int, but_for: Collection[str]) -> list[Action]:
        """Remove the taints that are due for removal."""
        actions: list[Action] = []
        while (name := self._queue.take(now)) is not None:
            if name in self.marked and name not in self.requested and name not in but_for:
                taints = [taint for taint in self._nodes[name][2] if taint.get("key") != SOFT_TAINT.key]
                actions.append(self._write(name, taints, "unmarked"))
        return actions

    def _write(self, name: str, taints: list[Raw], what: str) -> PatchObject:
        uid, version, _ = self._nodes[name]
        self.requested[name] = version
        patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": taints}}
        return PatchObject("Node", name, uid, patch, RESCHEDULER, message=f"{what}: pods are moved off it")
