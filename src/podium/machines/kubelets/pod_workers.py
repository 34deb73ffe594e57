"""The life of each pod on a node: its start, its restarts, and its end.

Source: pkg/kubelet (pod_workers.go, kuberuntime, status).
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node_health import NODE_NOT_READY, is_ready
from podium.api.times import parse_time
from podium.machines.actions import Action, DeleteObject, ReportStatus
from podium.machines.kubelets import kubelet_reports as reports
from podium.machines.kubelets.container_statuses import (
    CRASHED,
    LOST,
    OUT_OF_MEMORY_KILLED,
    read_restarts,
    terminated,
)
from podium.machines.kubelets.crash_backoff import CrashBackOff
from podium.machines.kubelets.node_runs import NodeRuns
from podium.machines.kubelets.pod_run import PodRun
from podium.machines.parts.deadlines import Deadlines


class PodWorkers:
    """Moves pods on when their time has come.

    ``there`` are the pods that hold their room, ``ended`` by uid those that the API knows to have ended, until it
    forgets them. ``deadlines`` say when something is due for a pod; that containers fail over and over again is no
    news. ``actions`` is where reports go. ``has_freed``: a pod has ended since this was last cleared. With
    ``records_stops`` people are told of each container that is stopped.
    """

    def __init__(
        self, there: NodeRuns, actions: list[Action], start_delay_ns: int, *, records_stops: bool = False
    ) -> None:
        self._there = there
        self._actions = actions
        self._start_delay_ns = start_delay_ns
        self._records_stops = records_stops
        self.deadlines: Deadlines[PodRun] = Deadlines()
        self.ended: dict[str, PodRun] = {}
        self.has_freed = False

    def lose(self) -> list[PodRun]:
        """The machine stops: give up the pods whose containers go with it. How others ended is not forgotten."""
        lost = [run for run in self._there.runs.values() if not run.is_ended]
        for run in lost:
            self._there.drop(run)
        self.deadlines = Deadlines()
        return lost

    def report_ends(self) -> None:
        """The machine is back: tell the API of the ends that it may not know of."""
        self._actions += [run.wanted for run in self._there.runs.values() if run.wanted is not None]
        for run in self.ended.values():
            # What could not be written before the machine stopped was given up with it.
            run.wanted = None
            self.finish_ended(run)

    def move_on(self, now: int) -> None:
        """Do what is due for the pods."""
        while (run := self.deadlines.take_due(now)) is not None:
            if run.stopped_ns is not None and run.stopped_ns <= now:
                self._stopped(run)
            elif run.started_ns is None:
                self._start(run, now)
            elif run.exit_ns is not None and run.exit_ns <= now:
                self.end(run, reports.succeeded(run, now))
            elif run.crash_ns is not None and run.crash_ns <= now:
                self._crash(run, now)
            else:
                run.is_ready, run.ready_ns = True, None
                self.report(run, reports.ready(run))
            if not run.is_ended:
                self._plan(run)

    # Beginnings

    def start(self, run: PodRun, now: int, *, is_alone: bool = False) -> None:
        """Let an admitted pod start. One that ``is_alone`` starts before anything else is due, if it need not wait."""
        run.is_waiting = False
        if is_alone and not self._start_delay_ns:
            self._start(run, now)
        else:
            run.start_ns = now + self._start_delay_ns
        self._plan(run)

    def resume(self, run: PodRun, now: int) -> None:
        """A pod ran before the kubelet looked: it keeps its place."""
        status, restarts = run.pod.status, read_restarts(run.raw)
        run.restarts = restarts.count
        if restarts.count and restarts.started_ns is None and run.is_failing:
            run.fail(_failure(run, now), now)
        else:
            run.begin(restarts.started_ns or (parse_time(status.start_time) if status.start_time else now))
            ready = status.condition("Ready")
            if ready is not None and (ready.status == "True" or ready.reason == NODE_NOT_READY):
                run.is_ready, run.ready_ns = True, None
            elif ready is not None and run.ready_ns is None:
                run.is_ready = False
        self._plan(run)

    def restart(self, run: PodRun, now: int) -> None:
        """A pod ran until its machine stopped: start it again, or let it fail if its restart policy says so."""
        run.restarts = max(run.restarts, read_restarts(run.raw).count)
        exit_ = terminated(LOST, now)
        if run.pod.spec.restart_policy == "Never":
            self.end(run, reports.failed(run, exit_))
        else:
            run.fail(exit_, now)
            self._plan(run)

    def _start(self, run: PodRun, now: int) -> None:
        run.restarts += run.last_exit is not None
        run.begin(now)
        self.report(run, reports.started(run, now))

    def _crash(self, run: PodRun, now: int) -> None:
        """A pod's containers exit with failure."""
        exit_ = _failure(run, now)
        if run.is_stopping or run.pod.spec.restart_policy == "Never":
            self.end(run, run.outcome or reports.failed(run, exit_))
            return
        run.backoff = run.backoff or CrashBackOff()
        start_ns = run.backoff.next_start_ns(now)
        run.fail(exit_, start_ns)
        if start_ns > now:
            self.report(run, reports.backing_off(run, start_ns - now))

    def suffer(self, run: PodRun, trouble_ns: int | None, now: int) -> None:
        """Containers of a pod fail for their node's sake from now on, or do so no more (None)."""
        if trouble_ns != run.trouble_ns:
            run.suffer(trouble_ns, now)
            self._plan(run)

    def exceed(self, run: PodRun, now: int) -> None:
        """The containers of a pod that runs use more memory than they may."""
        run.crash_ns = now
        self._plan(run)

    # Ends

    def finish(self, run: PodRun, now: int) -> None:
        """Let a pod's containers exit by themselves, with success."""
        run.exit_ns = now
        self._plan(run)

    def stop(self, run: PodRun, asked_ns: int, grace_seconds: int, *, is_forced: bool = False) -> None:
        """Let a pod end within a grace period; a shorter one, given later, brings the end forward."""
        if self._records_stops and run.is_running and not run.is_stopping:
            self._actions += reports.stops(run)
        run.stop(asked_ns, grace_seconds, is_forced=is_forced)
        self._plan(run)

    def give_up(self, run: PodRun, report: ReportStatus, end_ns: int) -> None:
        """A pod that has not started will not: its end is reported at a time, or when it is deleted before."""
        run.outcome, run.stopped_ns = report, end_ns
        self._plan(run)

    def stop_deleted(self, run: PodRun, now: int) -> None:
        """Let a pod end that was deleted."""
        grace_seconds = run.pod.metadata.deletion_grace_period_seconds or 0
        asked_ns = run.asked_to_end_ns(now)
        self.stop(run, asked_ns if run.is_running else now, grace_seconds, is_forced=not grace_seconds)

    def end(self, run: PodRun, report: ReportStatus) -> None:
        """A pod's containers are gone, and the API is to be told how it ended."""
        self._gone(run)
        run.wanted = report
        self._actions.append(report)

    def release(self, run: PodRun) -> None:
        """The API knows that a pod has ended: what it held is free."""
        self._gone(run)
        self._there.drop(run)
        self.ended[run.uid] = run

    def finish_ended(self, run: PodRun) -> None:
        """The API shows that a pod has ended: once it is deleted as well, nothing holds it."""
        if run.pod.is_terminating and run.pod.is_terminal and not isinstance(run.wanted, DeleteObject):
            self._finish_deletion(run, "its containers had ended")

    def report(self, run: PodRun, report: ReportStatus) -> None:
        """Tell the API, in place of what it was told before."""
        run.wanted = report
        self._actions.append(report)

    def assert_ready(self, run: PodRun) -> bool:
        """Say that a pod is ready, where the API shows that it is not, and its node is; whether that is said."""
        if not (run.is_ready and run.is_running):
            return False
        node, ready = self._there.node, run.pod.status.condition("Ready")
        is_denied = ready is not None and ready.status == "False" and run.pod.status.phase == "Running"
        if not (is_denied and node and is_ready(node)):
            return False
        self.report(run, reports.ready(run))
        return True

    def _stopped(self, run: PodRun) -> None:
        if run.outcome is not None:
            self.end(run, run.outcome)
        elif run.pod.metadata.finalizers:
            # It stays in the API for others to see, and must not look as if it still ran.
            self.end(run, reports.killed(run))
        else:
            self._gone(run)
            self._finish_deletion(run, "")

    def _gone(self, run: PodRun) -> None:
        self.has_freed = True
        if not run.is_ended:
            run.is_ended, run.is_waiting = True, False
            self.deadlines.set(run, None)

    def _finish_deletion(self, run: PodRun, message: str) -> None:
        run.wanted = DeleteObject("Pod", run.pod.key, run.uid, reports.KUBELET, 0, message)
        self._actions.append(run.wanted)

    def _plan(self, run: PodRun) -> None:
        self.deadlines.set(run, run.due_ns(), recurs=run.is_in_crash_loop)


def _failure(run: PodRun, now: int) -> Raw:
    """How the containers of a pod ended that failed."""
    return terminated(OUT_OF_MEMORY_KILLED if run.is_over_limit else CRASHED, now)
