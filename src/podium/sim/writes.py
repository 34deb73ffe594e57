"""What controllers ask the API server for, and what all controllers have in common.

``by`` says who writes, as history shows it: a component's name, or an object's as in `ReplicaSet default/web`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from podium.api.meta import Kubernetes, Raw
from podium.store.watch_log import WatchEvent


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object; ``reading`` is its typed reading where the writer has it."""

    raw: Raw
    by: str
    reading: Kubernetes | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace an object but for its status."""

    raw: Raw
    by: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ReplaceStatus:
    """Replace an object's status."""

    raw: Raw
    by: str


@dataclass(frozen=True, slots=True)
class PatchPodStatus:
    """Set fields and conditions of a pod's status."""

    pod: str
    uid: str
    fields: Raw
    conditions: tuple[Raw, ...]
    by: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete an object of that uid; ``grace_seconds`` None asks for its own grace period."""

    kind: str
    key: str
    uid: str
    by: str
    grace_seconds: int | None = None
    message: str = ""


Write = Create | Replace | ReplaceStatus | PatchPodStatus | Delete


class Controller(Protocol):
    """Brings the cluster nearer to what its objects ask for.

    It takes in every event first and acts when nothing is left to take in, so it never acts on what it does not yet
    know of. Its writes come back to it as events.
    """

    def observe(self, event: WatchEvent, now: int) -> None:
        """Take in what was written."""
        ...

    def reconcile(self, now: int) -> list[Write]:
        """What is to be done now; nothing when nothing was observed and no deadline has come."""
        ...

    def next_deadline(self) -> int | None:
        """When `reconcile` has something to do though nothing is observed; None for never."""
        ...
