"""What an eviction leaves behind for the pod that its controller makes in place of the evicted one.

The replacement is scheduled at the instant at which it is created, so that whatever it is to get has to be written
before: with the eviction, beside the avoid list of the node that the evicted pod leaves. Source:
controlled-rescheduling.md, Rescheduler ("to force the evicted pod to the front of the scheduler queue, independently of
its priority").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.meta import Narrow, OwnerReference
from podium.api.times import format_duration, format_time, parse_duration, parse_time

_SECOND = 10**9
_WAIT_NS = 600 * _SECOND
# A longer time to end is not waited for.
_MAX_GRACE_SECONDS = 86_400
# The kinds whose pods are replaced by pods of the same name.
_KEEPS_NAMES = frozenset(("StatefulSet",))


@dataclass(frozen=True, slots=True)
class ForReplacement:
    """What who asks for an eviction wants for the replacement.

    ``first``: it goes to the front of the scheduler's queue, whatever its priority. It gets a place there, no priority:
    it may not preempt whom it could not preempt anyway. ``node_name`` is where room for it is thought to be ("" for
    nowhere in particular): the scheduler tries that node before all others, and keeps nothing free there. With
    ``is_awaited`` it gets nothing, but its coming is told of, for entries of avoid lists that last until then.
    """

    first: bool = False
    node_name: str = ""
    is_awaited: bool = False

    def __bool__(self) -> bool:
        """Whether anything is wanted."""
        return self.first or bool(self.node_name) or self.is_awaited


class EvictedPod(Narrow, frozen=True, kw_only=True):
    """The pod that was evicted."""

    name: str
    uid: str


class Replacement(Narrow, frozen=True, kw_only=True):
    """What one eviction left for one pod: the first that the controller creates from then on.

    It must come within ``expire_after`` of the eviction, and has used this up when it has a node. In place of a pod of
    a StatefulSet only one of its name comes.
    """

    pod_controller: OwnerReference
    evicted_pod: EvictedPod
    eviction_time: str
    expire_after: str
    first: bool = False
    node_name: str = ""

    @property
    def controller(self) -> OwnerReference:
        """Whose pod it is."""
        return self.pod_controller

    @property
    def eviction_ns(self) -> int:
        """When the pod was evicted, in nanoseconds; a pod that is created in the same second may be the replacement."""
        return parse_time(self.eviction_time) // _SECOND * _SECOND

    @property
    def expiry_ns(self) -> int:
        """When nobody is waited for any more."""
        return self.eviction_ns + parse_duration(self.expire_after)

    def serves(self, name: str, uid: str, created_ns: int) -> bool:
        """Whether a pod of the controller may be the replacement."""
        if uid == self.evicted_pod.uid or not self.eviction_ns <= created_ns <= self.expiry_ns:
            return False
        return self.pod_controller.kind not in _KEEPS_NAMES or name == self.evicted_pod.name


def replacement(
    controller: OwnerReference, evicted: EvictedPod, wanted: ForReplacement, grace_seconds: int, now: int
) -> Replacement:
    """What is left for the replacement of a pod that is evicted now and may take so long to end."""
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
    """The replacements, oldest first, with the new one in place of any for the same evicted pod.

    Of more than ``max_entries`` the oldest go; of equally old ones, those that stood first.
    """
    kept = [left for left in replacements if left.evicted_pod.uid != new.evicted_pod.uid]
    return sorted((*kept, new), key=lambda left: left.eviction_ns)[-max_entries:]


def awaited_replacements(replacements: Iterable[Replacement], now: int) -> list[Replacement]:
    """The replacements that may still come, in their order."""
    return [left for left in replacements if left.expiry_ns > now]


def replacement_in_words(left: Replacement) -> str:
    """What a replacement gets, and which one, for people."""
    gets = gets_in_words(left)
    if not gets:
        return f"the replacement of pod {left.evicted_pod.name} is awaited"
    return f"{gets} for the replacement of pod {left.evicted_pod.name}"


def gets_in_words(left: Replacement) -> str:
    """What a replacement gets, for people; "" where it is awaited alone."""
    gets = ["the front of the queue"] if left.first else []
    if left.node_name:
        gets.append(f"a try at {left.node_name}")
    return " and ".join(gets)
