"""Preemptions in progress: the scheduler marks and deletes victims, or evicts them; the last one after all others.

The preemptor stays out of the queue until the API shows that its last victim terminates. Preemptors that share a victim
wait for the same request. A victim in its own binding cycle returns to the queue instead. Preemptors also wait for
tokens of disruption caps (`CapWaits`). Source: pkg/scheduler/framework/preemption/executor.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import filterfalse
from typing import Any

import msgspec

from podium.api.disruption_policy import SCHEDULER, DisruptionPolicy
from podium.api.pod import PodCondition
from podium.api.pod_group import PodGroup
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PREEMPTED, PodRecord
from podium.controllers.actions import Action, DeleteObject, Evict, Rationale, Record, ReportStatus
from podium.controllers.deadlines import Deadlines
from podium.controllers.observations import ActionFinished, Answer
from podium.decide.cap import put_off_by

DELETION_SHOWN_WITHIN_NS = 30 * 10**9
"""How long a deleted pod counts as terminating before the API shows it."""


class RunningPreemption(msgspec.Struct, eq=False):
    """A preemptor and its remaining requests.

    ``victims`` are the pods to delete, with their nodes, by uid; ``last`` is the uid of the last one. ``by`` names the
    preemptor in their events. ``outstanding`` are victims whose requests have no answer yet. ``is_at_last``: only the
    last one is left. ``evicts``: victims are evicted. ``binds_first``: the preemptor does not wait for their end.
    ``failure`` is the problem with a request, or None. ``attempt`` is the attempt that waits for it.
    """

    preemptor: PodRecord
    victims: Mapping[str, str]
    last: str
    by: str
    evicts: bool = False
    binds_first: bool = False
    is_at_last: bool = False
    outstanding: set[str] = set()
    failure: str | None = None
    rationale: Rationale | None = None
    attempt: Any = None


class RunningPreemptions:
    """The preemptions in progress, by the uid of the preemptor.

    If they are ``synchronous``, the scheduler waits for all answers, and the preemptor is not held back. Victims that
    terminate already get no further request, unless ``asks_again``; then the preemptor is not held back either once the
    last victim has its request.
    """

    def __init__(self, cluster: Cluster, *, synchronous: bool = False, asks_again: bool = False) -> None:
        self._cluster = cluster
        self.synchronous = synchronous
        self.asks_again = asks_again
        self._by_preemptor: dict[str, RunningPreemption] = {}
        self.blocking: Collection[str] = self._by_preemptor.keys() if synchronous else ()
        """The preemptors (uids) for which the scheduler waits before it makes another attempt; a live view."""
        # By victim (uid): the preemptions that wait for its answer; empty if their preemptors are gone.
        self._pending: dict[str, list[RunningPreemption]] = {}

    def __len__(self) -> int:
        return len(self._by_preemptor)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_preemptor

    def holds(self, uid: str) -> bool:
        """Return whether a pod stays out of the queue: its last victim is not seen to terminate yet."""
        preemption = self._by_preemptor.get(uid)
        if preemption is None or not preemption.is_at_last:
            return preemption is not None
        last = None if self.asks_again else self._cluster.placed.get(preemption.last)
        return last is not None and not last.terminating

    def start(
        self,
        preemptor: PodRecord,
        victims: list[PodRecord],
        group: PodGroup | None = None,
        *,
        evicts: bool = False,
        binds_first: bool = False,
        rationale: Rationale | None = None,
        attempt: Any = None,
    ) -> list[Action]:
        """Begin to delete or evict ``victims`` for a pod, or for a whole ``group`` that it leads.

        Unless the scheduler asks again, they do not terminate yet, and those that it has deleted are left alone; if no
        other is left, there is nothing to wait for.
        """
        left = victims
        if self._cluster.deleted_victims and not self.asks_again:
            left = list(filterfalse(self._cluster.is_ending, victims))
        if not left:
            return []
        self.forget(preemptor.uid)
        nodes = {victim.uid: victim.node_name for victim in victims}
        by = f"podgroup {group.metadata.uid}" if group is not None else f"pod {preemptor.uid}"
        preemption = self._by_preemptor[preemptor.uid] = RunningPreemption(
            preemptor, nodes, left[-1].uid, by, evicts, binds_first, rationale=rationale, attempt=attempt
        )
        if self.synchronous:
            preemption.is_at_last = True
            return self._begin(preemption, left)
        actions = self._begin(preemption, left[:-1])
        return actions if preemption.outstanding else self._begin_last(preemption)

    def on_finished(
        self, action: ReportStatus | DeleteObject | Evict, finished: ActionFinished, now: int
    ) -> tuple[list[Action], list[RunningPreemption]]:
        """Take in the answer to a victim's mark, deletion or eviction; return what to do, and what ended.

        A victim that is gone counts as deleted. Any other problem ends all preemptions that wait for this victim.
        """
        uid, problem = action.uid, finished.problem
        waiting = self._pending.pop(uid, None)
        if waiting is None:
            return [], []
        actions: list[Action] = []
        # A deletion conflicts only with its precondition on the uid: a namesake has the victim's place. A mark also
        # conflicts with other writes to the pod: the victim may be alive, and the preemptor has to try again.
        if problem is not None and finished.answer not in (Answer.GONE, Answer.REPLACED):
            for preemption in waiting:
                preemption.failure = problem.message
        elif type(action) is not ReportStatus:
            victim = self._cluster.placed.get(uid)
            if victim is not None and not victim.terminating:
                self._cluster.deleted_victims[uid] = now + DELETION_SHOWN_WITHIN_NS
            if waiting and problem is None:
                first, key = waiting[0], action.pod if type(action) is Evict else action.key
                where, cause = first.victims[uid], first.preemptor.key
                note = f"Preempted by {first.by} on node {where}"
                actions.append(Record(key, uid, "Normal", "Preempted", note, where, cause))
        elif problem is None and self._to_go(uid) is not None:
            # A marked victim is deleted unless its preemptions have failed; the others wait for that.
            going: list[RunningPreemption] = []
            failed: list[RunningPreemption] = []
            for preemption in waiting:
                (going if preemption.failure is None else failed).append(preemption)
            if going:
                self._pending[uid] = going
                actions.append(DeleteObject("Pod", action.key, uid, action.cause))
                waiting = failed
        return actions, self._ended(uid, waiting, actions) if waiting else []

    def _ended(self, uid: str, waiting: Iterable[RunningPreemption], actions: list[Action]) -> list[RunningPreemption]:
        """Return the preemptions that end with a victim's answer; add the deletion of the last victim of others."""
        ended: list[RunningPreemption] = []
        for preemption in waiting:
            outstanding = preemption.outstanding
            outstanding.discard(uid)
            if outstanding:
                continue
            if not preemption.is_at_last:
                actions += self._begin_last(preemption)
            if not outstanding:
                del self._by_preemptor[preemption.preemptor.uid]
                ended.append(preemption)
        return ended

    def forget(self, uid: str) -> None:
        """End the preemption of a preemptor that is gone or placed: no further victim is deleted for it."""
        if (preemption := self._by_preemptor.pop(uid, None)) is not None:
            for victim in preemption.outstanding:
                self._pending[victim].remove(preemption)

    def _to_go(self, uid: str) -> PodRecord | None:
        """Return a victim that is to be deleted; None if it terminates or is gone."""
        victim = self._cluster.placed.get(uid)
        if victim is None or self.asks_again:
            return victim
        return None if self._cluster.is_ending(victim) else victim

    def _begin_last(self, preemption: RunningPreemption) -> list[Action]:
        """Delete the last victim once all others have their answers, unless a request has failed."""
        preemption.is_at_last = True
        last = self._to_go(preemption.last) if preemption.failure is None else None
        return [] if last is None else self._begin(preemption, [last])

    def _begin(self, preemption: RunningPreemption, victims: Iterable[PodRecord]) -> list[Action]:
        """Mark or evict victims; wait for those that are marked, deleted or evicted for another preemptor already."""
        preemptor, rationale = preemption.preemptor, preemption.rationale
        cause, outstanding = preemptor.key, preemption.outstanding
        actions: list[Action] = []
        for victim in victims:
            uid = victim.uid
            outstanding.add(uid)
            if (waiting := self._pending.get(uid)) is not None:
                waiting.append(preemption)
                continue
            self._pending[uid] = [preemption]
            if preemption.evicts:
                actions.append(Evict(victim.key, uid, cause, SCHEDULER, rationale=rationale))
            elif victim.preempted:
                actions.append(DeleteObject("Pod", victim.key, uid, cause))
            else:
                mark = _mark(preemptor.scheduler_name, victim.priority < preemptor.priority)
                actions.append(ReportStatus("Pod", victim.key, uid, cause, mark, rationale=rationale))
        return actions


@lru_cache(maxsize=16)
def _mark(scheduler_name: str, is_lower: bool) -> tuple[PodCondition]:
    """Return the condition of a victim, which has a lower priority than the preemptor or an equal one."""
    preemptor = "a higher priority pod" if is_lower else "a pod of equal priority whose owner has less"
    message = f"{scheduler_name}: preempting to accommodate {preemptor}"
    return (PodCondition(type="DisruptionTarget", status="True", reason=PREEMPTED, message=message),)


class CapWaits:
    """The pods that wait for tokens of a disruption cap.

    The API server takes a token of each cap for each victim with a budget. The scheduler starts no preemption for which
    too few tokens are left, and retries when enough will be. Source: controlled-rescheduling.md, "Disruption budget" (a
    quota for the components that consume it).
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: Deadlines[str] = Deadlines()
        self.next_deadline = self._waiting.next_time
        self._held: dict[str, None] = {}
        self.held = self._held.keys()
        """The uids of pods that wait for tokens; a live view."""

    def observe(self, policy: DisruptionPolicy | None) -> None:
        """Take in the policy, None if it is gone; new caps retry all waiting pods."""
        if self._cluster.caps.observe(policy):
            for uid in self._held:
                self._waiting.set(uid, 0)

    def take(self, pod: PodRecord, victims: Iterable[PodRecord]) -> str:
        """Take tokens for the victims that count, and return ""; or the reason why ``pod`` must wait."""
        caps, budgets = self._cluster.caps, self._cluster.budgets
        if not caps.limits:
            return ""
        counted = Counter(each.namespace for each in victims if each.is_healthy and budgets.counts(each.pod_class))
        needs = caps.needs(counted)
        short = caps.shortage(needs)
        if short is None:
            caps.take(needs)
            return ""
        wanted = counted[short.namespace] if short.namespace else counted.total()
        put_off = put_off_by(self._cluster, short, wanted)
        self.wait(pod, put_off.next_ns)
        return str(put_off)

    def wait(self, pod: PodRecord, time_ns: int) -> None:
        """Retry a pod at a time, or when the caps change."""
        self._waiting.set(pod.uid, time_ns)
        self._held[pod.uid] = None

    def take_due(self, now: int) -> str | None:
        """Return the uid of a pod whose wait is over; None if there is none."""
        if not self._held:
            return None
        uid = self._waiting.take_due(now)
        if uid is not None:
            self._held.pop(uid, None)
        return uid

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone or bound."""
        if uid in self._held:
            del self._held[uid]
            self._waiting.set(uid, None)
