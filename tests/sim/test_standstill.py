"""Endless activity at one instant is an error that names the component; much activity is not."""

import pytest

from podium.api.errors import PodiumError
from podium.controllers.actions import Action, DeleteObject
from podium.controllers.deadlines import AT_ONCE, Deadline
from podium.controllers.observations import Observation, Tick
from podium.sim import simulation as limits
from podium.sim.simulation import Simulation, StallDetector
from tests.proof.test_every_component import STORIES, play
from tests.proof.test_every_write import OneFault
from tests.sim.objects import job, template, workload
from tests.sim.played import played, pods, reported, simulation_of
from tests.store.objects import node, pod


def run(simulation: Simulation) -> None:
    while simulation.step():
        pass


class _Spinning:
    """A controller that is always due, and requests ``actions``."""

    watches: frozenset[str] = frozenset()

    def __init__(self, actions: list[Action]) -> None:
        self._actions = actions

    def handle(self, observation: Observation, now: int) -> list[Action]:
        return self._actions if isinstance(observation, Tick) else []

    def deadline(self) -> Deadline:
        return AT_ONCE


NOT_THERE = DeleteObject("Pod", "default/gone", "u", "test")


def names_of_components() -> list[str]:
    return [one.name for one in simulation_of(node("n1")).runtime.components]


@pytest.mark.parametrize("actions", [[], [NOT_THERE]])
@pytest.mark.parametrize("name", names_of_components())
def test_a_component_with_endless_work_at_one_instant_is_named(name: str, actions: list[Action]) -> None:
    simulation = simulation_of(node("n1"))
    spinning = next(one for one in simulation.runtime.components if one.name == name)
    spinning.make = lambda: _Spinning(actions)
    simulation.start(spinning)

    with pytest.raises(PodiumError, match=f"^{name} goes on for ever at one instant: it acted"):
        run(simulation)


def test_a_component_that_writes_the_same_object_over_and_over_at_one_instant_is_named() -> None:
    standstill = StallDetector(lambda: 10)
    for _ in range(102_000):
        standstill.write("other", 0)
        standstill.write("busy", 1)

    with pytest.raises(PodiumError, match=r"^busy goes on for ever .* 102001 of 102001 writes"):
        standstill.write("busy", 1)


def test_much_work_at_one_instant_is_not_an_error() -> None:
    standstill = StallDetector(lambda: 100_000)

    for version in range(500_000):
        standstill.act("busy", version)
        standstill.write("busy", 1)
    for _ in range(400_000):
        standstill.act("scheduler", 500_000)


def test_time_that_passes_makes_all_good() -> None:
    standstill = StallDetector(lambda: 0)

    for _ in range(3_000):
        standstill.act("busy", 1)
        standstill.pass_time()


@pytest.mark.parametrize("story", STORIES)
def test_idle_ticks_and_writes_of_components_are_bounded_by_the_number_of_objects(
    story: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_SPARE_TICKS", 2)
    monkeypatch.setattr(limits, "_TICKS_AN_OBJECT", 1)
    monkeypatch.setattr(limits, "_SPARE_WRITES", 50)
    monkeypatch.setattr(limits, "_WRITES_AN_OBJECT", 2)

    play(STORIES[story], OneFault("nothing", 0, ""))


def test_more_pods_than_any_fixed_number_may_start_and_end_at_one_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_SPARE_TICKS", 10)
    monkeypatch.setattr(limits, "_SPARE_WRITES", 10)
    inner = template(duration="0s")
    inner = {**inner, "spec": {**inner["spec"], "restartPolicy": "Never"}}
    alone = [pod(f"p{index}") for index in range(60)]
    short = job("sum", template=inner, completions=60, parallelism=60)

    simulation = played(node("n1", cpu=300, pods=300), workload("ReplicaSet", "web", 60), short, *alone)

    phases = [one.status.phase for one in pods(simulation).values()]
    assert (phases.count("Running"), phases.count("Succeeded")) == (120, 60)
    assert simulation.elapsed_ns == 0
    assert len(reported(simulation, "Started")) == 180
