"""A scheduler whose every decision is judged by what it had observed.

The letters are those of the list of invariants that the project holds to.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from random import Random

from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.pod_group import PodGroup
from podium.api.policy import NEVER_PREEMPTS, PodDisruptionBudget
from podium.controllers.actions import (
    Action,
    DeleteObject,
    Evict,
    Nominate,
    Record,
    ReportStatus,
    ReportUnschedulable,
)
from podium.controllers.deadlines import Deadline
from podium.controllers.observations import ActionFinished, Answer, Changed, Deleted, Observation
from podium.controllers.scheduling.preemptions import DELETION_SHOWN_WITHIN_NS
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueuePlace
from podium.controllers.scheduling.scheduler import Scheduler
from podium.decide.placement import Placement
from podium.decide.post_filter import ask_post_filters
from podium.framework.plugin import PostFilterResult
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from tests.controllers.queue_checks import check_queue
from tests.sim.gang_invariants import check_binds
from tests.sim.oracle import Sight, on, policy_of
from tests.twins.plain import UNRESOLVABLE

# The answers after which a victim is about to terminate, or is gone.
_DELETED = (Answer.DONE, Answer.GONE, Answer.REPLACED)

# Of the decisions to preempt, how many are worked out again by trying everything.
TRIED_AGAIN = 0.3


Attempt = Callable[[QueuedPod, int], list[Action]]
WayOut = Callable[[Runner, Placement, int], PostFilterResult]


class JudgedScheduler(Scheduler):
    """Raises AssertionError where a decision breaks an invariant. ``seen`` is what the watches have shown, by kind."""

    def __init__(self, configuration: Configuration | None = None, *, seed: int = 0) -> None:
        super().__init__(configuration, seed=seed)
        self.nominated_pods_repel = configuration is not None and do_nominated_pods_repel(configuration)
        self.seen: dict[str, dict[str, Kubernetes]] = {}
        self._uids: dict[str, str] = {}
        # The requests that mark, evict or delete victims: type, victim and preemptor.
        self.outstanding: Counter[tuple[type[Action], str, str]] = Counter()
        self.marked: set[str] = set()
        # By victim (uid), until when the answer to its deletion counts before the watches show that it terminates.
        self.deleted: dict[str, int] = {}
        # Pods (uids) whose bindings were asked for.
        self.asked: set[str] = set()
        # Pods that were gated when they were first seen, and have not changed since: they hold no nomination.
        self.gated_from_first: set[str] = set()
        # Whether to wait for the flush of unschedulable pods.
        self.is_patient = False
        self.judged_attempts = 0
        self.preemption_plans = 0
        self._planned: PostFilterResult | None = None
        self._random = Random(f"judge:{seed}")
        attempts = self.attempts
        vars(attempts).update(
            attempt=partial(self._judged, attempts.attempt),
            _post_filter=partial(self._post_filter, attempts._post_filter),
        )

    def handle(self, observation: Observation, now: int) -> list[Action]:
        if isinstance(observation, Changed | Deleted):
            self._see(observation)
        elif isinstance(observation, ActionFinished):
            self.outstanding.subtract(_victim_requests([observation.action]))
            if isinstance(observation.action, ReportStatus) and observation.problem is None:
                self.marked.add(observation.action.uid)
            if isinstance(observation.action, DeleteObject) and observation.answer in _DELETED:
                self.deleted[observation.action.uid] = now + DELETION_SHOWN_WITHIN_NS
        queued = {one.record.uid for one in self.queue}
        actions = super().handle(observation, now)
        if isinstance(observation, Changed | Deleted):
            self._note_gate(observation, queued)
        self.outstanding.update(_victim_requests(actions))
        self._judge_actions(actions)
        check_binds(self, actions, self.asked)
        self._judge_state()
        return actions

    def deadline(self) -> Deadline:
        """Return where faults come to an end, errors do too: whatever is tried again is news."""
        deadline = super().deadline()
        time_ns, keeps_alive = deadline.time_ns, deadline.keeps_alive
        owes = bool(self.queue.count(QueuePlace.BACKOFF)) or self.reports.next_deadline() is not None
        return Deadline(time_ns, keeps_alive or owes or self.is_patient)

    def sight(self, besides: str = "") -> Sight:
        """Return what the scheduler sees; the nomination of the pod ``besides`` (a uid) left out."""
        pods, caps = self.seen.get("Pod", {}), self.cluster.caps
        return Sight(
            nodes={key: one for key, one in self.seen.get("Node", {}).items() if isinstance(one, Node)},
            placed={uid: on(self._pod(pods[uid]), record.node_name) for uid, record in self.cluster.placed.items()},
            nominated=[
                (self._pod(pods[record.uid]), node)
                for record, node in self.cluster.nominations.all()
                if record.uid != besides
            ],
            budgets=[
                one for one in self.seen.get("PodDisruptionBudget", {}).values() if isinstance(one, PodDisruptionBudget)
            ],
            now=caps.now,
            nominated_pods_repel=self.nominated_pods_repel,
            group_priority=self._group_priority(),
            caps=[(bucket.namespace, caps.tokens_left(bucket), caps.rate(bucket).count) for bucket in caps.used()],
        )

    def _group_priority(self) -> dict[str, int]:
        groups = [one for one in self.seen.get("PodGroup", {}).values() if isinstance(one, PodGroup)]
        return {one.key: one.spec.priority for one in groups if one.spec.priority is not None}

    def pod(self, uid: str) -> Pod:
        """Return the last reading of a pod."""
        return self._pod(self.seen["Pod"][uid])

    @staticmethod
    def _pod(one: Kubernetes) -> Pod:
        assert isinstance(one, Pod)
        return one

    def _see(self, observation: Changed | Deleted) -> None:
        one = observation.object
        known = self.seen.setdefault(one.kind, {})
        key = one.metadata.uid if isinstance(one, Pod) else one.key
        # A pod of the same name may replace one whose deletion was not observed.
        known.pop(self._uids.pop(one.key, key) if isinstance(one, Pod) else key, None)
        if isinstance(observation, Changed):
            known[key] = one
            if isinstance(one, Pod):
                self._uids[one.key] = key

    def _note_gate(self, observation: Changed | Deleted, queued: set[str]) -> None:
        """Note whether a pod is gated that was not among those ``queued`` before."""
        uid = observation.object.metadata.uid
        self.gated_from_first.discard(uid)
        if uid not in queued and self.queue.where(uid) is QueuePlace.GATED:
            self.gated_from_first.add(uid)

    def _judged(self, attempt: Attempt, queued: QueuedPod, now: int) -> list[Action]:
        uid, pod = queued.record.uid, self.pod(queued.record.uid)
        self.cluster.pass_time(now)
        before = self.sight(uid)
        was_nominated = self.cluster.nominations.node_of(uid)
        self._planned = None
        self.judged_attempts += 1
        # D3
        assert not pod.spec.scheduling_gates
        assert pod.spec.scheduler_name in self.runners
        assert not pod.spec.node_name
        assert not pod.is_terminating
        actions = attempt(queued, now)
        bound_to = self.bindings.find(uid)
        if bound_to is not None:
            self._judge_binding(before, pod, bound_to.node_name)
        elif (planned := self._plan()) is not None:
            self._judge_plan(before, pod, was_nominated, planned)
        return actions

    def _plan(self) -> PostFilterResult | None:
        return self._planned

    def _post_filter(self, way_out: WayOut, runner: Runner, placement: Placement, now: int) -> PostFilterResult:
        """Return what is judged is the plan, also one that is not carried out because the pod or the scheduler has to
        wait.
        """
        result = way_out(runner, placement, now)
        is_plan = bool(result.victims or result.nominated_node)
        self._planned = result if is_plan else ask_post_filters(runner, placement)
        return result

    def _judge_binding(self, before: Sight, pod: Pod, node: str) -> None:
        # D1, D2
        assert before.fits(pod, node), (pod.key, node, before.verdict(pod, node))
        # E9: pods nominated to the node with at least the pod's priority still fit after their victims have ended. As
        # upstream, the spread of nominated pods is not checked.
        after = replace(before, placed={**before.placed, pod.metadata.uid: on(pod, node)}, budgets=[], caps=[])
        leaving = [one.metadata.uid for one in before.on_node(node) if is_preempted(one)]
        for waiting, where in before.nominated:
            is_concerned = where == node and before.holds_by(waiting) >= pod.priority and before.is_heeded(waiting, pod)
            is_even = bool(waiting.spec.topology_spread_constraints)
            if is_concerned and not is_even and not _gives_way(before, waiting, pod, node):
                fitted = before.fits(waiting, node, without=leaving)
                assert not fitted or after.fits(waiting, node, without=leaving), (pod.key, waiting.key, node)

    def _judge_plan(self, before: Sight, pod: Pod, was_nominated: str, planned: PostFilterResult) -> None:
        victims = planned.victims
        # E4. The oracle knows nothing of volumes, nor of devices.
        is_plain = not pod.spec.volumes and not pod.spec.resource_claims
        feasible = before.feasible(pod) if is_plain else []
        assert not feasible, (pod.key, feasible)
        if (
            not pod.spec.resource_claims
            and was_nominated in before.nodes
            and before.verdict(pod, was_nominated).status != UNRESOLVABLE
        ):
            ending = {uid for uid, until in self.deleted.items() if self.cluster.now < until}
            waits = any(
                one.priority < pod.priority and (is_preempted(one) or one.metadata.uid in ending)
                for one in before.on_node(was_nominated)
            )
            # E7
            assert not waits or not planned.nominated_node, (pod.key, was_nominated)
            if waits:
                return
        # E1
        assert not victims or policy_of(pod) not in NEVER_PREEMPTS
        assert all(before.holds_by(before.placed[victim.uid]) < pod.priority for victim in victims)
        if policy_of(pod) in NEVER_PREEMPTS:
            return
        node = planned.nominated_node
        gone = {victim.uid for victim in victims}
        # kube-scheduler's spreading takes off a victim that it has not counted, as it is ending (updateWithPod).
        is_ending = any(before.placed[uid].is_terminating for uid in gone if uid in before.placed)
        if is_ending and pod.spec.topology_spread_constraints:
            return
        if node:
            assert all(before.placed[uid].spec.node_name == node for uid in gone)
            # E2, E3
            assert before.fits(pod, node, without=gone)
            assert not any(before.fits(pod, node, without=gone - {uid}) for uid in gone), (pod.key, node, gone)
        if self._random.random() < TRIED_AGAIN and is_plain:
            # E5, E6
            self.preemption_plans += 1
            ways = {way.node: way.victims for way in before.best_ways(pod)}
            assert bool(ways) == bool(node), (pod.key, node, ways)
            if node:
                assert ways.get(node) == tuple(victim.key for victim in victims), (
                    f"{pod.key} on {node}: {[victim.key for victim in victims]} instead of {ways}"
                )

    def _judge_actions(self, actions: list[Action]) -> None:
        for action in actions:
            # E13
            assert getattr(action, "pod_uid", "") or getattr(action, "uid", "")
            if isinstance(action, DeleteObject):
                victim = self.pod(action.uid)
                # E7: no terminating pod is deleted again. E11
                assert not victim.is_terminating, action
                assert action.uid in self.marked or is_marked(victim), action
        # A plugin that fails is a bug here, for none of the tests' own does.
        assert not [one for one in actions if isinstance(one, Record) and one.message.startswith("plugin ")], actions
        reports = [one for one in actions if isinstance(one, ReportUnschedulable)]
        # E16: one patch a pod.
        assert len({one.uid for one in reports}) == len(reports)
        cleared = {one.uid for one in actions if isinstance(one, Nominate) and not one.node_name}
        assert not cleared & {one.uid for one in reports if one.nominated_node_name is not None}

    def _judge_state(self) -> None:
        check_queue(self.queue)
        # C1
        for uid in self.seen.get("Pod", {}):
            pod = self.pod(uid)
            is_ours = is_to_be_scheduled(pod) and pod.spec.scheduler_name in self.runners
            places = [self.queue.find(uid) is not None, uid in self.bindings.unseen]
            assert sum(places) == is_ours, (pod.key, places, is_ours)
            assert (self.queue.where(uid) is QueuePlace.IN_FLIGHT) == (uid in self.bindings), pod.key
        assert all(queued.record.uid in self.seen["Pod"] for queued in self.queue)
        # C3
        for uid, placed in self.cluster.placed.items():
            shown = self.pod(uid).spec.node_name
            assert shown == placed.node_name if shown else self.bindings.is_assumed(uid), placed.key
        # C4
        for record, _ in self.cluster.nominations.all():
            assert is_to_be_scheduled(self.pod(record.uid)), record.key
            assert self.queue.find(record.uid) is not None, record.key
        # E15
        # A victim's mark or deletion may be outstanding for another preemptor that shares the victim.
        requested = {uid for (_, uid, _), count in self.outstanding.items() if count > 0}
        for uid in [queued.record.uid for queued in self.queue if queued.record.uid in self.preemptions]:
            outstanding = self.preemptions._by_preemptor[uid].outstanding if uid in self.preemptions else frozenset()
            assert outstanding, self.pod(uid).key
            assert outstanding <= requested, (self.pod(uid).key, outstanding - requested)


def _victim_requests(actions: Iterable[Action]) -> list[tuple[type[Action], str, str]]:
    requests = [one for one in actions if isinstance(one, DeleteObject | Evict | ReportStatus)]
    return [(type(one), one.uid, one.cause) for one in requests]


def _gives_way(before: Sight, waiting: Pod, pod: Pod, node: str) -> bool:
    """Return whether a nominated pod leaves room on a node for nominated pods that the other pod ignores.

    A member of a gang holds room by its group's priority, and looks for room by its own.
    """
    there = [other for other, where in before.nominated if where == node or before.reach]
    return any(waiting.priority <= before.holds_by(other) < pod.priority for other in there)


def let_wait(simulation: Simulation, component: Component, is_patient: bool) -> None:
    """Return whether time advances although a scheduler only has failures left to retry."""
    assert isinstance(component.controller, JudgedScheduler)
    component.controller.is_patient = is_patient
    # Drivers ask the components that they have called again, and they called none.
    simulation.runtime._called[component] = None


def do_nominated_pods_repel(configuration: Configuration) -> bool:
    """Return whether a profile lets the anti-affinity of nominated pods keep others off by itself."""
    args = [one.args for profile in configuration.profiles for one in profile.plugin_config]
    return any(one.get("nominatedPodsRepel", False) for one in args)


def is_to_be_scheduled(pod: Pod) -> bool:
    """Return whether some scheduler has to find a node for the pod."""
    return not pod.spec.node_name and not pod.is_terminating and not pod.is_terminal


def is_preempted(pod: Pod) -> bool:
    """Return whether a scheduler's preemption has the pod terminate."""
    return pod.is_terminating and is_marked(pod)


def is_marked(pod: Pod) -> bool:
    """Return whether the pod bears the mark of a scheduler's preemption."""
    target = pod.status.condition("DisruptionTarget")
    return target is not None and (target.status, target.reason) == ("True", "PreemptionByScheduler")
