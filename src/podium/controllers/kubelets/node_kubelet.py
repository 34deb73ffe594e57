"""The kubelet of one node, and its machine.

Source: pkg/kubelet (lifecycle, preemption, status, eviction).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from podium.api.meta import Raw
from podium.api.node import MEMORY_PRESSURE, Node, condition_status
from podium.api.pod import Pod, deletion_ns
from podium.api.quantity import MEMORY, is_extended
from podium.api.resource_requests import is_resize_deferred
from podium.api.times import SECOND, time_of
from podium.api.versions.gates import Gate
from podium.api.versions.release import Behavior
from podium.cluster.pod_classes import CountingRules
from podium.controllers.actions import Action, DeleteObject, ReportStatus
from podium.controllers.deadlines import AT_ONCE, NEVER, Deadline, Deadlines, soonest
from podium.controllers.kubelets import kubelet_reports as reports
from podium.controllers.kubelets.host import Hosts, KubeletSettings
from podium.controllers.kubelets.pod_run import READERS, PodRun, allocated_spec, restarts_for, trouble_after_ns
from podium.controllers.kubelets.pod_workers import NodePods, PodWorkers
from podium.controllers.observations import Changed
from podium.decide import kubelet
from podium.decide.kubelet import Holding, MemoryUse, Refusal

# Running pods are not rejected for these (feature gate NotEvictPodOnKubeletRestart).
_NOT_FOR_RUNNING = ("NodeAffinity", "TaintToleration")
_PREEMPTED = "Preempted in order to admit critical pod"


class Arrival(msgspec.Struct, eq=False):
    """A pod that was not processed yet, as it was last shown.

    ``has_run``: its containers were started, and ``restarts`` times again; ``is_lost``: they ended with the machine.
    """

    pod: Pod
    shown: Changed
    has_run: bool = False
    restarts: int = 0
    is_lost: bool = False


class NodeKubelet:
    """Tracks a node and its pods, and acts in `tick`.

    It runs while the API shows the node and the machine is up. When the machine stops or the node is deleted, its
    containers are gone. Requests go to ``actions``. With ``hosts``, reports are complete; otherwise they have what
    schedulers and controllers need.
    """

    def __init__(self, settings: KubeletSettings, actions: list[Action], hosts: Hosts | None = None) -> None:
        self._settings = settings
        self._actions = actions
        self._hosts = hosts
        release = settings.release
        self._pods = NodePods(
            honors_policy=release.enabled(Gate.NON_PREEMPTING_PRIORITY),
            checks_groups=release.has(Behavior.GROUPS_POLICY_CHECKED),
        )
        self._rules = CountingRules.of(release)
        self._workers = PodWorkers(self._pods, actions, settings.start_delay_ns, hosts)
        self._evictions = EvictionManager(settings, self._pods, self._workers)
        # The pods that were not processed yet, by uid; and those that need not be before anything concerns the node.
        self._arrivals: dict[str, Arrival] = {}
        self._undisturbed: list[Arrival] = []
        # By uid, the pods with a resize that is not carried out.
        self._resizing: dict[str, PodRun] = {}
        # The last report about the node by type of condition; under "" the registration.
        self._reported: dict[str, ReportStatus] = {}
        self._is_down = False
        self.last_deadline: Deadline | None = None
        """The last deadline that was set, None once it has come."""
        self.gives_way = False
        """Whether other nodes that are due at the same time come first."""
        self._has_news = False

    def deadline(self) -> Deadline:
        """Return when to `tick`; repeated container failures do not keep a simulation running."""
        workers = self._workers
        if self._is_down or self._pods.node is None:
            return NEVER
        if self._has_news or (workers.has_freed and self._is_room_wanted()):
            return AT_ONCE
        deadline, evictions_ns = workers.deadlines.deadline(), self._evictions.due_ns
        return deadline if evictions_ns is None else soonest(deadline, Deadline(evictions_ns, True))

    @property
    def is_idle(self) -> bool:
        """Return whether the node is gone and has no state."""
        is_known = self._there.node is not None or self._is_down
        return not (is_known or self._arrivals or self._there.runs or self._workers.ended)

    def tick(self, now: int) -> Deadline:
        """Do what is due; return the next deadline."""
        while True:
            if self._arrivals:
                self._take_in_arrivals(now)
            self._workers.move_on(now)
            self._has_news = self._workers.has_freed = False
            if self._pods.may_wait:
                self._start_waiting(now)
            if self._resizing:
                self._resize(now)
            if self._evictions.synchronize(now) and self._pods.node is not None:
                condition = reports.memory_pressure(is_short=self._evictions.is_short)
                self._report(reports.of_node(self._pods.node, condition))
            deadline = self.deadline()
            if deadline.time_ns is None or deadline.time_ns > now:
                return deadline

    def is_running(self, uid: str) -> bool:
        """Return whether a pod's containers run."""
        run = self._there.runs.get(uid)
        return run is not None and run.is_running

    def finish(self, uid: str, now: int) -> None:
        """Let a running pod's containers exit with success."""
        if self.is_running(uid):
            self._there.runs[uid].exit_ns = now
            self._workers.plan(self._there.runs[uid])

    def retry(self, uid: str, now: int) -> None:
        """Try to start a pod again that lacked an object."""
        run = self._there.runs.get(uid)
        if run is not None and run.is_blocked:
            run.start_ns = now
            self._workers.plan(run)

    def on_report_finished(self, action: ReportStatus | DeleteObject, now: int) -> bool:
        """Handle a report that was written or is not needed; return whether that has an effect."""
        run = self._there.runs.get(action.uid)
        if run is None or run.wanted is not action:
            return False
        if not run.is_ended:
            # It is not needed any more; there are many pods.
            run.wanted = None
            return self._workers.report_generation(run, now)
        self._workers.release(run)
        self.gives_way = True
        return True

    def is_wanted(self, action: ReportStatus | DeleteObject) -> bool:
        """Return whether a failed report is still current."""
        if not self._is_up:
            return False
        if action.kind == "Node":
            return self._reported.get(reports.reported(action)) is action
        run = self._there.runs.get(action.uid) or self._workers.ended.get(action.uid)
        return run is not None and run.wanted is action

    def _report(self, report: ReportStatus) -> None:
        """Send a report about the node, in place of the last one of its type."""
        self._reported[reports.reported(report)] = report
        self._actions.append(report)

    @property
    def _there(self) -> NodePods:
        """The node and its pods, those included that ran undisturbed until now."""
        if self._undisturbed:
            arrivals, self._undisturbed = self._undisturbed, []
            for arrival in arrivals:
                # Nothing is due for it, whatever the time.
                self._take_in(arrival, 0, is_alone=False)
        return self._pods

    # The machine

    @property
    def _is_up(self) -> bool:
        return self._there.node is not None and not self._is_down

    def fail(self) -> None:
        """Stop the machine."""
        self._is_down = True
        self._lose_containers()

    def recover(self, now: int) -> None:
        """Start the machine again."""
        if self._is_down:
            self._is_down = False
            self._boot(now)

    def _lose_containers(self) -> None:
        """Queue all pods for admission again that have not ended; no containers are left."""
        for run in [run for run in self._there.runs.values() if not run.is_ended]:
            self._there.drop(run)
            has_run = run.started_ns is not None or run.last_exit is not None
            self._arrivals[run.uid] = Arrival(run.pod, Changed(run.pod, run.raw), has_run, run.restarts)
        self._workers.deadlines = Deadlines()
        for arrival in self._arrivals.values():
            arrival.is_lost = True
        self._reported.clear()
        self._resizing.clear()

    def _boot(self, now: int) -> None:
        if (node := self._there.node) is not None:
            self._evictions.begin(now, is_short=condition_status(node, MEMORY_PRESSURE) == "True")
            self._assert_known(node)
            # The API may not know the ends; failed reports were dropped when the machine stopped.
            self._actions += [run.wanted for run in self._there.runs.values() if run.wanted is not None]
            for run in self._workers.ended.values():
                run.wanted = None
                self._workers.finish_ended(run)
            self._has_news = True

    def _assert_known(self, node: Node) -> None:
        """Report the conditions that the API shows as Unknown."""
        for condition in reports.node_conditions(is_short=self._evictions.is_short):
            if condition_status(node, condition.type) == "Unknown":
                self._report(reports.of_node(node, condition))

    # Observations

    def show_node(self, node: Node, raw: Raw, now: int) -> None:
        """Take in the node; another uid is another machine."""
        before, uid = self._there.node, node.metadata.uid
        if before is not None and before.metadata.uid != uid:
            self._lose_containers()
            before = None
        self._there.read(node)
        if self._is_down:
            return
        if before is None:
            self._boot(now)
        else:
            self._assert_known(node)
            for run in list(self._there.runs.values()):
                trouble_ns = trouble_after_ns(self._there.trouble, run.pod)
                if trouble_ns != run.trouble_ns:
                    run.set_trouble(trouble_ns, now)
                    self._workers.plan(run)
                self._workers.assert_ready(run)
            self._has_news = True
        if self._hosts is not None:
            self._hosts.show_node(uid, raw)
            conditions = reports.node_conditions(is_short=self._evictions.is_short)
            gone = {name for name in before.status.capacity if is_extended(name)} if before is not None else set[str]()
            gone -= node.status.capacity.keys()
            if missing := self._hosts.missing_of(node, raw, conditions, now, gone):
                self._report(reports.of_node(node, fields=missing))

    def hide_node(self) -> None:
        """Handle the deletion of the node, which ends its machine."""
        self._there.node, self._there.trouble = None, {}
        self._lose_containers()

    def show_pod(self, pod: Pod, shown: Changed, now: int) -> bool:
        """Take in a pod on the node; return whether that has an effect."""
        uid = pod.metadata.uid
        run = self._there.runs.get(uid) or self._workers.ended.get(uid)
        if run is not None:
            return self._pod_changed(run, pod, shown.raw, now)
        arrival, has_run = self._arrivals.get(uid), pod.status.phase == "Running"
        if arrival is None:
            self._arrivals[uid] = Arrival(pod, shown, has_run, is_lost=self._is_down)
        else:
            arrival.pod, arrival.shown, arrival.has_run = pod, shown, arrival.has_run or has_run
        had_news, self._has_news = self._has_news, True
        return not had_news

    def hide_pod(self, uid: str) -> None:
        """Forget a pod that is gone from the API."""
        self._arrivals.pop(uid, None)
        if uid in self._there.runs:
            self._workers.release(self._there.runs[uid])
            self.gives_way = True
        self._workers.ended.pop(uid, None)

    def _pod_changed(self, run: PodRun, pod: Pod, raw: Raw, now: int) -> bool:
        """Take in a change of a known pod; return whether that has an effect.

        A status change of a living pod does not affect others; its end concerns only those that wait for its resources.
        """
        before, was, metadata = run.pod, run.pod.metadata, pod.metadata
        if pod.spec is before.spec and metadata.annotations is was.annotations and metadata.labels is was.labels:
            run.pod, run.raw, has_effect = pod, raw, False
        else:
            has_effect = self._reread(run, pod, raw, now)
        if pod.status.conditions is not before.status.conditions or pod.spec is not before.spec:
            self._note_resize(run)
        is_terminal = pod.is_terminal
        has_effect = self._workers.report_generation(run, now) or has_effect
        if not is_terminal and metadata.deletion_timestamp is None:
            return self._workers.assert_ready(run) or has_effect
        self.gives_way = True
        if self._is_room_wanted():
            self._has_news = True
        if not is_terminal:
            self._workers.stop_deleted(run, now)
        else:
            if run.uid in self._there.runs:
                self._workers.release(run)
            if metadata.deletion_timestamp is not None and self._is_up:
                self._workers.finish_ended(run)
        return True

    def _reread(self, run: PodRun, pod: Pod, raw: Raw, now: int) -> bool:
        """Take in a change of more than the status; return whether that has an effect."""
        before, was, metadata = run.pod, run.pod.metadata, pod.metadata
        is_another = (metadata.annotations, metadata.labels, pod.spec) != (was.annotations, was.labels, before.spec)
        was_over_limit = run.is_over_limit
        run.read(pod, raw)
        self._there.reread(run)
        exceeds = run.is_over_limit and not was_over_limit and run.is_running
        if exceeds:
            run.crash_ns = now
        if exceeds or pod.spec.active_deadline_seconds != before.spec.active_deadline_seconds:
            self._workers.plan(run)
        self._has_news = self._has_news or is_another
        return exceeds or is_another

    def _is_room_wanted(self) -> bool:
        """Return whether freed resources matter: a pod waits for them or for its resize, or memory is short."""
        if not self._evictions.is_at_rest or self._resizing:
            return True
        return self._there.may_wait and any(run.is_waiting for run in self._there.runs.values())

    # Admission

    def _take_in_arrivals(self, now: int) -> None:
        """Process the new pods.

        Running ones keep their places. Others are processed after due ends, the oldest first.
        """
        arrivals = list(self._arrivals.values())
        if len(arrivals) > 1:
            arrivals.sort(key=lambda arrival: arrival.pod.metadata.creation_timestamp or "")
        self._arrivals.clear()
        is_quiet = self._hosts is None and self._evictions.has_nothing_to_do and not self._there.trouble
        if is_quiet and not self._there.runs and all(map(_runs_undisturbed, arrivals)):
            self._undisturbed = arrivals
            return
        for arrival in arrivals:
            if arrival.has_run:
                self._take_in(arrival, now, is_alone=False)
        self._workers.move_on(now)
        for arrival in arrivals:
            if not arrival.has_run:
                self._take_in(arrival, now, is_alone=len(arrivals) == 1)

    def _take_in(self, arrival: Arrival, now: int, *, is_alone: bool) -> None:
        """Process a new pod; ``is_alone``: no other has come with it."""
        pod, there = arrival.pod, self._there
        run = PodRun.of(pod, arrival.shown.raw, self._rules)
        run.restarts, run.termination_ns = arrival.restarts, self._settings.termination_ns
        run.trouble_ns, run.active_ns = trouble_after_ns(there.trouble, pod), time_of(pod.status.start_time)
        if self._hosts is not None and there.node is not None:
            run.addresses = self._hosts.addresses_of(pod, run.raw, there.node.metadata.uid)
            if self._settings.release.enabled(Gate.OBSERVED_GENERATION):
                run.observed = run.raw.get("status", {}).get("observedGeneration", 0)
        self._note_resize(run)
        if arrival.has_run or pod.metadata.deletion_timestamp is not None or pod.is_terminal:
            run.deleted_ns, run.is_admitted = deletion_ns(pod), arrival.has_run
            there.put(run)
            self._go_on(run, arrival, now)
        else:
            there.put(run)
            self._admit(run, now, is_alone=is_alone)

    def _go_on(self, run: PodRun, arrival: Arrival, now: int) -> None:
        """Process a pod that has run already, or must not run any more."""
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
        else:
            others = [holder for holder in self._there.holders() if not holder.is_ended]
            refusals = (each for each in self._there.refusals(run, others) if each.reason not in _NOT_FOR_RUNNING)
            if (refusal := next(refusals, None)) is not None:
                self._reject(run, refusal)
            else:
                self._workers.restart(run, now)

    def _admit(self, run: PodRun, now: int, *, is_alone: bool) -> None:
        there, settings = self._there, self._settings
        verdict = there.judge(run, is_short=self._evictions.is_short, waits_for_victims=settings.waits_for_victims)
        if verdict.refusal is not None:
            self._reject(run, verdict.refusal)
            return
        if (reject_ns := trouble_after_ns(there.trouble, run.pod, is_rejection=True)) is not None:
            run.outcome = reports.rejected(run, kubelet.UNEXPECTED.reason, kubelet.UNEXPECTED.message)
            run.stopped_ns = now + reject_ns
            self._workers.plan(run)
            return
        there.admit(run, must_wait=verdict.must_wait)
        if not verdict.must_wait:
            self._workers.start(run, now, is_alone=is_alone)
        for victim in verdict.victims:
            victim.outcome = reports.rejected(victim, "Preempting", _PREEMPTED, is_disruption=True)
            self._workers.stop(victim, now, max(victim.pod.spec.termination_grace_period_seconds, 0))

    def _start_waiting(self, now: int) -> None:
        """Start the waiting pods that fit now, by priority, then arrival; reject those that will not fit."""
        waiting = [run for run in self._there.runs.values() if run.is_waiting]
        self._there.may_wait = bool(waiting)
        for run in sorted(waiting, key=lambda run: -run.pod.priority):
            here = [holder for holder in self._there.holders() if not holder.is_waiting]
            if not self._there.refusals(run, here):
                self._workers.start(run, now)
            elif left := self._there.refusals(run, self._there.staying()):
                self._reject(run, left[0])

    def _note_resize(self, run: PodRun) -> None:
        if run.allocated is None and self._rules.resizes and (self._hosts is not None or is_resize_deferred(run.pod)):
            run.allocated = allocated_spec(run.raw)
        if run.is_resizing:
            self._resizing[run.uid] = run
            self._has_news = True
        else:
            self._resizing.pop(run.uid, None)

    def _resize(self, now: int) -> None:
        """Carry out the resizes that fit now, and report the others (pkg/kubelet/allocation, RetryPendingResizes)."""
        for run in sorted(self._resizing.values(), key=lambda run: kubelet.resize_order(run.pod)):
            if not run.is_admitted or run.is_stopping or run.is_ended:
                del self._resizing[run.uid]
            elif run.is_running:
                refusal = self._there.resize(run, Holding.of(run.pod, self._rules._replace(resizes=False)))
                if refusal is not None:
                    self._workers.report_deferred_resize(run, refusal)
                else:
                    del self._resizing[run.uid]
                    if run.allocated is not None and restarts_for(run.allocated, run.raw["spec"]):
                        run.fail(reports.terminated(reports.KILLED, now), now)
                        run.restarts += 1
                        run.begin(now)
                        self._workers.plan(run)
                    run.allocated = run.raw["spec"]
                    # Others may wait for what it has given back.
                    self._workers.has_freed = True
                    self._workers.report(run, reports.resized(run))

    def _reject(self, run: PodRun, refusal: Refusal) -> None:
        self._workers.end(run, reports.rejected(run, refusal.reason, refusal.message))


def _runs_undisturbed(arrival: Arrival) -> bool:
    """Return whether a pod runs as the API shows it, so that there is nothing to report, and nothing is due."""
    pod = arrival.pod
    return (
        pod.is_ready
        and pod.status.phase == "Running"
        and bool(pod.status.start_time)
        and not (arrival.is_lost or pod.is_terminating or is_resize_deferred(pod))
        and pod.spec.active_deadline_seconds is None
        and READERS.keys().isdisjoint(pod.metadata.annotations)
    )


# The eviction interval (upstream's housekeeping interval).
_CYCLE_NS = 10 * SECOND
# The grace period of evictions by hard thresholds (immediateEvictionGracePeriodSeconds).
_GRACE_SECONDS = 1


@dataclass(eq=False)
class EvictionManager:
    """Watches the memory of one node, which is under pressure below a threshold and for a transition period after it.

    ``is_short`` is the node's condition. ``is_at_rest``: there was no pressure at the last check, so that more memory
    has no effect. ``due_ns`` is when to check again without changes.
    """

    settings: KubeletSettings
    there: NodePods
    workers: PodWorkers
    is_short: bool = False
    is_at_rest: bool = True
    due_ns: int | None = None
    _is_below: bool = False
    _short_ns: int = 0
    _next_cycle_ns: int = 0

    def begin(self, now: int, *, is_short: bool) -> None:
        """Start with the condition that the API shows."""
        self.is_short, self._short_ns = is_short, now
        self.is_at_rest = not (is_short or self._is_below)
        self._next_cycle_ns = now + _CYCLE_NS if is_short else now

    @property
    def has_nothing_to_do(self) -> bool:
        """Return whether there was no pressure at the last check, and there is none now."""
        return self.is_at_rest and self.there.available_bytes() >= self.settings.memory_threshold_bytes

    def synchronize(self, now: int) -> bool:
        """Evict the next pod if it is time; return whether the node's condition has changed."""
        if self.has_nothing_to_do:
            self.due_ns = None
            return False
        available, threshold = self.there.available_bytes(), self.settings.memory_threshold_bytes
        was_short, was_below = self.is_short, self._is_below
        self._is_below = available < threshold
        if self._is_below or was_below:
            self._short_ns = now
        transition_ns = self.settings.pressure_transition_ns
        self.is_short = self._is_below or (was_short and now < self._short_ns + transition_ns)
        self.is_at_rest = not self.is_short
        ranking: Sequence[kubelet.MemoryUse] = ()
        if self._is_below and self._next_cycle_ns <= now:
            runs = [run for run in self.there.staying() if run.is_running]
            uses = [MemoryUse(run.pod, run.behaviour.memory_bytes, run.holding.amounts.get(MEMORY, 0)) for run in runs]
            ranking = kubelet.memory_ranking(uses, self.settings.eviction_order)
        if ranking:
            # The next eviction comes a cycle later, when the memory of this pod is free.
            self._next_cycle_ns = now + _CYCLE_NS
            run = self.there.runs[ranking[0].pod.metadata.uid]
            message = kubelet.eviction_message(ranking[0], threshold, max(0, available))
            run.outcome = reports.rejected(run, "Evicted", message, is_disruption=True)
            self.workers.stop(run, now, _GRACE_SECONDS)
        if self._is_below:
            self.due_ns = self._next_cycle_ns if self._next_cycle_ns > now else None
        else:
            self.due_ns = self._short_ns + transition_ns if self.is_short else None
        return self.is_short != was_short
