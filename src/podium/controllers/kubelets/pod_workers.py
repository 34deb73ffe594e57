"""The lifecycle of pods on a node: admission, start, restarts and end.

Source: pkg/kubelet (pod_workers.go, kuberuntime, status).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from podium.api import meta, quantity, resource_requests, times
from podium.api import node as nodes
from podium.api.node import DISK_PRESSURE, PID_PRESSURE, Node, condition_status, is_ready
from podium.controllers.actions import Action, DeleteObject, Record, ReportStatus
from podium.controllers.deadlines import Deadlines
from podium.controllers.indexes import exchange
from podium.controllers.kubelets import kubelet_reports as reports
from podium.controllers.kubelets.host import Hosts
from podium.controllers.kubelets.kubelet_reports import CRASHED, LOST, OUT_OF_MEMORY_KILLED, read_restarts, terminated
from podium.controllers.kubelets.pod_run import TROUBLE, CrashBackOff, PodRun
from podium.decide import kubelet
from podium.decide.kubelet import HeldResources, Holding, Refusal


@dataclass(eq=False)
class PodWorkers:
    """Advances pods when they are due.

    ``there`` are the pods that hold resources, ``ended`` (by uid) those that the API knows to have ended. Reports go to
    ``actions``. ``has_freed``: a pod has ended since it was cleared. With ``hosts``, stops have Events, and a
    pod may have to wait for objects that it names.
    """

    there: NodePods
    actions: list[Action]
    start_delay_ns: int
    hosts: Hosts | None = None
    deadlines: Deadlines[PodRun] = field(default_factory=Deadlines)
    ended: dict[str, PodRun] = field(default_factory=dict)
    has_freed: bool = False

    def move_on(self, now: int) -> None:
        """Advance the pods that are due."""
        while (run := self.deadlines.take_due(now)) is not None:
            if run.stopped_ns is not None and run.stopped_ns <= now:
                if run.outcome is not None or run.pod.metadata.finalizers:
                    # With finalizers it stays in the API, and must not look as if it still ran.
                    self.end(run, run.outcome or reports.killed(run))
                else:
                    self._on_pod_end(run)
                    self._finish_deletion(run, "")
            elif (deadline_ns := run.deadline_ns()) is not None and deadline_ns <= now:
                run.outcome, late = reports.exceeded(run)
                self.actions += [late] if self.hosts is not None else []
                self.stop(run, now, max(run.pod.spec.termination_grace_period_seconds, 0))
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
                self.plan(run)

    # Beginnings

    def start(self, run: PodRun, now: int, *, is_alone: bool = False) -> None:
        """Start an admitted pod; one that ``is_alone`` starts at once without a delay."""
        run.is_waiting = False
        if is_alone and not self.start_delay_ns:
            self._start(run, now)
        else:
            run.start_ns = now + self.start_delay_ns
        self.plan(run)

    def resume(self, run: PodRun, now: int) -> None:
        """Continue a pod that ran before the kubelet started."""
        status = run.pod.status
        run.restarts, started_ns = read_restarts(run.raw)
        if run.restarts and started_ns is None and run.is_failing:
            run.fail(_failure(run, now), now)
        else:
            run.begin(started_ns or (times.parse_time(status.start_time) if status.start_time else now))
            ready = status.condition("Ready")
            if ready is not None and (ready.status == "True" or ready.reason in _NOT_OF_CONTAINERS):
                run.is_ready, run.ready_ns = True, None
            elif ready is not None and run.ready_ns is None:
                run.is_ready = False
        self.plan(run)

    def restart(self, run: PodRun, now: int) -> None:
        """Restart a pod that ran until its machine stopped, or fail it by its restart policy."""
        run.restarts = max(run.restarts, read_restarts(run.raw)[0])
        exit_ = terminated(LOST, now)
        if run.pod.spec.restart_policy == "Never":
            self.end(run, reports.failed(run, exit_))
        else:
            run.fail(exit_, now)
            self.plan(run)

    def _start(self, run: PodRun, now: int) -> None:
        if self.hosts is not None and (references := self.hosts.references) is not None:
            obstacle = next(references.obstacles(run.raw, is_restart=run.last_exit is not None), None)
            references.note(run.pod.key, None if obstacle is None else obstacle.needed)
            if obstacle is not None:
                run.start_ns, run.active_ns = None, now if run.active_ns is None else run.active_ns
                self.report(run, reports.blocked(run, obstacle))
                self.actions.append(Record(run.pod.key, run.uid, "Warning", obstacle.reason, obstacle.message))
                return
        run.restarts += run.last_exit is not None
        run.begin(now)
        self.report(run, reports.started(run, now))

    def _crash(self, run: PodRun, now: int) -> None:
        """Handle containers that fail."""
        exit_ = _failure(run, now)
        if run.is_stopping or run.pod.spec.restart_policy == "Never":
            self.end(run, run.outcome or reports.failed(run, exit_))
            return
        run.backoff = run.backoff or CrashBackOff()
        start_ns = run.backoff.next_start_ns(now)
        run.fail(exit_, start_ns)
        if start_ns > now:
            self.report(run, reports.backing_off(run, start_ns - now))

    # Ends

    def stop(self, run: PodRun, asked_ns: int, grace_seconds: int, *, is_forced: bool = False) -> None:
        """End a pod within a grace period; a shorter one brings the end forward."""
        if self.hosts is not None and run.is_running and not run.is_stopping:
            self.actions += reports.stops(run)
        run.stop(asked_ns, grace_seconds, is_forced=is_forced)
        self.plan(run)

    def stop_deleted(self, run: PodRun, now: int) -> None:
        grace_seconds = run.pod.metadata.deletion_grace_period_seconds or 0
        if run.deleted_ns is None:
            run.deleted_ns = now
        self.stop(run, run.deleted_ns if run.is_running else now, grace_seconds, is_forced=not grace_seconds)

    def end(self, run: PodRun, report: ReportStatus) -> None:
        """Report the end of a pod whose containers are gone."""
        self._on_pod_end(run)
        self.report(run, report)

    def release(self, run: PodRun) -> None:
        """Free the resources of a pod that the API knows to have ended."""
        self._on_pod_end(run)
        self.there.drop(run)
        self.ended[run.uid] = run

    def finish_ended(self, run: PodRun) -> None:
        if run.pod.is_terminating and run.pod.is_terminal and not isinstance(run.wanted, DeleteObject):
            self._finish_deletion(run, "its containers had ended")

    def report(self, run: PodRun, report: ReportStatus | DeleteObject) -> None:
        """Send a report, in place of the last one."""
        run.wanted = report
        if run.observed is not None:
            run.observed = run.pod.metadata.generation
        self.actions.append(report)

    def report_generation(self, run: PodRun, now: int) -> bool:
        """Report that a pod's newer spec is in effect, unless a report is under way; return whether it was reported."""
        is_due = run.is_behind and run.wanted is None and not (run.is_ended or run.is_resizing)
        if not is_due or run.pod.status.phase != "Running":
            return False
        self.report(run, reports.observed(run, now))
        return True

    def report_deferred_resize(self, run: PodRun, refusal: Refusal) -> None:
        """Report why a resize has to wait, unless the API knows it."""
        report = reports.deferred_resize(run, refusal)
        known = run.pod.status.condition(resource_requests.RESIZE_PENDING)
        is_news = report != run.wanted and (run.is_behind or report.conditions != (known,))
        if is_news and run.addresses is not None:
            self.report(run, report)

    def assert_ready(self, run: PodRun) -> bool:
        """Report whether a pod with ready containers is ready if the API shows otherwise on a ready node.

        Return whether it was reported.
        """
        ready = run.pod.status.condition("Ready")
        if ready is None or not (run.is_ready and run.is_running):
            return False
        node, wanted = self.there.node, reports.readiness(run)
        is_known = ready.status == wanted.status and wanted.message in ("", ready.message)
        is_denied = ready.status != "Unknown" and not is_known and run.pod.status.phase == "Running"
        if not (is_denied and node and is_ready(node)):
            return False
        self.report(run, reports.ready(run))
        return True

    def _on_pod_end(self, run: PodRun) -> None:
        self.has_freed = True
        if not run.is_ended:
            run.is_ended, run.is_waiting = True, False
            self.deadlines.set(run, None)

    def _finish_deletion(self, run: PodRun, message: str) -> None:
        self.report(run, DeleteObject("Pod", run.pod.key, run.uid, reports.KUBELET, 0, message))

    def plan(self, run: PodRun) -> None:
        """Set when a pod is due, after a change of its times."""
        # Repeated crashes bring nothing new. After the pod of a CronJob, the next one may be due.
        is_in_crash_loop = run.backoff is not None and run.backoff.crashes > 1 and not run.is_stopping
        due_ns, is_last = run.due_ns(), is_in_crash_loop and run.deadline_ns() is None
        self.deadlines.set(run, due_ns, recurs=is_last or (due_ns == run.exit_ns and run.is_on_schedule))


# Containers are ready all the same if a pod is not ready for these reasons.
_NOT_OF_CONTAINERS = (nodes.NODE_NOT_READY, reports.GATES_NOT_READY)


def _failure(run: PodRun, now: int) -> meta.Raw:
    """Return the exit of failed containers."""
    return terminated(OUT_OF_MEMORY_KILLED if run.is_over_limit else CRASHED, now)


class AdmissionVerdict(Struct, frozen=True):
    """The result of admission: rejected for the ``refusal``, or admitted.

    With ``must_wait`` the pod starts when others have ended; ``victims`` end for it.
    """

    refusal: Refusal | None = None
    must_wait: bool = False
    victims: tuple[PodRun, ...] = ()


@dataclass(slots=True, eq=False)
class NodePods:
    """The pods on one node. ``node`` is None if the API shows no such node; ``runs`` are by uid, in order of arrival.

    An ended pod stays until the API knows its end; its resources are free only then, so that a restarted kubelet never
    finds too many pods. With ``honors_policy``, non-preemptible pods end for no other. With ``checks_groups``, pods
    need the node's support for their supplementalGroupsPolicy. ``trouble`` are the node's annotations if they define
    faults. ``may_wait``: some pod may be waiting.
    """

    node: Node | None = None
    allocatable: Mapping[str, int] = field(default_factory=dict)
    runs: dict[str, PodRun] = field(default_factory=dict)
    honors_policy: bool = True
    checks_groups: bool = True
    trouble: Mapping[str, str] = field(default_factory=dict)
    may_wait: bool = False
    # The other pressures of the node.
    _pressures: list[str] = field(default_factory=list, init=False)
    # The sum of the held resources.
    _held: HeldResources = field(default_factory=HeldResources, init=False)
    # By uid, the pods that state their memory use.
    _users: dict[str, PodRun] = field(default_factory=dict, init=False)

    def read(self, node: Node) -> None:
        """Take in a newer state of the node."""
        self.node = node
        self.allocatable = resource_requests.node_allocatable(node.status)
        annotations = node.metadata.annotations
        self.trouble = annotations if TROUBLE in annotations else {}
        self._pressures = [type_ for type_ in (DISK_PRESSURE, PID_PRESSURE) if condition_status(node, type_) == "True"]

    def put(self, run: PodRun) -> None:
        self.runs[run.uid] = run
        self.reread(run)
        if run.is_admitted:
            self._held.add(run.holding)

    def reread(self, run: PodRun) -> None:
        """Update a pod whose annotations may have changed."""
        exchange(self._users, run.uid, run if run.uid in self.runs and run.behaviour.memory_bytes else None)

    def admit(self, run: PodRun, *, must_wait: bool) -> None:
        """Admit a pod; it holds its resources even if it has to wait."""
        run.is_admitted, run.is_waiting = True, must_wait
        self.may_wait = self.may_wait or must_wait
        self._held.add(run.holding)

    def resize(self, run: PodRun, holding: Holding) -> Refusal | None:
        """Let a pod hold other resources if the node has room for them; return what is lacking otherwise."""
        before, run.holding = run.holding, holding
        found = next((each for each in self.refusals(run, self.holders()) if each.lacking is not None), None)
        if found is not None:
            run.holding = before
        else:
            self._held.remove(before)
            self._held.add(holding)
        return found

    def drop(self, run: PodRun) -> None:
        del self.runs[run.uid]
        if run.behaviour.memory_bytes:
            self._users.pop(run.uid, None)
        if run.is_admitted:
            self._held.remove(run.holding)

    def judge(self, run: PodRun, *, is_short: bool, waits_for_victims: bool) -> AdmissionVerdict:
        """Return whether a pod is admitted; ``is_short``: the node has memory pressure.

        A pod that fits beside running ones waits until the API knows the end of the others. With ``waits_for_victims``
        it also waits for terminating pods; for a critical pod, others are killed.
        """
        # The conditions under which the node rejects some pods.
        pressures = [nodes.MEMORY_PRESSURE, *self._pressures] if is_short else self._pressures
        if (refused := kubelet.pressure_refusal(run.pod, pressures)) is not None:
            return AdmissionVerdict(refused)
        if not self._refusals(run, self._held):
            return AdmissionVerdict()
        found = self.refusals(run, [holder for holder in self.holders() if not holder.is_ended])
        if not found:
            return AdmissionVerdict(must_wait=True)
        if kubelet.is_critical(run.pod):
            return self._make_room(run)
        waits = waits_for_victims and not self.refusals(run, self.staying())
        return AdmissionVerdict(must_wait=True) if waits else AdmissionVerdict(found[0])

    def refusals(self, run: PodRun, others: Iterable[PodRun]) -> list[Refusal]:
        """Return why a pod may not run beside others."""
        return self._refusals(run, HeldResources(other.holding for other in others if other is not run))

    def _refusals(self, run: PodRun, others: HeldResources) -> list[Refusal]:
        if self.node is None:
            raise ValueError(f"pod {run.pod.key}: its node is not known")
        found = (run.pod, run.holding, self.node, self.allocatable, others)
        return kubelet.refusals(*found, checks_groups=self.checks_groups)

    def holders(self) -> list[PodRun]:
        """Return the pods that hold resources, including waiting ones."""
        return [run for run in self.runs.values() if run.is_admitted]

    def staying(self) -> list[PodRun]:
        """Return the holders that are neither being killed nor ended."""
        return [run for run in self.holders() if not run.is_stopping and not run.is_ended]

    def available_bytes(self) -> int:
        """Return the memory that running pods leave; negative if they use too much."""
        available = self.allocatable.get(quantity.MEMORY, 0)
        if self._users:
            available -= sum(run.behaviour.memory_bytes for run in self._users.values() if run.is_running)
        return available

    def _make_room(self, run: PodRun) -> AdmissionVerdict:
        """Return whether a critical pod fits after the end of less important ones.

        If anything but resources is missing, that is the reason of its rejection, and no pod ends.
        """
        staying = self.staying()
        left = self.refusals(run, staying)
        for refusal in left:
            if refusal.lacking is None:
                return AdmissionVerdict(refusal)
        lacking = dict(refusal.lacking for refusal in left if refusal.lacking is not None)
        holders = [kubelet.EvictablePod(each.pod, each.holding.amounts) for each in staying if each is not run]
        victims = kubelet.make_room(run.pod, holders, lacking, honors_policy=self.honors_policy)
        if isinstance(victims, Refusal):
            return AdmissionVerdict(victims)
        return AdmissionVerdict(must_wait=True, victims=tuple(self.runs[victim.metadata.uid] for victim in victims))
