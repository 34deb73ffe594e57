"""The kubelets of all nodes: they admit and start pods, let them run, end them, and evict when memory runs short.

Source: pkg/kubelet (lifecycle, preemption, eviction); controlled-rescheduling.md for pods that wait for others to end.
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.node import Node
from podium.api.pod import Pod, PodCondition
from podium.api.times import parse_time
from podium.decide.critical_pods import Holder, is_critical, make_room
from podium.decide.kubelet_admission import Refusal, pressure_refusal
from podium.decide.pressure import eviction_message, memory_ranking
from podium.machines.actions import Action, FinishDeletion, ReportNodeCondition, ReportPodStatus
from podium.machines.agenda import Agenda
from podium.machines.node_runs import NodeRuns
from podium.machines.observations import Answered, Changed, Gone, Observation, Problem, Tick
from podium.machines.pod_run import PodRun, deletion_ns

_KUBELET = "kubelet"
_COLLECTOR = "pod-garbage-collector"
_SECOND = 10**9
# How often a node that is short of memory evicts a pod (housekeeping interval upstream).
_CYCLE_NS = 10 * _SECOND
# How long after a write failed it is sent again.
_RETRY_NS = _SECOND
_PREEMPTED = "Preempted in order to admit critical pod"


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """How kubelets behave; times in nanoseconds.

    A pod starts ``start_delay_ns`` after its admission. A node is short of memory when its pods leave less than
    ``memory_threshold_bytes``, and says so until it has not been for ``pressure_transition_ns``. With
    ``waits_for_victims``, a pod that fits once others have ended that are terminating waits for them on the node.
    """

    start_delay_ns: int = 0
    memory_threshold_bytes: int = 0
    pressure_transition_ns: int = 300 * _SECOND
    waits_for_victims: bool = False


class Kubelet:
    """The kubelets of a cluster as one machine, which keeps each node apart.

    One machine, because a driver asks every machine at every step, and clusters have thousands of nodes. What the API
    is told follows what happened on the node: a pod's resources are free before its end is reported. Pods on a node
    that nobody knows wait for it; when a node goes, its pods go with it.
    """

    def __init__(self, settings: KubeletSettings = KubeletSettings()) -> None:
        self._settings = settings
        self._nodes: dict[str, NodeRuns] = {}
        self._runs: dict[str, PodRun] = {}
        self._agenda: Agenda[PodRun | NodeRuns | Action] = Agenda()
        self._actions: list[Action] = []

    def handle(self, observation: Observation, now: int) -> list[Action]:
        """Take in an observation at ``now`` and say what to write."""
        match observation:
            case Changed(object=Node() as node):
                self._node_changed(node, now)
            case Gone(object=Node() as node):
                self._node_gone(node)
            case Changed(object=Pod() as pod) if pod.spec.node_name:
                self._pod_changed(pod, now)
            case Gone(object=Pod() as pod):
                self._pod_gone(pod, now)
            case Answered(action=action, problem=Problem() as problem):
                # Too many requests, a server's error, or no answer at all; what was refused for good is not repeated.
                if problem.is_ambiguous or problem.code == 429 or problem.code >= 500:
                    self._agenda.add(now + _RETRY_NS, action)
            case Tick():
                while (item := self._agenda.take_due(now)) is not None:
                    self._fall_due(item, now)
        actions, self._actions = self._actions, []
        return actions

    def next_deadline(self) -> int | None:
        """When something is due on some node."""
        return self._agenda.next_time()

    def finish(self, pod: Pod, now: int) -> bool:
        """Let a pod's containers exit by themselves; False when they do not run."""
        run = self._runs.get(pod.metadata.uid)
        if run is None or not run.is_running:
            return False
        run.exit_ns = now
        self._agenda.add(now, run)
        return True

    # What the API shows

    def _node_changed(self, node: Node, now: int) -> None:
        there = self._node(node.metadata.name)
        there.read(node)
        for run in list(there.runs.values()):
            self._admit(there, run, now)
        self._start_waiting(there, now)
        self._check_memory(there, now)

    def _node_gone(self, node: Node) -> None:
        name = node.metadata.name
        there = self._node(name)
        there.node, there.has_pressure = None, False
        for run in there.runs.values():
            self._finish_deletion(run, _COLLECTOR, f"its node {name} is gone")

    def _pod_changed(self, pod: Pod, now: int) -> None:
        run = self._runs.get(pod.metadata.uid)
        if pod.is_terminal:
            self._pod_ended(pod, run, now)
            return
        if run is None:
            run = self._runs[pod.metadata.uid] = PodRun(pod, deleted_ns=deletion_ns(pod))
            self._arrive(run, now)
        run.read(pod)
        if pod.is_terminating:
            grace = pod.metadata.deletion_grace_period_seconds or 0
            self._stop(run, run.asked_to_end_ns(now), grace, now)
        if run.is_running:
            self._check_memory(self._node(pod.spec.node_name), now)

    def _pod_ended(self, pod: Pod, run: PodRun | None, now: int) -> None:
        """The API shows that all containers of a pod have ended."""
        if run is None and not pod.is_terminating:
            return
        run = self._runs.setdefault(pod.metadata.uid, run or PodRun(pod))
        self._release(run, now)
        if pod.is_terminating and not isinstance(run.wanted, FinishDeletion):
            self._finish_deletion(run, _KUBELET, "its containers had ended")

    def _pod_gone(self, pod: Pod, now: int) -> None:
        run = self._runs.pop(pod.metadata.uid, None)
        if run is not None:
            self._release(run, now)

    def _node(self, name: str) -> NodeRuns:
        return self._nodes.setdefault(name, NodeRuns())

    # Admission

    def _arrive(self, run: PodRun, now: int) -> None:
        pod = run.pod
        there = self._node(pod.spec.node_name)
        there.runs[run.uid] = run
        if pod.status.phase != "Running":
            self._admit(there, run, now)
            return
        # It was there before the kubelet looked: it keeps its place.
        run.is_admitted = True
        run.begin(parse_time(pod.status.start_time) if pod.status.start_time else now)
        ready = pod.status.condition("Ready")
        if ready is not None and ready.status == "True":
            run.ready_ns = None
        self._plan(run, run.ready_ns, run.exit_ns)

    def _admit(self, there: NodeRuns, run: PodRun, now: int) -> None:
        if there.node is None or run.is_admitted or run.pod.is_terminating:
            return
        found = there.refusals(run, there.holders())
        pressure = pressure_refusal(run.pod) if there.has_pressure else None
        if pressure is not None:
            self._turn_away(run, pressure, now)
        elif not found:
            run.is_admitted = True
            self._plan_start(run, now)
        elif self._comes_after_others(there, run, now):
            run.is_admitted = run.is_waiting = True
        else:
            self._turn_away(run, found[0], now)

    def _comes_after_others(self, there: NodeRuns, run: PodRun, now: int) -> bool:
        """Whether a pod that does not fit will, once others have ended; a critical pod has others end for it."""
        staying, is_needed = there.staying(), is_critical(run.pod)
        if not is_needed and not self._settings.waits_for_victims:
            return False
        left = there.refusals(run, staying)
        lacking = [refusal.lacking for refusal in left if refusal.lacking is not None]
        if not is_needed or len(lacking) < len(left):
            return not left
        holders = [Holder(one.pod, one.holding.amounts) for one in staying if one is not run]
        victims = make_room(run.pod, holders, dict(lacking))
        for victim in victims or ():
            ending = self._runs[victim.metadata.uid]
            ending.outcome = _ended(victim, "Failed", "Preempting", _PREEMPTED, _disruption(_PREEMPTED))
            self._stop(ending, now, victim.spec.termination_grace_period_seconds, now)
        return victims is not None

    def _turn_away(self, run: PodRun, refusal: Refusal, now: int) -> None:
        self._end(run, _ended(run.pod, "Failed", refusal.reason, refusal.message), now)

    def _start_waiting(self, there: NodeRuns, now: int) -> None:
        """Start the waiting pods that fit now; turn away those that will not fit any more."""
        for run in there.waiting() if there.node else ():
            if not run.is_waiting or run.is_ended:
                continue
            here = [one for one in there.holders() if not one.is_waiting]
            if not there.refusals(run, here):
                run.is_waiting = False
                self._plan_start(run, now)
            elif left := there.refusals(run, there.staying()):
                self._turn_away(run, left[0], now)

    # Running and ending

    def _plan_start(self, run: PodRun, now: int) -> None:
        run.start_ns = now + self._settings.start_delay_ns
        self._plan(run, run.start_ns)

    def _plan(self, run: PodRun, *times: int | None) -> None:
        for time in times:
            if time is not None:
                self._agenda.add(time, run)

    def _fall_due(self, item: PodRun | NodeRuns | Action, now: int) -> None:
        if isinstance(item, PodRun):
            if not item.is_ended:
                self._move_on(item, now)
        elif isinstance(item, NodeRuns):
            self._check_memory(item, now)
        elif self._is_still_wanted(item):
            self._actions.append(item)

    def _is_still_wanted(self, action: Action) -> bool:
        """Whether what failed to be written is still what the API should be told last."""
        if isinstance(action, ReportNodeCondition):
            there = self._nodes.get(action.node)
            return there is not None and there.wanted is action
        run = self._runs.get(action.uid)
        return run is not None and run.wanted is action

    def _move_on(self, run: PodRun, now: int) -> None:
        """What became due for a pod: its end, its start, its exit or its readiness."""
        if run.stopped_ns is not None and run.stopped_ns <= now:
            self._stopped(run, now)
        elif run.started_ns is None:
            if run.start_ns is not None and run.start_ns <= now:
                self._start(run, now)
        elif run.exit_ns is not None and run.exit_ns <= now:
            self._end(run, _ended(run.pod, "Succeeded", "PodCompleted", ""), now)
        elif run.ready_ns is not None and run.ready_ns <= now:
            run.ready_ns = None
            self._report(run, ReportPodStatus(run.pod.key, run.uid, _KUBELET, "Running", (_READY,)))

    def _start(self, run: PodRun, now: int) -> None:
        run.begin(now)
        ready = _READY if run.ready_ns is None else _NOT_READY
        self._report(run, ReportPodStatus(run.pod.key, run.uid, _KUBELET, "Running", (ready,), start_time_ns=now))
        self._plan(run, run.ready_ns, run.exit_ns)
        self._check_memory(self._node(run.pod.spec.node_name), now)

    def _stop(self, run: PodRun, asked_ns: int, grace_seconds: int, now: int) -> None:
        """Plan the end of a pod; a shorter grace period, given later, brings it forward."""
        before = run.stopped_ns
        run.stop(asked_ns if run.started_ns is not None else now, grace_seconds)
        if run.stopped_ns is not None and run.stopped_ns != before:
            self._agenda.add(max(run.stopped_ns, now), run)

    def _stopped(self, run: PodRun, now: int) -> None:
        if run.outcome is not None:
            self._end(run, run.outcome, now)
        else:
            self._release(run, now)
            self._finish_deletion(run, _KUBELET, "")

    def _end(self, run: PodRun, report: ReportPodStatus, now: int) -> None:
        self._release(run, now)
        self._report(run, report)

    def _release(self, run: PodRun, now: int) -> None:
        """A pod's containers are gone, and what it held is free."""
        if run.is_ended:
            return
        run.is_ended = True
        there = self._node(run.pod.spec.node_name)
        there.runs.pop(run.uid, None)
        self._start_waiting(there, now)
        self._check_memory(there, now)

    def _report(self, run: PodRun, report: ReportPodStatus) -> None:
        run.wanted = report
        self._actions.append(report)

    def _finish_deletion(self, run: PodRun, cause: str, message: str) -> None:
        run.wanted = FinishDeletion(run.pod.key, run.uid, cause, message)
        self._actions.append(run.wanted)

    # Memory

    def _check_memory(self, there: NodeRuns, now: int) -> None:
        """Report that memory is short, or no longer is, and evict the next pod if it is time."""
        if there.node is None:
            return
        available = there.available_bytes()
        if available < self._settings.memory_threshold_bytes:
            there.short_ns = now
            if not there.has_pressure:
                self._report_pressure(there, "True", "KubeletHasInsufficientMemory")
            if there.next_cycle_ns <= now:
                self._evict(there, available, now)
            else:
                self._agenda.add(there.next_cycle_ns, there)
        elif there.has_pressure:
            over_ns = there.short_ns + self._settings.pressure_transition_ns
            if over_ns <= now:
                self._report_pressure(there, "False", "KubeletHasSufficientMemory")
            else:
                self._agenda.add(over_ns, there)

    def _report_pressure(self, there: NodeRuns, status: str, reason: str) -> None:
        if there.node is None:
            raise ValueError("a node that is not known has no condition")
        there.has_pressure = status == "True"
        meta = there.node.metadata
        condition = PodCondition(type="MemoryPressure", status=status, reason=reason)
        there.wanted = ReportNodeCondition(meta.name, meta.uid, condition, _KUBELET)
        self._actions.append(there.wanted)

    def _evict(self, there: NodeRuns, available: int, now: int) -> None:
        """Evict one pod; the next after a cycle, so that what this one used is seen to be free."""
        ranking = memory_ranking(there.memory_uses())
        if not ranking:
            return
        there.next_cycle_ns = now + _CYCLE_NS
        use = ranking[0]
        message = eviction_message(use, self._settings.memory_threshold_bytes, max(0, available))
        report = _ended(use.pod, "Failed", "Evicted", message, _disruption(message))
        self._end(self._runs[use.pod.metadata.uid], report, now)


_READY = PodCondition(type="Ready", status="True")
_NOT_READY = PodCondition(type="Ready", status="False", reason="ContainersNotReady")


def _ended(pod: Pod, phase: str, reason: str, message: str, *conditions: PodCondition) -> ReportPodStatus:
    """The report of a pod's end; one that succeeded has no reason of its own."""
    ready = PodCondition(type="Ready", status="False", reason=reason)
    if phase == "Succeeded":
        return ReportPodStatus(pod.key, pod.metadata.uid, _KUBELET, phase, (ready, *conditions))
    return ReportPodStatus(pod.key, pod.metadata.uid, _KUBELET, phase, (ready, *conditions), reason, message)


def _disruption(message: str) -> PodCondition:
    return PodCondition(type="DisruptionTarget", status="True", reason="TerminationByKubelet", message=message)
