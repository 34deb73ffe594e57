"""What all machines have in common."""

from __future__ import annotations

from typing import Protocol

from podium.api.kinds import KEPT_KINDS, KINDS
from podium.machines.actions import Action
from podium.machines.observations import Observation
from podium.machines.parts.deadlines import Deadline

CUSTOM_KINDS = "*"
UNMOVED: list[Action] = []
"""What a machine answers to an observation of which nothing comes: no action, and no other deadline than before.

It is one object, told by identity and never changed; a list that is merely empty promises nothing about the deadline.
"""
_KNOWN_KINDS = frozenset(kind.name for kind in (*KINDS.values(), *KEPT_KINDS))


class Machine(Protocol):
    """A component of the cluster without clock or connections.

    The driver hands in what was observed of the kinds that it ``watches``, carries out the actions that come back in
    their order, and hands in an `Answered` for each of them but a `Record`. When its ``deadline`` has come it hands in
    a `Tick`.
    """

    @property
    def watches(self) -> frozenset[str]:
        """The kinds of objects that it has to be shown; other kinds are nothing to it.

        What is routed to it, listed and watched for it, and what it may read, follows from this. `CUSTOM_KINDS` stands
        for all kinds that others have added to the API.
        """
        ...

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` (nanoseconds) and say what to do.

        A machine that most observations of a kind do not concern answers `UNMOVED` to them, and is not asked for its
        deadline.
        """
        ...

    def deadline(self) -> Deadline:
        """When the machine next wants a `Tick`, and whether it would do anything that it has not done before.

        It changes when something is handed in, and at no other time.
        """
        ...


def does_watch(machine: Machine, kind: str) -> bool:
    """Whether the machine is to be shown objects of the kind."""
    return is_among(kind, machine.watches)


def is_among(kind: str, watches: frozenset[str]) -> bool:
    """Whether a machine that watches these kinds is to be shown objects of that kind."""
    return kind in watches or (CUSTOM_KINDS in watches and kind not in _KNOWN_KINDS)
