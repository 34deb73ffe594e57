"""How victims are looked for that may be on other nodes, or depend on one another, and what is wanted of the search."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from podium.decide.preempting.costs.victim_cost import VictimCost
from podium.decide.preempting.trials import VictimFilter


@dataclass(frozen=True, slots=True)
class WideSettings:
    """Where victims are looked for.

    ``across``: on other nodes than the pod's too. ``keeps_partners``: whom the pod requires to be near is no victim
    while there is another choice. ``with_dependents``: who depends on victims is one. ``whole_groups``: of groups that
    say so all pods go, or none. ``most_steps`` bounds the search.
    """

    across: bool = False
    keeps_partners: bool = False
    with_dependents: bool = False
    whole_groups: bool = False
    most_steps: int = 100_000

    def __bool__(self) -> bool:
        return self.across or self.keeps_partners or self.with_dependents or self.whole_groups


class Wanted(msgspec.Struct, frozen=True):
    """What is wanted of the trials.

    ``may_disrupt`` None lets every pod of lower priority be a victim, ``cost`` None compares victims as kube-scheduler
    does. With ``requires_budgets`` no victims are more than budgets allow. Unless it ``is_detailed``, those rows are
    left out that cannot be the best.
    """

    may_disrupt: VictimFilter | None = None
    cost: VictimCost | None = None
    requires_budgets: bool = False
    is_detailed: bool = False
