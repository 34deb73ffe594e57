"""What a driver tells a machine: what it saw in the API, how actions ended, and that time has passed."""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.meta import Kubernetes
from podium.machines.actions import Action


@dataclass(frozen=True, slots=True)
class Changed:
    """An object was added or changed; ``object`` is its typed reading after the change."""

    object: Kubernetes


@dataclass(frozen=True, slots=True)
class Gone:
    """An object is no more; ``object`` is its last known reading."""

    object: Kubernetes


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an action failed: the HTTP code, the Status reason (such as Conflict) and the message.

    Code 0 means that no answer came: the action may or may not have been carried out.
    """

    code: int
    reason: str
    message: str

    @property
    def is_ambiguous(self) -> bool:
        """Whether the action may have been carried out all the same."""
        return self.code == 0


@dataclass(frozen=True, slots=True)
class Answered:
    """An action has ended; ``problem`` None means that it was carried out."""

    action: Action
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """The machine's deadline has come."""


Observation = Changed | Gone | Answered | Tick
