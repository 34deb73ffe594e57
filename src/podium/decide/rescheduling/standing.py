"""What moves have been made of late, and what they mean for the next ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from podium.cluster.pods import PodRecord
from podium.decide.eviction_budgets import EvictionBudgets


@dataclass(frozen=True, slots=True)
class PastMove:
    """A move that counts against limits: whose pod left which node, and when it was evicted.

    ``is_in_flight``: its replacement is not ready yet. ``target`` is where it is expected, "" where that is not known,
    or is known from the API: then there is no room to keep. ``waiting`` is the pod whose room is kept there: the
    replacement, or the pod that was evicted while nobody has seen it.
    """

    namespace: str
    owner_uid: str
    source: str
    evicted_ns: int
    is_in_flight: bool
    has_budget: bool
    target: str = ""
    waiting: PodRecord | None = None

    def is_under_way(self, now: int, timeout_ns: int) -> bool:
        """Whether it counts as under way: it is not over, and began less than so long ago."""
        return self.is_in_flight and now - self.evicted_ns < timeout_ns


@dataclass(frozen=True, slots=True)
class Standing:
    """What a plan depends on besides the cluster and the settings.

    ``cooling`` are the owners whose pods on a node are left alone: their replacement came back to it. ``keeps_data``
    are the pods (uids) that would lose data by a move, ``refused`` those whose evictions were refused of late, or are
    under way. ``emptying`` is the node that is being emptied pod by pod ("" for none), ``given_up`` those of which that
    was given up of late. ``component_may_evict`` is how many evictions the cap of the
    component leaves at the moment, None for any number.
    """

    past: tuple[PastMove, ...]
    budgets: EvictionBudgets
    cooling: Collection[tuple[str, str]] = frozenset()
    keeps_data: Collection[str] = frozenset()
    refused: Collection[str] = frozenset()
    emptying: str = ""
    given_up: Collection[str] = frozenset()
    component_may_evict: int | None = None
