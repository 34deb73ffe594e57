"""Files saved by questions that simulate nothing: a scenario that shows the answer, and the change that helps."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import podium
from podium.app.planning.deciding.capacity import shapes_of
from podium.app.planning.deciding.causes import blocked_pods, refused_pods
from podium.app.planning.deciding.decisions import Decisions
from podium.app.planning.deciding.protection import ProtectionSearch
from podium.app.planning.deciding.search import helpful_changes, raised_quotas, remedy_of
from tests.app.planning.small import Raw, ask, budget, node, pod, priority_class, replica_set, reported, written

GPU = {"key": "gpu", "value": "true", "effect": "NoSchedule"}
CLAIM: Raw = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def waiting(folder: Path) -> str:
    """Return a cluster with pods that wait for many reasons."""
    return written(
        folder,
        priority_class("high", 1000),
        node("a"),
        node("b", taints=[GPU]),
        node("c", unschedulable=True),
        pod("old-0", "3", on="a", owner="old"),
        pod("low", "3"),
        pod("ssd", nodeSelector={"disk": "ssd"}),
        pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
        pod("other", schedulerName="mine"),
        pod("stored", **CLAIM),
        pod("huge", "8"),
        pod("never", "3", preemptionPolicy="Never", priority=10),
    )


def placed(cluster: podium.Cluster, names: set[str]) -> set[str]:
    """Return which of the pods get a node when the cluster is played."""
    pods = cluster.simulate(until="10m").to_dict()["pods"]
    return {each["pod"] for each in pods if each["node"] and each["pod"] in names}


def test_each_change_that_lets_pods_in_does_so_when_it_is_written_and_played(tmp_path: Path) -> None:
    cluster = podium.load(waiting(tmp_path))
    decisions = Decisions(cluster)
    names = {each.key for each in decisions.pending}
    with decisions.what_if():
        result = decisions.schedule(decisions.pending, preempts=True)
        held = blocked_pods(decisions, result)
        found, _ = helpful_changes(decisions, held, shapes_of(decisions.cluster, result.waiting))
        remedies = [(each, remedy_of(decisions, each.change, result.waiting)) for each in found]
    before = placed(cluster, names)

    assert {"node", "taint", "toleration", "cordon", "label", "claim", "gate", "scheduler", "request", "priority"} <= {
        each.change.type for each, _ in remedies
    }
    for each, remedy in remedies:
        assert remedy is not None, each.change.text
        after = placed(cluster.with_(*remedy.objects), names)
        assert {fate.pod.key for fate in each.result.placed} <= after - before, each.change.text


def test_each_change_that_spares_pods_does_so_when_it_is_written_and_played(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        priority_class("high", 1000),
        node("a"),
        node("b"),
        replica_set("old", 2, "3"),
        pod("old-0", "3", on="a", owner="old", priority=10),
        pod("old-1", "3", on="b", owner="old", priority=10),
        replica_set("mid", 1),
        budget("old", maxUnavailable=2),
        pod("mid-0", on="a", owner="mid", priority=9),
        node("e"),
        pod("mid-1", "3", on="e", priority=9),
        pod("web", "3", priority=1000, nodeSelector={"kubernetes.io/hostname": "b"}),
    )
    cluster = podium.load(file)
    decisions = Decisions(cluster)
    targets = decisions.workloads.placed("ReplicaSet default/old")
    with decisions.what_if():
        result = decisions.schedule(decisions.pending, preempts=True, replaces=True)
    changes = ProtectionSearch(decisions, tuple(targets), "ReplicaSet default/old", result).changes(
        shapes_of(decisions.cluster, decisions.pending)
    )
    remedies = {each.change.type: remedy_of(decisions, each.change, decisions.pending) for each in changes}

    assert {"policy", "priority", "request"} <= set(remedies)
    assert [event["pod"] for event in _preempted(cluster)] == ["default/old-1"]
    for sort, remedy in remedies.items():
        assert remedy is not None, sort
        assert not [
            event for event in _preempted(cluster.with_(*remedy.objects)) if event["pod"].startswith("default/old")
        ], remedy.text


def _preempted(cluster: podium.Cluster) -> list[Raw]:
    events = cluster.simulate(until="10m").to_dict()["events"]
    return [event for event in events if event["reason"] == "Preempted"]


def test_a_quota_is_raised_in_the_file_that_raises_it(tmp_path: Path) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "1"}},
    }
    cluster = podium.load(written(tmp_path, quota, node("a"), replica_set("web", 3), pod("web-0", on="a", owner="web")))
    decisions = Decisions(cluster)
    (found,) = raised_quotas(decisions, refused_pods(decisions))

    remedy = remedy_of(decisions, found.change, ())

    assert remedy is not None
    assert remedy.objects[0]["spec"] == {"hard": {"requests.cpu": "3"}}


def test_a_change_keeps_what_was_written_beside_it(tmp_path: Path) -> None:
    tainted = node("a", taints=[GPU])
    tainted["metadata"]["annotations"] = {"example.com/rack": "r1"}
    tainted["status"]["nodeInfo"] = {"kubeletVersion": "v1.36.0"}
    saved = tmp_path / "saved.yaml"

    ask("pending", "-f", written(tmp_path, tainted, pod("web")), "--save", str(saved))

    (changed,) = yaml.safe_load_all((tmp_path / "saved-change.yaml").read_text())
    del tainted["spec"]["taints"]
    assert changed == tainted


@pytest.mark.parametrize("question", [("pending",), ("survive", "old")])
def test_a_saved_plan_contains_its_command_and_the_answer(tmp_path: Path, question: tuple[str, ...]) -> None:
    cluster = written(tmp_path, node("a"), pod("old", "3", on="a"), pod("web", "3", priority=5), pod("ssd", "2"))
    saved = tmp_path / "asked.yaml"

    gate = "--feature-gates NonPreemptingPriority=false"

    answer = reported(*question, "-f", cluster, "--save", str(saved), *gate.split())

    assert saved.read_text().splitlines()[:3] == [
        f"# podium simulate -f asked.yaml {gate}",
        f"#   {answer['headline']}",
        f"# podium simulate -f asked.yaml {gate} --override asked-change.yaml",
    ]
    events = podium.simulate(saved).to_dict()["events"]
    assert [event["pod"] for event in events if event["reason"] == "Preempted"] == ["default/old"]


def test_without_a_change_that_helps_there_is_no_file_of_one(tmp_path: Path) -> None:
    saved = tmp_path / "asked.yaml"

    ask("pending", "-f", written(tmp_path, node("a"), pod("web")), "--save", str(saved))

    assert saved.exists()
    assert not (tmp_path / "asked-change.yaml").exists()


@pytest.mark.parametrize(
    ("options", "nodes", "pending"), [((), 3, 1), (("--preempt",), 4, 2), (("--replicas", "2"), 2, 0)]
)
def test_the_announced_number_of_pods_gets_nodes_when_replayed(
    tmp_path: Path, options: tuple[str, ...], nodes: int, pending: int
) -> None:
    cluster = written(tmp_path, node("a"), pod("old-0", on="a", owner="old"), replica_set("old", 1))
    saved = tmp_path / "asked.yaml"
    wanted = written(tmp_path, pod("small", priority=5), name="small.json")

    answer = reported("fit", "-f", cluster, wanted, "--save", str(saved), *options)

    assert answer["fit"]["withPreemption" if "--preempt" in options else "fits"] == nodes
    pods = podium.simulate(saved).to_dict()["pods"]
    assert sum(each["pod"].startswith("default/plan-fit") and bool(each["node"]) for each in pods) == nodes
    assert sum(not each["node"] and each["state"] == "pending" for each in pods) == pending


@pytest.mark.parametrize(
    ("asked", "told_instead"),
    [
        (("pending", "--timeline"), "--save FILE.yaml"),
        (("pending", "--nodes"), "podium explain POD --all-nodes"),
        (("survive", "web", "--timeline"), "--save FILE.yaml"),
        (("fit", "pod.yaml", "--pods"), "--nodes shows them"),
    ],
)
def test_an_unsupported_option_of_a_question_is_rejected_with_alternatives(
    asked: tuple[str, ...], told_instead: str
) -> None:
    output = " ".join(ask(*asked, code=1).output.split())

    assert told_instead in output


def test_each_pod_and_each_node_is_shown_where_that_is_asked_for(tmp_path: Path) -> None:
    cluster = written(tmp_path, node("a"), pod("old", "3", on="a"), pod("web", "3", priority=5), pod("ssd", "2"))
    small = written(tmp_path, pod("small"), name="small.json")

    assert ask("pending", "-f", cluster, "--pods").stdout.partition("\nPods  ")[2] == (
        "2 pending pods\n"
        "  pod          priority\n"
        "  default/web  5         gets a\n"
        "  default/ssd  0         waits: 1 node: Insufficient cpu -> Pod default/ssd requests.cpu 2 -> 1\n"
    )
    assert (
        "default/old  0         a     preempted for default/web\n"
        in ask("survive", "old", "-f", cluster, "--pods").stdout
    )
    assert "All nodes\n  node  fit  limit\n  a     1    Insufficient cpu\n" in (
        ask("fit", "-f", cluster, small, "--nodes").stdout
    )
