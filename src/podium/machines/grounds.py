"""Why a pod is disrupted, as the machine that decides it says for whoever keeps account."""

from __future__ import annotations

import msgspec

GANG_RELEASE = "gang-release"
"""The cause of an eviction by which a gang that is not whole gives a node back."""


class Grounds(msgspec.Struct, frozen=True, gc=False):
    """The rule by which it was chosen, the plan that it is part of, and what else there was to choose from.

    ``room`` is the node where the room is wanted, "" for none. ``candidates`` is how many ways out there were, this one
    included, 0 where that is not known; ``equals`` are other nodes that would have cost the same, the first of them.
    """

    rule: str
    plan: str = ""
    room: str = ""
    candidates: int = 0
    equals: tuple[str, ...] = ()
