"""Podium's additions to Kubernetes, as kubectl shows them."""

from __future__ import annotations

from tests.server.kubectl.command import Kubectl, minor_version
from tests.server.kubectl.objects import budget, deployment, pod
from tests.store.objects import Raw

POLICIES = ["PreemptLowerPriority", "PreemptNever", "NonPreemptible", "NonPreemptiblePreemptNever"]


def test_budgets_show_their_rate(kubectl: Kubectl) -> None:
    limited = budget(maxUnavailable=1)
    limited["metadata"]["annotations"] = {"podium.dev/max-disruptions": "2/1h"}
    kubectl.apply(deployment(), limited)
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl.wait("pdb/web", "jsonpath={.status.disruptionsAllowed}=1")
    assert kubectl.head("get", "pdb")[-2:] == ["RATE", "RATE LEFT"]
    assert kubectl.rows("get", "pdb", "web")[0][-2:] == ["2/1h", "2"]
    name = kubectl("get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
    eviction: Raw = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    kubectl.cluster.create(f"/api/v1/namespaces/{kubectl.namespace}/pods/{name}/eviction", eviction)
    assert kubectl.rows("get", "pdb", "web")[0][-1] == "1"
    shown = kubectl("get", "pdb", "web", "-o", "custom-columns=RATE:.status.disruptionRate.max")
    assert "2/1h" in shown
    if minor_version() >= 21:
        assert "Max unavailable" in kubectl("describe", "pdb", "web")


def test_priority_classes_take_and_show_every_policy(kubectl: Kubectl) -> None:
    names = {f"{kubectl.namespace}-{policy.lower()}": policy for policy in POLICIES}
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 10,
            "preemptionPolicy": policy,
        }
        for name, policy in names.items()
    ]
    pods = [pod(name) for name in names]
    for raw in pods:
        raw["spec"]["priorityClassName"] = raw["metadata"]["name"]
    kubectl.apply(*classes, *pods)
    try:
        shown = {row[0]: row[-1] for row in kubectl.rows("get", "priorityclass", *names)}
        assert shown == names
        specs = [one["spec"] for one in kubectl.read("pods")["items"]]
        assert {spec["priorityClassName"]: spec["preemptionPolicy"] for spec in specs} == names
        assert {spec["priority"] for spec in specs} == {10}
    finally:
        kubectl("delete", "priorityclass", *names, "--wait=false")


def test_a_disruption_policy_is_an_object_like_others(kubectl: Kubectl) -> None:
    raw: Raw = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "DisruptionPolicy",
        "metadata": {"name": "default"},
        "spec": {"severalBudgets": "RequireAll", "caps": [{"component": "descheduler", "max": "5/1h"}]},
    }
    assert kubectl.apply(raw).strip() == "disruptionpolicy.podium.dev/default created"
    try:
        assert kubectl.rows("get", "dpol")[0][:4] == ["default", "<none>", "RequireAll", "descheduler=5/1h"]
        assert "Several Budgets:  RequireAll" in kubectl("describe", "disruptionpolicy", "default")
        columns = "custom-columns=CAPS:.spec.caps[*].max"
        assert kubectl.rows("get", "disruptionpolicies", "-o", columns) == [["5/1h"]]
        raw["spec"]["severalBudgets"] = "Refuse"
        assert "configured" in kubectl.apply(raw)
    finally:
        kubectl("delete", "disruptionpolicy", "default")


def test_a_pod_that_makes_room_shows_where(kubectl: Kubectl, node: str) -> None:
    name = f"{kubectl.namespace}-high"
    kubectl("create", "priorityclass", name, "--value=1000")
    try:
        low, high = pod("low", node=node), pod("high", node=node)
        # A preempted pod takes a while to end.
        low["metadata"]["annotations"]["podium.dev/termination"] = "10s"
        for raw in (low, high):
            raw["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
        high["spec"]["priorityClassName"] = name
        kubectl.apply(low)
        kubectl.wait("pod/low", "condition=Ready")
        kubectl.apply(high)
        kubectl.wait("pod/high", f"jsonpath={{.status.nominatedNodeName}}={node}")
        shown = dict(
            zip(
                kubectl.head("get", "pod", "high", "-o", "wide"),
                kubectl.rows("get", "pod", "high", "-o", "wide")[0],
                strict=True,
            )
        )
        assert (shown["STATUS"], shown["NODE"], shown["NOMINATED NODE"]) == ("Pending", "<none>", node)
        assert kubectl.rows("get", "pod", "low")[0][2] == "Terminating"
        kubectl("delete", "pod", "low", "--force", "--grace-period=0")
        kubectl.wait("pod/high", "condition=Ready")
    finally:
        kubectl("delete", "priorityclass", name)


def test_a_quota_by_priority_is_reported_in_kubernetes_words(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "q", "--hard=pods=0")
    assert 'pods "p" is forbidden: exceeded quota: q' in kubectl.fails("run", "p", "--image=web:1")
