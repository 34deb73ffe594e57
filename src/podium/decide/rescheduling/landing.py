"""Where the replacement of a moved pod would go: the nodes that it may come to, as its own scheduler decides.

Source: controlled-rescheduling.md, Rescheduler ("we expect future versions of the rescheduler ... will only evict if
the rescheduler determines that the pod can reschedule somewhere").
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace as changed

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_entries
from podium.api.meta import OwnerReference
from podium.api.node import Node, Taint
from podium.cluster.arrays import Bools, Int64s
from podium.cluster.pods import PodRecord
from podium.decide.placement import MINIMUM_NODES_TO_SCORE, Placement, place
from podium.decide.rescheduling.moments import Leaver
from podium.decide.rescheduling.moved_claims import MADE_ANEW
from podium.decide.scratch import Scratch
from podium.framework.errors import PluginError
from podium.framework.plugin import MAX_NODE_SCORE
from podium.framework.rescheduling.picture import Picture
from podium.framework.rescheduling.policy import Relocation
from podium.framework.rescheduling.settings import Guidance, ReschedulerSettings, Steering
from podium.framework.rescheduling.signals import replacement

AVOIDING = "NodePreferAvoidPods"
"""The plugin of a scheduler that heeds avoid lists."""

SOFT_TAINT = Taint(key="podium.dev/moving-pods-away", effect="PreferNoSchedule")
"""What a node is marked with while a pod is moved off it, where avoid lists are not heeded."""


@dataclass(frozen=True, slots=True, eq=False)
class Landing:
    """The rows of which a replacement may come to any; or ``why`` it should not be made to look for one.

    ``fits`` is False where no node takes it, so that it would wait. ``is_sure``: its scheduler looks at all nodes, so
    that there are no other rows.
    """

    rows: Int64s
    why: str = ""
    fits: bool = True
    is_sure: bool = True

    def or_else(self, other: Landing) -> Landing:
        """Where it may come to if this may be, and that."""
        if self.why or not other.fits:
            return self
        if other.why:
            return other
        return Landing(np.union1d(self.rows, other.rows), is_sure=self.is_sure and other.is_sure)


def as_replacement(pod: PodRecord, now: int) -> PodRecord:
    """A placed pod as it will be made again: on no node, and somebody else, whose uid nobody knows yet."""
    return pod.without_node(
        uid=replacement(pod.uid),
        created_ns=now,
        start_ns=now,
        terminating=False,
        preempted=False,
        made_claims=tuple((name, claim and f"{claim}{MADE_ANEW}") for name, claim in pod.made_claims),
    )


class Landings:
    """Finds where replacements would go, in a cluster that their predecessors have left already."""

    def __init__(self, scratch: Scratch, picture: Picture, settings: ReschedulerSettings) -> None:
        self._scratch = scratch
        self._picture = picture
        self._guidance = settings.guidance
        self._steering = settings.steering
        # The rows of nodes that are being emptied: nobody comes there.
        self.closed: set[int] = set()

    def leave(self, row: int) -> None:
        """A pod is evicted from a node: mark it, where that is how its replacement is kept off."""
        node = self._picture.cluster.nodes.node(row)
        if self._steering is Steering.SOFT_TAINT and self._guidance is Guidance.EVICT and not _has_soft_taint(node):
            spec = changed(node.spec, taints=(*node.spec.taints, SOFT_TAINT))
            self._scratch.change_node(changed(node, spec=spec))

    def find(self, pod: PodRecord, leaver: Leaver, leaving: Collection[Leaver], hinted: int | None = None) -> Landing:
        """Where the replacement ``pod`` of one that leaves would go, when so many are ``leaving`` in all.

        Where replacements are sent to a place of ours, it is chosen here, unless it was before: then it is ``hinted``.
        """
        picture = self._picture
        runner = picture.runner_of(pod)
        is_known = runner is not picture.kubelet
        try:
            placement = place(runner, pod, nominated_first=False)
        except PluginError as error:
            return _nowhere(str(error))
        rows, source, relocation = placement.feasible, leaver.row, leaver.relocation
        if placement.error:
            return _nowhere(placement.error)
        if not len(rows) or (len(rows) == 1 and rows[0] == source):
            return _nowhere(f"no other node takes it{_refusal(placement)}", fits=len(rows) > 0)
        allowed = self._allowed(source, relocation)
        if self.is_sent(pod):
            if hinted is None:
                return self._best(rows, placement.totals, allowed, relocation)
            if hinted in rows:
                return Landing(np.array([hinted], dtype=np.int64))
        if is_known and placement.totals is not None:
            avoided = {other.row for other in leaving if other.pod.owner_uid == pod.owner_uid}
            totals = self._steered(pod, runner.profile.weights.get(AVOIDING, 0), rows, placement.totals, avoided)
            rows = rows[totals == totals.max()]
        is_sure = not is_known or _looks_at_all(runner.profile.percentage_of_nodes_to_score, picture)
        return self._left_to_scheduler(pod, source, rows, allowed, is_known=is_known, is_sure=is_sure)

    def is_sent(self, pod: PodRecord) -> bool:
        """Whether the replacement of a pod is sent to a place of ours."""
        is_known = self._picture.runner_of(pod) is not self._picture.kubelet
        return self._guidance is Guidance.BIND or (self._guidance is Guidance.HINT and is_known)

    @property
    def is_bound(self) -> bool:
        """Whether replacements are bound by us, so that no scheduler's choice counts."""
        return self._guidance is Guidance.BIND

    def _allowed(self, source: int, relocation: Relocation) -> Bools:
        allowed = self._picture.targets.copy()
        if relocation.targets is not None:
            allowed &= relocation.targets
        allowed[[source, *self.closed]] = False
        return allowed

    def _best(self, rows: Int64s, totals: Int64s | None, allowed: Bools, relocation: Relocation) -> Landing:
        """The row that the policy likes best, of equals its scheduler, and then the first by name."""
        fitting = allowed[rows]
        rows = rows[fitting]
        if not len(rows):
            return _nowhere("none of the nodes that take it may take pods in, or is better than where it is")
        if relocation.preferred is not None:
            liked = relocation.preferred[rows]
            best = liked == liked.max()
        else:
            best = np.ones(len(rows), dtype=np.bool_)
        if totals is not None:
            of_rows = np.where(best, totals[fitting], np.iinfo(np.int64).min)
            best &= of_rows == of_rows.max()
        first = min(rows[best].tolist(), key=self._picture.node_name)
        return Landing(np.array([first], dtype=np.int64))

    def _steered(self, pod: PodRecord, weight: int, rows: Int64s, totals: Int64s, avoided: Collection[int]) -> Int64s:
        """The totals as they are once the pod's controller is on the avoid lists of the rows ``avoided``, too."""
        if self._steering is not Steering.AVOID_LIST or pod.controller is None or not weight:
            return totals
        nodes = self._picture.cluster.nodes
        further = [row for row in avoided if not _avoids(nodes.node(row), pod.controller)]
        steered: Int64s = totals - weight * MAX_NODE_SCORE * np.isin(rows, np.array(further, dtype=np.int64))
        return steered

    def _left_to_scheduler(
        self, pod: PodRecord, source: int, rows: Int64s, allowed: Bools, *, is_known: bool, is_sure: bool
    ) -> Landing:
        """The rows that a scheduler may choose, unless it may choose one that the pod should not go to."""
        name = self._picture.node_name
        if source in rows:
            whose = "its scheduler rates no node higher than" if is_known else f"{pod.scheduler_name} may choose again"
            return _nowhere(f"{whose} {name(source)}, where it is")
        outside = rows[~allowed[rows]]
        if len(outside):
            first = min(map(name, outside.tolist()))
            likes = "its scheduler would choose" if len(rows) == 1 else "its scheduler might choose"
            return _nowhere(f"{likes} {first}, which may take no pods in, or is no better")
        return Landing(rows, is_sure=is_sure)


def _nowhere(why: str, *, fits: bool = True) -> Landing:
    return Landing(np.empty(0, dtype=np.int64), why, fits=fits)


def _refusal(placement: Placement) -> str:
    """What speaks against all nodes, where that is known before they are looked at."""
    return "" if placement.pre_filter.status.is_success else f": {placement.pre_filter.status.message}"


def _has_soft_taint(node: Node) -> bool:
    return any(taint.key == SOFT_TAINT.key for taint in node.spec.taints)


def _avoids(node: Node, controller: OwnerReference) -> bool:
    """Whether a node's avoid list names a controller already."""
    text = node.metadata.annotations.get(PREFER_AVOID_PODS, "")
    if not text:
        return False
    if controller.uid:
        return any(entry.controller.uid == controller.uid for entry in avoid_entries(text))
    wanted = (controller.kind, controller.name)
    return any((entry.controller.kind, entry.controller.name) == wanted for entry in avoid_entries(text))


def _looks_at_all(percentage: int | None, picture: Picture) -> bool:
    return percentage is None or percentage >= 100 or len(picture.cluster.nodes) <= MINIMUM_NODES_TO_SCORE
