"""One pod of the scheduling queue, and how long it backs off.

Source: staging/src/k8s.io/kube-scheduler/framework (QueuedPodInfo), pkg/scheduler/backend/queue/backoff_queue.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from podium.cluster.pods import PodRecord

SECOND_NS = 1_000_000_000


class Place(StrEnum):
    """Where the queue keeps a pod."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


ACTIVE, BACKOFF, UNSCHEDULABLE, GATED, IN_FLIGHT = Place
"""At hand, as asking an enumeration for a member takes longer than calling a function does."""


class QueuedPod(msgspec.Struct, eq=False):
    """A pending pod and its history in the queue. Only the queue writes it, but for ``message``.

    ``attempts`` counts pops. ``unschedulable_count`` counts the attempts that plugins rejected, ``error_count`` the
    errors since the last of these. ``queued_ns`` is when the pod came, or came back from its last attempt;
    ``first_attempt_ns`` when it first could have been attempted, None until then. ``unschedulable_plugins`` and
    ``pending_plugins`` rejected the last attempt (sorted; empty after an error and while in flight). ``gated_by`` is
    the plugin whose PreEnqueue holds the pod, "" if none does. ``message`` says why the pod waits: the gate's reasons,
    or what the scheduler writes there after an attempt. ``woken_by`` is the label of the event that last made the pod
    worth an attempt. ``sort_key`` is the pod's place in QueueSort's order; a pod that ``goes_first`` comes before all
    that do not.
    """

    record: PodRecord
    queued_ns: int
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    first_attempt_ns: int | None = None
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    gated_by: str = ""
    message: str = ""
    woken_by: str = ""
    popped_ns: int | None = None
    pops_at_once: int = 0
    sort_key: tuple[int, ...] = ()
    goes_first: bool = False
    place: Place = ACTIVE

    def pop(self, now: int) -> None:
        """Begin an attempt."""
        self.pops_at_once = self.pops_at_once + 1 if self.popped_ns == now else 1
        self.popped_ns = now
        self.place = IN_FLIGHT
        self.attempts += 1
        self.unschedulable_plugins = self.pending_plugins = ()
        self.message = ""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How long pods back off, and how long they wait for an event at most.

    A maximum of 0 turns backoff off. ``pop_from_backoff``: when no pod is active, one that backs off is attempted.

    An attempt takes no virtual time, so that pods which keep waking one another would be attempted for ever at one
    instant. After ``most_pops_at_once`` a pod backs off whatever wakes it, and is not popped before its backoff ends.
    """

    initial_backoff_ns: int = SECOND_NS
    max_backoff_ns: int = 10 * SECOND_NS
    unschedulable_flush_ns: int = 300 * SECOND_NS
    pop_from_backoff: bool = True
    most_pops_at_once: int = 8

    def must_pause(self, queued: QueuedPod, now: int) -> bool:
        """Whether the pod was attempted so often at this instant that time has to pass before it is again."""
        return queued.popped_ns == now and queued.pops_at_once >= self.most_pops_at_once

    def must_back_off(self, queued: QueuedPod) -> bool:
        """Whether the pod's backoff is not cut short: its attempt met an error, or was one too many at its instant."""
        return queued.error_count > 0 or self.must_pause(queued, queued.queued_ns)

    def backoff_end_ns(self, queued: QueuedPod) -> int:
        """The first moment at which the pod no longer backs off; not after ``queued_ns`` if it need not.

        The backoff doubles with each rejection, or with each error while errors last. With ``pop_from_backoff`` it
        ends with the whole second that it falls in, so that pods of one second come in order of the queue's sort.
        """
        count = queued.error_count or queued.unschedulable_count
        if self.max_backoff_ns == 0:
            return queued.queued_ns + (SECOND_NS if self.must_pause(queued, queued.queued_ns) else 0)
        if count == 0:
            return queued.queued_ns
        doublings = count - 1
        if self.initial_backoff_ns > self.max_backoff_ns >> doublings:
            end = queued.queued_ns + self.max_backoff_ns
        else:
            end = queued.queued_ns + (self.initial_backoff_ns << doublings)
        return (end // SECOND_NS + 1) * SECOND_NS if self.pop_from_backoff else end
