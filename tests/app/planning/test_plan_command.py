"""`podium plan`: its questions, for a small cluster in files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import podium
from tests.app.planning import small
from tests.app.planning.dumps import as_list, cloud_name, dump
from tests.app.planning.small import ask, reported
from tests.app.processes import START, run
from tests.docs.blocks import ROOT
from tests.store.objects import budget, node, replicated, running

Raw = dict[str, Any]


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Five nodes with a Deployment of ten pods, a StatefulSet of five, and a DaemonSet."""
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(as_list(dump(5, 45))))
    return file


def impact_on(answer: Raw, workload: str) -> Raw:
    return next(impact for impact in answer["impact"] if impact["workload"] == workload)


def written(folder: Path, *objects: Raw) -> str:
    file = folder / "change.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


def deployment(name: str, replicas: int, cpu: str, level: str = "standard") -> Raw:
    requests = {"cpu": cpu}
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": requests}}
    spec = {"priorityClassName": level, "containers": [container]}
    return replicated("Deployment", name, replicas, spec)


@pytest.mark.parametrize("question", ["fit", "pending", "survive"])
def test_a_question_that_plays_nothing_does_not_load_the_simulator(
    cluster: Path, tmp_path: Path, question: str
) -> None:
    loaded = f"""
import atexit, sys
atexit.register(lambda: print("podium.sim.simulation" in sys.modules, file=sys.stderr))
{START}
"""
    file = written(tmp_path, deployment("web", 2, "1"))
    options = {"fit": [file], "pending": [], "survive": ["deploy/app-0000", "-n", "team-0"]}[question]
    ended = run("plan", question, "-f", str(cluster), *options, code=loaded, real=True)

    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (0, "False"), ended.stderr


def test_a_drain_reports_its_duration_and_the_impact_on_each_workload(cluster: Path) -> None:
    answer = reported("drain", cloud_name(1), "-f", str(cluster), "--start-delay", "5s")

    assert answer["headline"].startswith(f"drain of {cloud_name(1)} takes ")
    web = impact_on(answer, "Deployment team-0/app-0000")
    assert (web["readyBefore"], web["lowestReady"], web["readyAfter"], web["wanted"]) == (10, 9, 10, 10)
    assert web["disruptions"] == {"drain": 2}
    assert web["held"][0]["budget"] == "team-0/app-0000"
    assert {finding["code"] for finding in answer["findings"]} == {"evict", "budget", "short"}
    assert answer["nodes"] == [{"node": cloud_name(1), "change": "emptied", "podsBefore": 8, "podsAfter": 0}]


def test_a_pod_that_is_replaced_at_once_is_missed_for_no_time_however_new_the_cluster_is(cluster: Path) -> None:
    answer = reported("drain", cloud_name(1), "-f", str(cluster))

    web = impact_on(answer, "Deployment team-0/app-0000")
    assert (web["readyBefore"], web["lowestReady"], web["readyAfter"], web["shortSeconds"]) == (10, 10, 10, 0)


def test_nodes_are_drained_one_after_another_and_no_pod_comes_to_one_that_is_yet_to_go(cluster: Path) -> None:
    first, second = cloud_name(0), cloud_name(1)
    answer = reported("drain", first, second, "-f", str(cluster))

    assert [drain["state"] for drain in answer["drains"]] == ["drained", "drained"]
    made = [pod for pod in answer["result"]["pods"] if pod["createdAt"] > 0]
    assert made
    assert not [pod for pod in made if pod["node"] in (first, second)]
    ended = {
        node: [pod["endedAt"] for pod in answer["result"]["pods"] if pod["evictedBy"] and pod["node"] == node]
        for node in (first, second)
    }
    killed = {event["pod"]: event["time"] for event in answer["result"]["events"] if event["reason"] == "Killing"}
    began = min(killed[pod["pod"]] for pod in answer["result"]["pods"] if pod["evictedBy"] and pod["node"] == second)
    assert began >= max(ended[first])
    together = reported("drain", first, second, "--parallel", "-f", str(cluster))
    assert together["result"]["summary"]["end"] <= answer["result"]["summary"]["end"]


def test_a_blocked_drain_names_the_budget_the_pods_and_the_remedy(cluster: Path, tmp_path: Path) -> None:
    strict = {"kind": "PodDisruptionBudget", "metadata": {"name": "app-0001", "namespace": "team-1"}}
    objects = json.loads(cluster.read_text())
    for item in objects["items"]:
        if item["kind"] == strict["kind"] and item["metadata"]["name"] == "app-0001":
            item["spec"]["maxUnavailable"] = 0
    cluster.write_text(json.dumps(objects))

    answer = reported("drain", cloud_name(2), "--timeout", "5m", "-f", str(cluster))

    assert answer["headline"].startswith(f"drain of {cloud_name(2)} timed out after 5m: budget team-1/app-0001 holds")
    assert "timeout" in [finding["code"] for finding in answer["findings"]]
    assert "team-1/app-0001" in answer["unblock"][0]
    assert "is blocked" in reported("drain", cloud_name(2), "-f", str(cluster))["headline"]


def test_a_drain_that_a_rate_holds_says_which_pods_used_it_up(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    template = {"containers": [{"name": "main", "image": "web"}]}
    web = replicated("ReplicaSet", "web", 1, template, uid="rs")
    rate = {
        "max": "1/1h",
        "available": 0,
        "fullTime": "2026-01-01T00:50:00Z",
        "lastDisruptions": ["pod web-0 was deleted at 2025-12-31T23:50:00Z"],
    }
    limited = budget("web", allowed=1, rate="1/1h", spec={"maxUnavailable": 1}, status={"disruptionRate": rate})
    pod = running("web-1", node="n1", cpu=1, metadata={"uid": "p", "ownerReferences": [owner]})
    file = written(tmp_path, node("n1"), node("n2"), web, pod, limited)

    answer = reported("drain", "n1", "-f", file, "--start", "2026-01-01T00:00:00Z")

    (finding,) = [finding for finding in answer["findings"] if finding["code"] == "budget"]
    assert finding["message"].startswith(
        "budget default/web holds default/web-1: the disruption budget web allows 1/1h disruptions, and they are used "
        "up (pod web-0 was deleted at 2025-12-31T23:50:00Z); the next is allowed at 2026-01-01T00:50:00Z, in "
    )


def test_a_found_problem_is_named_with_exit_code_two(cluster: Path) -> None:
    drain = ("drain", cloud_name(1), "-f", str(cluster))

    ask(*drain, "--fail-on", "evict,preempt", code=2)
    ask(*drain, "--fail-on", "any", code=2)
    ask(*drain, "--fail-on", "unschedulable,any", code=2)
    ask(*drain, "--fail-on", "preempt,unschedulable")
    assert "names no code" in ask(*drain, "--fail-on", " ,", code=1).output
    assert "is not a code" in ask(*drain, "--fail-on", "evicted", code=1).output


def test_a_saved_plan_is_a_scenario_that_gives_the_same(cluster: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.yaml"
    answer = reported("drain", cloud_name(1), "-f", str(cluster), "--save", str(saved))

    again = podium.simulate(saved).to_dict()

    assert again["events"] == answer["result"]["events"]
    assert again["pods"] == answer["result"]["pods"]
    assert saved.read_text().startswith("# podium simulate -f saved.yaml\n")


def test_a_saved_plan_contains_the_options_of_its_run(cluster: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.yaml"
    options = ["--until", "20m", "--termination", "5s", "--seed", "3", "--ignore-extenders"]
    gates = ["--feature-gates", "NonPreemptingPriority=false"]

    ask("drain", cloud_name(1), "-f", str(cluster), "--save", str(saved), *options, *gates)

    (first, *_) = saved.read_text().splitlines()
    assert first == f"# podium simulate -f saved.yaml {' '.join([*options, *gates])}"


def test_a_deployment_without_containers_is_refused_by_its_file(cluster: Path, tmp_path: Path) -> None:
    new = deployment("web", 1, "1")
    del new["spec"]["template"]["spec"]["containers"]
    file = written(tmp_path, new)

    error = ask("deploy", file, "-f", str(cluster), code=1).output

    place = "document 1, Deployment default/web, .spec.template.spec.containers"
    assert f"{file}, {place}: Required value: a pod has at least one container" in error


def test_an_object_of_a_deployment_that_the_api_server_refuses_is_named_with_its_file(
    cluster: Path, tmp_path: Path
) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}}
    earlier = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "s"},
        "spec": {"steps": [{"at": "1s", "drain": {"name": cloud_name(1)}}]},
    }
    file = written(tmp_path, deployment("web", 1, "1"), service)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump(earlier))

    for given in ([], ["-f", str(scenario)]):
        error = ask("deploy", file, "-f", str(cluster), *given, code=1).output

        assert f"{file}, document 2: Service default/web is invalid: spec.ports: Required value" in error


def test_a_deployment_passes_over_kinds_that_are_not_read_and_names_those_that_may_affect_pods(
    cluster: Path, tmp_path: Path
) -> None:
    others = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "shop"}}
        for version, kind in (("v1", "ConfigMap"), ("networking.k8s.io/v1", "Ingress"), ("argoproj.io/v1", "Rollout"))
    ]
    pod = {"containers": [{"name": "a", "image": "a"}]}
    new = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "shop"}, "spec": pod}
    file = tmp_path / "new.yaml"
    file.write_text(yaml.safe_dump_all([*others, new]))

    result = ask("deploy", str(file), "-f", str(cluster))

    assert "deploying Pod shop/new: its one pod finds a node" in result.stdout
    caveat = "  ignored, although they may create, change or refuse pods: 1 Rollout (argoproj.io/v1)\n"
    assert caveat in result.stdout


def test_a_deployment_plan_lists_its_victims_round_by_round(cluster: Path, tmp_path: Path) -> None:
    new = written(tmp_path, deployment("shop", 5, "7", "high"))
    answer = reported("deploy", "-f", str(cluster), new)

    assert answer["headline"].startswith("deploying Deployment default/shop: all 5 pods find a node; ")
    assert answer["placed"][0]["waiting"] == 0
    assert len(answer["placed"][0]["nodes"]) == 5
    assert answer["cascade"]
    assert {entry["preemptorWorkload"] for entry in answer["cascade"] if entry["round"] == 1} == {
        "Deployment default/shop"
    }
    assert "preempt" in [finding["code"] for finding in answer["findings"]]
    assert impact_on(answer, "Deployment default/shop")["isNew"]


def test_plan_reports_pending_pods_with_their_reason(cluster: Path, tmp_path: Path) -> None:
    new = written(tmp_path, deployment("big", 2, "9"))
    answer = reported("deploy", new, "--cluster", str(cluster))

    assert "2 of 2 pods wait for a node" in answer["headline"]
    big = impact_on(answer, "Deployment default/big")
    assert (big["pending"], big["missing"]) == (2, 2)
    assert big["why"].startswith("5 Insufficient cpu")
    assert "unschedulable" in [finding["code"] for finding in answer["findings"]]


def test_pods_that_a_rollout_deletes_are_not_counted_as_evicted() -> None:
    file = ROOT / "examples/cookbook/change.yaml"
    answer = reported("change", "deploy/shop/search", "requests.cpu=500m", "-f", str(file))

    assert answer["summary"] == "Plan: 0 placed, 0 evicted, 0 preempted, 3 deleted, 0 missing at the end"
    assert impact_on(answer, "Deployment shop/search")["disruptions"] == {"deletion": 3}
    assert answer["findings"] == []


def test_a_stuck_rollout_is_reported_though_no_pod_is_missing() -> None:
    file = ROOT / "examples/cookbook/change.yaml"
    answer = reported("change", "deploy/shop/search", "requests.cpu=2", "-f", str(file))
    search = impact_on(answer, "Deployment shop/search")

    assert answer["headline"] == "changing Deployment shop/search: the rollout of Deployment shop/search is stuck"
    assert [finding["code"] for finding in answer["findings"]] == ["unschedulable"]
    assert (search["readyAfter"], search["missing"], search["stuck"]) == (3, 0, 1)
    assert "Insufficient cpu" in search["why"]


def test_changes_of_the_baseline_are_subtracted(cluster: Path, tmp_path: Path) -> None:
    objects = json.loads(cluster.read_text())
    objects["items"].append(deployment("waits", 3, "9"))
    cluster.write_text(json.dumps(objects))
    answer = reported("deploy", "-f", str(cluster), written(tmp_path, deployment("shop", 1, "100m")))

    assert [impact["workload"] for impact in answer["impact"]] == ["Deployment default/shop"]
    assert [finding for finding in answer["findings"] if finding["code"] == "unschedulable"] == []
    assert answer["anyway"] == {"pending": 3, "preempted": 0, "evicted": 0}


def test_a_zone_that_fails_takes_its_pods_along_until_they_are_evicted(cluster: Path) -> None:
    answer = reported("fail", "-l", "topology.kubernetes.io/zone=eu-west-1b", "-f", str(cluster))

    web = impact_on(answer, "Deployment team-0/app-0000")
    assert web["lowestReady"] < 10
    assert web["readyAfter"] == 10
    assert web["disruptions"].keys() == {"taint"}
    assert {node["change"] for node in answer["nodes"]} == {"down"}


def test_plan_names_the_waiting_pods_or_else_those_that_cannot_end() -> None:
    file = ROOT / "examples/cookbook/fail.yaml"
    answer = reported("fail", "-l", "topology.kubernetes.io/zone=europe-west1-c", "-f", str(file))

    assert "4 Insufficient cpu" in impact_on(answer, "Deployment analytics/report")["why"]
    assert "old pods cannot end" in impact_on(answer, "StatefulSet shop/queue")["why"]


@pytest.mark.parametrize(
    ("spec", "ready", "advice"),
    [
        (
            {"minAvailable": 3},
            3,
            "scale up the pods of budget default/web by 1 (3 healthy, 3 required), lower minAvailable",
        ),
        (
            {"minAvailable": "80%"},
            3,
            "scale up the pods of budget default/web by 2 (3 healthy, 3 required), lower minAvailable",
        ),
        (
            {"minAvailable": 3},
            2,
            "scale up the pods of budget default/web by 1 and make all of them ready (2 healthy, 3 required), "
            "lower minAvailable",
        ),
        ({"minAvailable": "100%"}, 3, "lower minAvailable of default/web (3 healthy, 3 required)"),
        ({"maxUnavailable": 0}, 3, "raise maxUnavailable of default/web (3 healthy, 3 required)"),
        (
            {"maxUnavailable": 1},
            2,
            "bring 1 more pod of budget default/web to readiness (2 ready, 2 required), or lower its minimum",
        ),
    ],
)
def test_a_drain_that_a_budget_holds_names_only_what_would_unblock_it(
    tmp_path: Path, spec: Raw, ready: int, advice: str
) -> None:
    pods = [small.pod(f"web-{number}", on="a" if number else "b", owner="web") for number in range(ready)]
    pods += [small.pod(f"web-{number}", "5", owner="web") for number in range(ready, 3)]
    objects = [small.node("a"), small.node("b"), small.replica_set("web", 3), small.budget("web", **spec), *pods]

    answer = small.reported("drain", "b", "--timeout", "1m", "-f", small.written(tmp_path, *objects))

    assert [text.removesuffix(", or delete past budgets with --disable-eviction") for text in answer["unblock"]] == [
        advice
    ]


def test_a_pod_that_waits_in_any_case_does_not_explain_what_a_failure_costs(tmp_path: Path) -> None:
    running = small.pod("web-0", "3", on="a", owner="web")
    waiting = small.pod("web-1", "3", owner="web")
    cluster = small.written(tmp_path, small.node("a"), small.replica_set("web", 2, "3"), running, waiting)

    answer = small.reported("fail", "a", "-f", cluster)

    assert (impact_on(answer, "ReplicaSet default/web")["missing"], answer["anyway"]["pending"]) == (1, 1)
    assert impact_on(answer, "ReplicaSet default/web")["why"] == "their nodes are down"


def test_nodes_come_and_go(cluster: Path) -> None:
    answer = reported("nodes", "-f", str(cluster), "--add", "2", "--like", cloud_name(0), "--remove", cloud_name(1))

    assert {(node["node"], node["change"]) for node in answer["nodes"]} == {
        ("plan-node-1", "added"),
        ("plan-node-2", "added"),
        (cloud_name(1), "gone"),
    }
    assert answer["nodeHours"]["with"] != answer["nodeHours"]["without"]


def test_fields_are_set_by_short_names(cluster: Path) -> None:
    answer = reported("change", "deploy/team-0/app-0000", "replicas=12", "requests.cpu=200m", "-f", str(cluster))

    assert answer["changes"][0]["changes"] == [
        ".spec.template.spec.containers[0].resources.requests.cpu: 100m -> 200m",
        ".spec.replicas: 10 -> 12",
    ]
    web = impact_on(answer, "Deployment team-0/app-0000")
    assert (web["readyAfter"], web["wanted"]) == (12, 12)
    assert reported("change", "pc/batch", "value=7", "-f", str(cluster))["changes"][0]["changes"] == [
        ".value: 100 -> 7"
    ]
    for name in (cloud_name(0), cloud_name(0).partition(".")[0]):
        labelled = reported("change", f"node/{name}", "labels.example.com/rack=r1", "-f", str(cluster))
        assert labelled["changes"][0]["object"] == f"Node {cloud_name(0)}"
        assert labelled["changes"][0]["changes"] == [".metadata.labels.example.com/rack: nothing -> r1"]


@pytest.mark.parametrize(
    ("target", "assignment", "problem"),
    [
        ("deploy/team-0/app-000", "replicas=2", "did you mean team-0/app-0000"),
        ("deploy/team-0/app-0000", "replica=2", "has no field replica; did you mean replicas"),
        ("deploy/team-0/app-0000", "replicas", "write it as FIELD=VALUE"),
        ("deploy/team-0/app-0000", "replicas=many", "replicas"),
        ("deploy/team-0/app-0000", "side:requests.cpu=1", "has no container side"),
        ("deploy/team-0/app-0000", "replicas=10", "nothing changes"),
        ("pod/team-0/app-0000-5d4f8c7b9-00000", "priorityClassName=high", "is running and cannot be changed"),
        ("thing/web", "replicas=1", "there is no kind thing"),
        ("web", "replicas=1", "write KIND/NAME"),
        ("node/ip-*", "unschedulable=true", "there is no Node ip-*; did you mean ip-"),
    ],
)
def test_an_unsupported_plan_setting_is_reported(cluster: Path, target: str, assignment: str, problem: str) -> None:
    assert problem in ask("change", target, assignment, "-f", str(cluster), code=1).output


def test_patches_change_objects_of_any_kind(cluster: Path, tmp_path: Path) -> None:
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "app-0000", "namespace": "team-0"}}
    file = written(tmp_path, {**budget, "spec": {"maxUnavailable": 3}}, {"kind": "PriorityClass", "value": 9})
    assert "names its object" in ask("change", "-f", str(cluster), "--patch-file", file, code=1).output

    answer = reported(
        "change", "-f", str(cluster), "--patch-file", written(tmp_path, {**budget, "spec": {"maxUnavailable": 3}})
    )

    assert answer["changes"][0]["changes"] == [".spec.maxUnavailable: 1 -> 3"]
    assert answer["impact"] == []


def test_the_first_screen_is_headline_impact_nodes_and_what_it_rests_on(cluster: Path) -> None:
    drain = ("drain", cloud_name(1), "-f", str(cluster))
    first = ask(*drain).stdout
    titles = [line.split("  ")[0] for line in first.splitlines()[1:] if line[:1].isupper()]

    assert first.splitlines()[0].startswith("Plan: ")
    assert first.splitlines()[1].startswith(f"drain of {cloud_name(1)} takes ")
    assert titles == ["Drains", "Impact", "Held", "Nodes", "Caveats"]
    more = ask(*drain, "--timeline", "--pods", "--nodes").stdout
    assert all(title in more for title in ("Timeline", "Pods", "All nodes"))


def test_the_impact_is_a_table_for_spreadsheets(cluster: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(ask("drain", cloud_name(1), "-f", str(cluster), "-o", "csv").stdout)))

    assert {row["workload"] for row in rows} >= {"Deployment team-0/app-0000"}
    assert {row["disruptions"] for row in rows} >= {"drain: 2"}


def test_plan_reports_a_selector_that_matches_no_node(cluster: Path) -> None:
    file = ("-f", str(cluster))
    assert "no node is named" in ask("drain", *file, code=1).output
    assert "did you mean" in ask("drain", cloud_name(1)[:-1], *file, code=1).output
    assert "no node of 5 has these labels" in ask("fail", "-l", "a=b", *file, code=1).output
    assert "Nothing to read" in ask("drain", "n", code=1).output


def test_a_later_file_takes_the_place_of_what_was_read(cluster: Path, tmp_path: Path) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "app-0000", "namespace": "team-0"},
        "spec": {"maxUnavailable": 10, "selector": {"matchLabels": {"app": "app-0000"}}},
    }
    drain = ("drain", cloud_name(1), "-f", str(cluster))
    file = written(tmp_path, budget)

    assert impact_on(reported(*drain), "Deployment team-0/app-0000")["held"]
    assert not impact_on(reported(*drain, "--override", file), "Deployment team-0/app-0000")["held"]


def test_the_headline_names_the_labels_that_selected_many_nodes(cluster: Path) -> None:
    labels = "topology.kubernetes.io/zone in (eu-west-1a,eu-west-1b)"

    for question in (["fail", "--until", "1m"], ["drain", "--parallel", "--disable-eviction"]):
        answer = reported(*question, "-l", labels, "-f", str(cluster))
        assert f" nodes with {labels}" in answer["headline"]


@pytest.mark.parametrize(
    ("names", "drained"),
    [
        (["ip-10-0-1-*"], ["ip-10-0-1-11.example", "ip-10-0-1-12.example"]),
        (["ip-10-0-1-12"], ["ip-10-0-1-12.example"]),
        (["node/ip-10-0-1-1?", "ip-10-0-1-11"], ["ip-10-0-1-11.example", "ip-10-0-1-12.example"]),
        (["ip-10-0-[2-9]-*", "ip-10-0-1-12.example"], ["ip-10-0-2-11.example", "ip-10-0-1-12.example"]),
    ],
)
def test_nodes_are_named_in_short_and_by_patterns(names: list[str], drained: list[str], tmp_path: Path) -> None:
    cluster = small.written(
        tmp_path, *map(small.node, (f"ip-10-0-{name}.example" for name in ("1-12", "1-11", "2-11")))
    )

    found = reported("drain", *names, "-f", cluster)

    assert [drain["node"] for drain in found["drains"]] == drained


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("ip-10-0-9-*", "there is no node ip-10-0-9-* among 3"),
        ("a", "there is no node a among 3; did you mean a.east or a.west?"),
    ],
)
def test_a_name_that_means_no_node_or_several_is_an_error(name: str, error: str, tmp_path: Path) -> None:
    cluster = small.written(tmp_path, *map(small.node, ("a.east", "a.west", "b")))

    assert error in ask("drain", name, "-f", cluster, code=1).stderr
