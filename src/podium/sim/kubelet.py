"""The kubelets of all nodes: they admit and start pods, let them run, and end them.

What runs inside a pod is not simulated, only when it starts and ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.requests import node_allocatable
from podium.api.times import format_time, parse_time
from podium.sim.agenda import Agenda
from podium.sim.annotations import DURATION, TERMINATION, duration_ns
from podium.sim.ledger import Ledger, held_by
from podium.sim.writes import Delete, PatchPodStatus, Write
from podium.store.watch_log import WatchEvent

_KUBELET = "kubelet"
_COLLECTOR = "pod-garbage-collector"
_SECOND = 10**9


@dataclass(slots=True)
class _Run:
    """A pod on its node that has not ended, and the times of its start, its deletion and its removal, where known."""

    pod: Pod
    started_ns: int | None = None
    deleted_ns: int | None = None
    removal_ns: int | None = None


class Kubelet:
    """Starts a pod `start_delay_ns` after it was bound, ends it when its duration or its grace period is over.

    A pod that does not fit is turned away: it fails with reason OutOf<resource> and never starts
    (pkg/kubelet/lifecycle). Pods on a node that nobody knows wait for it; when a node goes, its pods go with it.
    """

    def __init__(self, start_delay_ns: int = 0) -> None:
        self._start_delay_ns = start_delay_ns
        self._ledger = Ledger()
        self._nodes: dict[str, dict[str, _Run]] = {}
        self._agenda: Agenda[_Run] = Agenda()
        self._writes: list[Write] = []

    def observe(self, event: WatchEvent, now: int) -> None:
        object_ = event.stored.object
        if isinstance(object_, Node):
            self._observe_node(object_, event, now)
        elif isinstance(object_, Pod) and object_.spec.node_name:
            self._observe_pod(object_, event, now)

    def reconcile(self, now: int) -> list[Write]:
        while (run := self._agenda.take_due(now)) is not None:
            self._move_on(run, now)
        writes, self._writes = self._writes, []
        return writes

    def next_deadline(self) -> int | None:
        return self._agenda.next_time()

    def finish(self, pod: Pod) -> bool:
        """Let a pod's containers exit by themselves; False when they do not run."""
        run = self._find(pod)
        if run is None or run.started_ns is None:
            return False
        self._end(run.pod, "Succeeded", "PodCompleted", "")
        return True

    def _observe_node(self, node: Node, event: WatchEvent, now: int) -> None:
        name = node.metadata.name
        if event.type == "DELETED":
            self._ledger.remove_node(name)
            for run in self._runs(name).values():
                self._remove(run.pod, _COLLECTOR, f"its node {name} is gone")
            return
        is_new = not self._ledger.has_node(name)
        self._ledger.put_node(name, node_allocatable(node.status))
        if is_new:
            for run in self._runs(name).values():
                self._admit(run, now)

    def _observe_pod(self, pod: Pod, event: WatchEvent, now: int) -> None:
        run = self._find(pod)
        if event.type == "DELETED" or pod.is_terminal:
            self._release(pod)
            if event.type != "DELETED" and pod.is_terminating:
                self._remove(pod, _KUBELET, "its containers had ended")
            return
        if run is None:
            run = self._runs(pod.spec.node_name)[pod.metadata.uid] = _Run(pod)
            run.deleted_ns = _deletion_ns(pod)
            self._arrive(run, now)
        run.pod = pod
        if pod.is_terminating:
            self._stop(run, now)

    def _runs(self, node_name: str) -> dict[str, _Run]:
        return self._nodes.setdefault(node_name, {})

    def _find(self, pod: Pod) -> _Run | None:
        return self._runs(pod.spec.node_name).get(pod.metadata.uid)

    def _release(self, pod: Pod) -> None:
        self._runs(pod.spec.node_name).pop(pod.metadata.uid, None)
        self._ledger.remove_pod(pod.metadata.uid)

    def _arrive(self, run: _Run, now: int) -> None:
        pod = run.pod
        if pod.status.phase == "Running":
            start_time = pod.status.start_time
            run.started_ns = parse_time(start_time) if start_time else now
            self._ledger.put_pod(pod.metadata.uid, pod.spec.node_name, held_by(pod.spec))
            self._plan_exit(run)
        elif self._ledger.has_node(pod.spec.node_name):
            self._admit(run, now)

    def _admit(self, run: _Run, now: int) -> None:
        pod = run.pod
        if run.started_ns is not None or pod.is_terminating:
            return
        amounts = held_by(pod.spec)
        short = self._ledger.shortage(pod.spec.node_name, amounts)
        if short is not None:
            name, held, allocatable = short
            asked = f"requested {amounts[name]}, held {held}, allocatable {allocatable}"
            self._end(pod, "Failed", f"OutOf{name}", f"the node has not enough {name}: {asked}")
            return
        self._ledger.put_pod(pod.metadata.uid, pod.spec.node_name, amounts)
        self._agenda.add(now + self._start_delay_ns, run)

    def _plan_exit(self, run: _Run) -> None:
        exit_ns = _exit_ns(run)
        if exit_ns is not None:
            self._agenda.add(exit_ns, run)

    def _move_on(self, run: _Run, now: int) -> None:
        """What became due for a pod: its start, its exit or its removal."""
        pod = run.pod
        if self._find(pod) is not run:
            return
        if run.removal_ns is not None and run.removal_ns <= now:
            self._remove(pod, _KUBELET, "")
        elif run.started_ns is None:
            run.started_ns = now
            self._start(pod, now)
            self._plan_exit(run)
        elif (exit_ns := _exit_ns(run)) is not None and exit_ns <= now:
            self._end(pod, "Succeeded", "PodCompleted", "")

    def _start(self, pod: Pod, now: int) -> None:
        fields = {"phase": "Running", "startTime": format_time(now)}
        ready = {"type": "Ready", "status": "True"}
        self._writes.append(PatchPodStatus(pod.key, pod.metadata.uid, fields, (ready,), _KUBELET))

    def _end(self, pod: Pod, phase: str, reason: str, message: str) -> None:
        fields = {"phase": phase} if phase == "Succeeded" else {"phase": phase, "reason": reason, "message": message}
        ready = {"type": "Ready", "status": "False", "reason": reason}
        self._writes.append(PatchPodStatus(pod.key, pod.metadata.uid, fields, (ready,), _KUBELET))

    def _stop(self, run: _Run, now: int) -> None:
        """Plan the removal of a deleted pod; a shorter grace period, given later, brings it forward."""
        pod = run.pod
        if run.deleted_ns is None:
            run.deleted_ns = now
        grace = (pod.metadata.deletion_grace_period_seconds or 0) * _SECOND
        termination = duration_ns(pod.metadata.annotations, TERMINATION)
        end = run.deleted_ns + (grace if termination is None else min(grace, termination))
        if run.started_ns is None:
            end = now
        if run.removal_ns is None or end < run.removal_ns:
            run.removal_ns = end
            self._agenda.add(max(end, now), run)

    def _remove(self, pod: Pod, by: str, message: str) -> None:
        self._writes.append(Delete("Pod", pod.key, pod.metadata.uid, by, grace_seconds=0, message=message))


def _exit_ns(run: _Run) -> int | None:
    """When a pod's containers exit by themselves; None where that is not known."""
    duration = duration_ns(run.pod.metadata.annotations, DURATION)
    return None if duration is None or run.started_ns is None else run.started_ns + duration


def _deletion_ns(pod: Pod) -> int | None:
    """When a pod was deleted that was terminating before the run; None for one that is not."""
    if pod.metadata.deletion_timestamp is None:
        return None
    return parse_time(pod.metadata.deletion_timestamp) - (pod.metadata.deletion_grace_period_seconds or 0) * _SECOND
