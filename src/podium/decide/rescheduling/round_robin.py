"""The plan of a rescheduler, its objectives, and the round-robin order in which proposals of policies are tried.

Source: controlled-rescheduling.md, Disruption budget (pods without one are "not unduly victimized").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from math import isfinite

import numpy as np
from msgspec import Struct

from podium.api.errors import shown
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import MonthlyCost, Picture, Policy, PricedPolicy, Proposal, Relocation
from podium.framework.verdicts import PluginError, is_failure, place_of

MOST_PROPOSALS = 20_000
"""The most proposals that are considered; most of them concern pods that must not be moved."""

PolicyProposal = tuple[str, Proposal]


class RoundRobin:
    """The proposals of the policies, with the policies' names, in round-robin order; each policy keeps its own order.

    ``late`` returns how often the owners of a proposal's pods without a budget were moved recently. Proposals whose
    owners were moved come after all others, the least moved first. ``errors`` are those of policies that failed
    meanwhile, which propose nothing more.
    """

    def __init__(self, policies: Sequence[Policy], picture: Picture, late: Callable[[Proposal], int]) -> None:
        self._policies = policies
        self._picture = picture
        self._late = late
        self.errors: list[str] = []
        self.is_cut = False

    def __iter__(self) -> Generator[PolicyProposal]:
        # Deferred proposals, by how often their owners had been moved when last checked, then in proposal order.
        waiting: list[tuple[int, int, PolicyProposal]] = []
        for number, proposed in enumerate(self._in_turn()):
            late = self._late(proposed[1])
            if late:
                heappush(waiting, (late, number, proposed))
            else:
                yield proposed
        while waiting:
            late, number, proposed = heappop(waiting)
            # The number only grows: an owner that was moved meanwhile waits for the others.
            by_now = self._late(proposed[1])
            if by_now > late:
                heappush(waiting, (by_now, number, proposed))
            elif (renewed := self._renewed(*proposed)) is not None:
                yield renewed
                if renewed[1].anew is not None:
                    heappush(waiting, (self._late(renewed[1]), number, renewed))

    def _renewed(self, policy: str, proposal: Proposal) -> PolicyProposal | None:
        """Return a deferred proposal in the present state; None if it has become pointless, or the policy fails."""
        if proposal.anew is None:
            return policy, proposal
        try:
            with calling_policy(policy, "proposals"):
                renewed = proposal.anew()
            if renewed is not None:
                _check(policy, renewed, self._picture)
        except PolicyError as error:
            self.errors.append(str(error))
            return None
        return None if renewed is None else (policy, renewed)

    def _in_turn(self) -> Generator[PolicyProposal]:
        streams = [(policy.name, self._proposals(policy)) for policy in self._policies]
        left = MOST_PROPOSALS
        try:
            while streams:
                for name, stream in list(streams):
                    if not left:
                        self.is_cut = True
                        return
                    proposal = next(stream, None)
                    if proposal is None:
                        streams.remove((name, stream))
                    else:
                        left -= 1
                        yield name, proposal
        finally:
            for _, stream in streams:
                stream.close()

    def _proposals(self, policy: Policy) -> Generator[Proposal]:
        """Yield the proposals of a policy until it fails, and close its generator at the end."""
        iterator: Iterator[Proposal] = iter(())
        try:
            try:
                with calling_policy(policy.name, "proposals"):
                    iterator = iter(policy.proposals(self._picture))
                while True:
                    with calling_policy(policy.name, "proposals"):
                        proposal = next(iterator, None)
                    if proposal is None:
                        return
                    _check(policy.name, proposal, self._picture)
                    yield proposal
            finally:
                with calling_policy(policy.name, "proposals"):
                    getattr(iterator, "close", lambda: None)()
        except PolicyError as error:
            self.errors.append(str(error))


def _check(policy: str, proposed: object, picture: Picture) -> None:
    """Raise PolicyError if a value is not a proposal of moves in the cluster of the picture."""
    reason: object = getattr(proposed, "reason", None)
    if not isinstance(proposed, Proposal) or not isinstance(reason, str):
        raise PolicyError(policy, f"it proposed {shown(proposed)}, which is not a Proposal with a reason")
    relocations: object = proposed.relocations
    if not isinstance(relocations, tuple) or not all(isinstance(each, Relocation) for each in relocations):
        raise PolicyError(policy, "the relocations of a proposal are not a tuple of Relocations")
    uids = [relocation.pod.uid for relocation in relocations]
    if not uids or len(set(uids)) < len(uids):
        raise PolicyError(policy, "a proposal moves no pod" if not uids else "a proposal moves a pod twice")
    shape = (picture.cluster.nodes.count,)
    for relocation in relocations:
        targets, preferred = relocation.targets, relocation.preferred
        if targets is not None and (np.shape(targets) != shape or np.asarray(targets).dtype != np.bool_):
            raise PolicyError(policy, f"the targets of {relocation.pod.key} are not an array of {shape[0]} booleans")
        if preferred is not None and (np.shape(preferred) != shape or not np.isfinite(preferred).all()):
            raise PolicyError(policy, f"the preferences of {relocation.pod.key} are not an array of {shape[0]} numbers")


ROUNDING = 1e-9
"""Tolerance for sums of the same numbers in a different order, for each badly placed pod."""

_UNSTABLE = 1e-6


class Objectives:
    """The objectives of some policies for a picture."""

    def __init__(self, policies: Sequence[tuple[Policy, float]], picture: Picture) -> None:
        self._policies = policies
        self._picture = picture

    def total(self) -> float:
        """Return the weighted sum. Raises PolicyError for a policy that fails or returns no valid objective."""
        return sum(weight * self._of(policy) for policy, weight in self._policies)

    def weighted(self, each: Mapping[str, float]) -> float:
        """Return the weighted sum of the objectives that `each` returned."""
        return sum(weight * each[policy.name] for policy, weight in self._policies)

    def each(self) -> dict[str, float]:
        return {policy.name: self._of(policy) for policy, _ in self._policies}

    def monthly_cost(self) -> MonthlyCost | None:
        """Return what the nodes in use cost, by the first policy that knows prices; None if none does."""
        for policy, _ in self._policies:
            if isinstance(policy, PricedPolicy):
                with calling_policy(policy.name, "monthly_cost"):
                    found: object = policy.monthly_cost(self._picture)
                if isinstance(found, MonthlyCost):
                    return found
                if found is not None:
                    raise PolicyError(policy.name, f"its monthly cost is {shown(found)}, which is not a MonthlyCost")
        return None

    def require_same(self, before: dict[str, float]) -> None:
        """Raise PolicyError for a policy whose objective differs although the picture is the same."""
        for name, found in self.each().items():
            known = before[name]
            if abs(found - known) > _UNSTABLE * max(1.0, known):
                raise PolicyError(name, f"its objective is {found} where it was {known}, and nothing has changed")

    def _of(self, policy: Policy) -> float:
        with calling_policy(policy.name, "objective"):
            found: object = policy.objective(self._picture)
            # NumPy's numbers are accepted like Python's.
            number = float(found) if isinstance(found, int | float | np.number) else None
        if number is None or not isfinite(number) or number < 0:
            problem = f"its objective is {shown(found)}; it must be a number of 0 or more, and 0 as good as can be"
            raise PolicyError(policy.name, problem)
        return number


class PolicyError(PluginError):
    """A policy broke its contract or failed."""

    def __init__(self, policy: str, problem: str) -> None:
        super().__init__(f"policy {policy}: {problem}")
        self.policy = policy


@contextmanager
def calling_policy(policy: str, method: str) -> Iterator[None]:
    """Turn an exception of a policy in the block into a PolicyError, of which it is the cause."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, PolicyError) or not is_failure(error):
            raise
        place = place_of(error)
        problem = f"{method} failed{f' in {place}' if place else ''}: {type(error).__name__}: {error}"
        raise PolicyError(policy, problem) from error


class PlannedMove(Struct, frozen=True, eq=False):
    """A pod to be evicted from its node ``source``, for ``target``; None if no target was computed.

    ``is_sure``: none of the nodes that the pod's scheduler ranks equal would gain less than planned. ``has_ended``: the
    pod has finished and is evicted so that pods of its controller avoid the node.
    """

    pod: PodRecord
    source: str
    target: str | None
    is_sure: bool = True
    has_ended: bool = False


class PartOf(Struct, frozen=True):
    """A set of moves that is made in parts: the number of pods left to move, and the gain of all."""

    pods: int
    gain: float


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMoves:
    """Moves that are made together, the reason, and by how much they reduce the sum of the objectives.

    Moves that are ``part_of`` a whole need not gain anything by themselves.
    """

    policy: str
    reason: str
    moves: tuple[PlannedMove, ...]
    gain: float
    avoid_for_ns: int | None = None
    part_of: PartOf | None = None

    def comes_after(self, move: PlannedMove) -> PlannedMove | None:
        """Return the first move that takes the capacity that one of these moves frees; None if there is none.

        Which replacement of one owner's pods lands where is not known.
        """
        owner = move.pod.owner_uid
        return next((it for it in self.moves if it.target == move.source and it.pod.owner_uid != owner), None)

    def is_awaited(self, move: PlannedMove) -> bool:
        """Return whether one of the moves takes capacity that another one frees."""
        return any(self.comes_after(other) is move for other in self.moves)


class RejectedMove(Struct, frozen=True):
    """A rejected proposal: its first pod, and the reason."""

    policy: str
    pod: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class ReschedulingPlan:
    """Moves in the order in which they were found, and their effect.

    ``before`` and ``after`` are the objectives by policy, in the present state and after all moves. ``trials`` is the
    number of moves tried; ``is_cut``: a higher limit would have allowed more trials. ``stopped`` says which overall
    limit ended the search, if one did. ``errors`` are those of policies that failed. ``costs`` are those of the nodes
    in use before and after all moves; None if no node has a price. ``capped`` are the namespaces whose cap allows no
    disruption.
    """

    planned: tuple[PlannedMoves, ...]
    left_alone: tuple[RejectedMove, ...]
    before: dict[str, float]
    after: dict[str, float]
    trials: int
    is_cut: bool
    stopped: str = ""
    errors: tuple[str, ...] = ()
    costs: tuple[MonthlyCost, MonthlyCost] | None = None
    capped: frozenset[str] = frozenset()


MOST_REASONS = 20
"""The most reasons that are reported, those of most pods first."""


class ExcludedPods(Struct, frozen=True):
    """Pods that must not be moved, out of ``of`` in total.

    ``reasons`` are ordered by the number of pods, most first, then by text; ``others`` counts the pods of reasons
    beyond `MOST_REASONS`. A pod with several reasons counts for the first.
    """

    of: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    others: int = 0

    @property
    def pods(self) -> int:
        """The number of these pods."""
        return self.others + sum(number for _, number in self.reasons)


NONE_EXCLUDED = ExcludedPods()


def untouched_pods(pods: Iterable[PodRecord], why: Callable[[PodRecord], str]) -> ExcludedPods:
    """Return the pods for which ``why`` returns a reason ("" is none)."""
    counted = Counter(map(why, pods))
    of = counted.total()
    counted.pop("", None)
    reasons = sorted(counted.items(), key=lambda reason: (-reason[1], reason[0]))
    return ExcludedPods(of, tuple(reasons[:MOST_REASONS]), sum(number for _, number in reasons[MOST_REASONS:]))
