"""How many more pods may be moved: of each node, namespace and owner, and in all; under way, and within an hour.

Moves that are not over count with those that are planned, whoever planned them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.standing import PastMove
from podium.framework.rescheduling.settings import Limits, ReschedulerSettings

HOUR_NS = 3_600 * 10**9


@dataclass(frozen=True, slots=True)
class Leaving:
    """A pod that would be moved, as limits count it: by the node that it leaves, its namespace, and its owner."""

    node: str
    namespace: str
    owner_uid: str
    has_budget: bool

    @classmethod
    def of(cls, pod: PodRecord, *, has_budget: bool) -> Leaving:
        """A pod that is on a node."""
        return cls(pod.node_name, pod.namespace, pod.owner_uid, has_budget)


class MoveLimits:
    """What the limits leave, less what is planned already."""

    def __init__(self, past: Iterable[PastMove], settings: ReschedulerSettings, now: int) -> None:
        self._under_way = _Ledger(settings.in_flight, "under way")
        self._of_late = _Ledger(settings.hourly, "within an hour")
        self._unprotected = _Ledger(settings.without_budget, "under way without a budget")
        for move in past:
            leaving = Leaving(move.source, move.namespace, move.owner_uid, move.has_budget)
            is_under_way = move.is_under_way(now, settings.move_timeout_ns)
            self._add(leaving, is_under_way=is_under_way, is_of_late=now - move.evicted_ns < HOUR_NS)

    @property
    def used_up(self) -> str:
        """Why nobody at all may be moved; "" where somebody may be."""
        return self._under_way.used_up or self._of_late.used_up

    def why(self, group: Sequence[Leaving]) -> str:
        """Why some pods may not be moved together; "" if they may."""
        unprotected = [leaving for leaving in group if not leaving.has_budget]
        return self._under_way.why(group) or self._of_late.why(group) or self._unprotected.why(unprotected)

    def why_within_an_hour(self, group: Sequence[Leaving]) -> str:
        """Why some pods may not be moved within an hour; "" if they may."""
        return self._of_late.why(group)

    def take(self, group: Iterable[Leaving]) -> None:
        """Plan to move some pods."""
        for leaving in group:
            self._add(leaving, is_under_way=True, is_of_late=True)

    def moved_of_late(self, owner_uid: str) -> int:
        """How many pods of an owner were moved within the last hour, or are about to be."""
        return self._of_late.of_owner[owner_uid]

    def _add(self, leaving: Leaving, *, is_under_way: bool, is_of_late: bool) -> None:
        if is_under_way:
            self._under_way.add(leaving)
            if not leaving.has_budget:
                self._unprotected.add(leaving)
        if is_of_late:
            self._of_late.add(leaving)


class _Ledger:
    """Moves of one kind by node, namespace and owner, and the limits that they count against."""

    def __init__(self, limits: Limits, kind: str) -> None:
        self._limits = limits
        self._kind = kind
        self._total = 0
        self._of_node: Counter[str] = Counter()
        self._of_namespace: Counter[str] = Counter()
        self.of_owner: Counter[str] = Counter()

    def add(self, leaving: Leaving) -> None:
        self._total += 1
        self._of_node[leaving.node] += 1
        self._of_namespace[leaving.namespace] += 1
        self.of_owner[leaving.owner_uid] += 1

    @property
    def used_up(self) -> str:
        most = self._limits.total
        return "" if most is None or self._total < most else self._words("", self._total, 0, most)

    def why(self, group: Sequence[Leaving]) -> str:
        limits = self._limits
        most = limits.total
        if most is not None and self._total + len(group) > most:
            return self._words("", self._total, len(group), most)
        return (
            self._why_any("of node ", self._of_node, Counter(leaving.node for leaving in group), limits.node)
            or self._why_any(
                "of namespace ", self._of_namespace, Counter(leaving.namespace for leaving in group), limits.namespace
            )
            or self._why_any(
                "of its owner", self.of_owner, Counter(leaving.owner_uid for leaving in group), limits.owner
            )
        )

    def _why_any(self, what: str, counted: Counter[str], wanted: Counter[str], most: int | None) -> str:
        if most is None:
            return ""
        too_many = (
            self._words(f" {what}{name if what.endswith(' ') else ''}", counted[name], number, most)
            for name, number in sorted(wanted.items())
            if counted[name] + number > most
        )
        return next(too_many, "")

    def _words(self, whose: str, counted: int, wanted: int, most: int) -> str:
        more = f", {wanted} more would be too many:" if wanted else ", and"
        subject, verb = ("1 move", "is") if counted == 1 else (f"{counted} moves", "are")
        return f"{subject}{whose} {verb} {self._kind}{more} the limit is {most}"
