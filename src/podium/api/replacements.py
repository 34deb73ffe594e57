"""Hints that an eviction records for the replacement of the evicted pod.

The replacement is scheduled as soon as it is created, so its hints must be written before: with the eviction, beside
the avoid list of the node. Source: controlled-rescheduling.md, Rescheduler ("to force the evicted pod to the front of
the scheduler queue, independently of its priority").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.meta import Narrow, OwnerReference
from podium.api.times import format_duration, format_time, parse_duration, parse_time

_SECOND = 10**9
_WAIT_NS = 600 * _SECOND
# Longer grace periods are not waited for.
_MAX_GRACE_SECONDS = 86_400
# The kinds whose replacement pods have the same name.
_KEEPS_NAMES = frozenset(("StatefulSet",))


@dataclass(frozen=True, slots=True)
class ForReplacement:
    """The hints that an evictor requests for the replacement.

    ``first`` moves it to the front of the scheduling queue, regardless of its priority. Its priority does not change:
    it cannot preempt more pods than otherwise. ``node_name`` is a node that is expected to have room ("" for none): the
    scheduler tries that node first, and reserves nothing there. With ``is_awaited`` it gets nothing, but its arrival is
    recorded for avoid list entries that last until then.
    """

    first: bool = False
    node_name: str = ""
    is_awaited: bool = False

    def __bool__(self) -> bool:
        """Return whether anything is requested."""
        return self.first or bool(self.node_name) or self.is_awaited


class EvictedPod(Narrow, frozen=True, kw_only=True):
    """The evicted pod."""

    name: str
    uid: str


class Replacement(Narrow, frozen=True, kw_only=True):
    """The hints of one eviction for one pod: the first that the controller creates afterwards.

    It must be created within ``expire_after`` of the eviction; the hints are used up when it has a node. The
    replacement of a StatefulSet's pod has the same name.
    """

    pod_controller: OwnerReference
    evicted_pod: EvictedPod
    eviction_time: str
    expire_after: str
    first: bool = False
    node_name: str = ""

    @property
    def controller(self) -> OwnerReference:
        """The controller of the pod."""
        return self.pod_controller

    @property
    def eviction_ns(self) -> int:
        """The eviction time in nanoseconds; a pod created in the same second may be the replacement."""
        return parse_time(self.eviction_time) // _SECOND * _SECOND

    @property
    def expiry_ns(self) -> int:
        """The time when the replacement is no longer awaited."""
        return self.eviction_ns + parse_duration(self.expire_after)

    def serves(self, name: str, uid: str, created_ns: int) -> bool:
        """Return whether a pod of the controller may be the replacement."""
        if uid == self.evicted_pod.uid or not self.eviction_ns <= created_ns <= self.expiry_ns:
            return False
        return self.pod_controller.kind not in _KEEPS_NAMES or name == self.evicted_pod.name


def replacement(
    controller: OwnerReference, evicted: EvictedPod, wanted: ForReplacement, grace_seconds: int, now: int
) -> Replacement:
    """Return the hints for the replacement of a pod that is evicted now with that grace period."""
    waited_ns = min(max(grace_seconds, 0), _MAX_GRACE_SECONDS) * _SECOND + _WAIT_NS
    return Replacement(
        pod_controller=controller,
        evicted_pod=evicted,
        eviction_time=format_time(now),
        expire_after=format_duration(waited_ns),
        first=wanted.first,
        node_name=wanted.node_name,
    )


def with_replacement(replacements: Iterable[Replacement], new: Replacement, max_entries: int) -> list[Replacement]:
    """Return the replacements, oldest first, with the new one replacing any for the same evicted pod.

    Beyond ``max_entries`` the oldest are dropped; of equally old ones, the first in order.
    """
    kept = [left for left in replacements if left.evicted_pod.uid != new.evicted_pod.uid]
    return sorted((*kept, new), key=lambda left: left.eviction_ns)[-max_entries:]


def awaited_replacements(replacements: Iterable[Replacement], now: int) -> list[Replacement]:
    """Return the replacements that may still be created, in order."""
    return [left for left in replacements if left.expiry_ns > now]


def replacement_in_words(left: Replacement) -> str:
    """Return a text that says which pod is the replacement, and what it gets."""
    gets = gets_in_words(left)
    if not gets:
        return f"the replacement of pod {left.evicted_pod.name} is awaited"
    return f"{gets} for the replacement of pod {left.evicted_pod.name}"


def gets_in_words(left: Replacement) -> str:
    """Return a text for what a replacement gets; "" if it is only awaited."""
    gets = ["the front of the queue"] if left.first else []
    if left.node_name:
        gets.append(f"a try at {left.node_name}")
    return " and ".join(gets)
