"""The kubelet of one node, and the machine on which it runs.

Source: pkg/kubelet (lifecycle, preemption, status).
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.node_health import MEMORY_PRESSURE, condition_status
from podium.api.pod import Pod
from podium.machines.actions import Action, DeleteObject, ReportStatus
from podium.machines.kubelets import kubelet_reports as reports
from podium.machines.kubelets.arrivals import Arrival, Arrivals
from podium.machines.kubelets.eviction_manager import EvictionManager
from podium.machines.kubelets.host import Hosts
from podium.machines.kubelets.kubelet_settings import KubeletSettings
from podium.machines.kubelets.node_conditions import NodeConditions
from podium.machines.kubelets.node_memory import NodeMemory
from podium.machines.kubelets.node_runs import NodeRuns
from podium.machines.kubelets.pod_run import PodRun
from podium.machines.kubelets.pod_workers import PodWorkers
from podium.machines.parts.deadlines import AT_ONCE, NEVER, Deadline, soonest


class NodeKubelet:
    """Takes in what the API shows of its node and pods, and acts upon it in `tick`.

    It runs while the API shows the node and the node's machine is not down. When the machine stops, or the node goes,
    its containers are gone; the kubelet begins anew with what the API shows by then, and with how pods had ended.
    ``actions`` is where what it asks for goes. With ``hosts`` it reports all that kubelets do, else what schedulers and
    controllers need.
    """

    def __init__(self, settings: KubeletSettings, actions: list[Action], hosts: Hosts | None = None) -> None:
        self._hosts = hosts
        self._there = NodeRuns(honors_policy=settings.honors_policy)
        self._workers = PodWorkers(self._there, actions, settings.start_delay_ns, records_stops=hosts is not None)
        self._memory = NodeMemory(settings.memory_threshold_bytes, settings.pressure_transition_ns)
        self._evictions = EvictionManager(self._memory, self._there, self._workers, settings.eviction_order)
        self._arrivals = Arrivals(settings, self._there, self._workers, self._memory, hosts)
        self._conditions = NodeConditions(self._memory, actions)
        self._is_down = False
        self.told: Deadline | None = None
        """The deadline as it was told last, None where it has come since."""
        self.gives_way = False
        """Whether others come first since then, of those that are due at the same time."""
        self._has_news = False

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
        return not (self._arrivals.pods or self._there.runs or self._workers.ended)

    def tick(self, now: int) -> Deadline:
        """Do what is due, as something is; says when to `tick` again."""
        while True:
            if self._arrivals.pods:
                self._arrivals.look(now)
            self._workers.move_on(now)
            self._has_news = self._workers.has_freed = False
            if self._there.may_wait:
                self._arrivals.start_waiting(now)
            if self._evictions.synchronize(now) and self._there.node is not None:
                self._conditions.report(self._there.node, reports.memory_pressure(is_short=self._memory.is_short))
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
                return self._conditions.is_wanted(action)
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
        self._arrivals.lose(self._workers.lose())
        self._conditions.forget()

    def _boot(self, now: int) -> None:
        node = self._there.node
        if node is not None:
            self._memory.begin(now, is_short=condition_status(node, MEMORY_PRESSURE) == "True")
            self._conditions.assert_known(node)
            self._workers.report_ends()
            self._has_news = True

    # What the API shows

    def show_node(self, node: Node, raw: Raw, now: int) -> None:
        """The node is there, or has changed; with another uid it is another machine."""
        self._show_node(node, now)
        if self._hosts is not None and not self._is_down:
            self._conditions.register(self._hosts, node, raw, now)

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
        self._conditions.assert_known(node)
        for run in list(self._there.runs.values()):
            self._workers.suffer(run, self._there.trouble_ns(run.pod), now)
            self._workers.assert_ready(run)
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
        arrival, has_run = self._arrivals.pods.get(uid), pod.status.phase == "Running"
        if arrival is None:
            self._arrivals.pods[uid] = Arrival(pod, raw, has_run, is_lost=self._is_down)
        else:
            arrival.pod, arrival.raw, arrival.has_run = pod, raw, arrival.has_run or has_run
        self._has_news = True
        return True

    def hide_pod(self, uid: str) -> None:
        """A pod is gone from the API."""
        self._arrivals.pods.pop(uid, None)
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
            return self._workers.assert_ready(run) or is_news
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

    def _is_room_wanted(self) -> bool:
        """Whether anything may come of room that becomes free: a pod waits for it, or memory is short."""
        return not self._memory.is_at_rest or self._there.has_waiting()
