"""What controllers of the API server's own want done, and how somebody does it for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from podium.store.errors import StoreError
from podium.store.stored import Stored
from podium.store.verbs.deletion import Propagation


@dataclass(frozen=True, slots=True)
class Collect:
    """Delete an object, if it is still the one of that uid."""

    stored: Stored
    propagation: Propagation = ""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Change a list in an object's metadata, if nobody has written the object meanwhile."""

    stored: Stored
    field: Literal["finalizers", "ownerReferences"]
    value: list[Any]


@dataclass(frozen=True, slots=True)
class LetGo:
    """Leave a namespace these finalizers in its specification, if nobody has written it meanwhile."""

    stored: Stored
    finalizers: list[str]


Step = Collect | Rewrite | LetGo
CarryOut = Callable[[Step, int], None]
"""Does a step at a time. Raises StoreError where that is refused."""

OnRefusal = Callable[[Stored, StoreError], None]
"""Is told of an object about which something was to be done that was refused."""

# What another writer did meanwhile shows as an event, and is judged then.
_PASSING = frozenset(("NotFound", "Conflict"))


def take(step: Step, carry_out: CarryOut, now: int, on_refusal: OnRefusal | None) -> None:
    """Do a step. What is refused is told; without somebody to be told, the StoreError is raised."""
    try:
        carry_out(step, now)
    except StoreError as error:
        if error.reason in _PASSING:
            return
        if on_refusal is None:
            raise
        on_refusal(step.stored, error)
