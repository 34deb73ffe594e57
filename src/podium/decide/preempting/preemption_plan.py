"""What preemption found for a pod that fits nowhere: a way out, and what it was chosen from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from podium.cluster.pods import PodRecord
from podium.decide.cap import PutOff
from podium.decide.preempting.costs.criteria import Column
from podium.decide.preempting.wide.wide_search import Search
from podium.framework.status import Status


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way out: the node, its victims (most important first), and how many of them violate a budget.

    Victims may be on other nodes, where the configuration says so (see `podium.decide.preempting.wide`); ``reasons``
    then says, by their uids, why those have to go whom more than that node knows of, in the chosen way out. ``cost`` is
    what the criteria by which candidates are compared say of the victims, the smaller the better, filled in where
    candidates were compared in detail.
    """

    node_name: str
    victims: tuple[PodRecord, ...]
    budget_violations: int
    cost: tuple[int, ...] = field(default=(), compare=False)
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def elsewhere(self) -> tuple[PodRecord, ...]:
        """The victims on other nodes."""
        return tuple(victim for victim in self.victims if victim.node_name != self.node_name)


@dataclass(frozen=True, slots=True)
class Choice:
    """Among how many ``candidates`` one was chosen, and the first nodes among its ``equals``, itself included.

    It is known of every plan, whether or not details were asked for. ``criterion`` is the last that told nodes apart,
    "" where it was not looked for.
    """

    candidates: int = 0
    equals: tuple[str, ...] = ()
    criterion: str = ""


@dataclass(frozen=True, slots=True)
class PreemptionPlan:
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
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    rejected: Mapping[str, Status] = field(default_factory=dict)
    message: str = ""
    is_exchange: bool = False
    put_off: PutOff | None = None
    error: str = ""
    keeps_nomination: bool = False
    criteria: tuple[Column, ...] = ()
    search: Search | None = None
    choice: Choice = field(default_factory=Choice, compare=False)
