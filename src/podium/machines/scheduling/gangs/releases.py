"""Gangs that have fewer pods on nodes than they want at least, while the others find none: they give their nodes back.

All or none holds for a decision. What comes after may fail: a binding is refused, a kubelet turns a pod away, a node is
lost. Then a gang holds room that is of no use to it, and two such gangs may hold what each of them lacks. So after a
while the pods that have a node are evicted, and the gang waits as a whole once they have been made anew.
"""

from __future__ import annotations

from podium.api.disruption_policy import SCHEDULER
from podium.api.times import format_duration
from podium.cluster.cluster import Cluster
from podium.machines.actions import Action, Evict, Record
from podium.machines.answers import Answer
from podium.machines.grounds import GANG_RELEASE, Grounds
from podium.machines.observations import Answered
from podium.machines.parts.deadlines import Deadlines
from podium.machines.scheduling.gangs.gang_state import GangState
from podium.machines.scheduling.queue.queue import SchedulingQueue

_TOO_MANY = 429
_LATER = (Answer.PASSING, Answer.UNKNOWN)

REASON = "GangReleased"
RULE = "a gang that is not whole gives its nodes back"


class Releases:
    """Since when gangs are placed in part, and what is done about it."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, state: GangState) -> None:
        self._cluster = cluster
        self._queue = queue
        self._state = state
        self._deadlines: Deadlines[str] = Deadlines()
        # Those that were asked to give their nodes back, and have some still: asked again, they would be refused again.
        self._asked: set[str] = set()

    def note(self, key: str, scheduler_name: str, now: int) -> None:
        """Pods of a gang found no place: their time begins, where others of it have one and it has too few."""
        after_ns = self._state.plugin(scheduler_name).release_after_ns
        if after_ns is None or not self._is_in_part(key):
            self.forget(key)
        elif key not in self._deadlines.times:
            self._deadlines.set(key, now + after_ns)

    def forget(self, key: str) -> None:
        """A gang has what it needs, or nothing, or is gone."""
        self._deadlines.set(key, None)
        self._asked.discard(key)

    def take_due(self, now: int) -> list[Action]:
        """Evict the pods of gangs whose time is over, and which are still placed in part. Refusals are tried again."""
        actions: list[Action] = []
        while (key := self._deadlines.take_due(now)) is not None:
            after_ns = self._after_ns(key)
            if after_ns is not None and self._is_in_part(key):
                actions += self._release(key, after_ns, now)
            else:
                self.forget(key)
        return actions

    def answered(self, action: Evict, answered: Answered) -> None:
        """A pod was evicted, or was not: what no budget refused may go through the next time, so that this is news."""
        pod, problem = self._cluster.placed.get(action.uid), answered.problem
        if pod is None or problem is None or problem.cause:
            return
        if answered.answer in _LATER or problem.code == _TOO_MANY:
            self._asked.discard(pod.pod_class.pod_group)

    def next_deadline(self) -> int | None:
        """When the first gang's time is over; None where there is none."""
        return self._deadlines.next_time()

    @property
    def has_news(self) -> bool:
        """Whether some gang is about to give its nodes back that was not asked before, or may have better luck."""
        return len(self._deadlines.times) > len(self._asked)

    def _release(self, key: str, after_ns: int, now: int) -> list[Action]:
        self._deadlines.set(key, now + after_ns)
        self._asked.add(key)
        held = self._state.bound(key)
        message = (
            f"{len(held):,} pods of the gang {key} have nodes, too few of it, and no place was found for another one "
            f"for {format_duration(after_ns)}: it gives its nodes back"
        )
        grounds = Grounds(RULE, message)
        actions: list[Action] = []
        for pod in held:
            actions.append(Record(pod.key, pod.uid, "Warning", REASON, message, pod.node_name))
            actions.append(Evict(pod.key, pod.uid, GANG_RELEASE, SCHEDULER, grounds=grounds))
        return actions

    def _after_ns(self, key: str) -> int | None:
        """How long the profile of the gang's waiting pods bears it; None where none waits any more."""
        for uid, pod in self._cluster.pod_groups.members(key).items():
            if uid in self._queue.uids and self._state.concerns(pod):
                return self._state.plugin(pod.scheduler_name).release_after_ns
        return None

    def _is_in_part(self, key: str) -> bool:
        group = self._state.group(key)
        return group is not None and group.is_gang and 0 < len(self._state.bound(key)) < group.min_count
