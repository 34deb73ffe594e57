"""What holds after each step of random simulations, faults between scheduler and API server included.

The letters are those of the list of invariants that the project holds to.
"""

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.node import Node
from podium.api.pod import Pod
from podium.api.policy import PodDisruptionBudget
from podium.api.requests import node_allocatable, pod_requests
from podium.api.selectors import compile_label_selector
from podium.machines.actions import Action, Bind
from podium.machines.observations import Problem
from podium.sim.run import SettlingScheduler
from podium.sim.simulation import SimulatedScheduler, Simulation
from podium.store.watch_log import WatchEvent
from tests.sim.first_fit import FirstFit
from tests.sim.objects import budget, job, scenario, template, workload
from tests.sim.played import simulation_of
from tests.store.objects import SECOND, Raw, node, pod

NODES = [node("n1", cpu=4, pods=5), node("n2", cpu=3, pods=5)]
SECONDS = st.integers(0, 40)


class Unlucky:
    """Refuses, loses the answer of, or delays the answer of, a share of the actions; all of them drawn."""

    def answer(self, action: Action, rng: Random) -> Problem | int | None:
        luck = rng.random()
        if luck < 0.1:
            return Problem(500, "InternalError", "the API server stumbled")
        if luck < 0.2 and isinstance(action, Bind):
            return Problem(0, "Timeout", "no answer came")
        return rng.randrange(5) * SECOND if luck < 0.4 else None


@st.composite
def pods_of(draw: st.DrawFn, name: str) -> Raw:
    annotations = {}
    if draw(st.booleans()):
        annotations["podium.dev/duration"] = f"{draw(SECONDS)}s"
    if draw(st.booleans()):
        annotations["podium.dev/termination"] = f"{draw(SECONDS)}s"
    return pod(
        name,
        cpu=draw(st.integers(0, 4)),
        priority=draw(st.sampled_from([0, 10, 100])),
        labels={"app": draw(st.sampled_from(["web", "db"]))},
        annotations=annotations,
        spec={"terminationGracePeriodSeconds": draw(st.sampled_from([0, 10, 30]))},
    )


@st.composite
def steps(draw: st.DrawFn) -> list[Raw]:
    names = [f"p{index}" for index in range(6)]
    found: list[Raw] = [{"at": "0s", "apply": [draw(pods_of(name))]} for name in names]
    for _ in range(draw(st.integers(0, 8))):
        at, target = f"{draw(st.integers(1, 60))}s", {"name": draw(st.sampled_from(names))}
        change: Raw = draw(
            st.sampled_from(
                [
                    {"delete": {"kind": "Pod", **target}},
                    {"finish": target},
                    {"apply": [workload("Deployment", "web", draw(st.integers(0, 4)))]},
                    {"apply": [node("n3", cpu=5)]},
                    {"apply": [budget("pdb", maxUnavailable=draw(st.integers(0, 2)))]},
                ]
            )
        )
        found.append({"at": at, **change})
    return found


def clusters() -> list[Raw]:
    lasting = {"annotations": {"podium.dev/duration": "7s"}}
    work = job("sum", completions=3, parallelism=2, template={**template(), "metadata": lasting})
    return [*NODES, workload("Deployment", "web", 2), work, budget("pdb", minAvailable="50%")]


class Watching:
    """Checks what holds, after each step, from the events since the last."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.version = 0
        self.bound: dict[str, str] = {}

    def check(self) -> None:
        for event in self.simulation.store.events_since(self.version):
            self.version = event.version
            self.check_event(event)
        self.check_nodes()
        self.check_budgets()

    def check_event(self, event: WatchEvent) -> None:
        new = event.stored.object
        if not isinstance(new, Pod):
            return
        node_name, old = new.spec.node_name, event.previous
        if node_name:
            # A8, B6: a pod has one node for its life.
            assert self.bound.setdefault(event.stored.uid, node_name) == node_name
        if old is not None and isinstance(old.object, Pod):
            # A10, A11.
            assert not old.object.is_terminal or new.status.phase == old.object.status.phase
            assert not old.object.is_terminating or new.is_terminating
            if new.status.phase == "Running" and old.object.status.phase != "Running":
                assert node_name

    def pods(self) -> list[Pod]:
        found = (stored.object for stored in self.simulation.store.objects("Pod"))
        return [one for one in found if isinstance(one, Pod)]

    def check_nodes(self) -> None:
        """B1, B4: what started fits its node."""
        for stored in self.simulation.store.objects("Node"):
            assert isinstance(stored.object, Node)
            offered = node_allocatable(stored.object.status)
            there = [one for one in self.pods() if one.spec.node_name == stored.key and one.status.phase == "Running"]
            held: Counter[str] = sum((Counter(pod_requests(one.spec)) for one in there), Counter())
            assert all(amount <= offered.get(name, 0) for name, amount in held.items())
            assert len(there) <= offered["pods"]

    def check_budgets(self) -> None:
        """F1, F2, for budgets whose pods belong to Deployments or to nobody."""
        for stored in self.simulation.store.objects("PodDisruptionBudget"):
            assert isinstance(stored.object, PodDisruptionBudget)
            covered = [one for one in self.pods() if self.covers(stored.object, one)]
            healthy = sum(not one.is_terminating and self.is_ready(one) for one in covered)
            owners = {one.metadata.controller.uid for one in covered if one.metadata.controller}
            scale = self.simulation.store.get("Deployment", "default/web").raw["spec"]["replicas"] if owners else 0
            unavailable = stored.object.spec.max_unavailable
            desired = -(-scale // 2) if unavailable is None else max(0, scale - int(unavailable))
            status = stored.object.status
            assert (status.current_healthy, status.expected_pods) == (healthy, scale)
            assert status.desired_healthy == desired
            assert status.disruptions_allowed == (max(0, healthy - desired) if scale else 0)
            assert status.observed_generation == stored.object.metadata.generation

    @staticmethod
    def covers(found: PodDisruptionBudget, one: Pod) -> bool:
        return compile_label_selector(found.spec.selector).matches(one.metadata.labels)

    @staticmethod
    def is_ready(one: Pod) -> bool:
        ready = one.status.condition("Ready")
        return ready is not None and ready.status == "True"


def watched(schedulers: list[SimulatedScheduler], story: list[Raw], **options: Any) -> Simulation:
    simulation = simulation_of(*clusters(), scenario(*story, until="3m"), schedulers=schedulers, **options)
    watching = Watching(simulation)
    watching.check()
    while simulation.step():
        watching.check()
    return simulation


@settings(max_examples=40)
@given(story=steps(), seed=st.integers(0, 99))
def test_the_invariants_hold_with_the_first_fit_scheduler_and_faults(story: list[Raw], seed: int) -> None:
    watched([FirstFit()], story, faults=Unlucky(), seed=seed)


@settings(max_examples=40)
@given(story=steps(), seed=st.integers(0, 99))
def test_the_invariants_hold_with_the_real_scheduler(story: list[Raw], seed: int) -> None:
    simulation = watched([SettlingScheduler(seed=seed)], story, seed=seed)

    # B2: nothing but the scheduler binds, so the kubelets turn nothing away.
    assert not [event for event in simulation.history.events if event.reason == "Failed"]


@settings(max_examples=25)
@given(story=steps(), seed=st.integers(0, 99))
def test_the_same_seed_and_faults_give_the_same_events(story: list[Raw], seed: int) -> None:
    runs = [watched([SettlingScheduler(seed=seed)], story, faults=Unlucky(), seed=seed) for _ in range(2)]

    assert runs[0].history.events == runs[1].history.events
    assert runs[0].store.version == runs[1].store.version
