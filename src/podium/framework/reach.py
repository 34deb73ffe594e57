"""How far a filter looks beyond a node: which pods on other nodes its answer for a node hangs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from podium.cluster.matchers import Predicate
from podium.cluster.pods import PodRecord
from podium.framework.cycle_state import CycleState

ANYWHERE = ""
"""In place of a topology key: the whole cluster is one domain."""

Effect = Literal["AllGone", "SomeGone", "Stay"]


@dataclass(frozen=True, slots=True)
class Reach:
    """Pods on which a filter's answer for a node hangs: those that match, in the node's domain of a topology key.

    ``effect`` says how. ``AllGone``: the node is refused as long as one of them is there. ``SomeGone``: there may be
    too many of them, and the fewer the better; in another domain, of this or another such key, that may be the other
    way round. ``Stay``: one of them has to be there. ``reason`` says in a few words why one has to go or to stay.
    """

    predicate: Predicate
    key: str
    effect: Effect
    reason: str


@dataclass(frozen=True, slots=True)
class Reaches:
    """What all filters together hang on beyond a node. ``is_known`` is false where one of them does not say."""

    found: tuple[Reach, ...]
    is_known: bool = True

    @property
    def is_monotone(self) -> bool:
        """Whether a pod less, on the node or in the way, never keeps the pod off a node that it would have fitted."""
        effects = [reach.effect for reach in self.found if reach.key != ANYWHERE]
        return self.is_known and "Stay" not in effects and effects.count("SomeGone") <= 1


@runtime_checkable
class ReachingFilterPlugin(Protocol):
    """A filter of scope CLUSTER whose answer for a node hangs on pods of other nodes, and which says on which.

    Asked within an attempt, for a pod of which its PreFilter has not skipped it.
    """

    def reaches(self, state: CycleState, pod: PodRecord) -> list[Reach]: ...
