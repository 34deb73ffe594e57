"""Whom a change of an object concerns: what it is about, and what those who rest need not be told at once."""

from __future__ import annotations

from dataclasses import dataclass

from podium.machines.machine import Machine, is_among

EVERY = 1
"""What every change is about."""
OWNED = 2
"""The object belongs to somebody, or did."""
PLACED = 4
"""The pod has a node, or is being deleted."""
ENDING = 8
"""The pod is being deleted."""
DISRUPTED = 16
"""The pod is to be disrupted, or was: it has the condition DisruptionTarget."""
CLAIMING = 32
"""The pod names claims for devices, or has volumes for which claims are made."""
ASTRAY = 64
"""The pod has just got a node that there is not."""
ADDED = 128
"""The object was not there before."""
ANY = 127
"""What a change may be about of which nobody knows more."""

_POD = "Pod"


@dataclass(frozen=True, slots=True)
class Rest:
    """What a machine need not be told while it rests: objects of ``kinds``, but for pods with one of some aspects."""

    kinds: frozenset[str]
    but_pods: int = 0

    def puts_off(self, kind: str, aspects: int) -> bool:
        """Whether such a change of an object of that kind can wait."""
        return is_among(kind, self.kinds) and not (kind == _POD and self.but_pods & aspects)


def heeds(machine: Machine, kind: str, aspects: int) -> bool:
    """Whether such a change of an object of a kind that it watches may ever concern the machine.

    Of pods those do that have one of the aspects that are its `heeded_pods`, where it has such. Others it is shown or
    not.
    """
    return kind != _POD or bool(aspects & getattr(machine, "heeded_pods", EVERY))


def rest_of(machine: Machine) -> Rest | None:
    """What the machine need not be told while it rests; None for one that never does.

    That is its `at_rest`, where it has such. What this puts off it may be shown at once or later, before anything else
    and in the order in which it happened; and of each object it need be shown only what came last.
    """
    return getattr(machine, "at_rest", None)


def does_rest(machine: Machine) -> bool:
    """Whether the machine, which has no deadline, rests as things are.

    Nothing comes of what its `Rest` puts off, however much of that there is, until it is told something else.
    """
    return bool(getattr(machine, "rests", False))
