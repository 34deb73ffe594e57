"""An operator's questions about the clusters of the cookbook, answered by calls of tools alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.app.mcp.command import server_of
from podium.app.mcp.tools import Tools

COOKBOOK = Path("examples/cookbook")
CALLS: list[tuple[str, str, str, dict[str, Any], list[str]]] = [
    # The question, the cluster, the tool, its arguments, and what the answer must say.
    ("What is in this cluster?", "pending", "overview", {}, ["5 nodes, 16 pods, 8 pending", "data/archive-0"]),
    ("Why are pods pending?", "pending", "pending", {}, ["8 of 8 pending pods get no node", "dedicated=ml:NoSchedule"]),
    ("Why are the pods of team ml pending?", "pending", "pending", {"namespace": "ml"}, ["3 of 3 pending pods in ml"]),
    ("Why is archive-0 pending?", "pending", "explain", {"target": "data/archive-0"}, ["unschedulable"]),
    ("Why is no notebook running?", "pending", "explain", {"target": "deploy/ml/notebook"}, ["unschedulable", "taint"]),
    ("Why does the import not start?", "pending", "explain", {"target": "job/shop/import"}, ["unschedulable", "cpu"]),
    ("Is the training safe?", "survive", "survive", {"target": "deploy/ml/trainer"}, ["1 of 3", "shop/checkout"]),
    (
        "Is the report safe?",
        "survive",
        "survive",
        {"target": "deploy/report", "namespace": "analytics"},
        ["all 3 pods of Deployment analytics/report survive"],
    ),
    (
        "What will checkout preempt?",
        "survive",
        "explain",
        {"target": "shop/checkout-43994c3d56-m8mpt"},
        ["preempts on aks-general-31415926-vmss000006", "ml/trainer-4c67481075-xjvd7"],
    ),
    (
        "What if zone c fails?",
        "fail",
        "plan_fail",
        {"selector": "topology.kubernetes.io/zone=europe-west1-c"},
        ["4 pods of 3 workloads missing at the end"],
    ),
    (
        "And if it comes back after 20 minutes?",
        "fail",
        "plan_fail",
        {"selector": "topology.kubernetes.io/zone=europe-west1-c", "duration": "20m"},
        ["no further pod is missing at the end"],
    ),
    (
        "Can we lose this node?",
        "fail",
        "plan_fail",
        {"nodes": ["gke-shop-pool-1-36e9724f-c7vn"]},
        ["2 pods disrupted by preemption", "2 pods of 2 workloads missing at the end"],
    ),
    (
        "How long does the drain take?",
        "drain",
        "plan_drain",
        {"nodes": ["gke-shop-pool-1-36e9724f-p7wd"], "timeout": "10m"},
        ["timed out after 10m", "budget shop/web"],
    ),
    (
        "Which budget holds the drain?",
        "drain",
        "plan_drain",
        {"nodes": ["gke-shop-pool-1-594ac2eb-z2tq"]},
        ["is blocked: budget shop/web"],
    ),
    ("Where would another database go?", "drain", "explain", {"target": "sts/shop/db"}, ["shop/db-3 fits"]),
    (
        "Does one more node help?",
        "nodes",
        "plan_nodes",
        {"add": 1, "like": "aks-general-31415926-vmss000000"},
        ["0 pods wait for a node at the end, 2 without it"],
    ),
    (
        "Can we do without a node?",
        "nodes",
        "plan_nodes",
        {"remove": ["aks-general-31415926-vmss000001"]},
        ["4 pods wait for a node at the end", "2 pods of 2 workloads missing"],
    ),
    ("What else would help the embedder?", "nodes", "pending", {}, ["requests.cpu 1900m -> 1400m places 2"]),
    (
        "Can search have 2 cpu?",
        "change",
        "plan_change",
        {"target": "deploy/shop/search", "fields": {"requests.cpu": "2"}},
        ["the rollout of Deployment shop/search is stuck"],
    ),
    (
        "And if it were interactive?",
        "change",
        "plan_change",
        {"target": "deploy/shop/search", "fields": {"requests.cpu": "2", "priorityClassName": "interactive"}},
        ["6 pods disrupted by preemption"],
    ),
    (
        "Can the web have 30 replicas?",
        "change",
        "plan_change",
        {"target": "deploy/shop/web", "fields": {"replicas": 30}},
        ["27 pods of 2 workloads missing"],
    ),
    (
        "What does this change of the class do?",
        "change",
        "plan_change",
        {"patch": (COOKBOOK / "change-class.yaml").read_text()},
        ["no workload is affected"],
    ),
    ("What does 1.34 change?", "upgrade", "plan_upgrade", {"to": "1.34"}, ["1 pod would wait", "another message"]),
    ("Why is the report pending?", "upgrade", "explain", {"target": "deploy/shop/report"}, ["is unschedulable"]),
    (
        "What if standard pods were as important as interactive ones?",
        "compare",
        "plan_diff",
        {"after": (COOKBOOK / "compare-after.yaml").read_text(), "renew_priorities": True},
        ["1 workload gains (3 ready pods); 1 workload loses (3 ready pods)", "shop/checkout", "3 -> 0"],
    ),
    ("What would the rescheduler do?", "reschedule", "plan_reschedule", {}, ["moves 1 pod"]),
    (
        "Can we deploy checkout?",
        "deploy",
        "plan_deploy",
        {"manifest": (COOKBOOK / "deploy-checkout.yaml").read_text()},
        ["all 3 pods find a node", "4 pods are preempted in 2 rounds", "3 of these find no other node"],
    ),
    (
        "What does one more frontend preempt?",
        "deploy",
        "explain",
        {"target": "deploy/shop/frontend"},
        ["victim analytics/report-f0c539f54b-r25wf"],
    ),
    ("Was something disrupted lately?", "deploy", "ledger", {}, ["no disruptions"]),
    (
        "How many models fit?",
        "fit",
        "fit",
        {"manifest": (COOKBOOK / "fit-pod.yaml").read_text()},
        ["8 of Pod analytics/model fit", "Insufficient cpu"],
    ),
    (
        "Do 20 fit?",
        "fit",
        "fit",
        {"manifest": (COOKBOOK / "fit-pod.yaml").read_text(), "replicas": 20},
        ["8 of 20 of Pod analytics/model get a node"],
    ),
    (
        "And if they preempt?",
        "fit",
        "fit",
        {"manifest": (COOKBOOK / "fit-pod.yaml").read_text(), "preempts": True},
        ["9 if all pods that it may preempt left"],
    ),
]


@pytest.mark.parametrize(("cluster", "tool", "arguments", "parts"), [call[1:] for call in CALLS], ids=lambda _: "")
def test_a_question_is_answered_by_a_tool(cluster: str, tool: str, arguments: dict[str, Any], parts: list[str]) -> None:
    from mcp import Client  # noqa: PLC0415 - few tests need it, and it takes a second

    async def ask() -> dict[str, Any]:
        tools = Tools(lambda: podium.load(COOKBOOK / f"{cluster}.yaml"), lambda: 0)
        async with Client(server_of(tools)) as client:
            result = await client.call_tool(tool, arguments)
            found: dict[str, Any] | None = result.structured_content
            assert found is not None
            return found

    answer = asyncio.run(ask())

    read = " ".join(f"{answer['headline']} {answer['text']}".split())
    assert [part for part in parts if part not in read] == []
