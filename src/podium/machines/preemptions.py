"""Carrying out preemptions: victims are marked and deleted, the last of them when the others are through.

While its victims' deletions are on their way, the preemptor is held out of the queue. A victim that is itself still
on its way to its node is called back to the queue instead of being deleted.

Source: pkg/scheduler/framework/preemption/executor.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.cluster.pods import PREEMPTED, PodRecord
from podium.machines.actions import Action, DeletePod, MarkDisruption, Record
from podium.machines.observations import Problem

# Not found; or the uid precondition failed (Conflict), because a namesake has the victim's place.
_VICTIM_IS_GONE = (404, 409)


@dataclass(slots=True, eq=False)
class Preemption:
    """One preemptor and its victims. ``outstanding`` are the victims (uids) whose deletion is not answered yet."""

    preemptor: PodRecord
    node_name: str
    victims: tuple[PodRecord, ...]
    outstanding: set[str] = field(default_factory=set)
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """A preemption whose deletions are all through, or which failed."""

    preemptor: PodRecord
    victims: tuple[PodRecord, ...]
    failed: bool


class Preemptions:
    """The preemptions under way, by the uid of the preemptor."""

    def __init__(self) -> None:
        self._by_preemptor: dict[str, Preemption] = {}

    def __len__(self) -> int:
        return len(self._by_preemptor)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_preemptor

    def start(self, preemptor: PodRecord, node_name: str, victims: list[PodRecord]) -> list[Action]:
        """Begin to delete ``victims``, none of which is terminating yet; nothing where there are none."""
        if not victims:
            return []
        preemption = self._by_preemptor[preemptor.uid] = Preemption(preemptor, node_name, tuple(victims))
        return self._delete(preemption, victims[:-1] or victims)

    def answered(self, action: DeletePod, problem: Problem | None) -> tuple[list[Action], Ended | None]:
        """A victim's deletion went through (a pod that is gone already counts) or failed."""
        preemption = next((found for found in self._by_preemptor.values() if action.uid in found.outstanding), None)
        if preemption is None:
            return [], None
        preemption.outstanding.discard(action.uid)
        if problem is not None and problem.code not in _VICTIM_IS_GONE:
            preemption.failed = True
        if preemption.outstanding:
            return [], None
        last = preemption.victims[-1]
        if preemption.failed or action.uid == last.uid:
            del self._by_preemptor[preemption.preemptor.uid]
            return [], Ended(preemption.preemptor, preemption.victims, preemption.failed)
        return self._delete(preemption, [last]), None

    def forget(self, uid: str) -> None:
        """The preemptor is gone or placed; the deletions that were asked for still happen."""
        self._by_preemptor.pop(uid, None)

    def _delete(self, preemption: Preemption, victims: list[PodRecord]) -> list[Action]:
        preemptor, actions = preemption.preemptor, list[Action]()
        for victim in victims:
            preemption.outstanding.add(victim.uid)
            note = f"Preempted by pod {preemptor.uid} on node {preemption.node_name}"
            actions.append(
                Record(victim.key, victim.uid, "Normal", "Preempted", note, preemption.node_name, preemptor.key)
            )
            message = f"{preemptor.scheduler_name}: preempting to accommodate a higher priority pod"
            if not victim.preempted:
                actions.append(MarkDisruption(victim.key, victim.uid, PREEMPTED, message, preemptor.key))
            actions.append(DeletePod(victim.key, victim.uid, preemptor.key))
        return actions
