"""A pod on its node, as the kubelet keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.api.pod import Pod
from podium.api.times import parse_time
from podium.decide.kubelet_admission import Holding
from podium.machines.actions import FinishDeletion, ReportPodStatus
from podium.machines.pod_annotations import DURATION, READY_AFTER, TERMINATION, duration_ns, memory_usage

_SECOND = 10**9


@dataclass(slots=True, eq=False)
class PodRun:
    """One pod from its arrival on a node until its containers are gone. Times in nanoseconds, None for not known.

    ``is_admitted``: it holds its resources. ``is_waiting``: it does, but others that end have yet to leave them.
    ``start_ns`` is when it is to start, ``ready_ns`` and ``exit_ns`` when it becomes ready and exits by itself.
    It is being stopped when ``stopped_ns`` is set, the time at which it is gone; ``outcome`` is then to be reported,
    None for the end of its deletion. ``wanted`` is what the API was told last.
    """

    pod: Pod
    holding: Holding = field(init=False)
    memory_used: int = field(init=False)
    is_admitted: bool = False
    is_waiting: bool = False
    is_ended: bool = False
    start_ns: int | None = None
    started_ns: int | None = None
    ready_ns: int | None = None
    exit_ns: int | None = None
    deleted_ns: int | None = None
    stopped_ns: int | None = None
    outcome: ReportPodStatus | None = None
    wanted: ReportPodStatus | FinishDeletion | None = None

    def __post_init__(self) -> None:
        self.holding = Holding.of(self.pod.spec)
        self.memory_used = memory_usage(self.pod.metadata.annotations)

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def is_running(self) -> bool:
        """Whether its containers have started and not ended."""
        return self.started_ns is not None and not self.is_ended

    def begin(self, started_ns: int) -> None:
        """Its containers have started."""
        annotations = self.pod.metadata.annotations
        self.started_ns = started_ns
        duration = duration_ns(annotations, DURATION)
        self.exit_ns = None if duration is None else started_ns + duration
        ready_after = duration_ns(annotations, READY_AFTER)
        self.ready_ns = started_ns + ready_after if ready_after else None

    def read(self, pod: Pod) -> None:
        """Take in a newer reading of the pod."""
        if pod.metadata.annotations != self.pod.metadata.annotations:
            self.memory_used = memory_usage(pod.metadata.annotations)
        self.pod = pod

    def stop(self, asked_ns: int, grace_seconds: int) -> None:
        """Be gone when the grace period that began at ``asked_ns`` is over, or sooner if that was planned already."""
        grace = grace_seconds * _SECOND
        termination = duration_ns(self.pod.metadata.annotations, TERMINATION)
        end = asked_ns + (grace if termination is None else min(grace, termination))
        if self.started_ns is None:
            end = asked_ns
        self.stopped_ns = end if self.stopped_ns is None else min(end, self.stopped_ns)

    def asked_to_end_ns(self, now: int) -> int:
        """When the deletion of the pod began, as far as is known at ``now``."""
        if self.deleted_ns is None:
            self.deleted_ns = now
        return self.deleted_ns


def deletion_ns(pod: Pod) -> int | None:
    """When a pod was deleted, by its own account; None for one that is not."""
    if pod.metadata.deletion_timestamp is None:
        return None
    return parse_time(pod.metadata.deletion_timestamp) - (pod.metadata.deletion_grace_period_seconds or 0) * _SECOND
