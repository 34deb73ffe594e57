"""A pod of the scheduling queue, and its backoff.

Source: staging/src/k8s.io/kube-scheduler/framework (QueuedPodInfo), pkg/scheduler/backend/queue/backoff_queue.go.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from podium.cluster.pods import PodRecord

SECOND_NS = 1_000_000_000


class QueuePlace(StrEnum):
    """The places of pods in the queue."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    IN_FLIGHT = "in-flight"


ACTIVE, BACKOFF, UNSCHEDULABLE, GATED, IN_FLIGHT = QueuePlace
"""Module constants, because member access of an Enum is slow."""


class QueuedPod(msgspec.Struct, eq=False):
    """A pending pod and its history in the queue. Only the queue writes it, except ``message``.

    ``attempts`` counts pops, ``unschedulable_count`` rejected attempts, ``error_count`` errors since the last of these.
    ``queued_ns`` is when the pod entered the queue, or returned to it; ``first_attempt_ns`` when it could first be
    attempted, or None. ``unschedulable_plugins`` rejected the last attempt (sorted; empty after an error and in
    flight). ``gated_by`` is the gating plugin, or "". ``message`` says why the pod waits. ``woken_by`` is the label of
    the last event that woke it. ``sort_key`` is QueueSort's key; a pod that ``goes_first`` comes before all others.
    """

    record: PodRecord
    queued_ns: int
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    first_attempt_ns: int | None = None
    unschedulable_plugins: tuple[str, ...] = ()
    gated_by: str = ""
    message: str = ""
    woken_by: str = ""
    popped_ns: int | None = None
    pops_at_once: int = 0
    sort_key: tuple[int, ...] = ()
    goes_first: bool = False
    place: QueuePlace = ACTIVE

    def pop(self, now: int) -> None:
        """Start an attempt."""
        self.pops_at_once = self.pops_at_once + 1 if self.popped_ns == now else 1
        self.popped_ns = now
        self.place = IN_FLIGHT
        self.attempts += 1
        self.unschedulable_plugins = ()
        self.message = ""

    def fail(self, plugins: tuple[str, ...], now: int) -> None:
        """End a failed attempt that plugins, in order of name, rejected; none after an error."""
        self.unschedulable_plugins = plugins
        if plugins:
            self.unschedulable_count += 1
            self.error_count = 0
        else:
            self.error_count += 1
        self.queued_ns = now


class QueueSettings(msgspec.Struct, frozen=True):
    """The settings of backoff, and of the wait for events.

    A maximum of 0 disables backoff. Without ``has_hints``, rejected pods are retried after any event that their plugins
    registered (`podium.controllers.scheduling.queue.hints`). ``counts_attempts``: backoffs double with each
    attempt, not with each rejection or error in a row. ``pop_from_backoff``: without active pods, one that backs off is
    attempted. After ``most_pops_at_once`` attempts at one instant, a pod always backs off, so that pods which wake one
    another cannot loop in virtual time.
    """

    initial_backoff_ns: int = SECOND_NS
    max_backoff_ns: int = 10 * SECOND_NS
    unschedulable_flush_ns: int = 300 * SECOND_NS
    pop_from_backoff: bool = True
    most_pops_at_once: int = 8
    has_hints: bool = True
    counts_attempts: bool = False

    def must_pause(self, queued: QueuedPod, now: int) -> bool:
        """Return whether the pod was attempted so often at this instant that time has to pass."""
        return queued.popped_ns == now and queued.pops_at_once >= self.most_pops_at_once

    def must_back_off(self, queued: QueuedPod) -> bool:
        """Return whether the backoff must not be cut short: after an error, or too many attempts."""
        return queued.error_count > 0 or self.must_pause(queued, queued.queued_ns)

    def backoff_end_ns(self, queued: QueuedPod) -> int:
        """Return when the pod's backoff ends; not after ``queued_ns`` if it has none.

        It doubles with each rejection, or with each error in a row. With ``pop_from_backoff`` it is rounded up to whole
        seconds, so that pods of one second are sorted.
        """
        count = queued.attempts if self.counts_attempts else queued.error_count or queued.unschedulable_count
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
