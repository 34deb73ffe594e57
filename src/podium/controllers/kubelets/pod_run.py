"""A pod on its node, as the kubelet tracks it.

Source: for the restart backoff, pkg/kubelet/kuberuntime (doBackOff) and k8s.io/client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.resource_requests import is_resize_deferred
from podium.cluster.pod_classes import ALL_COUNTS, CountingRules
from podium.controllers.actions import DeleteObject, ReportStatus
from podium.controllers.deadlines import earliest
from podium.controllers.kubelets.annotations import (
    CRASH_AFTER,
    DURATION,
    MEMORY_USAGE,
    NEVER,
    READY_AFTER,
    TERMINATION,
    memory_limit_bytes,
    stated,
)
from podium.controllers.kubelets.host import PodAddresses
from podium.decide.kubelet import Holding


class PodBehaviour(msgspec.Struct, frozen=True, gc=False):
    """The behavior in a pod's valid annotations. Times in nanoseconds, None if unspecified.

    The containers exit after ``duration_ns``, or fail after ``crash_after_ns``, and are ready after ``ready_after_ns``.
    They take ``termination_ns`` to end, unless the pod ``never_terminates``.
    """

    duration_ns: int | None = None
    crash_after_ns: int | None = None
    ready_after_ns: int | None = None
    termination_ns: int | None = None
    never_terminates: bool = False
    memory_bytes: int = 0


PLAIN = PodBehaviour()
"""The behavior of a pod without annotations."""


def behaviour_of(annotations: Mapping[str, str]) -> PodBehaviour:
    """Return the behavior in the annotations of a pod; invalid ones are ignored."""
    found = ((field, stated(annotations, name)) for name in annotations if (field := _FIELDS.get(name)) is not None)
    fields: dict[str, Any] = {field: value for field, value in found if value is not None}
    if annotations.get(TERMINATION) == NEVER:
        fields["never_terminates"] = True
    return PodBehaviour(**fields) if fields else PLAIN


_FIELDS: Mapping[str, str] = {
    DURATION: "duration_ns",
    CRASH_AFTER: "crash_after_ns",
    READY_AFTER: "ready_after_ns",
    TERMINATION: "termination_ns",
    MEMORY_USAGE: "memory_bytes",
}


_SECOND = 10**9
_FIRST_NS = 10 * _SECOND
_LONGEST_NS = 300 * _SECOND
# After a longer run, containers count as healthy again.
_WELL_NS = 2 * _LONGEST_NS


class CrashBackOff(msgspec.Struct, gc=False):
    """The backoff of a pod's containers: none after the first failure, then 10 s, doubled up to 300 s.

    It starts over after 10 minutes of running. ``crashes`` counts the failures since then.
    """

    crashes: int = 0
    _wait_ns: int = 0
    _restarted_ns: int = 0

    def next_start_ns(self, failed_ns: int) -> int:
        """Return when containers that failed at ``failed_ns`` are restarted."""
        if failed_ns - self._restarted_ns > _WELL_NS:
            self.crashes = self._wait_ns = 0
        self.crashes += 1
        self._restarted_ns = failed_ns + self._wait_ns
        self._wait_ns = min(max(2 * self._wait_ns, _FIRST_NS), _LONGEST_NS)
        return self._restarted_ns


class PodRun(msgspec.Struct, eq=False):
    """A pod from its arrival on a node until its containers are gone. Times in nanoseconds, None if unknown.

    ``raw`` is the pod's wire form, ``holding`` its resources on the node. ``is_over_limit``: it exceeds its memory
    limit. ``is_admitted``: it holds its resources. ``is_waiting``: it waits for others to end. ``is_stopping``: its
    containers are being killed. ``is_ended``: they are gone.

    ``start_ns`` is the next (re)start; ``ready_ns``, ``exit_ns`` and ``crash_ns`` are when the containers become ready,
    succeed or fail; ``active_ns`` is when they started first. ``stopped_ns`` is when they are gone; then ``outcome`` is
    reported, None for the end of the deletion. ``wanted`` is the last report. ``last_exit`` is the last ended state.
    ``trouble_ns`` is how long after each start the node makes them fail. ``termination_ns`` is the default time to end;
    None: the grace period. ``addresses`` are set if everything is reported. ``observed`` is the last reported
    generation; None: not reported.
    """

    pod: Pod
    raw: Raw
    uid: str
    holding: Holding
    behaviour: PodBehaviour
    is_over_limit: bool
    deleted_ns: int | None = None
    restarts: int = 0
    is_admitted: bool = False
    is_waiting: bool = False
    is_ready: bool = False
    is_stopping: bool = False
    is_ended: bool = False
    start_ns: int | None = None
    started_ns: int | None = None
    ready_ns: int | None = None
    exit_ns: int | None = None
    crash_ns: int | None = None
    stopped_ns: int | None = None
    outcome: ReportStatus | None = None
    wanted: ReportStatus | DeleteObject | None = None
    last_exit: Raw | None = None
    trouble_ns: int | None = None
    backoff: CrashBackOff | None = None
    termination_ns: int | None = None
    addresses: PodAddresses | None = None
    observed: int | None = None
    active_ns: int | None = None

    @classmethod
    def of(cls, pod: Pod, raw: Raw, rules: CountingRules = ALL_COUNTS) -> PodRun:
        behaviour = behaviour_of(pod.metadata.annotations)
        holding = Holding.of(pod, rules, as_allocated=is_resize_deferred(pod))
        return cls(pod, raw, pod.metadata.uid, holding, behaviour, _exceeds(pod, behaviour))

    @property
    def is_running(self) -> bool:
        """Return whether its containers have started and not ended."""
        return self.started_ns is not None and not self.is_ended

    @property
    def is_failing(self) -> bool:
        """Return whether its containers fail whenever they run."""
        return self.is_over_limit or self.trouble_ns is not None or CRASH_AFTER in self.pod.metadata.annotations

    def due_ns(self) -> int | None:
        """Return when something next happens to it, or None."""
        if self.is_ended:
            return None
        if self.started_ns is None:
            return earliest((self.stopped_ns, self.start_ns, self.deadline_ns()))
        return earliest((self.stopped_ns, self.exit_ns, self.crash_ns, self.ready_ns, self.deadline_ns()))

    def deadline_ns(self) -> int | None:
        """Return when it exceeds its activeDeadlineSeconds, None for never (pkg/kubelet/active_deadline.go)."""
        seconds = self.pod.spec.active_deadline_seconds
        if seconds is None or self.active_ns is None or self.is_stopping:
            return None
        return self.active_ns + seconds * _SECOND

    def begin(self, started_ns: int) -> None:
        """Record that its containers have started."""
        behaviour = self.behaviour
        self.start_ns, self.started_ns = None, started_ns
        if self.active_ns is None:
            self.active_ns = started_ns
        self.exit_ns = None if behaviour.duration_ns is None else started_ns + behaviour.duration_ns
        self.suffer(self.trouble_ns, started_ns)
        if self.is_over_limit:
            self.crash_ns = started_ns
        self.is_ready = not behaviour.ready_after_ns
        self.ready_ns = started_ns + behaviour.ready_after_ns if behaviour.ready_after_ns else None

    def fail(self, exit_: Raw, start_ns: int) -> None:
        """Record that its containers have failed, and restart at ``start_ns``."""
        self.last_exit = exit_
        self.start_ns, self.started_ns = start_ns, None
        self.is_ready = False

    def read(self, pod: Pod, raw: Raw) -> None:
        """Take in a newer state of the pod."""
        annotations, before = pod.metadata.annotations, self.pod.metadata.annotations
        if annotations is not before and annotations != before:
            self.behaviour = behaviour_of(annotations)
        self.is_over_limit = _exceeds(pod, self.behaviour)
        self.pod, self.raw = pod, raw

    def suffer(self, trouble_ns: int | None, now: int) -> None:
        """Set how long after each start, and from now, its node makes it fail; None: never."""
        self.trouble_ns = trouble_ns
        if self.started_ns is not None and not self.is_over_limit:
            crash_after_ns = self.behaviour.crash_after_ns
            self.crash_ns = None if crash_after_ns is None else self.started_ns + crash_after_ns
            if trouble_ns is not None:
                self.crash_ns = earliest((self.crash_ns, now + trouble_ns))

    def stop(self, asked_ns: int, grace_seconds: int, *, is_forced: bool = False) -> None:
        """End it when the grace period from ``asked_ns`` is over, or earlier if that was planned.

        Containers that cannot be killed end only if ``is_forced``.
        """
        self.is_stopping = True
        behaviour, end = self.behaviour, asked_ns
        if self.started_ns is not None:
            if behaviour.never_terminates and not is_forced:
                return
            grace, termination = grace_seconds * _SECOND, behaviour.termination_ns
            if termination is None and not behaviour.never_terminates:
                termination = self.termination_ns
            end += grace if termination is None else min(grace, termination)
        self.stopped_ns = end if self.stopped_ns is None else min(end, self.stopped_ns)


def _exceeds(pod: Pod, behaviour: PodBehaviour) -> bool:
    if not behaviour.memory_bytes:
        return False
    limit = memory_limit_bytes(pod)
    return limit is not None and behaviour.memory_bytes > limit
