"""What an account says: sums, who was disrupted most, chains, and what was in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podium.app.accounting.account import Account
from podium.app.accounting.chains import Chain, chains_of, in_words
from podium.app.accounting.question import Asked, Grouping, group_of
from podium.machines.ledger.disruption import Disruption, Seconds
from podium.sim.results.result import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Group:
    """The disruptions that have something in common, added up.

    ``lost`` is the running time that was lost, in seconds, and ``work`` that times what the pods asked for.
    ``replaced`` are those victims in whose place a pod became ready, ``longest`` how long that took at most.
    """

    name: str
    disruptions: int
    causes: dict[str, int]
    in_vain: int
    lost: Seconds
    work: dict[str, int | float]
    replaced: int
    longest: Seconds | None

    def to_dict(self) -> dict[str, Any]:
        """The group as JSON shows it."""
        return {
            "name": self.name,
            "disruptions": self.disruptions,
            "causes": self.causes,
            "inVain": self.in_vain,
            "lostSeconds": self.lost,
            "work": self.work,
            "replaced": self.replaced,
            "longestUntilReady": self.longest,
        }


@dataclass(frozen=True, slots=True)
class LedgerAnswer:
    """The disruptions that were asked for, all of them as one group, the groups (the hardest hit first), and chains."""

    account: Account
    grouping: Grouping
    records: tuple[Disruption, ...]
    total: Group
    groups: tuple[Group, ...]
    chains: tuple[Chain, ...]

    @property
    def in_vain(self) -> tuple[Disruption, ...]:
        """Those that were in vain."""
        return tuple(record for record in self.records if record.in_vain)

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON shows it."""
        account = self.account
        return {
            "schemaVersion": SCHEMA_VERSION,
            "source": account.source,
            "times": "since 1970" if account.is_dated else "since the start",
            "dropped": account.dropped,
            "total": self.total.to_dict(),
            "groupedBy": self.grouping,
            "groups": [group.to_dict() for group in self.groups],
            "chains": [
                {"pods": in_words(chain), "disruptions": [record.id for record in chain]} for chain in self.chains
            ],
            "records": [record.to_dict() for record in self.records],
            "restsOn": [caveat.to_dict() for caveat in account.caveats],
        }


def answer_of(account: Account, asked: Asked) -> LedgerAnswer:
    """What the account says to the question. Raises InputError."""
    records = asked.of(account)
    grouped: dict[str, list[Disruption]] = {}
    for record in records:
        grouped.setdefault(group_of(record, asked.grouping), []).append(record)
    groups = [_summed(name, found) for name, found in grouped.items()]
    groups.sort(key=lambda group: (-group.disruptions, -group.lost, group.name))
    # Chains may lead beyond what was asked for: who has part in them is shown with all of them.
    wanted = {record.id for record in records}
    chains = [chain for chain in chains_of(account.records) if any(record.id in wanted for record in chain)]
    return LedgerAnswer(account, asked.grouping, records, _summed("all", records), tuple(groups), tuple(chains))


def _summed(name: str, records: Sequence[Disruption]) -> Group:
    work: Counter[str] = Counter()
    for record in records:
        for resource, amount in record.loss.work.items():
            work[resource] += amount  # type: ignore[assignment] # cores are fractions
    ready = [
        record.replacement.ready_after
        for record in records
        if record.replacement is not None and record.replacement.ready_after is not None
    ]
    return Group(
        name,
        len(records),
        dict(sorted(Counter[str](record.cause for record in records).items())),
        sum(bool(record.in_vain) for record in records),
        sum(record.loss.lost for record in records),
        {resource: round(amount, 3) for resource, amount in sorted(work.items())},
        len(ready),
        max(ready, default=None),
    )
