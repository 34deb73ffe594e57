"""Invariants of a simulation after each step, and at rest.

The letters are those of the list of invariants that the project holds to.
"""

from random import Random

from msgspec.structs import replace

from podium.api.node import Node
from podium.api.pod import NOMINATED_NODE_ANNOTATION, Pod
from podium.api.policy import NEVER_PREEMPTS, PodDisruptionBudget
from podium.api.selectors import compile_label_selector
from podium.api.workloads import Deployment, ReplicaSet
from podium.app.explaining.attempts import explain_decision
from podium.app.explaining.explainer import Explainer
from podium.cluster.cluster import Cluster
from podium.controllers.scheduling.queue.queued_pod import QueuedPod, QueuePlace
from podium.framework.settings.configuration import Configuration
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from tests.controllers.queue_checks import pods_in
from tests.sim.judged_scheduler import JudgedScheduler, is_to_be_scheduled
from tests.sim.oracle import Sight, policy_of
from tests.sim.room import check_room, is_running
from tests.sim.writes import Writes

LONGEST_WAIT_NS = 330 * 10**9


class InvariantChecker:
    """Looks at what every step has written and left; raises AssertionError."""

    def __init__(
        self, simulation: Simulation, component: Component, settings: Configuration, *, had_faults: bool
    ) -> None:
        self.simulation = simulation
        self.component = component
        self.settings = settings
        self.had_faults = had_faults
        self.store = simulation.store
        self.writes = Writes(self.store, frozenset(self.scheduler.runners))

    @property
    def scheduler(self) -> JudgedScheduler:
        """The scheduler in its present life."""
        assert isinstance(self.component.controller, JudgedScheduler)
        return self.component.controller

    def after_step(self) -> None:
        """Check the invariants of every instant."""
        self.writes.check()
        self.simulation.runtime.check()
        self._check_nodes()

    def at_rest(self, *, is_flushed: bool) -> None:
        """Check the invariants of a simulation at rest, without faults.

        ``is_flushed``: unschedulable pods have been tried again since anything changed. Before that, only those without
        affinity and spread must have been woken by what concerns them: kube-scheduler's hints for the others miss some
        changes, and all hints miss what only preemption would gain by. Nominations that others have made, and those of
        preemptors whose deletions have failed, may wait for that too.
        """
        scheduler, sight = self.scheduler, self.sight()
        self._check_knowledge(sight)
        self._check_budgets()
        # L3
        overdue = [
            one.record.key for one in pods_in(scheduler.queue, QueuePlace.UNSCHEDULABLE) if self._is_overdue(one)
        ]
        assert not overdue
        # C3, L7
        assert not scheduler.bindings.unseen
        assert not len(scheduler.bindings)
        assert not len(scheduler.preemptions)
        assert not scheduler.queue.count(QueuePlace.IN_FLIGHT)
        for pod in self.pods():
            if is_to_be_scheduled(pod) and pod.spec.scheduler_name in scheduler.runners:
                self._check_pending(sight, pod, is_flushed)
            elif pod.spec.node_name:
                # E10
                assert not pod.status.nominated_node_name, pod.key

    def pods(self) -> list[Pod]:
        """All pods."""
        return [one.object for one in self.store.objects("Pod") if isinstance(one.object, Pod)]

    def sight(self) -> Sight:
        """Return the cluster as the store has it."""
        pods = [one for one in self.pods() if not one.is_terminal]
        found = (one.object for one in self.store.objects("PodDisruptionBudget"))
        return Sight(
            nodes={one.key: one.object for one in self.store.objects("Node") if isinstance(one.object, Node)},
            placed={one.metadata.uid: one for one in pods if one.spec.node_name},
            nominated=[(one, one.nominated_node_name) for one in pods if self._holds_place(one)],
            budgets=[one for one in found if isinstance(one, PodDisruptionBudget)],
            nominated_pods_repel=self.scheduler.nominated_pods_repel,
            reach=self.scheduler.cluster.nominations.reach_domains,
        )

    def _holds_place(self, pod: Pod) -> bool:
        """Return whether the nomination of a pod counts: that of a gated pod does from its first change on."""
        return bool(pod.nominated_node_name) and pod.metadata.uid not in self.scheduler.gated_from_first

    def _is_overdue(self, queued: QueuedPod) -> bool:
        return queued.queued_ns + LONGEST_WAIT_NS < self.simulation.now

    # Nodes

    def _check_nodes(self) -> None:
        # A scheduler that has crashed may have bound more than there is room for; the kubelet sees to that.
        is_first = self.component.life == 1
        check_room(self.store, [pod for pod in self.pods() if is_running(pod) or (is_first and not pod.is_terminal)])

    # At rest

    def _check_knowledge(self, sight: Sight) -> None:
        """Check that the scheduler has the store's objects, and counts them right."""
        scheduler = self.scheduler
        # C2
        placed = {uid: record.node_name for uid, record in scheduler.cluster.placed.items()}
        assert placed == {uid: pod.spec.node_name for uid, pod in sight.placed.items()}
        # C4
        nominated = {record.uid: node for record, node in scheduler.cluster.nominations.all()}
        responsible = scheduler.runners
        waiting = [(one, node) for one, node in sight.nominated if is_to_be_scheduled(one)]
        shown = {one.metadata.uid: node for one, node in waiting if one.spec.scheduler_name in responsible}
        assert nominated == shown
        self.check_columns()

    def check_columns(self) -> None:
        """C2: what the scheduler has counted pod by pod is what a cluster made anew from what it saw counts."""
        cluster, fresh = self.scheduler.cluster, Cluster()
        sight = self.scheduler.sight()
        for _, node in sorted(sight.nodes.items()):
            fresh.put_node(node)
        for _, pod in sorted(sight.placed.items()):
            fresh.add_pod(fresh.read(pod))
        assert cluster.claim_users == fresh.claim_users
        for name, row in cluster.nodes.row_of.items():
            other = fresh.nodes.row_of[name]
            for index, resource in enumerate(cluster.nodes.resources):
                assert (
                    cluster.nodes.requested[index, row] == fresh.nodes.requested[fresh.nodes.resource(resource), other]
                )
            assert list(cluster.nodes.nonzero_requested[:, row]) == list(fresh.nodes.nonzero_requested[:, other])
            assert cluster.nodes.pod_count[row] == fresh.nodes.pod_count[other]
            assert {pod.uid for pod in cluster.pods_on(row)} == {pod.uid for pod in fresh.pods_on(other)}

    def check_some_decision(self, random: Random) -> None:
        """C9: a scheduler that has only just learned what this one saw decides the same about some pending pod."""
        scheduler = self.scheduler
        waiting = [one.record for one in scheduler.queue if one.place is not QueuePlace.IN_FLIGHT]
        if not waiting:
            return
        record, sight = random.choice(waiting), scheduler.sight()
        nominated = {one.metadata.uid: _with_nomination(one, node) for one, node in sight.nominated}
        nominated.setdefault(record.uid, _with_nomination(scheduler.pod(record.uid), ""))
        others = [one for kind, known in scheduler.seen.items() if kind != "Pod" for one in known.values()]
        caps = scheduler.cluster.caps
        explainer = Explainer([*others, *sight.placed.values(), *nominated.values()], self.settings, now_ns=caps.now)
        # What it has begun and the API does not show yet counts.
        explainer.cluster.caps.assume(caps.full)
        explainer.cluster.deleted_victims.update(scheduler.cluster.deleted_victims)
        known = explain_decision(scheduler.runners[record.scheduler_name], record).decision()
        anew = explainer.explain(record.key).decision()
        # Among equals the seed decides.
        for decision in (known, anew):
            del decision["node"]
            decision.get("preemption", {}).pop("reasons", None)
        assert known == anew

    def _check_pending(self, sight: Sight, pod: Pod, is_flushed: bool) -> None:
        if pod.spec.scheduling_gates:
            assert self.scheduler.queue.where(pod.metadata.uid) is QueuePlace.GATED
            return
        if is_flushed or not (pod.spec.affinity or pod.spec.topology_spread_constraints):
            # L1
            assert not sight.feasible(pod), f"{pod.key} would fit on {sight.feasible(pod)}"
        node = pod.nominated_node_name
        if node and policy_of(pod) not in NEVER_PREEMPTS:
            # E10: a pod that may not preempt keeps a nomination from another component.
            is_own = NOMINATED_NODE_ANNOTATION not in pod.metadata.annotations and not self.had_faults
            waits_for = [one for one in sight.on_node(node) if one.is_terminating and one.priority < pod.priority]
            assert waits_for or not (is_flushed or is_own), f"{pod.key} is nominated to {node} for nothing"
        elif is_flushed and not node and policy_of(pod) not in NEVER_PREEMPTS:
            # L2
            assert self._takes_dependents or not sight.ways(pod), f"{pod.key} could preempt: {sight.ways(pod)}"

    @property
    def _takes_dependents(self) -> bool:
        """Return whether those who depend on victims are victims too, and may forbid a preemption that one node
        allows.
        """
        args = [one.args for profile in self.settings.profiles for one in profile.plugin_config]
        return any(one.get("includeDependents", False) for one in args)

    def _check_budgets(self) -> None:
        """F1: check budgets whose pods belong to Deployments or have no owner."""
        for stored in self.store.objects("PodDisruptionBudget"):
            budget = stored.object
            assert isinstance(budget, PodDisruptionBudget)
            selector = compile_label_selector(budget.spec.selector)
            covered = [one for one in self.pods() if selector.matches(one.metadata.labels)]
            healthy = sum(is_ready(one) and not one.is_terminating for one in covered)
            most, least = budget.spec.max_unavailable, budget.spec.min_available
            expected = len(covered) if isinstance(least, int) else self._scale(covered)
            if most is not None:
                desired = max(0, expected - _rounded_up(most, expected))
            else:
                desired = 0 if least is None else _rounded_up(least, expected)
            status = budget.status
            assert (status.current_healthy, status.desired_healthy, status.expected_pods) == (
                healthy,
                desired,
                expected,
            )
            assert status.disruptions_allowed == (max(0, healthy - desired) if expected else 0)

    def _scale(self, pods: list[Pod]) -> int:
        """Return how many pods the Deployments of some pods want."""
        owners = {one.metadata.controller.name for one in pods if one.metadata.controller}
        sets = [self.store.get("ReplicaSet", f"default/{name}").object for name in sorted(owners)]
        deployments = {one.metadata.controller.name for one in sets if one.metadata.controller}
        found = [self.store.get("Deployment", f"default/{name}").object for name in sorted(deployments)]
        assert all(isinstance(one, ReplicaSet) for one in sets)
        return sum(one.spec.replicas for one in found if isinstance(one, Deployment))


def is_ready(pod: Pod) -> bool:
    """Return whether the pod serves."""
    ready = pod.status.condition("Ready")
    return ready is not None and ready.status == "True"


def _rounded_up(amount: int | str, expected: int) -> int:
    return amount if isinstance(amount, int) else -(-int(amount.removesuffix("%")) * expected // 100)


def _with_nomination(pod: Pod, node: str) -> Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name=node))
