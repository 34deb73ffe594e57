"""The kubelet of one node, and the machine on which it runs.

Source: pkg/kubelet (lifecycle, preemption, status).
"""

from __future__ import annotations

import msgspec

from podium.api.deletion import deletion_ns
from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.node_health import MEMORY_PRESSURE, condition_status, is_ready
from podium.api.pod import Pod, PodCondition
from podium.decide.kubelet_admission import UNEXPECTED, Refusal
from podium.machines.actions import Action, DeleteObject, ReportStatus
from podium.machines.kubelets import kubelet_reports as reports
from podium.machines.kubelets.eviction_manager import EvictionManager
from podium.machines.kubelets.host import Hosts
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.kubelets.node_memory import NodeMemory
from podium.machines.kubelets.node_runs import NodeRuns
from podium.machines.kubelets.pod_run import PodRun
from podium.machines.kubelets.pod_workers import PodWorkers
from podium.machines.parts.deadlines import AT_ONCE, NEVER, Deadline, soonest


class _Arrival(msgspec.Struct, eq=False):
    """A pod that the kubelet has yet to look at.

    ``has_run``: its containers were started, and ``restarts`` times again; ``is_lost``: they went with the machine.
    """

    pod: Pod
    raw: Raw
    has_run: bool = False
    restarts: int = 0
    is_lost: bool = False


class NodeKubelet:
    """Takes in what the API shows of its node and pods, and acts upon it in `tick`.

    It runs while the API shows the node and the node's machine is not down. When the machine stops, or the node goes,
    its containers are gone; the kubelet begins anew with what the API shows by then, and with how pods had ended.
    ``actions`` is where what it asks for goes. With ``hosts`` it reports all that kubelets do, else what schedulers and
    controllers need.
    """

    def __init__(self, settings: KubeletSettings, actions: list[Action], hosts: Hosts | None = None) -> None:
        self._termination_ns = settings.termination_ns
        self._hosts = hosts
        self._waits_for_victims = settings.waits_for_victims
        self._actions = actions
        self._there = NodeRuns(honors_policy=settings.honors_policy)
        self._workers = PodWorkers(self._there, actions, settings.start_delay_ns, records_stops=hosts is not None)
        self._memory = NodeMemory(settings.memory_threshold_bytes, settings.pressure_transition_ns)
        self._evictions = EvictionManager(self._memory, self._there, self._workers, settings.eviction_order)
        self._is_down = False
        self.told: Deadline | None = None
        """The deadline as it was told last, None where it has come since."""
        self.gives_way = False
        """Whether others come first since then, of those that are due at the same time."""
        # By uid, pods to look at.
        self._arrivals: dict[str, _Arrival] = {}
        self._has_news = False
        # By type, the condition that the API was told last; under "" all that nobody had said.
        self._conditions: dict[str, ReportStatus] = {}

    def deadline(self) -> Deadline:
        """When to `tick`; that containers fail over and over again is no news."""
        workers = self._workers
        if self._is_down or self._there.node is None:
            return NEVER
        if self._has_news or (workers.has_freed and self._is_room_wanted()):
            return AT_ONCE
        deadline, evictions_ns = workers.deadlines.deadline(), self._evictions.due_ns
        return deadline if evictions_ns is None else soonest(deadline, Deadline(evictions_ns, True))

    @property
    def is_idle(self) -> bool:
        """Whether there is no such node, and nothing of it to keep in mind."""
        if self._there.node is not None or self._is_down:
            return False
        return not (self._arrivals or self._there.runs or self._workers.ended)

    def tick(self, now: int) -> Deadline:
        """Do what is due, as something is; says when to `tick` again."""
        while True:
            if self._arrivals:
                self._look_at_arrivals(now)
            self._workers.move_on(now)
            self._has_news = self._workers.has_freed = False
            if self._there.may_wait:
                self._start_waiting(now)
            if self._evictions.synchronize(now) and self._there.node is not None:
                self._report_condition(self._there.node, reports.memory_pressure(is_short=self._memory.is_short))
            deadline = self.deadline()
            if deadline.time_ns is None or deadline.time_ns > now:
                return deadline

    def is_running(self, uid: str) -> bool:
        """Whether a pod's containers run."""
        run = self._there.runs.get(uid)
        return run is not None and run.is_running

    def finish(self, uid: str, now: int) -> None:
        """A pod's containers have exited by themselves; nothing where they do not run."""
        if self.is_running(uid):
            self._workers.finish(self._there.runs[uid], now)

    def written(self, action: ReportStatus | DeleteObject) -> bool:
        """The API knows what it was told, or will not be told; whether that changes anything here."""
        run = self._there.runs.get(action.uid)
        if run is None or run.wanted is not action:
            return False
        if not run.is_ended:
            # It is not needed any more, and there are many pods.
            run.wanted = None
            return False
        self._workers.release(run)
        self.gives_way = True
        return True

    def is_wanted(self, action: Action) -> bool:
        """Whether what failed to be written is still what the API should be told last."""
        match action:
            case _ if not self._is_up:
                return False
            case ReportStatus(kind="Node"):
                return self._conditions.get(reports.reported(action)) is action
            case ReportStatus() | DeleteObject():
                run = self._there.runs.get(action.uid) or self._workers.ended.get(action.uid)
                return run is not None and run.wanted is action
            case _:
                return False

    # The machine

    @property
    def _is_up(self) -> bool:
        return self._there.node is not None and not self._is_down

    def fail(self) -> None:
        """The machine stops."""
        self._is_down = True
        self._lose_containers()

    def recover(self, now: int) -> None:
        """The machine is there again."""
        if self._is_down:
            self._is_down = False
            self._boot(now)

    def _lose_containers(self) -> None:
        for run in self._workers.lose():
            has_run = run.started_ns is not None or run.last_exit is not None
            self._arrivals[run.uid] = _Arrival(run.pod, run.raw, has_run, run.restarts)
        for arrival in self._arrivals.values():
            arrival.is_lost = True
        self._conditions.clear()

    def _boot(self, now: int) -> None:
        node = self._there.node
        if node is not None:
            self._memory.begin(now, is_short=condition_status(node, MEMORY_PRESSURE) == "True")
            self._assert_conditions(node)
            self._workers.report_ends()
            self._has_news = True

    # What the API shows

    def show_node(self, node: Node, raw: Raw, now: int) -> None:
        """The node is there, or has changed; with another uid it is another machine."""
        self._show_node(node, now)
        if self._hosts is not None and not self._is_down:
            self._register(self._hosts, node, raw, now)

    def _register(self, hosts: Hosts, node: Node, raw: Raw, now: int) -> None:
        """Say of the node what nobody has said."""
        name, uid = node.metadata.name, node.metadata.uid
        hosts.show_node(uid, raw)
        conditions = reports.node_conditions(is_short=self._memory.is_short)
        missing = hosts.missing_of(name, uid, raw, conditions, now)
        if missing:
            self._report(reports.registered(node, missing))

    def _show_node(self, node: Node, now: int) -> None:
        before = self._there.node
        if before is not None and before.metadata.uid != node.metadata.uid:
            self._lose_containers()
            before = None
        self._there.read(node)
        if self._is_down:
            return
        if before is None:
            self._boot(now)
            return
        self._assert_conditions(node)
        for run in list(self._there.runs.values()):
            self._workers.suffer(run, self._there.trouble_ns(run.pod), now)
            self._assert_ready(run)
        self._has_news = True

    def hide_node(self) -> None:
        """The node is gone from the API, and its machine with it."""
        self._there.node = None
        self._lose_containers()

    def show_pod(self, pod: Pod, raw: Raw, now: int) -> bool:
        """A pod is bound to the node, or has changed; whether anything may come of that."""
        uid = pod.metadata.uid
        run = self._there.runs.get(uid) or self._workers.ended.get(uid)
        if run is not None:
            return self._pod_changed(run, pod, raw, now)
        arrival, has_run = self._arrivals.get(uid), pod.status.phase == "Running"
        if arrival is None:
            self._arrivals[uid] = _Arrival(pod, raw, has_run, is_lost=self._is_down)
        else:
            arrival.pod, arrival.raw, arrival.has_run = pod, raw, arrival.has_run or has_run
        self._has_news = True
        return True

    def hide_pod(self, uid: str) -> None:
        """A pod is gone from the API."""
        self._arrivals.pop(uid, None)
        if uid in self._there.runs:
            self._workers.release(self._there.runs[uid])
            self.gives_way = True
        self._workers.ended.pop(uid, None)

    def _pod_changed(self, run: PodRun, pod: Pod, raw: Raw, now: int) -> bool:
        """A pod that was looked at has changed; whether anything may come of that.

        If its status is told while it lives, others fare no other by that; that it ends concerns those alone who want
        its room.
        """
        before, was, metadata = run.pod, run.pod.metadata, pod.metadata
        if pod.spec is before.spec and metadata.annotations is was.annotations and metadata.labels is was.labels:
            run.pod, run.raw, is_news = pod, raw, False
        else:
            is_news = self._reread(run, pod, raw, now)
        is_terminal = pod.is_terminal
        if not is_terminal and metadata.deletion_timestamp is None:
            return self._assert_ready(run) or is_news
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
        """Of a pod more than its status may have changed; whether anything may come of that."""
        before, was, metadata = run.pod, run.pod.metadata, pod.metadata
        is_another = (metadata.annotations, metadata.labels, pod.spec) != (was.annotations, was.labels, before.spec)
        was_over_limit = run.is_over_limit
        run.read(pod, raw)
        self._there.reread(run)
        exceeds = run.is_over_limit and not was_over_limit and run.is_running
        if exceeds:
            self._workers.exceed(run, now)
        self._has_news = self._has_news or is_another
        return exceeds or is_another

    def _assert_conditions(self, node: Node) -> None:
        """Say how the node is, where the API shows that nobody knows."""
        for condition in reports.node_conditions(is_short=self._memory.is_short):
            if condition_status(node, condition.type) == "Unknown":
                self._report_condition(node, condition)

    def _assert_ready(self, run: PodRun) -> bool:
        """Say that a pod is ready, where the API shows that it is not, and its node is; whether that is said."""
        if not (run.is_ready and run.is_running):
            return False
        node, ready = self._there.node, run.pod.status.condition("Ready")
        is_denied = ready is not None and ready.status == "False" and run.pod.status.phase == "Running"
        if not (is_denied and node and is_ready(node)):
            return False
        self._workers.report(run, reports.ready(run))
        return True

    # Arrivals

    def _is_room_wanted(self) -> bool:
        """Whether anything may come of room that becomes free: a pod waits for it, or memory is short."""
        return not self._memory.is_at_rest or self._there.has_waiting()

    def _look_at_arrivals(self, now: int) -> None:
        """Look at the pods that have come.

        Those that run already keep their places. Others are looked at when what is to end by now has, the oldest first.
        """
        arrivals = list(self._arrivals.values())
        if len(arrivals) > 1:
            arrivals.sort(key=lambda arrival: arrival.pod.metadata.creation_timestamp or "")
        self._arrivals.clear()
        for arrival in arrivals:
            if arrival.has_run:
                self._take_in(arrival, now, is_alone=False)
        self._workers.move_on(now)
        is_alone = len(arrivals) == 1
        for arrival in arrivals:
            if not arrival.has_run:
                self._take_in(arrival, now, is_alone=is_alone)

    def _take_in(self, arrival: _Arrival, now: int, *, is_alone: bool) -> None:
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
            self._arrive(run, arrival, now)
        else:
            there.put(run)
            self._admit(run, now, is_alone=is_alone)

    def _arrive(self, run: PodRun, arrival: _Arrival, now: int) -> None:
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
            self._assert_ready(run)
        elif (refusal := self._there.judge_again(run).refusal) is not None:
            self._turn_away(run, refusal)
        else:
            self._workers.restart(run, now)

    def _admit(self, run: PodRun, now: int, *, is_alone: bool) -> None:
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

    def _start_waiting(self, now: int) -> None:
        """Start the waiting pods that fit now; turn away those that will not fit any more."""
        waiting = self._there.waiting()
        self._there.may_wait = bool(waiting)
        for run in waiting:
            here = [holder for holder in self._there.holders() if not holder.is_waiting]
            if not self._there.refusals(run, here):
                self._workers.start(run, now)
            elif left := self._there.refusals(run, self._there.staying()):
                self._turn_away(run, left[0])

    def _report_condition(self, node: Node, condition: PodCondition) -> None:
        self._report(reports.of_node(node, condition))

    def _report(self, action: ReportStatus) -> None:
        """Tell the API of the node, in place of what it was told of the same before."""
        self._conditions[reports.reported(action)] = action
        self._actions.append(action)
