"""`podium plan ... --outcomes`: the possible outcomes of a plan, by the workloads that lose pods."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import podium
from podium.app.planning.outcomes import SampledRun, TieBreaks, WorkloadLoss, sampled
from podium.framework.runner import Runner
from tests.app.planning.small import (
    PLACES_GROUPS,
    Raw,
    ask,
    group,
    node,
    pod,
    priority_class,
    replica_set,
    reported,
    written,
)
from tests.builders import cluster_of, plain_runner
from tests.builders import node as typed_node
from tests.builders import pod as typed_pod

HIGH = priority_class("high", 100)


def two_full(folder: Path, *more: Raw) -> str:
    """Two nodes, each with a pod of another workload on it, and no room for a third."""
    return written(
        folder,
        HIGH,
        *(node(name) for name in "ab"),
        *(replica_set(name, 1, "3") for name in ("web", "sum")),
        pod("web-1", "3", on="a", owner="web"),
        pod("sum-1", "3", on="b", owner="sum"),
        *more,
    )


def urgent(folder: Path, name: str = "urgent") -> str:
    return written(folder, pod(name, "3", priority=100, priorityClassName="high"), name="urgent.json")


def losses(answer: Raw) -> dict[str, int]:
    """Return the number of runs by the workloads that lose pods."""
    return {
        ", ".join(each["workload"] for each in outcome["losses"]): outcome["samples"]
        for outcome in answer["outcomes"]["outcomes"]
    }


def test_samples_cover_each_outcome_of_a_tie(tmp_path: Path) -> None:
    answer = reported("deploy", "-f", two_full(tmp_path), urgent(tmp_path), "--outcomes", "--samples", "2")

    assert losses(answer) == {"ReplicaSet default/web": 1, "ReplicaSet default/sum": 1}
    ties = answer["ties"]
    assert (ties["decisions"], ties["deciding"], ties["notSampled"]) == (1, 1, 0)
    (tie,) = ties["named"]
    assert (tie["time"], tie["pod"]) == (0, "default/urgent")
    assert [(each["nodes"][0]["node"], each["sampled"]) for each in tie["outcomes"]] == [("b", True), ("a", True)]


def test_outcomes_that_no_run_had_are_counted(tmp_path: Path) -> None:
    question = ("deploy", "-f", two_full(tmp_path), urgent(tmp_path), "--outcomes", "--samples", "1")

    assert reported(*question)["ties"]["notSampled"] == 1
    assert "1 outcome in no run" in ask(*question).stdout


def test_a_plan_without_ties_is_run_once(tmp_path: Path) -> None:
    answer = reported("drain", "-f", two_full(tmp_path), "a", "--outcomes")

    assert answer["outcomes"]["samples"] == 1
    assert losses(answer) == {"ReplicaSet default/web": 1}


def test_outcomes_are_sampled_only_on_request(tmp_path: Path) -> None:
    answer = reported("deploy", "-f", two_full(tmp_path), urgent(tmp_path))

    assert "outcomes" not in answer
    assert "ties" not in answer


def test_ties_without_victims_are_only_counted(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), node("b"))
    question = ("deploy", "-f", cluster, urgent(tmp_path), "--outcomes", "--samples", "3")

    answer = reported(*question)

    assert losses(answer) == {"": 3}
    assert (answer["ties"]["decisions"], answer["ties"]["named"]) == (1, [])
    assert "1 decision between equal nodes, without victims" in ask(*question).stdout


def test_decisions_about_pending_pods_are_sampled(tmp_path: Path) -> None:
    waiting = pod("urgent", "3", priority=100)
    answer = reported("pending", "-f", two_full(tmp_path, waiting), "--outcomes", "--samples", "2")

    assert losses(answer) == {"ReplicaSet default/web": 1, "ReplicaSet default/sum": 1}


def test_placements_of_replicas_are_sampled(tmp_path: Path) -> None:
    question = ("fit", "-f", two_full(tmp_path), urgent(tmp_path), "--preempt", "--outcomes", "--samples", "2")

    answer = reported(*question, "--replicas", "1")

    assert losses(answer) == {"ReplicaSet default/web": 1, "ReplicaSet default/sum": 1}
    assert "give a number with --replicas" in ask(*question, code=1).stderr


def test_every_played_question_samples_outcomes(tmp_path: Path) -> None:
    cluster, high = two_full(tmp_path), written(tmp_path, priority_class("other", 5), name="after.json")
    patch = tmp_path / "patch.json"
    patch.write_text(json.dumps(replica_set("web", 2, "3")))
    few = ("--outcomes", "--samples", "2")
    for question in (
        ("fail", "a"),
        ("change", "replicaset/web", "replicas=2"),
        ("change", "--patch-file", str(patch)),
        ("nodes", "--add", "1", "--like", "a"),
        ("diff", "--after", high),
    ):
        assert "outcomes" in reported(*question, "-f", cluster, *few), question


def test_the_library_samples_outcomes(tmp_path: Path) -> None:
    answer = podium.plan(two_full(tmp_path), samples=2).deploy(urgent(tmp_path))

    assert losses(answer.to_dict()) == {"ReplicaSet default/web": 1, "ReplicaSet default/sum": 1}


# Which ties are counted


def recorded(*names: str, seed: int = 0) -> TieBreaks:
    """Return the ties of one decision: which of the pods on full nodes is preempted."""
    objects: list[Any] = []
    for name in names:
        objects += [typed_node(name, cpu=1), typed_pod(f"on-{name}", on=name, cpu=1)]
    cluster = cluster_of(*objects)
    ties = TieBreaks(seed)
    ties.record(plain_runner(cluster), cluster.read(typed_pod("p", priority=9, cpu=1)))
    return ties


def test_seeds_are_chosen_for_outcomes_that_no_run_had() -> None:
    names = [f"n{number:02}" for number in range(40)]
    ties = recorded(*names)
    (tie,) = ties.named
    seeds: list[int] = []

    def run(seed: int) -> SampledRun:
        seeds.append(seed)
        node_name = tie.node_by(seed)
        return SampledRun((WorkloadLoss(f"Pod default/on-{node_name}", 1, 0),), frozenset({("default/p", node_name)}))

    found = sampled(run(0), ties, run, 100, 0)

    assert len(found.counts) == 40
    assert found.sections()[1].data["notSampled"] == 0
    assert len(seeds) == len(set(seeds)) == 100


def test_a_plan_is_run_as_often_as_asked_but_at_most_a_hundred_times() -> None:
    ties = recorded("a", "b")

    def run(seed: int) -> SampledRun:
        return SampledRun((), frozenset())

    for samples, runs in ((1, 1), (7, 7), (1_000, 100)):
        assert sampled(run(0), ties, run, samples, 0).runs == runs


def test_a_pod_of_a_gang_does_not_preempt_by_itself(tmp_path: Path) -> None:
    traits: dict[str, Any] = {"priority": 100, "priorityClassName": "high", "schedulingGroup": {"podGroupName": "g"}}
    members = written(tmp_path, *(pod(f"g-{place}", "3", **traits) for place in range(2)), name="members.json")
    question = ("deploy", "-f", two_full(tmp_path, group("g", 2)), members, "--outcomes", "--samples", "2")

    answer = reported(*question, "--config", written(tmp_path, PLACES_GROUPS, name="scheduler.json"))

    assert list(losses(answer)) == ["ReplicaSet default/sum, ReplicaSet default/web"]
    assert answer.get("ties", {}).get("deciding", 0) == 0


def test_the_node_of_a_gang_decides_which_workload_is_preempted_next(tmp_path: Path) -> None:
    """`urgent` may not preempt the gang, so that it preempts the pod on the node without the gang."""
    answer = reported(
        *beside_a_gang(tmp_path, gang_member("g-0", "2")),
        "--config",
        written(tmp_path, PLACES_GROUPS, name="scheduler.json"),
    )

    assert losses(answer).keys() == {"ReplicaSet default/web", "ReplicaSet default/sum"}


def test_ties_of_a_gang_member_consider_the_members_before_it(tmp_path: Path) -> None:
    first = gang_member("g-0", "1", nodeSelector={"name": "c"})
    question = beside_a_gang(tmp_path, first, gang_member("g-1", "2"), node("c", labels={"name": "c"}, cpu="1"))

    answer = reported(*question, "--config", written(tmp_path, PLACES_GROUPS, name="scheduler.json"))

    assert losses(answer).keys() == {"ReplicaSet default/web", "ReplicaSet default/sum"}
    assert answer["ties"]["decisions"] == 1


def gang_member(name: str, cpu: str, **spec: Any) -> Raw:
    return pod(name, cpu, priority=300, schedulingGroup={"podGroupName": "g"}, **spec)


def beside_a_gang(folder: Path, *members: Raw) -> tuple[str, ...]:
    """Two nodes with a pod of another workload each, a gang that has a choice, and `urgent`, which preempts."""
    least = sum(each["kind"] == "Pod" for each in members)
    cluster = written(
        folder,
        HIGH,
        group("g", least),
        *(node(name, cpu="4") for name in "ab"),
        *(replica_set(name, 1, "2") for name in ("web", "sum")),
        pod("web-1", "2", on="a", owner="web"),
        pod("sum-1", "2", on="b", owner="sum"),
        *members,
        pod("urgent", "3", priority=100, priorityClassName="high"),
    )
    return "pending", "-f", cluster, "--outcomes", "--samples", "8"


def test_a_plan_for_a_large_cluster_is_sampled_even_without_ties() -> None:
    ties = TieBreaks(0)
    cluster = cluster_of(*(typed_node(f"n{number:03}", cpu=1 if number else 9) for number in range(101)))
    runner = plain_runner(cluster)
    for percentage, samples in ((None, 1), (0, 5)):
        runner = Runner(replace(runner.profile, percentage_of_nodes_to_score=percentage), cluster)
        ties.record(runner, cluster.read(typed_pod("p", cpu=1)))
        found = sampled(SampledRun((), frozenset()), ties, lambda seed: SampledRun((), frozenset()), 5, 0)

        assert (found.ties, found.runs) == (0, samples)
        assert ("begins searches at any node" in str(found.sections()[0].rest)) == (samples == 5)
