"""What is asked of an account: which disruptions, and what they are grouped by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from podium.api.errors import InputError
from podium.api.times import parse_duration, parse_time
from podium.app.accounting.account import Account
from podium.machines.ledger.disruption import Cause, Disruption

Grouping = Literal["owner", "namespace", "priority", "cause", "node", "by", "for"]

NOBODY = "on their own"
"""The owner of pods that belong to no workload."""

_SECOND = 10**9


@dataclass(frozen=True, slots=True)
class Asked:
    """Which disruptions count: all that are left by each limit that is set.

    ``owners`` are workloads as in `Deployment shop/web`, or `shop/web`, or pods on their own by key. ``since`` and
    ``until`` are times, or durations: how long before the end of the account, or after the start of a run.
    """

    owners: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    lowest_priority: int | None = None
    highest_priority: int | None = None
    since: str = ""
    until: str = ""
    only_in_vain: bool = False
    grouping: Grouping = "owner"

    def of(self, account: Account) -> tuple[Disruption, ...]:
        """The disruptions of an account that count. Raises InputError for a time that cannot be read."""
        since_s = _seconds("--since", self.since, account) if self.since else None
        until_s = _seconds("--until", self.until, account) if self.until else None
        return tuple(
            record
            for record in account.records
            if (since_s is None or record.time >= since_s)
            and (until_s is None or record.time <= until_s)
            and self._concerns(record)
        )

    def _concerns(self, record: Disruption) -> bool:
        return (
            (not self.owners or not {*self.owners}.isdisjoint(_names(record)))
            and (not self.namespaces or record.namespace in self.namespaces)
            and (not self.causes or record.cause in self.causes)
            and (self.lowest_priority is None or record.priority >= self.lowest_priority)
            and (self.highest_priority is None or record.priority <= self.highest_priority)
            and (not self.only_in_vain or bool(record.in_vain))
        )


def group_of(record: Disruption, grouping: Grouping) -> str:
    """The group that a disruption belongs to."""
    match grouping:
        case "owner":
            return whose(record.owner, record.pod)
        case "for":
            whom = record.beneficiary
            return "nobody" if whom is None else whose(whom.owner, whom.pod)
        case "namespace":
            return record.namespace
        case "priority":
            return str(record.priority)
        case "cause":
            return record.cause
        case "node":
            return record.node
        case "by":
            return record.by or "somebody"


def whose(owner: str, pod: str) -> str:
    """Whose pod it is: its workload, or its own."""
    return owner or f"Pod {pod}"


def _names(record: Disruption) -> tuple[str, ...]:
    """What people may call the owner."""
    owner = whose(record.owner, record.pod)
    return owner, owner.partition(" ")[2]


def _seconds(option: str, text: str, account: Account) -> float:
    """A time on the account's own clock. A duration is counted back from its end."""
    try:
        return account.end - parse_duration(text) / _SECOND
    except ValueError:
        pass
    if not account.is_dated:
        problem = f"{option}: {text!r} is no duration; a run has no dates: write how long before its end, as in 10m"
        raise InputError(problem)
    try:
        return parse_time(text) / _SECOND
    except ValueError:
        problem = f"{option}: {text!r} is neither a duration, as in 10m, nor a time, as in 2026-01-31T09:30:00Z"
        raise InputError(problem) from None
