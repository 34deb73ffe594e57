"""Invariants of a fleet's story after each step, and at rest.

The letters are those of the list of invariants that the project holds to.
"""

from collections import Counter
from collections.abc import Sequence

from podium.api.meta import Raw
from podium.api.pod import Pod
from podium.api.times import parse_time
from podium.controllers.kubelets.pod_run import TERMINATION
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.controlplane.component_names import RESCHEDULER
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from podium.store.watch_log import WatchEvent
from tests.sim.api_invariants import Replay, check_requests
from tests.sim.budget_invariants import DISRUPTIONS_COUNT_NS, BudgetChecker
from tests.sim.device_invariants import check_devices, check_devices_at_rest
from tests.sim.fleet_stories import CALM, Feature
from tests.sim.gang_invariants import check_gangs_at_rest
from tests.sim.invariants import is_ready
from tests.sim.judged_scheduler import JudgedScheduler, is_to_be_scheduled
from tests.sim.judges import Court, Judges
from tests.sim.rescheduler_invariants import ReschedulerChecker
from tests.sim.room import check_room, is_running
from tests.sim.writes import Writes

CRITICAL = 2_000_000_000


class FleetChecker:
    """Looks at what every step has written and left; raises AssertionError."""

    def __init__(
        self,
        simulation: Simulation,
        schedulers: Sequence[Component],
        features: frozenset[Feature],
        *,
        is_faulty: bool = True,
        binds_first: bool = False,
    ) -> None:
        self.simulation = simulation
        self.schedulers = schedulers
        self.features = features
        self.store = simulation.store
        self.writes = Writes(self.store, frozenset(one.name for one in schedulers))
        self.budgets = BudgetChecker(self.store)
        self.replay = Replay(self.store)
        # Several schedulers, and those that crash or see what is old, may bind or give away too much. One that binds
        # first does so while victims are still on the node.
        is_exact = not is_faulty and len(schedulers) == 1
        self.court = Court(simulation, Judges(counts_bound=is_exact and not binds_first, counts_devices=is_exact))
        check_requests(simulation)
        nodes_go = bool(features & {Feature.REPLACED_NODES, Feature.AUTOSCALER})
        self.reschedulers = [
            ReschedulerChecker(simulation, component, is_faulty=is_faulty, nodes_go=nodes_go)
            for component in simulation.runtime.components
            if component.name == RESCHEDULER
        ]
        if features <= CALM:
            self.budgets.expect_calm(simulation)

    def after_step(self) -> None:
        """Check the invariants of every instant."""
        self.court.after_step()
        for event in self.writes.check():
            self.budgets.after_write(event)
            if isinstance(event.stored.object, Pod):
                self._check_kubelet(event)
        self.replay.check()
        for rescheduler in self.reschedulers:
            rescheduler.after_step()
        self.simulation.runtime.check()
        check_room(self.store, filter(is_running, self.pods()))
        self._check_ordinals()
        check_devices(self.store, may_be_given_twice=any(one.life > 1 for one in self.schedulers))

    def at_rest(self) -> None:
        """Check the invariants at rest, without faults."""
        self.budgets.at_rest(self.pods(), self.simulation.now)
        self._check_workloads()
        check_devices_at_rest(self.store)
        # L5
        for pod in self.pods():
            is_endless = pod.metadata.annotations.get(TERMINATION) == "never"
            is_lost = self.simulation.control_plane.is_down(pod.spec.node_name)
            assert not pod.is_terminating or is_endless or is_lost, f"{pod.key} is still terminating"
            self._check_mark(pod)
            if pod.spec.node_name:
                # E10
                assert not pod.status.nominated_node_name, pod.key
                assert self.store.find("Node", pod.spec.node_name) or pod.is_terminal, pod.key
        for component in self.schedulers:
            scheduler = component.controller
            assert isinstance(scheduler, JudgedScheduler)
            self._check_scheduler(scheduler)

    def pods(self) -> list[Pod]:
        """All pods."""
        return [one.object for one in self.store.objects("Pod") if isinstance(one.object, Pod)]

    def _check_mark(self, pod: Pod) -> None:
        """F11: check that no pod keeps a disruption condition for long without being deleted."""
        if pod.is_terminating or pod.is_terminal:
            return
        for condition in self.store.get("Pod", pod.key).raw["status"].get("conditions", []):
            if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
                marked_ns = parse_time(condition["lastTransitionTime"])
                assert marked_ns + DISRUPTIONS_COUNT_NS > self.simulation.now, pod.key

    # Nodes

    def _check_kubelet(self, event: WatchEvent) -> None:
        """B4, B8: a pod that was turned away never runs; critical pods are never evicted, and others are marked."""
        pod, old = event.stored.object, event.previous and event.previous.object
        assert isinstance(pod, Pod)
        if not isinstance(old, Pod) or pod.status.phase == old.status.phase:
            return
        if pod.status.phase == "Running":
            assert pod.spec.node_name
            assert old.status.phase == "Pending"
        if old.status.phase == "Running" and event.stored.raw["status"].get("reason") == "Evicted":
            target = pod.status.condition("DisruptionTarget")
            assert target is not None
            assert (target.status, target.reason) == ("True", "TerminationByKubelet")
            assert pod.priority < CRITICAL

    # Workloads

    def _check_ordinals(self) -> None:
        """Check that a StatefulSet's names are unique among live pods, and that these pods belong to it."""
        for pod in self.pods():
            owner = pod.metadata.controller
            if owner is not None and owner.kind == "StatefulSet":
                assert pod.metadata.name.rpartition("-")[0] == owner.name

    def _check_workloads(self) -> None:
        """Every workload has the pods that it wants, unless a quota forbids them."""
        if Feature.QUOTA in self.features:
            return
        alive = Counter(
            pod.metadata.controller.uid
            for pod in self.pods()
            if pod.metadata.controller and not pod.is_terminal and not pod.is_terminating
        )
        for kind in ("ReplicaSet", "StatefulSet"):
            for stored in self.store.objects(kind):
                wanted = stored.raw["spec"].get("replicas", 1)
                if kind == "StatefulSet" and (self._is_held_up(stored.raw) or self._has_endless_pods(stored.uid)):
                    assert alive[stored.uid] <= wanted
                else:
                    assert alive[stored.uid] == wanted, f"{kind} {stored.key}: {alive[stored.uid]} instead of {wanted}"
        for stored in self.store.objects("Deployment"):
            sets = [one for one in self.store.objects("ReplicaSet") if _is_of(one.raw, stored.uid)]
            wanted = sum(one.raw["spec"].get("replicas", 1) for one in sets)
            assert wanted >= stored.raw["spec"].get("replicas", 1) or not self._all_ready(sets), stored.key

    def _all_ready(self, sets: Sequence[object]) -> bool:
        return not [pod for pod in self.pods() if pod.status.phase == "Pending" and pod.metadata.controller]

    def _is_held_up(self, raw: Raw) -> bool:
        """Return whether pods come one after the other, and one of them is not ready."""
        if raw["spec"].get("podManagementPolicy") == "Parallel":
            return False
        owned = [pod for pod in self.pods() if _is_of_pod(pod, raw["metadata"]["uid"])]
        return not all(is_ready(pod) for pod in owned)

    def _has_endless_pods(self, uid: str) -> bool:
        return any(pod.is_terminating for pod in self.pods() if _is_of_pod(pod, uid))

    # Schedulers

    def _check_scheduler(self, scheduler: JudgedScheduler) -> None:
        # C2
        placed = {uid: record.node_name for uid, record in scheduler.cluster.placed.items()}
        assert placed == {
            one.metadata.uid: one.spec.node_name for one in self.pods() if one.spec.node_name and not one.is_terminal
        }
        # C3, L7
        assert not scheduler.bindings.unseen
        assert not len(scheduler.bindings)
        assert not len(scheduler.preemptions)
        assert not scheduler.queue.count(QueuePlace.IN_FLIGHT)
        # C1
        waiting = {one.metadata.uid for one in self.pods() if is_to_be_scheduled(one)}
        ours = {uid for uid in waiting if scheduler.pod(uid).spec.scheduler_name in scheduler.runners}
        assert {queued.record.uid for queued in scheduler.queue} == ours
        if Feature.GANGS in self.features:
            # Default budgets, and pods that never end, may keep a gang from giving its nodes back.
            may_stay = bool(self.features & {Feature.DEFAULTS, Feature.ENDLESS, Feature.BUDGETS})
            check_gangs_at_rest(self.simulation, scheduler, may_stay_in_part=may_stay)
        # L1. Those with affinity may have to wait for the flush. What claims have to do with it, the oracle cannot say.
        sight = scheduler.sight()
        for uid in sorted(ours):
            pod = scheduler.pod(uid)
            if pod.spec.scheduling_group is not None:
                continue
            if not pod.spec.affinity and not pod.spec.resource_claims and not pod.spec.scheduling_gates:
                assert not sight.feasible(pod), f"{pod.key} would fit on {sight.feasible(pod)}"


def _is_of(raw: Raw, uid: str) -> bool:
    return any(one.get("uid") == uid and one.get("controller") for one in raw["metadata"].get("ownerReferences", ()))


def _is_of_pod(pod: Pod, uid: str) -> bool:
    return pod.metadata.controller is not None and pod.metadata.controller.uid == uid
