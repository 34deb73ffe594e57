"""When workloads make nothing new for a while: their creations were refused, or what they made ended at once."""

from __future__ import annotations

from podium.api.quantity import parse_quantity
from podium.api.quota import ResourceQuota
from podium.machines.observations import Answered
from podium.machines.parts.backoff import Backoff

_SECOND = 10**9
_FIRST_NS = _SECOND
_LONGEST_NS = 300 * _SECOND


class CreationWaits:
    """By uid, how long a workload must wait before it creates anything more: 1 s, doubled up to 300 s.

    Upstream a workload whose pods end as soon as they exist replaces them at once, over and over; here it waits as it
    does after a refusal, so that time passes.
    """

    def __init__(self) -> None:
        self._refusals: Backoff[str] = Backoff(_FIRST_NS, _LONGEST_NS)
        self._ends: Backoff[str] = Backoff(_FIRST_NS, _LONGEST_NS)
        # By namespace, the refused workloads, and whether they will be refused until something changes.
        self._refused: dict[str, dict[str, bool]] = {}
        self._quotas: dict[str, ResourceQuota] = {}

    def refuse(self, uid: str, namespace: str, answered: Answered, now: int) -> None:
        """A creation has failed, or may have."""
        self._refusals.fail(uid, now, answered.wait_ns)
        self._refused.setdefault(namespace, {})[uid] = answered.answer.lasts

    def accept(self, uid: str, namespace: str) -> bool:
        """A creation was carried out; returns whether one had failed before it."""
        self._refusals.forget(uid)
        refused = self._refused.get(namespace, {})
        had_failed = refused.pop(uid, None) is not None
        if had_failed and not refused:
            del self._refused[namespace]
        return had_failed

    def end(self, uid: str, now: int) -> None:
        """Something that the workload made has ended at once."""
        self._ends.fail(uid, now)

    def is_refused(self, uid: str, namespace: str) -> bool:
        """Whether the last creation failed."""
        return uid in self._refused.get(namespace, {})

    def until(self, uid: str, now: int) -> int | None:
        """When the workload may create something; None for now."""
        times = (self._refusals.until(uid, now), self._ends.until(uid, now))
        return max((time for time in times if time is not None), default=None)

    def is_mere_retry(self, uid: str, namespace: str) -> bool:
        """Whether nothing new is likely to come of the next creation."""
        if self._refused.get(namespace, {}).get(uid, False):
            return True
        return self._refusals.is_hopeless(uid) or self._ends.is_hopeless(uid)

    def see_quota(self, quota: ResourceQuota, *, is_gone: bool) -> list[str]:
        """Let the refused workloads of a namespace try at once when a quota leaves more room; returns their uids."""
        before = self._quotas.pop(quota.key, None)
        if not is_gone:
            self._quotas[quota.key] = quota
        refused = self._refused.get(quota.metadata.namespace)
        if not refused or (not is_gone and (before is None or not _leaves_more(before, quota))):
            return []
        for uid in refused:
            self._refusals.forget(uid)
        return list(refused)

    def forget_refusals(self) -> list[str]:
        """Something was seen on which refusals may rest: the next try may succeed; returns the refused workloads."""
        for refused in self._refused.values():
            refused.update(dict.fromkeys(refused, False))
        return [uid for refused in self._refused.values() for uid in refused]

    def forget(self, uid: str, namespace: str) -> None:
        """The workload is gone."""
        self.accept(uid, namespace)
        self._ends.forget(uid)


def _leaves_more(before: ResourceQuota, after: ResourceQuota) -> bool:
    if before.spec != after.spec:
        return True
    was, used = before.status.used, after.status.used
    return any(parse_quantity(used.get(name, 0)) < parse_quantity(amount) for name, amount in was.items())
