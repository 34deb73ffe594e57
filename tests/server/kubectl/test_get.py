"""`kubectl get` and its output."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.server.kubectl.command import Kubectl, listed
from tests.server.kubectl.objects import LEAST, config_map, deployment, least, pod

NeedsVersion = Callable[[int], None]


@pytest.fixture
def pods(kubectl: Kubectl) -> Kubectl:
    """Two pods that run."""
    kubectl.apply(pod("a", tier="front"), pod("b", tier="back"))
    kubectl.wait("pod/a", "condition=Ready")
    kubectl.wait("pod/b", "condition=Ready")
    return kubectl


def test_pods_are_shown_with_their_state(pods: Kubectl) -> None:
    assert pods.head("get", "pods") == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert [row[:4] for row in pods.rows("get", "po")] == [["a", "1/1", "Running", "0"], ["b", "1/1", "Running", "0"]]


def test_wide_shows_where_they_are(pods: Kubectl) -> None:
    assert pods.head("get", "pods", "-o", "wide")[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES", "BUDGET"]
    for row in pods.rows("get", "pods", "-o", "wide"):
        assert row[6].startswith("node-")
        assert row[7:] == ["<none>", "<none>", "<none>"]


def test_every_form_of_output_has_what_it_should(pods: Kubectl) -> None:
    assert pods("get", "pods", "-o", "name").split() == ["pod/a", "pod/b"]
    assert [item["metadata"]["name"] for item in pods.read("pods")["items"]] == ["a", "b"]
    assert "name: a" in pods("get", "pod", "a", "-o", "yaml")
    assert pods("get", "pods", "-o", "jsonpath={.items[*].spec.containers[0].image}") == "web:1 web:1"
    columns = "custom-columns=NAME:.metadata.name,PHASE:.status.phase"
    assert pods.rows("get", "pods", "-o", columns) == [["a", "Running"], ["b", "Running"]]
    assert pods("get", "pods", "--no-headers", "-o", "go-template={{len .items}}") == "2"


def test_selectors_choose(pods: Kubectl) -> None:
    def names(*arguments: str) -> list[str]:
        return pods("get", "pods", "-o", "name", *arguments).split()

    assert names("-l", "tier=front") == ["pod/a"]
    assert names("-l", "tier in (front,back),app!=db") == ["pod/a", "pod/b"]
    assert names("-l", "!tier") == []
    assert names("--field-selector=metadata.name=b") == ["pod/b"]
    assert names("--field-selector=status.phase!=Running") == []


def test_rows_can_be_ordered_and_labelled(pods: Kubectl) -> None:
    assert [row[0] for row in pods.rows("get", "pods", "--sort-by=.metadata.labels.tier")] == ["b", "a"]
    assert [row[-1] for row in pods.rows("get", "pods", "-L", "tier")] == ["front", "back"]
    assert pods.rows("get", "pods", "--show-labels")[0][-1] == "app=web,tier=front"


def test_all_namespaces_are_shown_with_their_names(pods: Kubectl) -> None:
    assert pods.head("get", "pods", "-A")[0] == "NAMESPACE"
    assert [pods.namespace, "a"] in [row[:2] for row in pods.rows("get", "pods", "--all-namespaces")]


def test_long_lists_come_in_pages(kubectl: Kubectl) -> None:
    kubectl.apply(*(config_map(f"c{number}") for number in range(5)))
    names = kubectl("get", "configmaps", "--chunk-size=2", "-o", "name").split()
    assert [name for name in names if "/c" in name] == [f"configmap/c{number}" for number in range(5)]


def test_a_watch_shows_what_changes(kubectl: Kubectl) -> None:
    kubectl.apply(config_map("c", a="1"))
    with kubectl.start("get", "configmap", "c", "--watch", "--output-watch-events") as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline().split() == ["EVENT", "NAME", "DATA", "AGE"]
        assert watch.stdout.readline().split()[:3] == ["ADDED", "c", "1"]
        kubectl("patch", "configmap", "c", "-p", '{"data":{"b":"2"}}')
        assert watch.stdout.readline().split()[:3] == ["MODIFIED", "c", "2"]
        kubectl("delete", "configmap", "c")
        assert watch.stdout.readline().split()[:3] == ["DELETED", "c", "2"]


def test_missing_objects_are_reported(kubectl: Kubectl) -> None:
    assert 'pods "nobody" not found' in kubectl.fails("get", "pod", "nobody")
    assert "doesn't have a resource type" in kubectl.fails("get", "nothings")
    assert "No resources found" in kubectl.run(["get", "pods"])[2]


def test_nodes_and_cluster_wide_kinds_are_shown(kubectl: Kubectl) -> None:
    nodes = {row[0]: row for row in kubectl.rows("get", "nodes", "-o", "wide")}
    assert nodes["node-1"][1:3] == ["Ready", "<none>"]
    assert nodes["node-1"][4].startswith("v1.")
    assert ["default", "Active"] in [row[:2] for row in kubectl.rows("get", "ns")]
    assert kubectl.rows("get", "priorityclass", "system-node-critical")[0][1:3] == ["2000001000", "false"]


def test_many_kinds_at_once_are_shown_one_after_the_other(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(), config_map("c"))
    kubectl("rollout", "status", "deployment/web")
    shown = kubectl("get", "all")
    for kind in ("pod/web-", "deployment.apps/web", "replicaset.apps/web-"):
        assert kind in shown
    assert kubectl("get", "deployment/web", "configmap/c", "-o", "name").split() == [
        "deployment.apps/web",
        "configmap/c",
    ]


def test_kinds_and_versions_are_listed(kubectl: Kubectl) -> None:
    kinds = kubectl("api-resources", "-o", "name").split()
    assert {"pods", "deployments.apps", "disruptionpolicies.podium.dev", "events.events.k8s.io"} <= set(kinds)
    assert set(kubectl("api-resources", "--namespaced=false", "-o", "name").split()) < set(kinds)
    assert {"v1", "apps/v1", "podium.dev/v1alpha1"} <= set(kubectl("api-versions").split())
    assert ["pods", "po", "v1", "true", "Pod"] in kubectl.rows("api-resources", "--api-group=")


def test_kinds_are_explained(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    assert "nodeName" in kubectl("explain", "pod.spec")
    recursive = kubectl("explain", "pod.spec", "--recursive")
    assert "requiredDuringSchedulingIgnoredDuringExecution" in recursive
    assert "containerPort" in recursive
    assert "FIELD: replicas <integer>" in kubectl("explain", "deploy.spec.replicas")
    assert "severalBudgets" in kubectl("explain", "disruptionpolicy.spec")
    assert "does not exist" in kubectl.fails("explain", "pod.spec.nothing")


def test_pods_nodes_and_workloads_are_described(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    kubectl("rollout", "status", "deployment/web")
    shown = kubectl("describe", "pod", "-l", "app=web")
    for wanted in ("Controlled By:  ReplicaSet/web-", "Status:", "QoS Class:", "Burstable", "Scheduled", "Image:"):
        assert wanted in shown
    shown = kubectl("describe", "deployment", "web")
    for wanted in ("2 desired | 2 updated | 2 total | 2 available", "NewReplicaSet:   web-", "25% max surge"):
        assert wanted in shown
    shown = kubectl("describe", "node", "node-1")
    for wanted in ("Allocatable:", "Non-terminated Pods:", "KubeletReady", "InternalIP", "Lease:"):
        assert wanted in shown


def test_every_kind_that_is_served_can_be_shown_and_described(kubectl: Kubectl) -> None:
    kinds = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    assert len(kinds) > 40
    kubectl("get", ",".join(kinds), "--show-kind", "--ignore-not-found")
    kubectl("get", ",".join(kinds), "-A", "-o", "wide")


def test_describe_accepts_minimal_objects(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    needs_version(27)
    objects = [least(kind, kubectl.namespace) for kind in LEAST]
    kubectl.apply(*objects, arguments=("create", "-o", "name"))
    try:
        shown = kubectl("describe", "-f", "-", stdin=json.dumps(listed(*objects)))
        assert all(raw["metadata"]["name"] in shown for raw in objects)
    finally:
        kubectl("delete", "--wait=false", "-f", "-", stdin=json.dumps(listed(*objects)))


@pytest.mark.parametrize("command", ["logs a", "exec a -- ls", "attach a", "port-forward a 8080:80"])
def test_commands_that_need_running_containers_are_rejected_with_a_reason(kubectl: Kubectl, command: str) -> None:
    kubectl.apply(pod("a"))
    kubectl.wait("pod/a", "condition=Ready")
    assert "nodes are simulated: containers do not run" in kubectl.fails(*command.split())


def test_events_report_what_happened(pods: Kubectl, needs_version: NeedsVersion) -> None:
    rows = pods.rows("get", "events", "--field-selector=involvedObject.name=a")
    assert ["Normal", "Scheduled", "pod/a"] in [row[1:4] for row in rows]
    assert "Successfully assigned" in pods("get", "events.v1.events.k8s.io")
    needs_version(27)
    assert "Scheduled" in pods("events", "--for", "pod/a")


def test_top_shows_what_is_used(pods: Kubectl) -> None:
    assert pods.rows("top", "pods")[0][:3] == ["a", "100m", "64Mi"]
    assert pods.rows("top", "pod", "a", "--containers")[0][1:3] == ["main", "100m"]
    assert {"node-1", "node-2"} <= {row[0] for row in pods.rows("top", "nodes")}
    assert [row[0] for row in pods.rows("top", "pods", "-l", "tier=back")] == ["b"]


def test_a_self_access_review_allows_everything(kubectl: Kubectl, needs_version: NeedsVersion) -> None:
    assert kubectl("auth", "can-i", "delete", "nodes").strip() == "yes"
    assert kubectl("auth", "can-i", "create", "pods", "--subresource=eviction").strip() == "yes"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    needs_version(27)
    assert "system:masters" in kubectl("auth", "whoami")


def test_versions_and_raw_documents_are_shown(kubectl: Kubectl) -> None:
    version = json.loads(kubectl("version", "-o", "json"))["serverVersion"]
    assert (version["major"], version["minor"]) == ("1", "36")
    assert json.loads(kubectl("get", "--raw", "/apis/apps"))["kind"] == "APIGroup"
    assert kubectl("get", "--raw", "/readyz").strip() == "ok"
    assert "is running at" in kubectl("cluster-info")
