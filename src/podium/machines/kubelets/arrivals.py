"""Pods that come to a node: whether they may stay, and when they start.

Source: pkg/kubelet (HandlePodAdditions, lifecycle, preemption).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.api.deletion import deletion_ns
from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.decide.kubelet_admission import UNEXPECTED, Refusal
from podium.machines.kubelets import kubelet_reports as reports
from podium.machines.kubelets.host import Hosts
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.kubelets.node_memory import NodeMemory
from podium.machines.kubelets.node_runs import NodeRuns
from podium.machines.kubelets.pod_run import PodRun
from podium.machines.kubelets.pod_workers import PodWorkers


class Arrival(msgspec.Struct, eq=False):
    """A pod that the kubelet has yet to look at.

    ``has_run``: its containers were started, and ``restarts`` times again; ``is_lost``: they went with the machine.
    """

    pod: Pod
    raw: Raw
    has_run: bool = False
    restarts: int = 0
    is_lost: bool = False


class Arrivals:
    """Looks at the pods that have come, and starts those that wait for others to leave; ``pods`` are by uid.

    ``hosts`` are where addresses come from, None where none are reported.
    """

    def __init__(
        self, settings: KubeletSettings, there: NodeRuns, workers: PodWorkers, memory: NodeMemory, hosts: Hosts | None
    ) -> None:
        self._termination_ns = settings.termination_ns
        self._waits_for_victims = settings.waits_for_victims
        self._there = there
        self._workers = workers
        self._memory = memory
        self._hosts = hosts
        self.pods: dict[str, Arrival] = {}

    def lose(self, runs: Iterable[PodRun]) -> None:
        """The machine stops: the pods that ran there are to be looked at anew, and no containers are left of any."""
        for run in runs:
            has_run = run.started_ns is not None or run.last_exit is not None
            self.pods[run.uid] = Arrival(run.pod, run.raw, has_run, run.restarts)
        for arrival in self.pods.values():
            arrival.is_lost = True

    def look(self, now: int) -> None:
        """Look at the pods that have come.

        Those that run already keep their places. Others are looked at when what is to end by now has, the oldest first.
        """
        arrivals = list(self.pods.values())
        if len(arrivals) > 1:
            arrivals.sort(key=lambda arrival: arrival.pod.metadata.creation_timestamp or "")
        self.pods.clear()
        for arrival in arrivals:
            if arrival.has_run:
                self._take_in(arrival, now, is_alone=False)
        self._workers.move_on(now)
        is_alone = len(arrivals) == 1
        for arrival in arrivals:
            if not arrival.has_run:
                self._take_in(arrival, now, is_alone=is_alone)

    def start_waiting(self, now: int) -> None:
        """Start the waiting pods that fit now; turn away those that will not fit any more."""
        waiting = self._there.waiting()
        self._there.may_wait = bool(waiting)
        for run in waiting:
            here = [holder for holder in self._there.holders() if not holder.is_waiting]
            if not self._there.refusals(run, here):
                self._workers.start(run, now)
            elif left := self._there.refusals(run, self._there.staying()):
                self._turn_away(run, left[0])

    def _take_in(self, arrival: Arrival, now: int, *, is_alone: bool) -> None:
        """Look at a pod that has come; ``is_alone``: no other has come with it."""
        pod, there = arrival.pod, self._there
        run = PodRun.of(pod, arrival.raw)
        run.restarts, run.termination_ns = arrival.restarts, self._termination_ns
        if there.trouble is not None:
            run.trouble_ns = there.trouble_ns(pod)
        if self._hosts is not None and there.node is not None:
            run.addresses = self._hosts.addresses_of(pod, run.raw, there.node.metadata.uid)
        if arrival.has_run or pod.metadata.deletion_timestamp is not None or pod.is_terminal:
            run.deleted_ns, run.is_admitted = deletion_ns(pod), arrival.has_run
            there.put(run)
            self._go_on(run, arrival, now)
        else:
            there.put(run)
            self._admit(run, now, is_alone=is_alone)

    def _go_on(self, run: PodRun, arrival: Arrival, now: int) -> None:
        """A pod has come that has run already, or is to run no more."""
        pod = run.pod
        if pod.is_terminal:
            self._workers.release(run)
            self._workers.finish_ended(run)
            return
        if arrival.has_run and not arrival.is_lost:
            self._workers.resume(run, now)
        if pod.is_terminating:
            self._workers.stop_deleted(run, now)
        elif not arrival.is_lost:
            self._workers.assert_ready(run)
        elif (refusal := self._there.judge_again(run).refusal) is not None:
            self._turn_away(run, refusal)
        else:
            self._workers.restart(run, now)

    def _admit(self, run: PodRun, now: int, *, is_alone: bool) -> None:
        """Let a pod stay that is new, or turn it away."""
        there = self._there
        verdict = there.judge(run, is_short=self._memory.is_short, waits_for_victims=self._waits_for_victims)
        if verdict.refusal is not None:
            self._turn_away(run, verdict.refusal)
            return
        reject_ns = None if there.trouble is None else there.reject_ns(run.pod)
        if reject_ns is not None:
            self._workers.give_up(run, reports.rejected(run, UNEXPECTED), now + reject_ns)
            return
        there.admit(run, must_wait=verdict.must_wait)
        if not verdict.must_wait:
            self._workers.start(run, now, is_alone=is_alone)
        for victim in verdict.victims:
            victim.outcome = reports.preempted(victim)
            self._workers.stop(victim, now, max(victim.pod.spec.termination_grace_period_seconds, 0))

    def _turn_away(self, run: PodRun, refusal: Refusal) -> None:
        self._workers.end(run, reports.rejected(run, refusal))
