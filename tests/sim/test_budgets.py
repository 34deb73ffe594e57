"""The status of PodDisruptionBudgets."""

from typing import Any

import pytest

from podium.api.clock_inference import DEFAULT_START_NS
from podium.api.policy import PodDisruptionBudget
from podium.api.times import format_time
from podium.sim.simulation import Simulation
from tests.sim.objects import budget, job, owned, scenario, workload
from tests.sim.played import played, simulation_of
from tests.store.objects import SECOND, Raw, node, pod

SET = workload("ReplicaSet", "web", 4, uid="rs")


def status(simulation: Simulation, name: str = "pdb") -> Raw:
    raw: Raw = simulation.store.get("PodDisruptionBudget", f"default/{name}").raw["status"]
    return raw


def sums(simulation: Simulation) -> tuple[int, int, int, int]:
    """(healthy, desired, expected, allowed)."""
    found = status(simulation)
    return (
        found["currentHealthy"],
        found["desiredHealthy"],
        found["expectedPods"],
        found["disruptionsAllowed"],
    )


def running(count: int, owner: Raw | None = None) -> list[Raw]:
    raws = [pod(f"web-{index}", node="n1", labels={"app": "web"}) for index in range(count)]
    return [owned(raw, owner) for raw in raws] if owner else raws


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # healthy, desired, expected, allowed
        ({"minAvailable": 2}, (3, 2, 4, 1)),
        ({"minAvailable": 4}, (3, 4, 4, 0)),
        ({"minAvailable": "30%"}, (3, 2, 4, 1)),
        ({"minAvailable": "100%"}, (3, 4, 4, 0)),
        ({"maxUnavailable": 3}, (3, 1, 4, 2)),
        ({"maxUnavailable": 9}, (3, 0, 4, 3)),
        ({"maxUnavailable": "30%"}, (3, 2, 4, 1)),
        ({}, (3, 0, 0, 0)),
    ],
)
def test_the_status_follows_from_the_pods_and_their_workloads_scale(
    spec: dict[str, Any], expected: tuple[int, ...]
) -> None:
    unready = owned(pod("web-9", cpu=99, labels={"app": "web"}), SET)

    assert sums(played(node("n1"), SET, *running(3, SET), unready, budget("pdb", **spec))) == expected


def test_pods_without_a_workload_count_for_a_number_and_not_for_a_share() -> None:
    assert sums(played(node("n1"), *running(3), budget("pdb", minAvailable=1))) == (3, 1, 3, 2)
    assert sums(played(node("n1"), *running(3), budget("pdb", maxUnavailable=1))) == (3, 0, 0, 0)


def test_the_scale_of_a_deployment_counts_for_its_replica_sets() -> None:
    objects = node("n1"), workload("Deployment", "web", 3), budget("pdb", maxUnavailable=1)

    assert sums(played(*objects)) == (3, 2, 3, 1)


def test_a_workload_without_scale_allows_no_disruptions() -> None:
    owner = {**job("sum", suspend=False), "metadata": {"name": "sum", "uid": "job"}}
    simulation = played(node("n1"), owner, *running(1, owner), budget("pdb", maxUnavailable=1))

    assert status(simulation)["disruptionsAllowed"] == 0


def test_the_empty_selector_covers_the_namespace_and_a_missing_one_nothing() -> None:
    everything, nothing = budget("pdb", selector={}, minAvailable=0), budget("none", minAvailable=0)
    del nothing["spec"]["selector"]
    elsewhere = pod("x", node="n1", namespace="other")

    simulation = played(node("n1"), *running(2), pod("y", node="n1"), elsewhere, everything, nothing)

    assert status(simulation)["expectedPods"] == 3
    assert status(simulation, "none")["expectedPods"] == 0


def test_pods_that_are_not_ready_or_terminating_are_not_healthy() -> None:
    not_ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    unready = pod("web-8", node="n1", labels={"app": "web"}, status=not_ready)
    deleting = {"at": "5s", "delete": {"kind": "Pod", "name": "web-0"}}

    simulation = played(node("n1"), *running(2), unready, budget("pdb", minAvailable=1), scenario(deleting, until="6s"))

    assert sums(simulation) == (1, 1, 3, 0)


def test_the_status_follows_each_change() -> None:
    relabelled = pod("web-1", labels={"app": "other"})
    steps: list[Raw] = [
        {"at": "1s", "apply": [budget("pdb", minAvailable=1)]},
        {"at": "2s", "apply": [relabelled]},
        {"at": "3s", "apply": [pod("web-3", node="n1", labels={"app": "web"})]},
        {"at": "4s", "apply": [budget("pdb", selector={"matchLabels": {"app": "other"}}, minAvailable=0)]},
    ]
    simulation = simulation_of(node("n1"), *running(3), scenario(*steps))
    seen: dict[int, tuple[int, int, int, int]] = {}

    while simulation.step():
        if simulation.store.find("PodDisruptionBudget", "default/pdb"):
            seen[simulation.elapsed_ns // SECOND] = sums(simulation)

    assert seen == {1: (3, 1, 3, 2), 2: (2, 1, 2, 1), 3: (3, 1, 3, 2), 4: (1, 0, 1, 1)}


def test_the_status_says_which_spec_it_is_about() -> None:
    changed = {"at": "1s", "apply": [budget("pdb", minAvailable=2)]}
    simulation = played(node("n1"), *running(1), budget("pdb", minAvailable=1), scenario(changed))

    stored = simulation.store.get("PodDisruptionBudget", "default/pdb").object
    assert isinstance(stored, PodDisruptionBudget)
    assert stored.status.observed_generation == stored.metadata.generation == 2


def test_an_accepted_disruption_counts_for_two_minutes() -> None:
    accepted = {"disruptedPods": {"web-0": format_time(DEFAULT_START_NS), "gone": format_time(DEFAULT_START_NS)}}
    raw = {**budget("pdb", minAvailable=1), "status": accepted}

    simulation = simulation_of(node("n1"), *running(2), raw, start_ns=DEFAULT_START_NS)

    assert sums(simulation) == (1, 1, 2, 0)
    # An unknown pod may just not have been observed yet.
    assert list(status(simulation)["disruptedPods"]) == ["gone", "web-0"]
    while simulation.step():
        pass
    assert simulation.elapsed_ns == 120 * SECOND
    assert sums(simulation) == (2, 1, 2, 1)
    assert "disruptedPods" not in status(simulation)


def test_an_accepted_disruption_ends_when_its_pod_is_deleted() -> None:
    accepted = {"disruptedPods": {"web-0": format_time(DEFAULT_START_NS)}}
    raw = {**budget("pdb", minAvailable=1), "status": accepted}
    deleting = {"at": "5s", "delete": {"kind": "Pod", "name": "web-0", "outright": True}}

    simulation = played(node("n1"), *running(2), raw, scenario(deleting, until="6s"), start_ns=DEFAULT_START_NS)

    assert "disruptedPods" not in status(simulation)


def test_a_replica_set_of_an_unknown_deployment_has_no_scale() -> None:
    deployment = workload("Deployment", "web", 2, uid="unknown")
    replica_set = owned(workload("ReplicaSet", "web-1", 2, uid="rs"), deployment)

    simulation = played(node("n1"), replica_set, *running(2, replica_set), budget("pdb", maxUnavailable=1))

    assert status(simulation)["disruptionsAllowed"] == 0


def test_a_budget_that_is_gone_is_left_alone() -> None:
    steps: list[Raw] = [
        {"at": "1s", "delete": {"kind": "PodDisruptionBudget", "name": "pdb"}},
        {"at": "2s", "delete": {"kind": "Pod", "name": "web-0"}},
        {"at": "3s", "apply": [budget("pdb", minAvailable=0)]},
    ]
    simulation = played(node("n1"), *running(2), budget("pdb", minAvailable=1), scenario(*steps))

    assert sums(simulation) == (1, 0, 1, 1)
