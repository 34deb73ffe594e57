"""Carrying out preemptions: victims are marked, then deleted; the last of them when the others are through.

While this goes on, the preemptor is held out of the queue. A victim that is itself still on its way to its node is not
for here: it is called back to the queue instead.

Source: pkg/scheduler/framework/preemption/executor.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from podium.cluster.cluster import Cluster
from podium.cluster.pods import PREEMPTED, PodRecord
from podium.machines.actions import Action, DeletePod, MarkDisruption, Record
from podium.machines.observations import Problem

# Not found; or the uid precondition failed (Conflict), because a namesake has the victim's place.
_VICTIM_IS_GONE = (404, 409)


@dataclass(slots=True, eq=False)
class Preemption:
    """One preemptor and what is left to do for it.

    ``outstanding`` are the victims (uids) whose mark or deletion is not answered yet; ``last`` is None once it is one
    of them.
    """

    preemptor: PodRecord
    node_name: str
    last: PodRecord | None
    outstanding: set[str] = field(default_factory=set)
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """A preemption whose deletions are all through, or which failed."""

    preemptor: PodRecord
    failed: bool


class Preemptions:
    """The preemptions under way, by the uid of the preemptor."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_preemptor: dict[str, Preemption] = {}

    def __len__(self) -> int:
        return len(self._by_preemptor)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_preemptor

    def start(self, preemptor: PodRecord, node_name: str, victims: list[PodRecord]) -> list[Action]:
        """Begin to delete ``victims``, none of which is terminating yet; nothing where there are none."""
        if not victims:
            return []
        preemption = self._by_preemptor[preemptor.uid] = Preemption(preemptor, node_name, victims[-1])
        return self._begin(preemption, victims[:-1]) or self._begin_last(preemption)

    def answered(
        self, action: MarkDisruption | DeletePod, problem: Problem | None
    ) -> tuple[list[Action], Ended | None]:
        """A victim was marked or deleted (one that is gone already counts), or could not be: then no more is done."""
        preemption = self._find(action)
        if preemption is None:
            return [], None
        if problem is not None and problem.code not in _VICTIM_IS_GONE:
            preemption.failed = True
        if problem is None and isinstance(action, MarkDisruption) and self._is_to_go(preemption, action.uid):
            return [DeletePod(action.pod, action.uid, action.cause)], None
        preemption.outstanding.discard(action.uid)
        actions: list[Action] = []
        if problem is None and isinstance(action, DeletePod):
            actions.append(_preempted(preemption, action))
        if not preemption.outstanding:
            actions += self._begin_last(preemption)
        if preemption.outstanding:
            return actions, None
        del self._by_preemptor[preemption.preemptor.uid]
        return actions, Ended(preemption.preemptor, preemption.failed)

    def forget(self, uid: str) -> None:
        """The preemptor is gone or placed; deletions that were asked for still happen, others do not."""
        self._by_preemptor.pop(uid, None)

    def _find(self, action: MarkDisruption | DeletePod) -> Preemption | None:
        """The preemption that asked for the action."""
        return next(
            (
                found
                for found in self._by_preemptor.values()
                if action.uid in found.outstanding and action.cause == found.preemptor.key
            ),
            None,
        )

    def _is_to_go(self, preemption: Preemption, uid: str) -> bool:
        """Whether a victim is still to be deleted: all went well so far, and it is not terminating by itself."""
        victim = self._cluster.placed.get(uid)
        return not preemption.failed and victim is not None and not victim.terminating

    def _begin_last(self, preemption: Preemption) -> list[Action]:
        last, preemption.last = preemption.last, None
        return [] if last is None else self._begin(preemption, [last])

    def _begin(self, preemption: Preemption, victims: Iterable[PodRecord]) -> list[Action]:
        preemptor, actions = preemption.preemptor, list[Action]()
        for victim in victims:
            is_lower = victim.priority < preemptor.priority
            whom = "a higher priority pod" if is_lower else "a pod of equal priority whose owner has less"
            message = f"{preemptor.scheduler_name}: preempting to accommodate {whom}"
            if not self._is_to_go(preemption, victim.uid):
                continue
            preemption.outstanding.add(victim.uid)
            if self._cluster.placed[victim.uid].preempted:
                actions.append(DeletePod(victim.key, victim.uid, preemptor.key))
            else:
                actions.append(MarkDisruption(victim.key, victim.uid, PREEMPTED, message, preemptor.key))
        return actions


def _preempted(preemption: Preemption, action: DeletePod) -> Record:
    preemptor, node_name = preemption.preemptor, preemption.node_name
    note = f"Preempted by pod {preemptor.uid} on node {node_name}"
    return Record(action.pod, action.uid, "Normal", "Preempted", note, node_name, preemptor.key)
