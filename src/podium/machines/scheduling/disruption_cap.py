"""The cap on how often schedulers may disrupt pods that have a budget.

The API server counts: it takes a token of the cap for each such victim. A scheduler starts no preemption for which too
few are left.

Source: controlled-rescheduling.md, "Disruption budget" (a quota for the components that consume it).
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.disruption_policy import POLICY_NAME, SCHEDULER, DisruptionPolicy
from podium.api.disruption_rate import Rate
from podium.api.times import format_time
from podium.cluster.budgets import Budgets
from podium.cluster.pods import PodRecord
from podium.machines.deadlines import Deadlines
from podium.machines.scheduling.queued_pod import SECOND_NS


class DisruptionCap:
    """What the cluster's DisruptionPolicy leaves to schedulers, less what has been begun and is not counted yet."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._rate: Rate | None = None
        # When the bucket is full again: as the API shows it, or later where deletions of ours are on their way there.
        self._full_ns = 0
        self._waiting: Deadlines[str] = Deadlines()
        self._held: dict[str, None] = {}

    def observe(self, policy: DisruptionPolicy | None) -> None:
        """Take in the policy, None once it is gone. With another cap, those who wait are tried again."""
        rate = None if policy is None else policy.cap_rate(SCHEDULER)
        full_ns = 0 if policy is None else policy.cap_full_ns(SCHEDULER)
        if rate == self._rate:
            self._full_ns = max(self._full_ns, full_ns)
            return
        self._rate, self._full_ns = rate, full_ns
        for uid in self._held:
            self._waiting.set(uid, 0)

    def take(self, pod: PodRecord, victims: Iterable[PodRecord], now: int) -> str:
        """Take a token for each victim that counts, and return ""; or, where too few are left, why ``pod`` must wait.

        Then it is handed out when there will be enough. Where a pod needs more than the cap ever allows at once, a full
        bucket is enough.
        """
        rate = self._rate
        if rate is None:
            return ""
        needed = sum(self._counts(victim) for victim in victims)
        left = max(rate.tokens(self._full_ns, now), 0)
        enough = min(needed, rate.count)
        if left < enough:
            time_ns = self._full_ns - (rate.count - enough) * rate.interval_ns
            self._waiting.set(pod.uid, time_ns)
            self._held[pod.uid] = None
            return _reason(rate, left, needed, time_ns)
        for _ in range(enough):
            self._full_ns = rate.taken(self._full_ns, now)
        return ""

    def take_due(self, now: int) -> str | None:
        """The uid of a pod whose wait is over; None when there is none."""
        uid = self._waiting.take_due(now)
        if uid is not None:
            self._held.pop(uid, None)
        return uid

    def forget(self, uid: str) -> None:
        """A pod is gone, or on a node."""
        self._waiting.set(uid, None)
        self._held.pop(uid, None)

    @property
    def is_awaited(self) -> bool:
        """Whether some pod waits for tokens."""
        return bool(self._held)

    def next_deadline(self) -> int | None:
        """When `take_due` next has something; None for never."""
        return self._waiting.next_time()

    def _counts(self, victim: PodRecord) -> bool:
        return victim.ready and not victim.terminating and self._budgets.counts(victim.pod_class)


def _reason(rate: Rate, left: int, needed: int, time_ns: int) -> str:
    """Why too few tokens are left for a preemption, and from when on they are enough."""
    pods = "a pod" if needed == 1 else f"{needed} pods"
    time = format_time(-(-time_ns // SECOND_NS) * SECOND_NS)
    return (
        f"it would disrupt {pods} with a budget, and the cap of {rate} on component {SCHEDULER} "
        f"(DisruptionPolicy {POLICY_NAME}) leaves {left}; the next try is at {time}"
    )
