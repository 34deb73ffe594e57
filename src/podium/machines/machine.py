"""What all machines have in common."""

from __future__ import annotations

from typing import Protocol

from podium.machines.actions import Action
from podium.machines.observations import Observation


class Machine(Protocol):
    """A component of the cluster without clock or connections.

    The driver hands in what was observed, carries out the actions that come back in their order, and hands in an
    `Answered` for each of them. When ``next_deadline`` has come it hands in a `Tick`.
    """

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` (nanoseconds) and say what to do."""
        ...

    def next_deadline(self) -> int | None:
        """When the machine next wants a `Tick`; 0 means at once, None that only an observation can move it."""
        ...

    def is_settled(self) -> bool:
        """Whether nothing but what it observes is likely to make it do anything that it has not done before.

        What it will only try once more, and what it does from time to time whatever happens, do not count.
        """
        ...
