"""Proposals that limits or budgets do not let be made at once, and that are made part by part.

A node is emptied whole or not at all, and cautious limits let one pod of a node go at a time. So the whole is tried,
and has to gain what moves have to gain; then as many of its pods leave as may by now, and the rest in later looks, each
of which tries the whole rest again. Decision 22 says by which rules that comes to an end.
"""

from __future__ import annotations

from podium.cluster.pods import PodRecord
from podium.decide.rescheduling.budget_room import BudgetRoom
from podium.decide.rescheduling.limits import Leaving, MoveLimits
from podium.decide.rescheduling.standing import Standing
from podium.framework.rescheduling.policy import Proposal, Relocation
from podium.framework.rescheduling.settings import Judgement, ReschedulerSettings


class Parts:
    """Chooses who of a proposal goes now. ``emptying`` is the node that is being emptied so, "" for none."""

    def __init__(
        self, settings: ReschedulerSettings, limits: MoveLimits, room: BudgetRoom, standing: Standing, now: int
    ) -> None:
        self._may_part = settings.judgement is Judgement.PLACEMENT
        self._limits = limits
        # With nobody moved as yet.
        self._free = MoveLimits((), settings, now)
        self._room = room
        self._given_up = standing.given_up
        self.emptying = standing.emptying

    def choose(self, proposal: Proposal, why: str) -> tuple[Relocation, ...] | str:
        """Who may go now, where all may not, for which there is a ``why``; or why nobody may.

        Whoever finds its place last goes first. Nothing is begun that could not be ended: each pod could go by itself,
        were nobody else on the way, and all of them within an hour.
        """
        relocations = proposal.relocations
        nodes = sorted({relocation.pod.node_name for relocation in relocations})
        if not (self._may_part and proposal.in_parts) or len(relocations) == 1 or len(nodes) > 1:
            return why
        if self.emptying not in ("", nodes[0]):
            return f"{why}; and {self.emptying} is being emptied pod by pod already"
        if nodes[0] in self._given_up:
            return f"{why}; and it was begun to empty {nodes[0]} pod by pod and given up, which has to cool down"
        never = self._why_never([relocation.pod for relocation in relocations])
        return never or self._chosen(relocations) or why

    def _why_never(self, pods: list[PodRecord]) -> str:
        each = [self._leaving(pod) for pod in pods]
        never = (
            self._free.why([leaving]) or self._room.why_never(pod) for leaving, pod in zip(each, pods, strict=True)
        )
        return next(filter(None, never), "") or self._free.why_within_an_hour(each)

    def _chosen(self, relocations: tuple[Relocation, ...]) -> tuple[Relocation, ...]:
        chosen: list[Relocation] = []
        for relocation in reversed(relocations):
            pods = [each.pod for each in (*chosen, relocation)]
            if not (self._limits.why([self._leaving(pod) for pod in pods]) or self._room.why(pods)):
                chosen.append(relocation)
        return tuple(reversed(chosen))

    def _leaving(self, pod: PodRecord) -> Leaving:
        return Leaving.of(pod, has_budget=self._room.is_protected(pod))
