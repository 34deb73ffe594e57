"""Carrying out preemptions: victims are marked, then deleted, or evicted; the last of them when the others are through.

While this goes on, the preemptor is held out of the queue; not any more once its last victim is seen to go, whose end
must not be missed. A victim that is itself still on its way to its node is not for here: it is called back to the queue
instead.

Source: pkg/scheduler/framework/preemption/executor.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from podium.api.disruption_policy import SCHEDULER
from podium.api.pod import PodCondition
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PREEMPTED, PodRecord
from podium.machines.actions import Action, DeleteObject, Evict, Record, ReportStatus
from podium.machines.answers import Answer
from podium.machines.grounds import Grounds
from podium.machines.observations import Answered, Problem


class Preemption(msgspec.Struct, eq=False):
    """One preemptor and what is left to do for it.

    ``victims`` are those that are to be deleted, by uid, with the node of each; ``last`` is the uid of the last one.
    ``outstanding`` are those of them whose mark or deletion is not answered yet. ``is_at_last``: the others are
    through. ``evicts``: they go by eviction. ``binds_first``: the preemptor does not wait for them to be gone.
    ``grounds`` say why these victims were chosen.
    """

    preemptor: PodRecord
    node_name: str
    victims: Mapping[str, str]
    last: str
    evicts: bool = False
    binds_first: bool = False
    is_at_last: bool = False
    outstanding: set[str] = set()
    failed: bool = False
    grounds: Grounds | None = None


class Ended(msgspec.Struct, frozen=True):
    """A preemption whose deletions are all through, or which failed; and whether all its victims are gone already.

    ``binds_first``: its preemptor does not wait for them.
    """

    preemptor: PodRecord
    failed: bool
    all_gone: bool
    binds_first: bool = False


class Preemptions:
    """The preemptions under way, by the uid of the preemptor."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_preemptor: dict[str, Preemption] = {}
        # By victim (uid) and preemptor (key), whose answer is awaited.
        self._asked: dict[tuple[str, str], Preemption] = {}
        # What is written into victims before they are deleted, by scheduler name: equals, and those of lower priority.
        self._marks: dict[str, tuple[tuple[PodCondition], tuple[PodCondition]]] = {}

    def __len__(self) -> int:
        return len(self._by_preemptor)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_preemptor

    def holds(self, uid: str) -> bool:
        """Whether a pod is to stay out of the queue: its victims are being deleted, and the last one is still there."""
        preemption = self._by_preemptor.get(uid)
        if preemption is None:
            return False
        last = self._cluster.placed.get(preemption.last)
        return not preemption.is_at_last or (last is not None and not last.terminating)

    def start(
        self,
        preemptor: PodRecord,
        node_name: str,
        victims: list[PodRecord],
        *,
        evicts: bool = False,
        binds_first: bool = False,
        grounds: Grounds | None = None,
    ) -> list[Action]:
        """Begin to delete or evict ``victims``, none of which is terminating yet; nothing where there are none."""
        if not victims:
            return []
        self.forget(preemptor.uid)
        nodes = {victim.uid: victim.node_name for victim in victims}
        preemption = self._by_preemptor[preemptor.uid] = Preemption(
            preemptor, node_name, nodes, victims[-1].uid, evicts, binds_first, grounds=grounds
        )
        return self._begin(preemption, victims[:-1]) or self._begin_last(preemption)

    def answered(
        self, action: ReportStatus | DeleteObject | Evict, problem: Problem | None
    ) -> tuple[list[Action], Ended | None]:
        """A victim was marked, deleted or evicted, or is gone already; or could not be: then no more is done."""
        preemption = self._asked.get((action.uid, action.cause))
        if preemption is None:
            return [], None
        actions: list[Action] = []
        if problem is not None:
            preemption.failed = preemption.failed or not _is_gone(action, problem)
        elif type(action) is not ReportStatus:
            actions.append(_preempted(preemption, action))
        elif self._to_go(preemption, action.uid) is not None:
            return [DeleteObject("Pod", action.key, action.uid, action.cause)], None
        self._settle(preemption, action.uid)
        outstanding = preemption.outstanding
        if not outstanding and not preemption.is_at_last:
            actions += self._begin_last(preemption)
        if outstanding:
            return actions, None
        del self._by_preemptor[preemption.preemptor.uid]
        all_gone = self._cluster.placed.keys().isdisjoint(preemption.victims)
        return actions, Ended(preemption.preemptor, preemption.failed, all_gone, preemption.binds_first)

    def forget(self, uid: str) -> None:
        """The preemptor is gone or placed; deletions that were asked for still happen, others do not."""
        preemption = self._by_preemptor.pop(uid, None)
        if preemption is not None:
            for victim in tuple(preemption.outstanding):
                self._settle(preemption, victim)

    def _to_go(self, preemption: Preemption, uid: str) -> PodRecord | None:
        """A victim as it is, where it is still to be deleted: all went well so far, and it is not terminating."""
        victim = self._cluster.placed.get(uid)
        return None if preemption.failed or victim is None or victim.terminating else victim

    def _settle(self, preemption: Preemption, uid: str) -> None:
        preemption.outstanding.discard(uid)
        del self._asked[uid, preemption.preemptor.key]

    def _begin_last(self, preemption: Preemption) -> list[Action]:
        preemption.is_at_last = True
        last = self._to_go(preemption, preemption.last)
        return [] if last is None else self._begin(preemption, [last])

    def _begin(self, preemption: Preemption, victims: Iterable[PodRecord]) -> list[Action]:
        """Mark or evict victims, which are to go as they are now."""
        preemptor, grounds = preemption.preemptor, preemption.grounds
        cause, outstanding = preemptor.key, preemption.outstanding
        marks = self._marks_by(preemptor.scheduler_name)
        actions: list[Action] = []
        for victim in victims:
            uid = victim.uid
            outstanding.add(uid)
            self._asked[uid, cause] = preemption
            if preemption.evicts:
                actions.append(Evict(victim.key, uid, cause, SCHEDULER, grounds=grounds))
            elif victim.preempted:
                actions.append(DeleteObject("Pod", victim.key, uid, cause))
            else:
                mark = marks[victim.priority < preemptor.priority]
                actions.append(ReportStatus("Pod", victim.key, uid, cause, mark, grounds=grounds))
        return actions

    def _marks_by(self, scheduler_name: str) -> tuple[tuple[PodCondition], tuple[PodCondition]]:
        """What is written into victims before they are deleted: those of equal, and those of lower priority."""
        marks = self._marks.get(scheduler_name)
        if marks is None:
            equal = _mark(scheduler_name, "a pod of equal priority whose owner has less")
            marks = self._marks[scheduler_name] = equal, _mark(scheduler_name, "a higher priority pod")
        return marks


def _is_gone(action: ReportStatus | DeleteObject | Evict, problem: Problem) -> bool:
    """Whether a refusal says that the victim is no more.

    A deletion conflicts only with its condition on the uid, so that a namesake has the victim's place. A mark conflicts
    with other writes to the pod as well: the victim may be alive, and the preemptor has to try again.
    """
    return Answered(action, problem).answer in (Answer.GONE, Answer.REPLACED)


def _mark(scheduler_name: str, whom: str) -> tuple[PodCondition]:
    message = f"{scheduler_name}: preempting to accommodate {whom}"
    return (PodCondition(type="DisruptionTarget", status="True", reason=PREEMPTED, message=message),)


def _preempted(preemption: Preemption, action: DeleteObject | Evict) -> Record:
    preemptor, node_name = preemption.preemptor, preemption.node_name
    note = f"Preempted by pod {preemptor.uid} on node {node_name}"
    key = action.pod if type(action) is Evict else action.key
    where = preemption.victims[action.uid]
    return Record(key, action.uid, "Normal", "Preempted", note, where, preemptor.key)
