"""The targets of an explanation: pending and bound pods, workloads, and one node of many."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import podium
from podium.api.errors import PodiumError
from podium.app.cluster import Cluster
from podium.app.console.command import podium as command
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.on_node import answer_on
from podium.app.explaining.workload import WorkloadExplanation


def node(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "pods": 10}},
    }


def spec(cpu: str = "1", **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **more}


def pod(name: str, owner: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "web"}}
    if owner is not None:
        meta["ownerReferences"] = [reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec(**more)}


def reference(owner: dict[str, Any]) -> dict[str, Any]:
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def workload(
    kind: str, name: str, *, api: str = "apps/v1", owner: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "shop", "uid": f"uid-{name}"}
    if owner is not None:
        meta["ownerReferences"] = [reference(owner)]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec()}
    given = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **more}
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": given}


WEB = workload("Deployment", "web", replicas=3)
WEB_1 = workload("ReplicaSet", "web-1", owner=WEB, replicas=3)
NODES = [node("large", "8"), node("small", "2")]


def loaded(*objects: dict[str, Any]) -> Cluster:
    return podium.load([*NODES, *objects])


def asked(cluster: Cluster, target: str) -> WorkloadExplanation:
    answer = cluster.ask(target, "shop")
    assert isinstance(answer, WorkloadExplanation)
    return answer


@pytest.mark.parametrize(
    "target", ["deploy/web", "deployment/web", "Deployments/web", "deploy/shop/web", "deployment.apps/web"]
)
def test_a_workload_is_meant_by_any_word_that_kubectl_knows_for_its_kind(target: str) -> None:
    answer = asked(loaded(WEB, WEB_1, pod("web-1-a", WEB_1, nodeName="small")), target)

    assert (answer.kind, answer.key, answer.wanted) == ("Deployment", "shop/web", 3)
    assert [found.key for found in answer.pods] == ["shop/web-1-a"]


def test_explain_selects_the_first_pending_pod_of_a_workload() -> None:
    waiting = pod("web-1-b", WEB_1, cpu="9")

    answer = asked(loaded(WEB, WEB_1, pod("web-1-a", WEB_1, nodeName="small"), waiting), "deploy/web")

    assert (answer.is_next, answer.explanation.pod, answer.explanation.outcome) == (
        False,
        "shop/web-1-b",
        "unschedulable",
    )
    assert answer.to_dict()["pods"] == [
        {"pod": "shop/web-1-a", "node": "small"},
        {"pod": "shop/web-1-b", "node": None},
    ]


def test_explain_adds_a_pod_of_the_newest_replica_set_when_none_is_pending() -> None:
    older = workload("ReplicaSet", "web-0", owner=WEB)
    older["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "9"}
    newer = workload("ReplicaSet", "web-1", owner=WEB)
    newer["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "10"}

    answer = asked(loaded(WEB, older, newer), "deploy/web")

    assert (answer.is_next, answer.explanation.pod, answer.explanation.node) == (True, "shop/web-1-next", "large")


@pytest.mark.parametrize(
    ("made", "target"),
    [
        (workload("DaemonSet", "agent"), "ds/agent"),
        (workload("Job", "once", api="batch/v1"), "job/once"),
        (workload("ReplicaSet", "bare"), "rs/bare"),
    ],
)
def test_every_workload_makes_a_pod_that_is_explained(made: dict[str, Any], target: str) -> None:
    if made["kind"] == "Job":
        made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
        del made["spec"]["selector"]

    assert asked(loaded(made), target).explanation.outcome == "schedulable"


def test_the_next_pod_of_a_daemon_set_is_said_to_be_for_any_node() -> None:
    agent = asked(loaded(workload("DaemonSet", "agent")), "ds/agent")

    assert "\nOne more pod of it, if it could go to any node:\n" in agent.text
    assert "\nOne more pod of it:\n" in asked(loaded(WEB, WEB_1), "deploy/web").text


def test_a_job_wants_no_more_pods_at_once_than_completions() -> None:
    job = workload("Job", "once", api="batch/v1", parallelism=5, completions=2)
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    del job["spec"]["selector"]

    assert asked(loaded(job), "job/once").wanted == 2


def test_a_cron_job_s_pod_is_that_of_its_jobs() -> None:
    cron = workload("CronJob", "nightly", api="batch/v1")
    cron["spec"] = {
        "schedule": "0 0 * * *",
        "jobTemplate": {"spec": {"template": {"spec": spec(restartPolicy="Never")}}},
    }

    assert asked(loaded(cron), "cj/nightly").explanation.node == "large"


def test_the_next_pod_of_a_stateful_set_has_the_first_free_number_and_claims_that_do_not_stay() -> None:
    claim: dict[str, Any] = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "slow"},
    }
    claim["spec"]["resources"] = {"requests": {"storage": "1Gi"}}
    db = workload("StatefulSet", "db", serviceName="db", volumeClaimTemplates=[claim])
    slow = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "slow"}, "provisioner": "x"}
    cluster = loaded(db, {**slow, "volumeBindingMode": "WaitForFirstConsumer"}, pod("db-0", db, nodeName="small"))

    first, second = asked(cluster, "sts/db"), asked(cluster, "sts/db")

    assert (first.explanation.pod, first.explanation.node) == ("shop/db-1", "large")
    assert first.to_dict() == second.to_dict()


def test_an_existing_pod_wins_over_a_workload_in_a_namespace_named_like_a_kind() -> None:
    there = pod("web")
    there["metadata"]["namespace"] = "deploy"

    answer = loaded(WEB, there).ask("deploy/web", "shop")

    assert isinstance(answer, Explanation)
    assert answer.pod == "deploy/web"


@pytest.mark.parametrize(
    ("target", "report"),
    [
        ("web", "pod shop/web is not in the input; for the pods of that workload write deployment/shop/web"),
        ("there", "pod shop/there is not in the input; there is other/there"),
        ("deploy/wep", "Deployment shop/wep is not in the input; there is: shop/web"),
        ("dploy/web", '"dploy/web" is not a pod of the input; did you mean deploy/web?'),
        ("a/b/c/d", '"a/b/c/d" is neither a pod, as in shop/web, nor a workload, as in deploy/web'),
        (
            "node/small",
            '"node/small" begins with no kind that has pods; known are pod, cronjob, daemonset, deployment, '
            "job, replicaset, replicationcontroller, statefulset",
        ),
        ("deploy/", '"deploy/" is neither a pod, as in shop/web, nor a workload, as in deploy/web'),
    ],
)
def test_explain_suggests_names_for_a_missing_target(target: str, report: str) -> None:
    elsewhere = pod("there")
    elsewhere["metadata"]["namespace"] = "other"
    with pytest.raises(PodiumError, match=f"^{re.escape(report)}$"):
        loaded(WEB, elsewhere).ask(target, "shop")


def test_a_pod_that_has_ended_is_not_called_missing() -> None:
    done = {**pod("done", nodeName="small"), "status": {"phase": "Failed"}}

    with pytest.raises(PodiumError, match=r"^pod shop/done has ended \(Failed\), and is not scheduled again$"):
        loaded(done).ask("done", "shop")


@pytest.mark.parametrize(
    ("wanted", "allocated", "reason", "outcome"),
    [("3", "1", "Infeasible", "unschedulable"), ("1", "3", "", "schedulable")],
)
def test_the_replacement_of_a_resized_pod_asks_for_what_its_spec_says(
    wanted: str, allocated: str, reason: str, outcome: str
) -> None:
    resized = pod("web-1-a", WEB_1, nodeName="full", cpu=wanted)
    amounts = {"allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": allocated}}}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    resized["status"] = {"conditions": conditions, "containerStatuses": [{"name": "main", **amounts}]}
    cluster = podium.load([node("full", "3", unschedulable=True), node("free", "2"), WEB_1, resized])

    answer = cluster.explain("shop/web-1-a")

    assert answer.placed is not None
    assert answer.placed.then == outcome


def test_a_placed_pod_is_decided_about_as_if_it_were_not_there_and_nothing_changes_by_it() -> None:
    cluster = loaded(WEB_1, pod("web-1-a", WEB_1, nodeName="small", cpu="2"), pod("more", cpu="2"))
    before = cluster.explain("shop/more").to_dict()

    answer = cluster.explain("shop/web-1-a").to_dict()

    assert (answer["outcome"], answer["node"], answer["nodes"]["small"]) == ("placed", "small", {"status": "Success"})
    assert answer["placed"]["ifEvicted"] == {
        "outcome": "schedulable",
        "node": answer["best"][0],
        "replacedBy": "ReplicaSet shop/web-1",
    }
    assert cluster.explain("shop/more").to_dict() == before
    assert cluster.explain("shop/web-1-a").to_dict() == answer


def test_explain_names_pods_that_would_or_might_preempt_a_placed_pod() -> None:
    pods = [
        pod("on-small", nodeName="small", cpu="2", priority=5),
        pod("on-large", nodeName="large", cpu="8", priority=1),
        pod("urgent", cpu="2", priority=9),
        pod("meek", cpu="2", priority=9, preemptionPolicy="Never"),
        pod("equal", cpu="2", priority=5),
    ]
    cluster = loaded(*pods)

    assert cluster.explain("shop/on-large").to_dict()["placed"]["preemptors"] == [
        {"pod": "shop/urgent", "priority": 9, "now": True},
        {"pod": "shop/equal", "priority": 5, "now": True},
    ]
    assert cluster.explain("shop/on-small").to_dict()["placed"]["preemptors"] == [
        {"pod": "shop/urgent", "priority": 9, "now": False}
    ]


def test_remedies_are_given_for_a_placed_pod_that_fits_nowhere() -> None:
    cluster = podium.load([node("n", "2", unschedulable=True), pod("web", nodeName="n")])

    answer = cluster.explain("shop/web").to_dict()

    assert answer["placed"]["rank"] is None
    assert answer["placed"]["ifEvicted"]["outcome"] == "unschedulable"
    assert answer["remedies"]["nodes"][0]["nodes"] == ["n"]


def test_explain_shows_every_plugin_verdict_and_score_of_one_node() -> None:
    explanation = loaded(pod("web")).explain("shop/web")

    answer = answer_on(explanation, "small").to_dict()

    assert (answer["fits"], answer["taken"]) == (True, "large")
    assert [found["plugin"] for found in answer["filters"]] == [f.name for f in explanation.runner.profile.filter]
    for node_name, key in (("small", "scores"), ("large", "takenScores")):
        weighted = {found["plugin"]: found["weighted"] for found in answer[key]}
        assert weighted == explanation.scores[node_name]
        assert all(found["normalized"] * found["weight"] == found["weighted"] for found in answer[key])


def test_a_rejecting_node_lists_all_rejections_and_what_preemption_there_would_take() -> None:
    pods = [pod("low", nodeName="large", cpu="8"), pod("urgent", cpu="8", priority=9)]

    small = answer_on(loaded(*pods).explain("shop/urgent"), "small").to_dict()
    large = answer_on(loaded(*pods).explain("shop/urgent"), "large").to_dict()

    refusing = [found for found in small["filters"] if found["status"] not in ("Skip", "Success")]
    assert refusing == [
        {"plugin": "NodeResourcesFit", "status": "UnschedulableAndUnresolvable", "reasons": ["Insufficient cpu"]}
    ]
    assert small["preemption"]["helps"] is False
    assert large["preemption"] == {"helps": True, "victims": ["shop/low"], "pdbViolations": 0}
    assert large["scores"] == []


def test_a_missing_node_is_reported_with_a_suggestion() -> None:
    with pytest.raises(PodiumError, match=r"^node smal is not in the input; did you mean small\?$"):
        answer_on(loaded(pod("web")).explain("shop/web"), "smal")


def test_a_short_name_or_a_pattern_means_the_only_node_with_it() -> None:
    nodes = [node(f"ip-10-0-1-{number}.eu-west-1.compute.internal", "4") for number in (23, 24)]
    cluster = podium.load([*nodes, pod("web")])

    explanation = cluster.explain("shop/web")

    assert answer_on(explanation, "ip-10-0-1-23").node == nodes[0]["metadata"]["name"]
    assert answer_on(explanation, "*-24.*").node == nodes[1]["metadata"]["name"]
    with pytest.raises(PodiumError, match=r"^ip-\* means 2 nodes; name one: ip-10-0-1-23\.eu-west-1"):
        answer_on(explanation, "ip-*")


def run(*args: str) -> Result:
    return CliRunner().invoke(command, ["explain", *args], catch_exceptions=False)


def written(path: Path, *objects: dict[str, Any]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


def test_with_all_nodes_each_has_a_line_the_best_first(tmp_path: Path) -> None:
    many = [node(f"node-{number:03}", "1" if number % 2 else "4") for number in range(40)]
    file = written(tmp_path / "a.json", *many, pod("web", cpu="2"))

    report = run("shop/web", "--all-nodes", "-f", file).stdout

    assert [line.split()[0] for line in report.splitlines() if line.startswith("  node-")] == [
        *(f"node-{number:03}" for number in range(0, 40, 2)),
        *(f"node-{number:03}" for number in range(1, 40, 2)),
    ]


def test_a_later_file_s_objects_take_the_place_of_others_and_keep_what_refers_to_them(tmp_path: Path) -> None:
    file = written(tmp_path / "a.json", *NODES, WEB, WEB_1, pod("web-1-a", WEB_1, nodeName="small"))
    cordoned = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "large"}, "spec": {"unschedulable": True}}
    web = workload("Deployment", "web", replicas=7)
    del web["metadata"]["uid"]
    later = written(tmp_path / "b.json", cordoned, web)

    answer = json.loads(run("deploy/web", "-n", "shop", "-f", file, "--override", later, "-o", "json").stdout)

    assert answer["workload"]["wanted"] == 7
    assert len(answer["pods"]) == 1
    assert (answer["explanation"]["node"], answer["explanation"]["nodes"]["large"]["plugin"]) == (
        "small",
        "NodeUnschedulable",
    )


def test_a_pod_of_owners_that_own_each_other_is_listed_once() -> None:
    first, second = workload("ReplicaSet", "first", replicas=1), workload("ReplicaSet", "second", replicas=1)
    for one, other in ((first, second), (second, first)):
        one["metadata"]["ownerReferences"] = [reference(other)]
    answer = podium.load([node("a", "4"), first, second, pod("web-1", first)]).ask("rs/first", "shop")

    assert isinstance(answer, WorkloadExplanation)
    assert [each.key for each in answer.pods] == ["shop/web-1"]
