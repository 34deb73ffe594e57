"""Several schedulers in one cluster."""

from typing import Any

import pytest

import podium
from podium.api.errors import InputError
from podium.controllers.scheduling.queue.queued_pod import QueuedPod
from podium.controllers.scheduling.scheduler import Scheduler
from podium.decide.placement import place
from podium.framework.runner import Runner
from podium.framework.settings.configuration import API_VERSION, KIND, read_configuration
from podium.sim.run import components_of, simulation_of
from podium.sim.run_options import RunOptions
from podium.sim.scenario.scenario import read_scenario
from tests.sim.objects import documents, scenario
from tests.sim.simulating import simulate
from tests.store.objects import Raw, node, pod

TWO = {"schedulers": [{"name": "a"}, {"name": "b", "bindDelay": "3s"}]}


def of(scheduler: str, name: str) -> Raw:
    return pod(name, spec={"schedulerName": scheduler})


def test_each_binds_the_pods_that_name_it_and_takes_its_own_time() -> None:
    found = [node("n1"), of("a", "p1"), of("b", "p2"), of("c", "p3"), scenario(**TWO)]

    events = podium.simulate(found, bind_delay="1s").events

    bound = [(event.time, event.pod, event.by) for event in events if event.reason == "Scheduled"]
    assert bound == [(1, "default/p1", "a"), (3, "default/p2", "b")]


def test_each_scheduler_uses_the_profile_of_its_name() -> None:
    profiles = [{"schedulerName": name, "percentageOfNodesToScore": share} for name, share in (("b", 70), ("a", 30))]
    configuration = read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}, "")
    [document] = documents(scenario(**TWO))

    components = components_of(read_scenario(document), RunOptions(configuration=configuration))

    made = [one for one in (component.make() for component in components) if isinstance(one, Scheduler)]
    assert [list(one.runners) for one in made] == [["a"], ["b"]]
    assert [one.runners[name].profile.percentage_of_nodes_to_score for one, name in zip(made, "ab", strict=True)] == [
        30,
        70,
    ]


def test_a_configuration_without_the_profile_is_an_error() -> None:
    configuration = read_configuration({"apiVersion": API_VERSION, "kind": KIND}, "config.yaml")

    with pytest.raises(InputError, match='a scheduler "a", and the configuration no profile of that name') as caught:
        simulate([node("n1"), scenario(**TWO)], configuration=configuration)
    assert "config.yaml" in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"schedulers": [{"name": "a"}, {"name": "a"}]}, '.spec.schedulers[1].name: "a" is given twice'),
        ({"schedulers": [{"bindDelay": "1s"}]}, ".spec.schedulers[0].name: is missing"),
        ({"schedulers": [{"name": "a", "bindDelay": "soon"}]}, ".spec.schedulers[0].bindDelay"),
        ({"kubelets": {"waitForVictims": "yes"}}, '.spec.kubelets.waitForVictims: "yes" is not true or false'),
        ({"kubelets": {"memoryThreshold": "much"}}, ".spec.kubelets.memoryThreshold"),
        ({"kubelets": {"memoryThreshold": True}}, ".spec.kubelets.memoryThreshold: true is not a quantity"),
        ({"kubelets": {"pressureTransition": "-1s"}}, ".spec.kubelets.pressureTransition"),
        ({"kubelets": {"grace": 1}}, '.spec.kubelets: there is no field "grace"'),
    ],
)
def test_a_setting_that_is_wrong_is_an_error_at_its_field(spec: Raw, problem: str) -> None:
    [document] = documents(scenario(**spec))

    with pytest.raises(InputError) as caught:
        read_scenario(document)
    assert problem in str(caught.value)


def test_nodes_of_a_large_cluster_are_examined_in_turn_as_by_kube_scheduler() -> None:
    objects = documents(*(node(f"n{number:03}") for number in range(120)), *(pod(f"p{number}") for number in range(3)))

    def first_nodes(seed: int, **configured: Any) -> list[list[int]]:
        """Return where each search for a node starts, and how many nodes it finds."""
        starts: list[list[int]] = []

        def note(queued: QueuedPod, runner: Runner) -> None:
            if runner.profile.is_sampling:
                start = runner.cluster.nodes.search_start % 120
                starts.append([start, len(place(runner, queued.record).feasible)])

        settings = read_configuration({"apiVersion": API_VERSION, "kind": KIND, **configured}, "")
        simulation = simulation_of(objects, RunOptions(seed=seed, configuration=settings, on_attempt=note))
        while simulation.step():
            pass
        return starts

    assert first_nodes(0) == [[0, 100], [100, 100], [80, 100]]
    assert first_nodes(0, percentageOfNodesToScore=100) == []
    other = first_nodes(1)
    assert other[0][0] != 0
    assert [(start - other[0][0]) % 120 for start, _ in other] == [0, 100, 80]
