"""A pod on its node, as the kubelet keeps it."""

from __future__ import annotations

import msgspec

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.decide.kubelet_admission import Holding
from podium.machines.actions import DeleteObject, ReportStatus
from podium.machines.kubelets.crash_backoff import CrashBackOff
from podium.machines.kubelets.host import PodAddresses
from podium.machines.kubelets.pod_annotations import CRASH_AFTER, memory_limit_bytes
from podium.machines.kubelets.pod_behaviour import PodBehaviour, behaviour_of
from podium.machines.parts.deadlines import earliest

_SECOND = 10**9


class PodRun(msgspec.Struct, eq=False):
    """One pod from its arrival on a node until its containers are gone. Times in nanoseconds, None for not known.

    ``raw`` is the pod's wire form, ``holding`` what it holds on its node, and ``behaviour`` how it will run.
    ``is_over_limit``: it uses more memory than it may. ``is_admitted``: it holds its resources. ``is_waiting``: it
    does, but others that end have yet to leave them. ``is_ready``: its containers are. ``is_stopping``: they are being
    killed. ``is_ended``: they are gone.

    ``start_ns`` is when its containers are to start (again), ``ready_ns``, ``exit_ns`` and ``crash_ns`` when they
    become ready, and exit by themselves with success or with failure. ``stopped_ns`` is when they are gone; then
    ``outcome`` is to be reported, None for the end of the pod's deletion. ``wanted`` is what the API was told last.
    ``restarts`` counts how often containers were started again; ``last_exit`` is the state in which they ended last,
    None if they never did. ``trouble_ns`` is how long after each start they fail for the node's sake; None: never.
    ``termination_ns`` is how long they take to end where the pod does not say; None: all of its
    grace period. ``addresses`` are those of the pod where all is reported that a kubelet knows, else None.
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

    @classmethod
    def of(cls, pod: Pod, raw: Raw) -> PodRun:
        """The run of a pod that has come."""
        behaviour = behaviour_of(pod.metadata.annotations)
        return cls(pod, raw, pod.metadata.uid, Holding.of(pod), behaviour, _exceeds(pod, behaviour))

    @property
    def is_running(self) -> bool:
        """Whether its containers have started and not ended."""
        return self.started_ns is not None and not self.is_ended

    @property
    def is_failing(self) -> bool:
        """Whether something makes its containers fail whenever they run."""
        return self.is_over_limit or self.trouble_ns is not None or CRASH_AFTER in self.pod.metadata.annotations

    @property
    def is_in_crash_loop(self) -> bool:
        """Whether its containers fail again and again, and nothing else is about to happen to them."""
        return self.backoff is not None and self.backoff.crashes > 1 and not self.is_stopping

    def due_ns(self) -> int | None:
        """When something next happens to it by itself; None for never."""
        if self.is_ended:
            return None
        if self.started_ns is None:
            return earliest((self.stopped_ns, self.start_ns))
        return earliest((self.stopped_ns, self.exit_ns, self.crash_ns, self.ready_ns))

    def begin(self, started_ns: int) -> None:
        """Its containers have started."""
        behaviour = self.behaviour
        self.start_ns, self.started_ns = None, started_ns
        self.exit_ns = None if behaviour.duration_ns is None else started_ns + behaviour.duration_ns
        self.crash_ns = None if behaviour.crash_after_ns is None else started_ns + behaviour.crash_after_ns
        if self.trouble_ns is not None:
            self.crash_ns = earliest((self.crash_ns, started_ns + self.trouble_ns))
        if self.is_over_limit:
            self.crash_ns = started_ns
        self.is_ready = not behaviour.ready_after_ns
        self.ready_ns = started_ns + behaviour.ready_after_ns if behaviour.ready_after_ns else None

    def fail(self, exit_: Raw, start_ns: int) -> None:
        """Its containers have ended with failure, and start again at ``start_ns``."""
        self.last_exit = exit_
        self.start_ns, self.started_ns = start_ns, None
        self.is_ready = False

    def read(self, pod: Pod, raw: Raw) -> None:
        """Take in a newer reading of the pod."""
        annotations, before = pod.metadata.annotations, self.pod.metadata.annotations
        if annotations is not before and annotations != before:
            self.behaviour = behaviour_of(annotations)
        self.is_over_limit = _exceeds(pod, self.behaviour)
        self.pod, self.raw = pod, raw

    def suffer(self, trouble_ns: int | None, now: int) -> None:
        """From now on its node makes its containers fail so long after each start, and after now; None: no more."""
        self.trouble_ns = trouble_ns
        if self.started_ns is not None and not self.is_over_limit:
            crash_after_ns = self.behaviour.crash_after_ns
            self.crash_ns = None if crash_after_ns is None else self.started_ns + crash_after_ns
            if trouble_ns is not None:
                self.crash_ns = earliest((self.crash_ns, now + trouble_ns))

    def stop(self, asked_ns: int, grace_seconds: int, *, is_forced: bool = False) -> None:
        """Be gone when the grace period that began at ``asked_ns`` is over, or sooner if that was planned already.

        Containers that cannot be killed go only where the kubelet is ``is_forced`` to forget them.
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

    def asked_to_end_ns(self, now: int) -> int:
        """When the deletion of the pod began, as far as is known at ``now``."""
        if self.deleted_ns is None:
            self.deleted_ns = now
        return self.deleted_ns


def _exceeds(pod: Pod, behaviour: PodBehaviour) -> bool:
    """Whether a pod that behaves like that uses more memory than it may."""
    if not behaviour.memory_bytes:
        return False
    limit = memory_limit_bytes(pod)
    return limit is not None and behaviour.memory_bytes > limit
