"""Schedulers that keep to the caps on how often they may disrupt pods that have a budget.

The API server counts: it takes a token of each cap for each such victim. A scheduler starts no preemption for which too
few are left; whoever wants one is tried again when there will be enough.

Source: controlled-rescheduling.md, "Disruption budget" (a quota for the components that consume it).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from podium.api.disruption_policy import DisruptionPolicy
from podium.cluster.cluster import Cluster
from podium.cluster.pods import PodRecord
from podium.decide.cap import put_off_by
from podium.machines.parts.deadlines import Deadlines


class CapWaits:
    """Takes tokens for what is begun, before the API shows it, and knows the pods that wait for some."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: Deadlines[str] = Deadlines()
        self._held: dict[str, None] = {}
        self.held = self._held.keys()
        """The uids of pods that wait for tokens, as things are."""

    def observe(self, policy: DisruptionPolicy | None) -> None:
        """Take in the policy, None once it is gone. With other caps, those who wait are tried again."""
        if self._cluster.caps.observe(policy):
            for uid in self._held:
                self._waiting.set(uid, 0)

    def take(self, pod: PodRecord, victims: Iterable[PodRecord]) -> str:
        """Take a token for each victim that counts, and return ""; where too few are left, why ``pod`` must wait."""
        caps, budgets = self._cluster.caps, self._cluster.budgets
        if not caps.limits:
            return ""
        counted = Counter(
            victim.namespace for victim in victims if victim.is_healthy and budgets.counts(victim.pod_class)
        )
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
        """A pod is to be handed out at a time, or when there are other caps."""
        self._waiting.set(pod.uid, time_ns)
        self._held[pod.uid] = None

    def take_due(self, now: int) -> str | None:
        """The uid of a pod whose wait is over; None when there is none."""
        if not self._held:
            return None
        uid = self._waiting.take_due(now)
        if uid is not None:
            self._held.pop(uid, None)
        return uid

    def forget(self, uid: str) -> None:
        """A pod is gone, or on a node."""
        if uid in self._held:
            del self._held[uid]
            self._waiting.set(uid, None)

    @property
    def is_awaited(self) -> bool:
        """Whether some pod waits for tokens."""
        return bool(self._held)

    def next_deadline(self) -> int | None:
        """When `take_due` next has something; None for never."""
        return self._waiting.next_time()
