"""What preemption found for a pod that fits nowhere: a way out, and what it was chosen from."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podium.cluster.pods import PodRecord
from podium.decide.cap import PutOff
from podium.decide.preempting.costs.criteria import Column
from podium.decide.preempting.wide.wide_search import Search
from podium.framework.status import Status


class Candidate(msgspec.Struct, frozen=True, eq=False):
    """One way out: the node, its victims (most important first), and how many of them violate a budget.

    Victims may be on other nodes, where the configuration says so (see `podium.decide.preempting.wide`); ``reasons``
    then says, by their uids, why those have to go whom more than that node knows of, in the chosen way out. ``cost`` is
    what the criteria by which candidates are compared say of the victims, the smaller the better, filled in where
    candidates were compared in detail; candidates may be equal though one of them does not tell it.
    """

    node_name: str
    victims: tuple[PodRecord, ...]
    budget_violations: int
    cost: tuple[int, ...] = ()
    reasons: Mapping[str, str] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash((self.node_name, self.victims))

    @property
    def _compared(self) -> tuple[object, ...]:
        return self.node_name, self.victims, self.budget_violations, self.reasons

    @property
    def elsewhere(self) -> tuple[PodRecord, ...]:
        """The victims on other nodes."""
        return tuple(victim for victim in self.victims if victim.node_name != self.node_name)


class Choice(msgspec.Struct, frozen=True):
    """Among how many ``candidates`` one was chosen, and the first nodes among its ``equals``, itself included.

    It is known of every plan, whether or not details were asked for. ``criterion`` is the last that told nodes apart,
    "" where it was not looked for.
    """

    candidates: int = 0
    equals: tuple[str, ...] = ()
    criterion: str = ""


class PreemptionPlan(msgspec.Struct, frozen=True):
    """What preemption found.

    ``reason`` says why the pod is not eligible. ``chosen`` is None where no candidate was found. ``selected`` names
    every node that the criteria leave tied with the chosen one, and ``criterion`` the last of `CRITERIA` that told
    nodes apart ("" with a single candidate, or none; the number of victims where the sum of their priorities does so
    only because they are fewer). ``candidates`` and ``rejected`` are by node name. These four are filled in only where
    the plan was asked for in detail. ``is_exchange``: among the victims are pods of the
    preemptor's own priority, for the sake of fairer shares. ``put_off`` says that preemption would work, and which cap
    it has to wait for; ``error`` what failed while nodes were tried, where no candidate was found among the others, or
    an extender that did not answer. ``keeps_nomination``: extenders have left no candidate, which ends no nomination.
    ``criteria`` are those of a cost that is stated; () where kube-scheduler's hold.
    ``search`` says how victims were looked for that may be on other nodes, None where that was not done. ``choice``
    says what the chosen one was chosen from.
    """

    eligible: bool
    reason: str = ""
    chosen: Candidate | None = None
    selected: tuple[str, ...] = ()
    criterion: str = ""
    candidates: Mapping[str, Candidate] = {}
    rejected: Mapping[str, Status] = {}
    message: str = ""
    is_exchange: bool = False
    put_off: PutOff | None = None
    error: str = ""
    keeps_nomination: bool = False
    criteria: tuple[Column, ...] = ()
    search: Search | None = None
    choice: Choice = Choice()
