"""`podium plan ... --outcomes`: how chance may have a plan come out, by who suffers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import podium
from podium.app.planning.chances.draws import Draws
from podium.app.planning.chances.stories import Story, Suffering, outcomes_of
from tests.app.planning.small import (
    PLACES_GROUPS,
    Raw,
    ask,
    group,
    node,
    pod,
    priority_class,
    replica_set,
    told,
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


def suffering(answer: Raw) -> dict[str, int]:
    """By who suffers, in how many stories."""
    return {
        ", ".join(each["workload"] for each in ending["suffering"]): ending["stories"]
        for ending in answer["outcomes"]["endings"]
    }


def test_a_story_is_told_again_for_each_way_in_which_its_draws_could_have_come_out(tmp_path: Path) -> None:
    answer = told("-f", two_full(tmp_path), "deploy", "-f", urgent(tmp_path), "--outcomes", "--stories", "2")

    assert suffering(answer) == {"ReplicaSet default/web": 1, "ReplicaSet default/sum": 1}
    chance = answer["leftToChance"]
    assert (chance["decisions"], chance["deciding"], chance["notFollowed"]) == (1, 1, 0)
    (draw,) = chance["named"]
    assert (draw["time"], draw["pod"]) == (0, "default/urgent")
    assert [(each["nodes"][0]["node"], each["followed"]) for each in draw["outcomes"]] == [("b", True), ("a", True)]


def test_what_no_story_follows_is_said(tmp_path: Path) -> None:
    question = ("-f", two_full(tmp_path), "deploy", "-f", urgent(tmp_path), "--outcomes", "--stories", "1")

    assert told(*question)["leftToChance"]["notFollowed"] == 1
    assert "1 outcome in no story" in ask(*question).stdout


def test_where_nothing_is_left_to_chance_one_story_is_enough(tmp_path: Path) -> None:
    answer = told("-f", two_full(tmp_path), "drain", "a", "--outcomes")

    assert answer["outcomes"]["stories"] == 1
    assert suffering(answer) == {"ReplicaSet default/web": 1}


def test_nothing_is_told_again_unless_that_is_asked_for(tmp_path: Path) -> None:
    answer = told("-f", two_full(tmp_path), "deploy", "-f", urgent(tmp_path))

    assert "outcomes" not in answer
    assert "leftToChance" not in answer


def test_nodes_that_are_equal_at_nobodys_cost_are_counted_alone(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), node("b"))
    question = ("-f", cluster, "deploy", "-f", urgent(tmp_path), "--outcomes", "--stories", "3")

    answer = told(*question)

    assert suffering(answer) == {"": 3}
    assert (answer["leftToChance"]["decisions"], answer["leftToChance"]["named"]) == (1, [])
    assert "1 decision between nodes that are equal, at nobody's cost" in ask(*question).stdout


def test_pods_that_are_pending_are_decided_about_again(tmp_path: Path) -> None:
    waiting = pod("urgent", "3", priority=100)
    answer = told("-f", two_full(tmp_path, waiting), "pending", "--outcomes", "--stories", "2")

    assert suffering(answer) == {"ReplicaSet default/web": 1, "ReplicaSet default/sum": 1}


def test_so_many_pods_are_placed_again(tmp_path: Path) -> None:
    question = ("-f", two_full(tmp_path), "fit", "-f", urgent(tmp_path), "--preempt", "--outcomes", "--stories", "2")

    answer = told(*question, "--replicas", "1")

    assert suffering(answer) == {"ReplicaSet default/web": 1, "ReplicaSet default/sum": 1}
    assert "say how many with --replicas" in ask(*question, code=2).stderr


def test_every_question_that_plays_something_has_it(tmp_path: Path) -> None:
    cluster, high = two_full(tmp_path), written(tmp_path, priority_class("other", 5), name="after.json")
    patch = tmp_path / "patch.json"
    patch.write_text(json.dumps(replica_set("web", 2, "3")))
    few = ("--outcomes", "--stories", "2")
    for question in (
        ("fail", "a"),
        ("set", "replicaset/web", "replicas=2"),
        ("patch", "-f", str(patch)),
        ("nodes", "--add", "1", "--like", "a"),
        ("diff", "--after", high),
    ):
        assert "outcomes" in told("-f", cluster, *question, *few), question


def test_programs_ask_for_so_many_stories(tmp_path: Path) -> None:
    answer = podium.plan(two_full(tmp_path), stories=2).deploy(urgent(tmp_path))

    assert suffering(answer.to_dict()) == {"ReplicaSet default/web": 1, "ReplicaSet default/sum": 1}


# What is counted


def drawn(*names: str, seed: int = 0) -> Draws:
    """The draws of one decision: which of the pods on full nodes are preempted."""
    objects: list[Any] = []
    for name in names:
        objects += [typed_node(name, cpu=1), typed_pod(f"on-{name}", on=name, cpu=1)]
    cluster = cluster_of(*objects)
    draws = Draws(seed)
    draws.note(plain_runner(cluster), cluster.read(typed_pod("p", priority=9, cpu=1)))
    return draws


def test_seeds_are_looked_for_that_lead_to_what_no_story_follows() -> None:
    names = [f"n{number:02}" for number in range(40)]
    draws = drawn(*names)
    (draw,) = draws.named
    asked: list[int] = []

    def tell(seed: int) -> Story:
        asked.append(seed)
        node_name = draw.drawn(seed)
        return Story((Suffering(f"Pod default/on-{node_name}", 1, 0),), frozenset({("default/p", node_name)}))

    found = outcomes_of(tell(0), draws, tell, 100, 0)

    assert len(found.endings) == 40
    assert found.not_followed == 0
    assert len(asked) == len(set(asked)) == 100


def test_no_more_stories_are_told_than_were_asked_for_nor_than_a_hundred() -> None:
    draws = drawn("a", "b")

    def tell(seed: int) -> Story:
        return Story((), frozenset())

    for most, played in ((1, 1), (7, 7), (1_000, 100)):
        assert outcomes_of(tell(0), draws, tell, most, 0).played == played


def test_a_pod_of_a_gang_is_not_said_to_preempt_by_itself(tmp_path: Path) -> None:
    traits: dict[str, Any] = {"priority": 100, "priorityClassName": "high", "schedulingGroup": {"podGroupName": "g"}}
    members = written(tmp_path, *(pod(f"g-{place}", "3", **traits) for place in range(2)), name="members.json")
    question = ("-f", two_full(tmp_path, group("g", 2)), "deploy", "-f", members, "--outcomes", "--stories", "2")

    answer = told(*question, "--config", written(tmp_path, PLACES_GROUPS, name="scheduler.json"))

    assert list(suffering(answer)) == ["ReplicaSet default/sum, ReplicaSet default/web"]
    assert answer.get("leftToChance", {}).get("deciding", 0) == 0


def test_where_a_gang_goes_among_equals_decides_who_suffers_next(tmp_path: Path) -> None:
    """`urgent` may not preempt the gang, so that it takes the room of whoever runs where that is not."""
    answer = told(
        *beside_a_gang(tmp_path, gang_member("g-0", "2")),
        "--config",
        written(tmp_path, PLACES_GROUPS, name="scheduler.json"),
    )

    assert suffering(answer).keys() == {"ReplicaSet default/web", "ReplicaSet default/sum"}


def test_each_member_of_a_gang_draws_beside_those_before_it(tmp_path: Path) -> None:
    first = gang_member("g-0", "1", nodeSelector={"name": "c"})
    question = beside_a_gang(tmp_path, first, gang_member("g-1", "2"), node("c", labels={"name": "c"}, cpu="1"))

    answer = told(*question, "--config", written(tmp_path, PLACES_GROUPS, name="scheduler.json"))

    assert suffering(answer).keys() == {"ReplicaSet default/web", "ReplicaSet default/sum"}
    assert answer["leftToChance"]["decisions"] == 1


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
    return "-f", cluster, "pending", "--outcomes", "--stories", "8"
