"""Plans for gangs: enough pods of a gang get nodes together, or none does."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import podium
from podium.app.planning.questions.pending import pending_answer
from podium.plugins.gang_scheduling import TOO_FEW
from tests.app.planning.small import PLACES_GROUPS, Raw, group, member, node, pod, replica_set, reported, written
from tests.app.planning.test_decisions import some_cluster


def pending(folder: Path, *objects: Raw) -> Raw:
    settings = written(folder, PLACES_GROUPS, name="scheduler.json")
    return reported("pending", "-f", written(folder, *objects), "--config", settings)


def test_a_gang_with_too_few_fitting_members_waits_as_a_whole(tmp_path: Path) -> None:
    members = [member(f"w{number}", "training") for number in range(3)]

    answer = pending(tmp_path, node("a"), group("training", 3), *members)

    assert answer["headline"] == (
        "3 of 3 pending pods get no node; Pod default/w0 and 2 like it requests.cpu 2 -> 1300m places 3"
    )
    assert "one more node like a" in [change["change"] for change in answer["changes"]]
    assert [(cause["cause"], cause["pods"], cause["placed"]) for cause in answer["causes"]] == [
        ("1 node: Insufficient cpu", 3, 3)
    ]
    assert answer["placed"] == []


def test_a_gang_preempts_by_one_plan_or_not_at_all(tmp_path: Path) -> None:
    running = [pod(f"batch-{name}", "4", on=name, priority=-10) for name in "ab"]
    small = [member(f"w{number}", "small", "3") for number in range(2)]
    large = [member(f"x{number}", "large", "3") for number in range(3)]

    answer = pending(tmp_path, node("a"), node("b"), *running, group("small", 2), *small, group("large", 3), *large)

    assert {fate["pod"]: fate["node"] for fate in answer["placed"]}.keys() == {"default/w0", "default/w1"}
    assert sum(cause["pods"] for cause in answer["causes"]) == 3


def test_a_gang_plan_lists_the_nodes_that_a_gang_lacks(tmp_path: Path) -> None:
    members = [member(f"w{number}", "training", "4") for number in range(4)]

    answer = pending(tmp_path, node("a"), group("training", 4), *members)

    assert ("3 more nodes like a", 4) in [(change["change"], change["placed"]) for change in answer["changes"]]


def test_a_quota_is_raised_for_whole_gangs(tmp_path: Path) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    quota["spec"] = {"hard": {"pods": "4"}}
    owners = [replica_set(name, 3, "2", schedulingGroup={"podGroupName": name}) for name in ("red", "blue")]
    both = [(of, f"{of}-{letter}") for of in ("red", "blue") for letter in "ab"]
    made = [pod(name, "2", owner=of, schedulingGroup={"podGroupName": of}) for of, name in both]

    answer = pending(tmp_path, node("a", "12"), quota, group("red", 3), group("blue", 3), *owners, *made)

    (change,) = answer["changes"]
    assert (change["change"], change["placed"]) == ("ResourceQuota default/q pods 4 -> 6", 6)
    assert [(left["workload"], left["pods"]) for left in answer["notCreated"]] == [
        ("ReplicaSet default/blue", 1),
        ("ReplicaSet default/red", 1),
    ]


def test_a_pod_of_a_gang_that_is_preempted_counts_for_its_gang_no_more(tmp_path: Path) -> None:
    urgent = pod("urgent", "4", priority=100)

    answer = pending(tmp_path, node("a"), member_on("a", "red"), group("red", 2), member("w", "red"), urgent)

    assert [fate["pod"] for fate in answer["placed"]] == ["default/urgent"]
    assert [cause["cause"] for cause in answer["causes"]] == [TOO_FEW]


@pytest.mark.parametrize(("owner", "after"), [("red", 300), ("", None)])
def test_survive_reports_a_surviving_pod_with_the_rest_of_its_gang(
    tmp_path: Path, owner: str, after: int | None
) -> None:
    gang = [pod(f"red-{name}", "3", on=name, owner=owner, schedulingGroup={"podGroupName": "red"}) for name in "abc"]
    urgent = pod("urgent", "4", priority=100, nodeSelector={"kubernetes.io/hostname": "c"})
    settings = written(tmp_path, PLACES_GROUPS, name="scheduler.json")
    cluster = written(tmp_path, *map(node, "abc"), group("red", 3), *gang, urgent)

    answer = reported("survive", "red-a", "-f", cluster, "--config", settings)

    assert answer["survives"] is True
    assert answer["gangs"] == [
        {
            "group": "default/red",
            "left": 2,
            "minCount": 3,
            "releasedAfterSeconds": after,
            "survivors": ["default/red-a"],
        }
    ]
    assert [finding["code"] for finding in answer["findings"]] == (["evict"] if after else [])


def test_a_gang_that_stays_whole_is_not_reported(tmp_path: Path) -> None:
    gang = [pod(f"red-{name}", "3", on=name, owner="red", schedulingGroup={"podGroupName": "red"}) for name in "abc"]
    urgent = pod("urgent", "4", priority=100, nodeSelector={"kubernetes.io/hostname": "c"})
    settings = written(tmp_path, PLACES_GROUPS, name="scheduler.json")
    cluster = written(tmp_path, *map(node, "abcd"), group("red", 3), *gang, urgent)

    answer = reported("survive", "red-a", "-f", cluster, "--config", settings)

    assert "gangs" not in answer
    assert answer["headline"].startswith("Pod default/red-a survives")


def fit(folder: Path, cluster: list[Raw], *asked: Raw, options: tuple[str, ...] = ()) -> Raw:
    settings = written(folder, PLACES_GROUPS, name="scheduler.json")
    asked_file = written(folder, *asked, name="asked.json")
    return reported("fit", "-f", written(folder, *cluster), asked_file, "--config", settings, *options)


def test_as_many_pods_of_a_gang_fit_as_get_nodes_together(tmp_path: Path) -> None:
    nodes = [node("a"), node("b"), node("c", "8")]
    asked = replica_set("red", 3, "3", schedulingGroup={"podGroupName": "red"})

    whole = fit(tmp_path, nodes, group("red", 3), asked)
    in_part = fit(tmp_path, nodes, group("red", 5), asked)
    alone = fit(tmp_path, nodes, asked)

    assert whole["fit"]["fits"] == 4
    assert [end["why"] for end in whole["limits"]] == ["Insufficient cpu"]
    assert in_part["fit"]["fits"] == 0
    assert in_part["fit"]["why"] == "its gang waits: 4 of the 5 that it needs would fit; 3 nodes: Insufficient cpu"
    assert alone["fit"]["why"] == 'waiting for pod\'s pod group "red" to appear in scheduling queue'


def test_pods_of_a_gang_fit_beside_those_that_have_nodes(tmp_path: Path) -> None:
    running = [member_on(name, "red") for name in "ab"]

    answer = fit(tmp_path, [*map(node, "abc"), *running, group("red", 3)], member("more", "red", "3"))

    assert answer["fit"]["fits"] == 1


def test_pods_of_a_gang_fit_within_one_domain(tmp_path: Path) -> None:
    racks = [node(f"{rack}-{n}", labels={"rack": rack}) for rack in ("r1", "r2") for n in range(2 + (rack == "r2"))]
    gang = group("red", 2)
    gang["spec"]["schedulingConstraints"] = {"topology": [{"key": "rack"}]}

    answer = fit(tmp_path, racks, gang, member("w", "red", "3"))

    assert answer["fit"]["fits"] == 3


def test_pods_of_a_gang_fit_where_others_give_way_for_all_of_them(tmp_path: Path) -> None:
    batch = [pod(f"batch-{name}", "4", on=name, priority=-10) for name in "abc"]
    cluster = [*map(node, "abc"), *batch]
    asked = replica_set("red", 3, "3", schedulingGroup={"podGroupName": "red"})

    counted = fit(tmp_path, cluster, group("red", 3), asked, options=("--preempt",))
    placed = fit(tmp_path, cluster, group("red", 3), asked, options=("--preempt", "--replicas", "4"))

    assert (counted["fit"]["fits"], counted["fit"]["withPreemption"]) == (0, 3)
    assert (placed["fit"]["fits"], placed["fit"]["preempting"]) == (3, 3)


def member_on(node_name: str, of: str) -> Raw:
    return pod(f"{of}-on-{node_name}", "3", on=node_name, schedulingGroup={"podGroupName": of})


@pytest.mark.parametrize("seed", range(12))
def test_gangs_get_the_nodes_that_a_simulation_gives_them(seed: int) -> None:
    random = Random(seed)
    objects = some_cluster(random)
    for raw in objects:
        if raw["kind"] == "Pod" and not raw["spec"].get("nodeName"):
            raw["spec"]["schedulingGroup"] = {"podGroupName": raw["metadata"]["name"][0]}
    objects += [group(name, random.randint(1, 4)) for name in "xyz"]

    answer = pending_answer(podium.load(objects, configuration=PLACES_GROUPS))

    played = podium.simulate(objects, configuration=PLACES_GROUPS).pods
    on_node = {found["pod"]: found["node"] for found in played if found["pod"].split("/")[1][0] in "xyz"}
    (placed,) = (section.data for section in answer.sections if section.name == "placed")
    assert {fate["pod"]: fate["node"] for fate in placed} == {key: name for key, name in on_node.items() if name}


@pytest.mark.parametrize("seed", range(8))
def test_as_many_fit_as_are_placed_where_one_more_comes(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    cluster = [found for found in some_cluster(random) if found["kind"] != "PodGroup"]
    least = random.randint(1, 6)
    asked = [group("red", least), member("w", "red", str(random.randint(1, 3)), priority=random.choice((0, 50)))]

    for options in ((), ("--preempt",)):
        counted = fit(tmp_path, cluster, *asked, options=options)["fit"]
        number = counted["withPreemption" if options else "fits"]
        more = fit(tmp_path, cluster, *asked, options=(*options, "--replicas", str(max(number, least) + 1)))["fit"]

        assert more["fits"] == number
        assert number == 0 or number >= least
