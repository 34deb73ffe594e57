"""Preemption by a gang with affinity partners and dependents; the reference implementation tries every set."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.decide.preempting.preemption_plan import GangPlan
from tests.builders import ZONE, budget, node, pod, term
from tests.decide.test_gang_plan import HIGH, LOW, World, full, planned, state_of, victims, workers
from tests.pod_groups import gang, of_gang


def pairs(*zones: str, **kinds: Any) -> list[Kubernetes]:
    """In each zone a database that fills a node, and a server on another that requires to be near it."""
    found: list[Kubernetes] = []
    for zone in zones:
        found += [node(f"{zone}-1", cpu=4, zone=zone), node(f"{zone}-2", cpu=1, zone=zone)]
        found += [database(zone, **kinds), server(zone)]
    return found


def database(zone: str, **kinds: Any) -> Pod:
    labels = {"app": "database"}
    return pod(f"database-{zone}", **{"on": f"{zone}-1", "cpu": 4, "priority": LOW, "labels": labels, **kinds})


def server(zone: str, **kinds: Any) -> Pod:
    near = [term("app=database", ZONE)]
    return pod(f"server-{zone}", **{"on": f"{zone}-2", "cpu": 1, "priority": LOW, "near": near, **kinds})


def reasons(plan: GangPlan) -> dict[str, str]:
    assert plan.chosen is not None
    return {victim.name: plan.chosen.depends_on.get(victim.uid, "") for victim in plan.chosen.victims}


# Dependents


def test_dependents_of_gang_victims_go_with_them_if_configured() -> None:
    objects = pairs("a", "b")

    assert sorted(victims(planned(objects, workers(2)))) == ["database-a", "database-b"]
    plan = planned(objects, workers(2), includeDependents=True)
    assert reasons(plan) == {
        "database-a": "",
        "database-b": "",
        "server-a": "default/database-a",
        "server-b": "default/database-b",
    }


def test_a_pod_stays_as_long_as_one_is_left_that_it_requires_to_be_near() -> None:
    objects = [*pairs("a"), node("a-3", cpu=4, zone="a"), database("other", on="a-3")]

    assert victims(planned(objects, workers(1), includeDependents=True)) in (["database-a"], ["database-other"])
    assert sorted(victims(planned(objects, workers(2), includeDependents=True))) == [
        *("database-a", "database-other", "server-a"),
    ]


def test_dependents_count_in_the_cost_so_that_dearer_pods_may_go_instead() -> None:
    important = server("a", priority=HIGH - 1)
    objects = [*pairs("a")[:-1], important, *full("c", priority=50)]

    assert victims(planned(objects, workers(1))) == ["database-a"]
    assert victims(planned(objects, workers(1), includeDependents=True)) == ["on-c"]


def test_a_pod_on_which_one_depends_that_may_not_go_stays() -> None:
    important = server("a", priority=HIGH)

    assert planned([*pairs("a")[:-1], important], workers(1), includeDependents=True).chosen is None


def test_dependents_of_dependents_go_to_the_end_of_the_chain() -> None:
    near = [term("app=server", ZONE)]
    client = pod("client", on="a-2", priority=LOW, near=near)
    objects = [*pairs("a")[:-1], server("a", labels={"app": "server"}), client]

    plan = planned(objects, workers(1), includeDependents=True)

    assert sorted(victims(plan)) == ["client", "database-a", "server-a"]
    assert reasons(plan)["client"] == "default/server-a"


def test_budgets_that_are_required_hold_for_dependents_too() -> None:
    dressed = server("a", labels={"app": "server"}, ready=True)
    objects = [*pairs("a")[:-1], dressed, budget("server", "app=server", 0)]

    assert planned(objects, workers(1), includeDependents=True, budgets="Require").chosen is None
    spare = planned([*objects, *full("c", priority=50)], workers(1), includeDependents=True, budgets="Require")
    assert victims(spare) == ["on-c"]


def test_a_dependent_takes_its_whole_group_along() -> None:
    mate = of_gang(pod("mate", on="far", cpu=1, priority=LOW), "job")
    objects = [*pairs("a")[:-1], of_gang(server("a"), "job"), gang("job", whole=True), node("far", cpu=1), mate]

    plan = planned(objects, workers(1), includeDependents=True)

    assert sorted(victims(plan)) == ["database-a", "mate", "server-a"]


def test_the_cluster_is_as_it_was_after_a_plan_with_dependents_beside_partners() -> None:
    near = workers(3, near=[term("app=database", ZONE)])
    objects = [*pairs("a", "b"), *full("b-9", "b-8", "b-7")]
    world = World(objects, near, includeDependents=True, keepAffinityPartners=True)
    before = state_of(world.cluster)

    assert world.plan().chosen is not None
    assert state_of(world.cluster) == before


# Partners


def clique() -> list[Pod]:
    """Members that require to be near pods like themselves, of which others have come before."""
    return workers(2, cpu=2, labels={"app": "train"}, near=[term("app=train", ZONE)])


def trained(*zones: str, batch: int) -> list[Kubernetes]:
    """In each zone a pod like these of priority 10, and one of another kind, each on half a node."""
    found: list[Kubernetes] = []
    for zone in zones:
        found += [node(f"{zone}-1", cpu=4, zone=zone), node(f"{zone}-2", cpu=2, zone=zone)]
        found += [
            pod(f"train-{zone}", on=f"{zone}-1", cpu=2, priority=LOW, labels={"app": "train"}),
            pod(f"batch-{zone}", on=f"{zone}-1", cpu=2, priority=batch),
            pod(f"small-{zone}", on=f"{zone}-2", cpu=2, priority=batch),
        ]
    return found


def test_partners_required_by_members_stay_though_other_victims_are_dearer() -> None:
    objects = trained("a", batch=50)

    assert "train-a" in victims(planned(objects, clique()))
    assert sorted(victims(planned(objects, clique(), keepAffinityPartners=True))) == ["batch-a", "small-a"]


def test_the_last_of_them_goes_where_there_is_no_other_choice() -> None:
    objects = trained("a", batch=HIGH)
    lone = [*objects, node("a-3", cpu=2, zone="a")]

    plan = planned(lone, clique(), keepAffinityPartners=True, victimCost=["HighestPriority"])

    assert victims(plan) == ["train-a"]
    assert plan.chosen is not None
    assert [criterion.name for criterion in plan.criteria] == ["AffinityKept", "HighestPriority"]
    assert plan.chosen.cost == (1, LOW)


def test_one_of_several_that_are_near_is_enough() -> None:
    other = pod("train-b", on="a-3", cpu=2, priority=LOW, labels={"app": "train"})
    objects = [*trained("a", batch=50), node("a-3", cpu=2, zone="a"), other]

    found = victims(planned(objects, clique(), keepAffinityPartners=True))

    assert len({"train-a", "train-b"} & set(found)) == 1


def test_a_member_that_another_has_joined_is_not_alone() -> None:
    leader = workers(1, cpu=2, labels={"role": "leader"})
    follower = workers(2, cpu=2, near=[term("role=leader", ZONE)])[1:]
    old = pod("old", on="a-1", cpu=4, priority=LOW, labels={"role": "leader"})
    objects: list[Kubernetes] = [node("a-1", cpu=4, zone="a"), old, *full("b", priority=50)]

    assert victims(planned(objects, [*leader, *follower], keepAffinityPartners=True)) == ["old"]


def test_without_partners_anywhere_nothing_changes() -> None:
    near = workers(2, labels={"app": "w"}, near=[term("app=w", ZONE)])
    objects = [*full("a1", "a2")]

    with_setting, without = planned(objects, near, keepAffinityPartners=True), planned(objects, near)

    assert victims(with_setting) == victims(without)
    assert with_setting.chosen is not None
    assert without.chosen is not None
    assert with_setting.chosen.cost == without.chosen.cost
