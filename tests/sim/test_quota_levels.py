"""Quotas by priority, and the capacity of nodes."""

from __future__ import annotations

from typing import Any

import podium
from tests.sim.objects import scenario
from tests.store.objects import Raw, disruption_policy, node, pod, priority_class, quota

CLASSES = [priority_class("high", 1000), priority_class("low", 10)]


def of_class(name: str, hard: Raw, *classes: str, namespace: str = "default") -> Raw:
    selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": list(classes)}]}
    made = quota(name, hard, scopeSelector=selector)
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


def warnings(*objects: Raw) -> list[str]:
    disruptions: dict[str, Any] = podium.simulate([*objects, scenario(until="1s")]).to_dict().get("disruptions", {})
    found: list[str] = disruptions.get("warnings", [])
    return found


def test_the_quotas_of_the_highest_priority_are_not_to_be_more_than_the_nodes_offer() -> None:
    nodes = [node("n1", cpu=4), node("n2", cpu=4)]
    quotas = [of_class("a", {"requests.cpu": "5"}, "high"), of_class("b", {"cpu": "3500m"}, "high", namespace="shop")]

    assert warnings(*nodes, *CLASSES, *quotas[:1]) == []
    assert warnings(*nodes, *CLASSES, *quotas) == [
        "the quotas of PriorityClass high promise more than the nodes offer: 8500m cpu of 8; its pods may go pending "
        "within their quota"
    ]


def test_lower_priorities_may_be_promised_more_than_there_is() -> None:
    """That is what priorities are for."""
    quotas = [of_class("a", {"requests.cpu": "4"}, "high"), of_class("b", {"requests.cpu": "400"}, "low")]

    assert warnings(node("n", cpu=4), *CLASSES, *quotas) == []


def test_nodes_that_take_no_pods_offer_nothing() -> None:
    cordoned = {**node("n2", cpu=4), "spec": {"unschedulable": True}}
    lost = node("n3", cpu=4)
    lost["status"]["conditions"] = [{"type": "Ready", "status": "False"}]

    assert warnings(node("n1", cpu=4), cordoned, lost, *CLASSES, of_class("a", {"cpu": "5"}, "high"))


def test_the_smallest_overlapping_quota_counts_and_limits_promise_nothing() -> None:
    quotas = [
        of_class("a", {"requests.cpu": "9", "limits.cpu": "99"}, "high"),
        of_class("b", {"cpu": "2", "requests.cpu": "3", "count/pods": "999"}, "high"),
    ]

    assert warnings(node("n", cpu=4), *CLASSES, *quotas) == []


def test_a_quota_over_several_classes_counts_at_the_highest() -> None:
    both = of_class("a", {"memory": "1000Ti"}, "low", "high")

    (warning,) = warnings(node("n"), *CLASSES, both)

    assert warning.startswith("the quotas of PriorityClass high promise more than the nodes offer: 1000Ti memory of ")


def test_quotas_without_classes_and_clusters_without_nodes_are_handled() -> None:
    assert warnings(node("n", cpu=1), *CLASSES, quota("a", {"cpu": "9"})) == []
    assert warnings(*CLASSES, of_class("a", {"cpu": "9"}, "high")) == []


def test_a_missing_class_of_a_quota_is_reported_with_a_suggestion() -> None:
    """Names in a policy may have capitals, and those of classes have none."""
    policy = disruption_policy(priorities="Critical > Normal")

    assert warnings(node("n"), policy, of_class("a", {"cpu": "1"}, "Critical")) == [
        "quota default/a names PriorityClass Critical, which does not exist; did you mean critical?"
    ]
    assert warnings(node("n"), policy, of_class("a", {"cpu": "1"}, "critical")) == []


def placed(name: str, namespace: str, **spec: Any) -> Raw:
    made = pod(name, node="n", spec=spec)
    return {**made, "metadata": {**made["metadata"], "namespace": namespace}}


def test_namespaces_that_may_use_any_amount_at_the_highest_level_are_named() -> None:
    quotas = [
        of_class("a", {"cpu": "2"}, "high", namespace="shop"),
        of_class("b", {"cpu": "1"}, "low", namespace="lab"),
    ]
    pods = [placed("p", "batch"), placed("q", "shop"), placed("r", "kube-system")]

    assert warnings(node("n"), *CLASSES, *quotas, *pods) == [
        "namespaces batch, lab have no quota for PriorityClass high and may use any amount at it, which the sum of "
        "the quotas does not include"
    ]


def test_a_quota_over_all_pods_or_over_all_but_other_classes_limits_the_highest_level_too() -> None:
    promise = of_class("a", {"cpu": "2"}, "high", namespace="shop")
    plain = quota("b", {"cpu": "1"})
    others = quota("c", {"pods": "0"}, scopeSelector=selecting("NotIn", "low"))
    others["metadata"]["namespace"] = "lab"

    assert warnings(node("n"), *CLASSES, promise, plain, others) == []
    best_effort = quota("b", {"pods": "1"}, scopes=["BestEffort"])
    assert warnings(node("n"), *CLASSES, promise, best_effort, others)[0].startswith("namespace default has no quota")


def selecting(operator: str, *classes: str) -> Raw:
    values = {"values": list(classes)} if classes else {}
    return {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, **values}]}


def test_namespaces_without_a_required_class_are_named_if_others_require_one() -> None:
    required = quota("class-required", {"pods": "0"}, scopeSelector=selecting("DoesNotExist"))

    assert warnings(node("n"), *CLASSES, required) == []
    assert warnings(node("n"), *CLASSES, required, placed("p", "batch", priorityClassName="low")) == [
        "namespace batch has no quota that requires a PriorityClass, as default has"
    ]


def test_a_default_class_leaves_no_pod_that_names_none() -> None:
    required = quota("class-required", {"pods": "0"}, scopeSelector=selecting("DoesNotExist"))
    default = priority_class("usual", 50, globalDefault=True)

    assert warnings(node("n"), *CLASSES, default, required) == [
        "quota default/class-required never requires a PriorityClass: pods that name none get the default, usual"
    ]
