"""`kubectl cordon`, `drain` and `taint`."""

from __future__ import annotations

from tests.server.kubectl.command import Kubectl
from tests.server.kubectl.objects import budget, deployment, pod


def test_a_node_is_cordoned_and_taken_back(kubectl: Kubectl, node: str) -> None:
    assert kubectl("cordon", node).strip() == f"node/{node} cordoned"
    assert kubectl.rows("get", "node", node)[0][1] == "Ready,SchedulingDisabled"
    kubectl.apply(pod("p", node=node))
    kubectl.wait("pod/p", "condition=PodScheduled=false")
    assert kubectl.rows("get", "pod", "p")[0][2] == "Pending"
    assert kubectl("uncordon", node).strip() == f"node/{node} uncordoned"
    kubectl.wait("pod/p", "condition=Ready")


def test_taints_keep_pods_away_and_drive_them_out(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(pod("p", node=node))
    kubectl.wait("pod/p", "condition=Ready")
    kubectl("taint", "node", node, "maintenance=now:NoExecute")
    kubectl.wait("pod/p", "delete")
    assert kubectl.read("node", node)["spec"]["taints"][0]["key"] == "maintenance"
    kubectl("taint", "node", node, "maintenance-")
    assert "taints" not in kubectl.read("node", node)["spec"]


def test_a_node_is_drained(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(deployment(node=node))
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    said = kubectl("drain", node, "--ignore-daemonsets", "--timeout=60s")
    assert f"node/{node} drained" in said or f"node/{node} evicted" in said
    kubectl.until(lambda: [row[2] for row in kubectl.rows("get", "pods")] == ["Pending", "Pending"])


def test_pods_without_controller_are_drained_only_by_force(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(pod("p", node=node))
    kubectl.wait("pod/p", "condition=Ready")
    assert "--force" in kubectl.fails("drain", node, "--timeout=10s")
    kubectl("drain", node, "--force", "--timeout=60s")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_a_drain_with_a_pod_selector_leaves_other_pods(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(pod("p", node=node, e="f"), pod("q", node=node))
    for name in ("p", "q"):
        kubectl.wait(f"pod/{name}", "condition=Ready")
    said = kubectl("drain", node, "--force", "--pod-selector", "e in (f)", "--timeout=60s")
    assert "pod/p evicted" in said
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/q"]


def test_a_drain_says_that_a_rate_is_used_up(kubectl: Kubectl, node: str) -> None:
    limited = budget(maxUnavailable=2)
    limited["metadata"]["annotations"] = {"podium.dev/max-disruptions": "1/1h"}
    kubectl.apply(deployment(replicas=2, node=node), limited)
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl.wait("pdb/web", "jsonpath={.status.currentHealthy}=2")
    with kubectl.start("drain", node, "--timeout=60s") as drain:
        assert drain.stderr is not None
        assert any("allows 1/1h disruptions, and they are used up" in line for line in drain.stderr)


def test_a_budget_blocks_a_drain_until_it_allows_the_disruption(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(deployment(replicas=1, node=node), budget(minAvailable=1))
    kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    kubectl.wait("pdb/web", "jsonpath={.status.currentHealthy}=1")
    with kubectl.start("drain", node, "--timeout=60s") as drain:
        assert drain.stderr is not None
        blocked = next(line for line in drain.stderr if "will retry after" in line)
        assert "Cannot evict pod as it would violate the pod's disruption budget" in blocked
        kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":0}}')
        out, _ = drain.communicate()
        assert drain.returncode == 0
        assert "evicted" in out
