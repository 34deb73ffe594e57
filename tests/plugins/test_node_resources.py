"""Rules of resources: what fits, and which usage scores best."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import PodiumError
from podium.api.meta import Kubernetes
from podium.api.node import Node
from podium.api.pod import Container, ResourceRequirements
from podium.framework.handle import CycleState
from tests.builders import cluster_of, configuration, explain, node, plain_runner, pod

FIT = "NodeResourcesFit"
BALANCE = "NodeResourcesBalancedAllocation"


def status(*objects: Kubernetes) -> tuple[str, str]:
    found = explain(objects).nodes["n"]
    return found.code.value, found.message


def test_filters_use_requests_not_usage() -> None:
    there = [pod("q", on="n", cpu=3), pod("idle", on="n")]

    assert status(node("n", cpu=4), *there, pod("p", cpu=1)) == ("Success", "")
    assert status(node("n", cpu=4), *there, pod("p", cpu="1001m")) == ("Unschedulable", "Insufficient cpu")


def test_everything_that_is_lacking_is_named_the_well_known_resources_first() -> None:
    small = node("n", cpu=1, memory="1Gi", pods=1, a_io__b=1, example_com__gpu=1)
    there = pod("q", on="n", cpu=1, memory="1Gi", a_io__b=1, example_com__gpu=1)
    greedy = pod("p", example_com__gpu=1, a_io__b=1, memory=1, cpu="1m")

    reasons = "Too many pods, Insufficient cpu, Insufficient memory, Insufficient a.io/b, Insufficient example.com/gpu"
    assert status(small, there, greedy) == ("Unschedulable", reasons)
    assert status(node("of-gpus", example_com__gpu=1), small, there, greedy) == ("Unschedulable", reasons)


def test_preemption_cannot_provide_a_resource_that_the_node_lacks() -> None:
    assert status(node("n", cpu=4), pod("p", cpu=5)) == ("UnschedulableAndUnresolvable", "Insufficient cpu")
    assert status(node("n"), pod("p", example_com__gpu=1)) == (
        "UnschedulableAndUnresolvable",
        "Insufficient example.com/gpu",
    )
    # One hopeless resource is enough, though more of the other could be freed.
    there = pod("q", on="n", cpu=4)
    assert status(node("n", cpu=4), there, pod("p", cpu=1, example_com__gpu=1))[0] == "UnschedulableAndUnresolvable"


def test_a_resource_that_a_node_lost_while_pods_use_it_is_lacking() -> None:
    assert status(node("n", cpu=1), pod("q", on="n", cpu=3), pod("p", cpu="1m"))[1] == "Insufficient cpu"
    assert status(node("n", cpu=1), pod("q", on="n", cpu=3), pod("p"))[1] == ""


@pytest.mark.parametrize("number", [30, 31, 32, 70])
def test_any_number_of_resources_can_be_lacking(number: int) -> None:
    """And what is kept of one node still means the same when another one changes."""
    one_of_each: dict[str, Any] = {f"example_com__r{index:02}": 1 for index in range(number)}
    names = [f"example.com/r{index:02}" for index in range(number)]
    others = [node(f"other-{index}") for index in range(9)]
    cluster = cluster_of(node("bare"), node("n", **one_of_each), node("m", pods=0, **one_of_each), *others)
    runner, record = plain_runner(cluster), cluster.read(pod("p", **one_of_each))

    def refusals() -> list[tuple[str, ...]]:
        state = CycleState()
        runner.pre_filter(state, record)
        outcome = runner.filter(state, record)
        return [outcome.status(row).reasons for row in range(3)]

    everything = tuple(f"Insufficient {name}" for name in names)
    assert refusals() == [everything, (), ("Too many pods",)]
    last: dict[str, Any] = {f"example_com__r{number - 1:02}": 1}
    cluster.add_pod(cluster.read(pod("q", on="n", **last)))
    assert refusals() == [everything, everything[-1:], ("Too many pods",)]


def test_the_largest_init_container_counts_where_it_is_more_than_the_sum() -> None:
    def asks(cpu: int) -> ResourceRequirements:
        return ResourceRequirements(requests={"cpu": cpu})

    containers = tuple(Container(name=name, resources=asks(1)) for name in "ab")
    init = (Container(name="init", resources=asks(3)),)
    target = pod("p", spec={"containers": containers, "init_containers": init})

    assert status(node("n", cpu=2), target)[1] == "Insufficient cpu"
    assert status(node("n", cpu=3), target)[1] == ""


def scores(plugin: str, *objects: Kubernetes, args: dict[str, Any] | None = None) -> dict[str, int]:
    settings = configuration(None if args is None else {plugin: args})
    found = explain(objects, settings=settings).scores
    return {name: one[plugin] for name, one in found.items()}


def nodes(*used: int) -> list[Node | Any]:
    """Nodes n0, n1 and so on of 10 cpu and 10 Gi, on which so much of each is used."""
    found: list[Any] = []
    for number, amount in enumerate(used):
        found.append(node(f"n{number}", cpu=10, memory="10Gi"))
        found.append(pod(f"q{number}", on=f"n{number}", cpu=amount, memory=f"{amount}Gi"))
    return found


def test_the_emptiest_node_is_liked_by_default() -> None:
    assert scores(FIT, *nodes(1, 5, 9), pod("p", cpu=1, memory="1Gi")) == {"n0": 80, "n1": 40, "n2": 0}


def test_the_fullest_node_is_liked_where_so_configured() -> None:
    args = {"scoringStrategy": {"type": "MostAllocated"}}

    assert scores(FIT, *nodes(1, 5, 9), pod("p", cpu=1, memory="1Gi"), args=args) == {"n0": 20, "n1": 60, "n2": 100}


def test_the_use_can_be_rated_by_points_with_lines_between() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 60, "score": 10}, {"utilization": 100, "score": 5}]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}

    found = scores(FIT, *nodes(1, 5, 9), pod("p", cpu=1, memory="1Gi"), args={"scoringStrategy": strategy})

    assert found == {"n0": 33, "n1": 100, "n2": 50}


def test_containers_that_request_nothing_count_a_little_in_the_score() -> None:
    """100m of cpu and 200 MB of memory, so that not all of them go to one node."""
    idle = [node("n0", cpu=1, memory="2000Mi"), node("n1", cpu=1, memory="2000Mi"), pod("q", on="n0")]

    assert scores(FIT, *idle, pod("p")) == {"n0": 80, "n1": 90}


def test_weights_say_which_resource_counts_more() -> None:
    there = [node("n0", cpu=10, memory="10Gi"), node("n1", cpu=10, memory="10Gi")]
    there_too = [pod("q", on="n0", cpu=8, memory="1Gi"), pod("r", on="n1", cpu=1, memory="8Gi")]
    by_memory = {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 3}]}}

    found = scores(FIT, *there, *there_too, pod("p", cpu=1, memory="1Gi"), args=by_memory)

    assert found == {"n0": (10 + 3 * 80) // 4, "n1": (80 + 3 * 10) // 4}


def test_balanced_allocation_gives_75_or_more_if_the_pod_balances_the_node() -> None:
    """A pod that changes no balance gives 75."""
    uneven = [node("n0", cpu=10, memory="10Gi"), pod("q", on="n0", cpu=5), node("n1", cpu=10, memory="10Gi")]

    found = scores(BALANCE, *uneven, pod("p", memory="5Gi"))

    assert found["n0"] > 75 > found["n1"]
    assert scores(BALANCE, *uneven, pod("p", cpu=1, memory="1Gi")) == {"n0": 75, "n1": 75}


def test_a_pod_without_requests_cannot_change_the_balance_and_is_not_rated() -> None:
    found = explain([node("a"), node("b"), pod("p")]).scores

    assert BALANCE not in found["a"]


def shaped(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}


@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        ({"type": "RequestedToCapacityRatio"}, "at least one point is needed"),
        (shaped((0, 0), (101, 5)), "utilization must be within 0 and 100"),
        (shaped((0, 11)), "score must be within 0 and 10"),
        (shaped((50, 1), (50, 2)), "utilization must rise from point to point"),
        ({"resources": [{"name": "cpu", "weight": 0}]}, "weight of cpu is 0; it must be within 1 and 100"),
        ({"resources": [{"name": "cpu"}, {"name": "cpu"}]}, "a resource is named twice"),
        ({"type": "Random"}, "Random"),
    ],
)
def test_a_strategy_that_makes_no_sense_is_refused(strategy: dict[str, Any], problem: str) -> None:
    with pytest.raises(PodiumError, match=problem):
        plain_runner(cluster_of(), FIT, args={"scoringStrategy": strategy})
