"""What holds after each step of a fleet's story, and what holds once it is at rest.

The letters are those of the list of invariants that the project holds to.
"""

from collections import Counter
from collections.abc import Sequence

from podium.api.meta import Raw
from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.requests import node_allocatable, pod_requests
from podium.api.selectors import compile_label_selector
from podium.api.times import parse_time
from podium.machines.pod_annotations import TERMINATION
from podium.machines.queued_pod import Place
from podium.sim.component import Component
from podium.sim.simulation import Simulation
from podium.store.watch_log import WatchEvent
from tests.sim.fleet_stories import Feature
from tests.sim.invariants import host_ports, is_ready
from tests.sim.judged_scheduler import JudgedScheduler, is_to_be_scheduled
from tests.sim.writes import Writes

DISRUPTIONS_COUNT_NS = 120 * 10**9


class FleetChecker:
    """Looks at what every step has written and left; raises AssertionError."""

    def __init__(self, simulation: Simulation, schedulers: Sequence[Component], features: frozenset[Feature]) -> None:
        self.simulation = simulation
        self.schedulers = schedulers
        self.features = features
        self.store = simulation.store
        self.writes = Writes(self.store, frozenset(one.name for one in schedulers))
        # By the uid of a budget, what it allowed when its controller wrote it last, and what was debited since.
        self.allowed: dict[str, int] = {}
        self.debited: Counter[str] = Counter()
        self.released: set[str] = set()

    def after_step(self) -> None:
        """What holds at any time."""
        for event in self.writes.check():
            if isinstance(event.stored.object, PodDisruptionBudget) and event.type != "DELETED":
                self._check_budget_write(event)
            if isinstance(event.stored.object, Pod):
                self._check_kubelet(event)
        self._check_nodes()
        self._check_ordinals()

    def at_rest(self) -> None:
        """What holds once nothing is left to happen, and no fault comes in between."""
        self._check_budgets()
        self._check_workloads()
        # L5
        for pod in self.pods():
            is_endless = pod.metadata.annotations.get(TERMINATION) == "never"
            is_lost = self.simulation.control_plane.is_down(pod.spec.node_name)
            assert not pod.is_terminating or is_endless or is_lost, f"{pod.key} is still terminating"
            if pod.spec.node_name:
                # E10
                assert not pod.status.nominated_node_name, pod.key
                assert self.store.find("Node", pod.spec.node_name) or pod.is_terminal, pod.key
        for component in self.schedulers:
            scheduler = component.machine
            assert isinstance(scheduler, JudgedScheduler)
            self._check_scheduler(scheduler)

    def pods(self) -> list[Pod]:
        """All pods."""
        return [one.object for one in self.store.objects("Pod") if isinstance(one.object, Pod)]

    # Budgets

    def _check_budget_write(self, event: WatchEvent) -> None:
        budget = event.stored.object
        assert isinstance(budget, PodDisruptionBudget)
        # F2
        assert budget.status.disruptions_allowed >= 0
        assert len(budget.status.disrupted_pods) <= 2000
        if self._is_debit(event):
            # F3, F4
            self.debited[event.stored.uid] += 1
            assert self.debited[event.stored.uid] <= self.allowed.get(event.stored.uid, 0), event.stored.key
        else:
            self.allowed[event.stored.uid] = budget.status.disruptions_allowed
            self.debited[event.stored.uid] = 0

    @staticmethod
    def _is_debit(event: WatchEvent) -> bool:
        """Whether it was an eviction that changed the budget: one more pod is disrupted, and one fewer may be."""
        old, new = event.previous and event.previous.object, event.stored.object
        if not isinstance(old, PodDisruptionBudget) or not isinstance(new, PodDisruptionBudget):
            return False
        before, after = old.status.disrupted_pods, new.status.disrupted_pods
        added = [name for name in after if after[name] != before.get(name)]
        return len(added) == 1 and new.status.disruptions_allowed == old.status.disruptions_allowed - 1

    def _check_budgets(self) -> None:
        """F1, L6: for budgets all of whose pods have controllers that scale."""
        for stored in self.store.objects("PodDisruptionBudget"):
            budget = stored.object
            assert isinstance(budget, PodDisruptionBudget)
            selector = compile_label_selector(budget.spec.selector)
            covered = [one for one in self.pods() if selector.matches(one.metadata.labels)]
            expected = self._expected(budget, covered)
            if expected is None:
                assert budget.status.disruptions_allowed == 0, stored.key
                continue
            most, least = budget.spec.max_unavailable, budget.spec.min_available
            healthy = sum(is_ready(one) and not one.is_terminating for one in covered)
            desired = _rounded_up(least, expected) if most is None else max(0, expected - _rounded_up(most, expected))
            status = budget.status
            assert (status.current_healthy, status.desired_healthy, status.expected_pods) == (
                healthy,
                desired,
                expected,
            ), stored.key
            assert status.disruptions_allowed == (max(0, healthy - desired) if expected else 0), stored.key
            assert status.observed_generation == budget.metadata.generation
            # L7
            times = [parse_time(text) for text in status.disrupted_pods.values()]
            assert all(time + DISRUPTIONS_COUNT_NS > self.simulation.now for time in times), stored.key

    def _expected(self, budget: PodDisruptionBudget, covered: list[Pod]) -> int | None:
        """How many pods there should be; None where an owner has no scale."""
        if budget.spec.max_unavailable is None and isinstance(budget.spec.min_available, int):
            return len(covered)
        scales: dict[str, int] = {}
        for pod in covered:
            owner = pod.metadata.controller
            if owner is None:
                continue
            found = self.store.find(owner.kind, f"default/{owner.name}")
            if found is None or owner.kind in ("Job", "DaemonSet"):
                return None
            parent = found.object.metadata.controller
            if parent is not None:
                found = self.store.get(parent.kind, f"default/{parent.name}")
            scales[found.uid] = found.raw["spec"].get("replicas", 1)
        return sum(scales.values())

    # Nodes

    def _check_kubelet(self, event: WatchEvent) -> None:
        """B4: a pod that was turned away never runs."""
        pod, old = event.stored.object, event.previous and event.previous.object
        assert isinstance(pod, Pod)
        if isinstance(old, Pod) and pod.status.phase == "Running" and old.status.phase != "Running":
            assert pod.spec.node_name
            assert old.status.phase == "Pending"

    def _check_nodes(self) -> None:
        """B1, B3: what runs on a node fits there beside the rest."""
        running: dict[str, list[Pod]] = {}
        for pod in self.pods():
            if pod.spec.node_name and pod.status.phase == "Running":
                running.setdefault(pod.spec.node_name, []).append(pod)
        for stored in self.store.objects("Node"):
            assert isinstance(stored.object, Node)
            pods, offered = running.get(stored.key, []), node_allocatable(stored.object.status)
            held: Counter[str] = sum((Counter(pod_requests(pod.spec)) for pod in pods), Counter())
            assert all(amount <= offered.get(name, 0) for name, amount in held.items()), stored.key
            assert len(pods) <= offered["pods"], stored.key
            ports = [port for pod in pods for port in host_ports(pod)]
            assert len(ports) == len(set(ports)), stored.key

    # Workloads

    def _check_ordinals(self) -> None:
        """A StatefulSet has one pod of a name, so two that live cannot be; its pods belong to it."""
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
        """Whether pods come one after the other, and one of them is not ready."""
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
        assert not scheduler.queue.count(Place.IN_FLIGHT)
        # C1
        waiting = {one.metadata.uid for one in self.pods() if is_to_be_scheduled(one)}
        ours = {uid for uid in waiting if scheduler.pod(uid).spec.scheduler_name in scheduler.runners}
        assert {queued.record.uid for queued in scheduler.queue} == ours


def _rounded_up(amount: int | str | None, expected: int) -> int:
    if amount is None:
        return 0
    return amount if isinstance(amount, int) else -(-int(amount.removesuffix("%")) * expected // 100)


def _is_of(raw: Raw, uid: str) -> bool:
    return any(one.get("uid") == uid and one.get("controller") for one in raw["metadata"].get("ownerReferences", ()))


def _is_of_pod(pod: Pod, uid: str) -> bool:
    return pod.metadata.controller is not None and pod.metadata.controller.uid == uid
