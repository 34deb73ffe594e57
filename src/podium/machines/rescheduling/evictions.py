"""Evictions that were decided on, carried out one after another: asked for, gone on with, left, told.

Source: controlled-rescheduling.md, Rescheduler ("the action is eviction of a pod using the /evict subresource, with the
pod's signature enqueued in the node's PreferAvoidPods").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from podium.api.avoid_list import AvoidFor, AwaitedPod
from podium.api.replacements import ForReplacement
from podium.decide.rescheduling.plan import Move as Planned
from podium.decide.rescheduling.plan import PlannedMoves
from podium.decide.rescheduling.standing import Standing
from podium.framework.rescheduling.settings import Guidance, Steering
from podium.machines.actions import Action, Evict, Record
from podium.machines.answers import Answer
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import AT_ONCE, Deadline
from podium.machines.rescheduling.eviction_queue import EvictionQueue, Ordered, Refusals
from podium.machines.rescheduling.moves import Moves
from podium.machines.rescheduling.names import DESCHEDULED, RESCHEDULER
from podium.machines.rescheduling.picture.cluster_picture import ClusterPicture
from podium.machines.rescheduling.planning import Planners
from podium.machines.rescheduling.soft_taints import SoftTaints


class Evictions:
    """What a plan has decided and that is not done yet; true while there is something, or an answer to come.

    ``refusals`` are the pods whose evictions were refused. ``standing`` says what a plan depends on by a time, and
    ``look`` finds out before how far the moves are.
    """

    def __init__(
        self,
        picture: ClusterPicture,
        planners: Planners,
        moves: Moves,
        soft_taints: SoftTaints,
        standing: Callable[[int], Standing],
        look: Callable[[int], None],
    ) -> None:
        self._picture = picture
        self._planners = planners
        self._moves = moves
        self._soft_taints = soft_taints
        self._standing = standing
        self._look = look
        # The node whose mark is waited for before pods are evicted from it.
        self._marking = ""
        self._queue = EvictionQueue()
        self.refusals = Refusals()

    def __bool__(self) -> bool:
        return bool(self._queue)

    def deadline(self) -> Deadline:
        """Whether there is something to ask for, or something to be waited for."""
        return Deadline(None, True) if self._marking or self._queue.next() is None else AT_ONCE

    def put(self, planned: Iterable[PlannedMoves]) -> None:
        """These moves are to be made."""
        self._queue.put(planned)

    def clear(self) -> None:
        """What was decided is not to be made."""
        self._queue.clear()
        self._marking = ""

    def node_seen(self, name: str) -> None:
        """The API shows a node as it is now."""
        if name == self._marking and not self._soft_taints.is_asked(name):
            self._marking = ""

    def node_gone(self, name: str) -> None:
        """A node is no more."""
        if name == self._marking:
            self._marking = ""

    def not_marked(self, name: str) -> None:
        """A node could not be marked: nobody is evicted from there."""
        if name == self._marking:
            self._marking = ""
            self._queue.skip()

    def answered(self, evict: Evict, answered: Answered, now: int) -> list[Action]:
        """Take in how an eviction ended. What was refused is decided anew when it is time for another try."""
        if self._queue.asked is None or self._queue.asked[0].pod.uid != evict.uid:
            return []
        move, planned = self._queue.asked
        answer = answered.answer
        self._queue.answered(is_done=answer is Answer.DONE)
        if answer is Answer.DONE:
            self.refusals.forget(evict.uid)
            return [_told(move, planned)]
        if answer is Answer.UNKNOWN:
            self._moves.doubt(evict.uid)
        else:
            self._moves.drop(evict.uid)
        if answer not in (Answer.GONE, Answer.REPLACED):
            self.refusals.refuse(evict.uid, now, answered.wait_ns)
        return []

    def go_on(self, now: int) -> list[Action]:
        """Evict whoever is next, if that is right by now, and no mark is waited for."""
        if self._marking:
            return []
        while (order := self._queue.next()) is not None:
            if not self._why_not(order, now):
                return self.begin(now)
            self._queue.skip()
        return []

    def begin(self, now: int) -> list[Action]:
        """Evict the next pod; or mark its node first, where that is what keeps the replacement off."""
        settings, order = self._planners.settings, self._queue.next()
        source = "" if order is None else order.left[0].source
        if source in self.nodes_to_mark() and not self._soft_taints.has(source):
            self._marking = source
            return self._soft_taints.mark(source, now)
        asked, planned = self._queue.ask()
        pod, target = asked.pod, asked.target or ""
        self._moves.begin(pod, target, now, has_ended=asked.has_ended)
        hint = "" if settings.guidance is Guidance.EVICT else target
        evict = Evict(
            pod.key,
            pod.uid,
            RESCHEDULER,
            RESCHEDULER,
            avoid_node=settings.steering is not Steering.SCORES_ALONE,
            avoid_for=AvoidFor(planned.avoid_for_ns, until_replaced=_awaited(asked, planned)),
            for_replacement=ForReplacement(settings.goes_first, hint, planned.is_awaited(asked)),
        )
        return [evict]

    def nodes_to_mark(self) -> frozenset[str]:
        """The nodes that pods are being moved off, where such are marked."""
        settings = self._planners.settings
        if settings.steering is not Steering.SOFT_TAINT or settings.guidance is not Guidance.EVICT:
            return frozenset()
        under_way = (move.source for move in self._moves.under_way())
        return frozenset((*under_way, *self._queue.sources()))

    def _why_not(self, order: Ordered, now: int) -> str:
        """Why the rest of some moves is left; "" if it is not.

        What was begun is gone on with while its pods are where they were: it was decided as one, and is half done.
        """
        if any(move.has_ended for move in order.left):
            are_known = all(self._picture.observed.has_turned_away(move.pod) for move in order.left)
            return "" if are_known else "the pod is gone"
        pods = [self._picture.pod(move.pod.uid) for move in order.left]
        present = [pod for pod in pods if pod is not None and not pod.terminating]
        if len(present) < len(pods) or any(
            pod.node_name != move.source for pod, move in zip(present, order.left, strict=True)
        ):
            return "a pod has left its node by itself"
        if order.was_begun:
            return ""
        self._look(now)
        return self._planners.holds(order.planned, present, self._standing(now), now)


def _awaited(move: Planned, planned: PlannedMoves) -> AwaitedPod | None:
    """Whose replacement is to have the room that a pod leaves: it keeps off until that is there."""
    comes = planned.comes_after(move)
    if comes is None:
        return None
    return AwaitedPod(namespace=comes.pod.namespace, name=comes.pod.name, uid=comes.pod.uid)


def _told(move: Planned, planned: PlannedMoves) -> Record:
    """The event that tells of an eviction."""
    if move.has_ended:
        whose = move.pod.controller
        who = "its controller" if whose is None else f"{whose.kind} {whose.name}"
        message = f"{who} keeps off {move.source} by {planned.policy}: {planned.reason}"
        return Record(move.pod.key, move.pod.uid, "Normal", DESCHEDULED, message, move.source)
    where = "" if move.target is None else f"; there is room on {move.target}"
    message = f"moved off {move.source} by {planned.policy}: {planned.reason}{where}"
    return Record(move.pod.key, move.pod.uid, "Normal", DESCHEDULED, message, move.source)
