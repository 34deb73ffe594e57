"""What preemption found for a gang: a node for each member, and one set of victims for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.cluster.pods import PodRecord
from podium.decide.cap import PutOff
from podium.decide.preempting.costs.criteria import Column
from podium.decide.preempting.wide.wide_search import Search

Placed = tuple[PodRecord, str]
"""A member, and the name of its node."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way out: where members go, in their order, once the victims (most important first) are gone.

    ``domain`` is that of the gang's topology key, "" without one. ``cost`` is what the criteria say of the victims, the
    smaller the better; () where nobody has to go. ``depends_on`` says by uid of which other victim (its key) one goes
    along, as it requires to be near.
    """

    placements: tuple[Placed, ...]
    victims: tuple[PodRecord, ...] = ()
    budget_violations: int = 0
    domain: str = ""
    cost: tuple[int, ...] = ()
    depends_on: Mapping[str, str] = field(default_factory=dict)

    @property
    def victims_by_node(self) -> Mapping[str, tuple[PodRecord, ...]]:
        """The victims on each node, by its name."""
        names = sorted({victim.node_name for victim in self.victims})
        return {name: tuple(victim for victim in self.victims if victim.node_name == name) for name in names}


@dataclass(frozen=True, slots=True)
class GangPlan:
    """What preemption comes to for a gang.

    ``reason`` says why it is not eligible. ``chosen`` is None where no way out was found, and ``message`` says so.
    ``alternatives`` are other ways that were looked at, the cheapest first, at most one for each domain; ``criterion``
    is the last that told the chosen one from some of them. ``put_off`` says that preemption would work, and which cap
    it has to wait for. ``criteria`` are those of a cost that is stated, () where kube-scheduler's hold. ``search`` says
    how victims were looked for.
    """

    eligible: bool
    reason: str = ""
    chosen: Way | None = None
    alternatives: tuple[Way, ...] = ()
    criterion: str = ""
    message: str = ""
    put_off: PutOff | None = None
    criteria: tuple[Column, ...] = ()
    search: Search | None = field(default=None, compare=False)
