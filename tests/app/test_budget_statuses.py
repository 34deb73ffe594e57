"""What budgets allow whose status nobody has written."""

import json
from typing import Any

import podium
from podium.api.input.codec import load_text
from podium.api.policy import PodDisruptionBudget
from podium.app.budget_statuses import with_budget_statuses

Raw = dict[str, Any]


def pod(name: str, node: str = "", **status: Any) -> Raw:
    spec: Raw = {"priority": 1, "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def node(name: str) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "1", "pods": "10"}},
    }


def budget(minimum: int, **rest: Any) -> Raw:
    spec = {"minAvailable": minimum, "selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec, **rest}


def allowed(*raws: Raw) -> int:
    documents = load_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(raws)}), "input")
    (found,) = (one for one in with_budget_statuses(documents) if isinstance(one, PodDisruptionBudget))
    return found.status.disruptions_allowed


def test_pods_with_a_node_are_taken_to_run_there_unless_their_status_says_otherwise() -> None:
    well, waits = pod("a", "n"), pod("b")
    unwell = pod("c", "n", phase="Running", conditions=[{"type": "Ready", "status": "False"}])

    assert allowed(budget(1), well, pod("d", "n"), waits, unwell) == 1
    assert allowed(budget(1), well, waits, unwell) == 0


def test_a_status_that_is_there_is_believed() -> None:
    assert allowed(budget(0, status={"disruptionsAllowed": 0}), pod("a", "n"), pod("b", "n")) == 0


def test_a_budget_that_covers_no_pod_is_told_with_its_numbers() -> None:
    answer = podium.explain([node("n"), pod("p"), {**budget(1), "spec": {"minAvailable": 1}}], "p")

    (told,) = answer.to_dict()["disruptions"]["budgets"]
    assert (told["healthy"], told["desired"], told["expected"], told["allowed"]) == (0, 1, 0, 0)


def test_preemption_spares_pods_whose_budget_is_used_up_and_no_others() -> None:
    urgent: Raw = {**pod("urgent"), "metadata": {"name": "urgent"}}
    urgent["spec"] = {**urgent["spec"], "priority": 9}
    cluster = [node("n"), pod("a", "n"), urgent]

    assert violations(*cluster, budget(0)) == 0
    assert violations(*cluster, budget(1)) == 1


def violations(*raws: Raw) -> int:
    plan = podium.explain(raws, "urgent").plan
    assert plan is not None
    return plan.candidates["n"].budget_violations
