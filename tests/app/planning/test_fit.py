"""`podium plan fit`: how many pods fit, on which nodes, and what limits their number."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import podium
from podium.app.planning.constants import MAX_PLACED_PODS
from podium.app.planning.deciding.capacity import MAX_PER_NODE, capacity_of
from podium.app.planning.deciding.decisions import Decisions
from tests.app.planning.small import Raw, ask, budget, node, pod, priority_class, replica_set, reported, written

GPU = {"key": "gpu", "value": "true", "effect": "NoSchedule"}


def asked(folder: Path, *objects: Raw) -> str:
    return written(folder, *objects, name="asked.json")


def test_the_first_screen_shows_fits_by_shape_and_what_limits_them(tmp_path: Path) -> None:
    cluster = written(
        tmp_path,
        node("a"),
        node("b"),
        node("c", "8"),
        node("d", taints=[GPU]),
        pod("old", "3", on="b"),
    )

    assert ask("fit", "-f", cluster, asked(tmp_path, pod("web"))).stdout == (
        "13 of Pod default/web fit, on 3 of 4 nodes; limit: Insufficient cpu\n"
        "\n"
        "Where  by shape of node\n"
        "  fit  nodes  on each  like                                limit\n"
        "  8    1      8        cpu 8, memory 16Gi                  Insufficient cpu\n"
        "  5    2      1 to 4   cpu 4, memory 16Gi                  Insufficient cpu\n"
        "  0    1      0        cpu 4, memory 16Gi, taint gpu=true  taint gpu=true:NoSchedule\n"
        "\n"
        "Limits\n"
        "  3 nodes  Insufficient cpu: a, b, c\n"
        "  1 node   taint gpu=true:NoSchedule: d\n"
    )


def test_headline_and_sections_count_the_same_nodes_for_a_reason(tmp_path: Path) -> None:
    """Insufficient cpu ends it on three nodes; one of them takes no pod at all."""
    narrow = node("narrow", "8")
    narrow["status"]["allocatable"]["memory"] = "2Gi"
    cluster = written(tmp_path, node("a"), node("b"), node("full", "2"), narrow, pod("old", "2", on="full"))
    new = pod("web")
    new["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"

    answer = reported("fit", "-f", cluster, asked(tmp_path, new))

    assert answer["headline"].endswith("on 3 of 4 nodes; limit on 3 nodes: Insufficient cpu")
    assert {end["why"]: len(end["nodes"]) for end in answer["limits"]} == {
        "Insufficient cpu": 3,
        "Insufficient memory": 1,
    }
    by_shape = [end for shape in answer["shapes"] for end in shape["limits"] if end["why"] == "Insufficient cpu"]
    assert sum(end["nodes"] for end in by_shape) == 3


def test_if_none_fits_the_headline_says_what_the_nearest_nodes_lack(tmp_path: Path) -> None:
    """A node that lacks room as well as the label is farther than one that lacks either, however many there are."""
    near = node("near", "2", labels={"disk": "ssd"})
    cluster = written(tmp_path, node("wide"), *[node(name, "1") for name in "abc"], near)

    answer = reported("fit", "-f", cluster, asked(tmp_path, pod("web", "3", nodeSelector={"disk": "ssd"})))

    assert answer["headline"] == (
        "none of Pod default/web fits on any of 5 nodes; in the way on 1 node: does not match disk=ssd; "
        "on 1 node: asks for more cpu than the node has"
    )


def test_a_workload_is_asked_about_by_the_pod_that_it_makes(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"))

    answer = reported("fit", "-f", cluster, asked(tmp_path, replica_set("web", 6)))

    assert answer["fit"] == {
        "pod": "ReplicaSet default/web",
        "fits": 4,
        "atLeast": False,
        "nodes": 1,
        "wanted": 6,
        "withPreemption": None,
        "why": None,
    }
    assert [(finding["code"], finding["message"]) for finding in answer["findings"]] == [
        ("unschedulable", "4 pods of 6 of ReplicaSet default/web fit")
    ]
    ask("fit", "-f", cluster, asked(tmp_path, replica_set("web", 6)), "--fail-on", "unschedulable", code=2)
    ask("fit", "-f", cluster, asked(tmp_path, replica_set("web", 4)), "--fail-on", "any")


def test_with_preemption_those_that_may_go_count_as_gone(tmp_path: Path) -> None:
    stays = {"preemptionPolicy": "NonPreemptible"}
    cluster = written(
        tmp_path,
        node("a"),
        node("b"),
        pod("low", "2", on="a", priority=1),
        pod("kept", "2", on="b", priority=1, **stays),
        pod("equal", "1", on="b", priority=5),
    )

    answer = reported("fit", "-f", cluster, asked(tmp_path, pod("web", priority=5)), "--preempt")

    assert (answer["fit"]["fits"], answer["fit"]["withPreemption"]) == (3, 5)


def test_fit_with_preemption_spares_protected_pods(tmp_path: Path) -> None:
    """Half of the pods have run for long, and a budget lets one more of them go, wherever it is."""
    names = [("a-0", "a"), ("a-1", "a"), ("b-0", "b"), ("b-1", "b")]
    started = {"a-0": "2026-01-01T00:00:00Z", "b-0": "2026-01-01T00:00:00Z", "b-1": "2026-01-01T00:59:30Z"}
    pods = [pod(name, "2", on=on, owner="db", priority=1) for name, on in names]
    for each in pods:
        time = started.get(each["metadata"]["name"], "2026-01-01T01:00:00Z")
        each["status"]["startTime"] = time
    cluster = written(tmp_path, node("a"), node("b"), *pods, budget("db", minAvailable=3))
    new = asked(tmp_path, pod("web", "2", priority=5))

    def fitting(**args: Any) -> int:
        config = tmp_path / "config.yaml"
        config.write_text(json.dumps(scheduler_configuration(args)))
        answer = reported("fit", "-f", cluster, new, "--preempt", "--config", str(config))
        number: int = answer["fit"]["withPreemption"]
        return number

    assert fitting() == 4
    assert fitting(minimumRunningTime="10m") == 2
    assert fitting(budgets="Require") == 1
    assert fitting(budgets="Require", minimumRunningTime="2h") == 0


def test_fit_with_preemption_takes_no_victims_for_a_never_preempting_pod(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), pod("low", "3", on="a", priority=1))
    new = asked(tmp_path, pod("web", priority=5, preemptionPolicy="Never"))

    answer = reported("fit", "-f", cluster, new, "--preempt")

    assert (answer["fit"]["fits"], answer["fit"]["withPreemption"]) == (1, 1)


def test_with_preemption_equals_give_way_where_that_is_fair(tmp_path: Path) -> None:
    old = [pod(f"old-{number}", "1", on="a", owner="old") for number in range(4)]
    cluster = written(tmp_path, node("a"), *old)
    new = asked(tmp_path, replica_set("web", 3))
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(scheduler_configuration({"equalPriorityPreemption": True})))

    answer = reported("fit", "-f", cluster, new, "--preempt", "--config", str(config))

    assert (answer["fit"]["fits"], answer["fit"]["withPreemption"]) == (0, 2)


def scheduler_configuration(preemption: dict[str, Any]) -> Raw:
    """Return a KubeSchedulerConfiguration with these arguments of DefaultPreemption."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": preemption}]}],
    }


def test_fit_places_pods_one_by_one_and_names_their_victims(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), pod("old-0", "2", on="a", owner="old"), pod("old-1", on="a", owner="old"))
    question = ("fit", "-f", cluster, asked(tmp_path, pod("web", "2", priority=5)), "--replicas", "3")

    assert reported(*question)["headline"] == ("0 of 3 of Pod default/web get a node; limit: 1 node: Insufficient cpu")
    answer = reported(*question, "--preempt")
    assert answer["headline"] == (
        "2 of 3 of Pod default/web get a node, 2 of them by preempting 2 pods; limit: 1 node: Insufficient cpu"
    )
    assert answer["placed"] == [{"node": "a", "pods": 2}]
    assert answer["victims"] == {"ReplicaSet default/old": 2}
    assert [finding["code"] for finding in answer["findings"]] == ["preempt", "unschedulable"]


def test_pods_that_are_pending_take_room_first_where_that_is_asked_for(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), pod("first", "2"))
    question = ("fit", "-f", cluster, asked(tmp_path, pod("web")))

    assert reported(*question)["fit"]["fits"] == 4
    assert "pending" in [caveat["about"] for caveat in reported(*question)["caveats"]]
    assert reported(*question, "--after-pending")["fit"]["fits"] == 2


def test_pods_that_keep_apart_are_placed_one_after_another(tmp_path: Path) -> None:
    far = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [far]}}
    cluster = written(tmp_path, node("a"), node("b"))

    answer = reported("fit", "-f", cluster, asked(tmp_path, pod("web", affinity=apart)))

    assert answer["fit"]["fits"] == 2
    assert answer["limits"] == [{"why": "node(s) didn't match pod anti-affinity rules", "nodes": ["a", "b"]}]


def test_fit_reports_why_no_node_takes_a_pod(tmp_path: Path) -> None:
    claim: Raw = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
    cluster = written(tmp_path, node("a"))

    answer = reported("fit", "-f", cluster, asked(tmp_path, pod("web", **claim)))

    assert answer["headline"] == 'none of Pod default/web fits: persistentvolumeclaim "data" not found'


def test_a_node_that_takes_pods_without_end_is_filled_so_far_and_no_further(tmp_path: Path) -> None:
    endless = node("a", "1000000")
    endless["status"]["allocatable"]["pods"] = "1000000000"

    answer = reported("fit", "-f", written(tmp_path, endless, node("b", "3")), asked(tmp_path, pod("web")))

    assert answer["headline"].startswith(f"at least {MAX_PER_NODE + 3:,} of Pod default/web fit, on 2 of 2 nodes")
    assert answer["fit"]["atLeast"] is True


def test_nothing_fits_without_nodes(tmp_path: Path) -> None:
    cluster = written(tmp_path, priority_class("high", 50))

    assert reported("fit", "-f", cluster, asked(tmp_path, pod("web")))["headline"] == (
        "none of Pod default/web fits: there are no nodes"
    )


def test_other_objects_of_the_file_are_included(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), pod("old", "4", on="a"))
    new = asked(tmp_path, priority_class("high", 50), replica_set("web", 2, "2", priorityClassName="high"))

    assert reported("fit", "-f", cluster, new, "--preempt")["fit"]["withPreemption"] == 2


def test_the_table_has_a_row_for_each_node(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("b"), node("a", unschedulable=True))

    assert ask("fit", "-f", cluster, asked(tmp_path, pod("web")), "-o", "csv").stdout == (
        "node,fits,withPreemption,limit\na,0,,cordoned\nb,4,,Insufficient cpu\n"
    )


def test_a_pod_without_containers_is_refused(tmp_path: Path) -> None:
    cluster, empty = written(tmp_path, node("a")), pod("web")
    empty |= {"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": []}}

    error = ask("fit", "-f", cluster, asked(tmp_path, empty), code=1).output

    assert "Pod default/web, .spec.containers: Required value: a pod has at least one container" in error


def test_a_file_has_one_object_that_makes_pods(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"))

    told_of = ask("fit", "-f", cluster, asked(tmp_path, pod("web"), pod("api")), code=1).output
    assert "the files hold 2 objects that make pods" in told_of
    assert "hold 0 objects" in ask("fit", "-f", cluster, asked(tmp_path, budget("x")), code=1).output
    assert "podium plan fit FILE -f CLUSTER" in ask("fit", "-f", cluster, code=1).output


@pytest.mark.parametrize("seed", range(12))
def test_as_many_fit_as_can_be_placed_one_after_another(seed: int) -> None:
    random = Random(seed)
    decisions = Decisions(podium.load(some_cluster(random)))
    port = [{"containerPort": 80, "hostPort": 80}] if seed % 3 == 0 else []
    wanted = pod("web", f"{random.choice((300, 700, 1100))}m", priority=random.choice((0, 5)))
    wanted["spec"]["containers"][0]["ports"] = port
    record = decisions.create(podium.load([wanted]).read.documents[0].object)  # type: ignore[arg-type]

    found = capacity_of(decisions, record)

    with decisions.what_if():
        placed = decisions.schedule(decisions.copies(record, 200))
    by_node: dict[str, int] = {}
    for fate in placed.placed:
        by_node[fate.node] = by_node.get(fate.node, 0) + 1
    names = list(decisions.cluster.nodes.names)
    assert {names[row]: count for row, count in found.counts.items() if count} == by_node
    assert found.total == len(placed.placed) < MAX_PLACED_PODS
    assert not decisions.scratch.savepoint()


def some_cluster(random: Random) -> list[dict[str, Any]]:
    """Nodes of some sizes, a few of them full, tainted or cordoned, with pods on them."""
    objects: list[dict[str, Any]] = []
    for number in range(6):
        taints = [GPU] if random.random() < 0.2 else None
        objects.append(
            node(f"n{number}", str(random.randint(1, 6)), taints=taints, unschedulable=random.random() < 0.2)
        )
        objects += [
            pod(f"p{number}-{place}", "400m", on=f"n{number}", priority=random.choice((0, 3)))
            for place in range(random.randint(0, 4))
        ]
    return objects
