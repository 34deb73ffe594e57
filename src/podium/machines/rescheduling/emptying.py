"""The node that is being emptied pod by pod, and those of which that was given up.

A node that is emptied in part is worth nothing. So one is begun at a time, and gone on with from look to look. Where
for an hour none of its pods could go, it is given up, and not begun again for a while, each time for twice as long.
It is forgotten in a crash: then the next look begins anew with what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.decide.rescheduling.plan import Plan, PlannedMoves

_PATIENCE_NS = 3_600 * 10**9
_LONGEST_COOL_DOWN_NS = 7 * 24 * 3_600 * 10**9
# So long after its end a cool-down counts for the length of the next one.
_REMEMBERED_NS = 7_200 * 10**9


@dataclass(frozen=True, slots=True)
class _CoolDown:
    until_ns: int
    length_ns: int


class Emptying:
    """What plans began, and have not ended. ``node`` is "" for none."""

    def __init__(self) -> None:
        self.node = ""
        self._policy = ""
        self._moved_ns = 0
        self._cooling: dict[str, _CoolDown] = {}

    def look(self, now: int, cool_down_ns: int) -> None:
        """Give up what has not gone on for too long, and forget what is long ago."""
        if self.node and now - self._moved_ns >= _PATIENCE_NS:
            before = self._cooling.get(self.node)
            length_ns = cool_down_ns if before is None else min(2 * before.length_ns, _LONGEST_COOL_DOWN_NS)
            self._cooling[self.node] = _CoolDown(now + length_ns, length_ns)
            self.node = ""
        for node, found in list(self._cooling.items()):
            if now >= found.until_ns + max(found.length_ns, _REMEMBERED_NS):
                del self._cooling[node]

    def given_up(self, now: int) -> frozenset[str]:
        """The nodes that are not begun again for now."""
        return frozenset(node for node, found in self._cooling.items() if now < found.until_ns)

    def planned(self, plan: Plan, now: int) -> None:
        """Take in what a plan makes of it: a part more, or the rest."""
        for planned in plan.planned:
            if planned.part_of is not None:
                self.node, self._policy, self._moved_ns = planned.moves[0].source, planned.policy, now
            elif self._is_rest(planned):
                self.node = ""

    def forget(self, node: str) -> None:
        """A node is no more."""
        self._cooling.pop(node, None)
        if self.node == node:
            self.node = ""

    def _is_rest(self, planned: PlannedMoves) -> bool:
        return planned.policy == self._policy and {move.source for move in planned.moves} == {self.node}
