"""Who had to go for whom, from pod to pod: A for B for C.

A disruption leads to another where the pod that came in the victim's place takes the room of the next. It also follows
one where the victim had itself taken somebody's room before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from podium.machines.ledger.disruption import Disruption

Chain = tuple[Disruption, ...]
"""Disruptions, each of which leads to the next: the first is for the most important pod."""

MOST_CHAINS = 100
MOST_LINKS = 50
"""A chain is not followed further: pods that take turns with one another could go on for ever."""


def chains_of(records: Sequence[Disruption]) -> list[Chain]:
    """The chains of two disruptions or more: the longest first, then by time. No disruption is in two of them."""
    by_taker: defaultdict[str, list[Disruption]] = defaultdict(list)
    for record in records:
        if record.beneficiary is not None and record.beneficiary.uid:
            by_taker[record.beneficiary.uid].append(record)
    followed = {following.id for record in records for following in _following(record, by_taker)}
    # Where pods take turns with one another, no disruption is the first: the earliest begins.
    order = sorted(records, key=lambda record: (record.id in followed, record.time, record.id))
    used: set[int] = set()
    found = [chain for record in order if len(chain := _longest(record, by_taker, used)) > 1]
    return sorted(found, key=lambda chain: (-len(chain), chain[0].time, chain[0].id))[:MOST_CHAINS]


def _longest(record: Disruption, by_taker: dict[str, list[Disruption]], used: set[int]) -> Chain:
    """The chain from a disruption on: always the first to follow that is in no chain yet, by time."""
    chain: list[Disruption] = []
    following: Disruption | None = None if record.id in used else record
    while following is not None and len(chain) < MOST_LINKS:
        used.add(following.id)
        chain.append(following)
        left = [found for found in _following(following, by_taker) if found.id not in used]
        following = min(left, key=lambda found: (found.time, found.id), default=None)
    if len(chain) == 1:
        used.discard(chain[0].id)
    return tuple(chain)


def _following(record: Disruption, by_taker: dict[str, list[Disruption]]) -> list[Disruption]:
    came = record.replacement
    takers = [record.uid] if came is None else [record.uid, came.uid]
    return [found for uid in takers for found in by_taker.get(uid, ()) if found.id != record.id]


def in_words(chain: Chain) -> list[str]:
    """The pods of a chain, from the one for which all others went."""
    first = chain[0].beneficiary
    return [*([] if first is None else [first.pod]), *(record.pod for record in chain)]
