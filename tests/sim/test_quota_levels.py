"""Quotas by priority, and what the nodes offer."""

from __future__ import annotations

from typing import Any

import podium
from tests.sim.objects import scenario
from tests.store.objects import Raw, disruption_policy, node, priority_class, quota

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


def test_of_several_quotas_over_the_same_pods_the_smallest_counts_and_limits_promise_nothing() -> None:
    quotas = [
        of_class("a", {"requests.cpu": "9", "limits.cpu": "99"}, "high"),
        of_class("b", {"cpu": "2", "requests.cpu": "3", "count/pods": "999"}, "high"),
    ]

    assert warnings(node("n", cpu=4), *CLASSES, *quotas) == []


def test_a_quota_over_several_classes_counts_at_the_highest() -> None:
    both = of_class("a", {"memory": "1000Ti"}, "low", "high")

    (warning,) = warnings(node("n"), *CLASSES, both)

    assert warning.startswith("the quotas of PriorityClass high promise more than the nodes offer: 1000Ti memory of ")


def test_quotas_without_classes_and_clusters_without_nodes_are_no_matter() -> None:
    assert warnings(node("n", cpu=1), *CLASSES, quota("a", {"cpu": "9"})) == []
    assert warnings(*CLASSES, of_class("a", {"cpu": "9"}, "high")) == []


def test_a_class_of_a_quota_that_is_not_there_is_told_with_one_that_may_be_meant() -> None:
    """Names in a policy may have capitals, and those of classes have none."""
    policy = disruption_policy(priorities="Critical > Normal")

    assert warnings(node("n"), policy, of_class("a", {"cpu": "1"}, "Critical")) == [
        "quota default/a is about PriorityClass Critical, which is not there; did you mean critical?"
    ]
    assert warnings(node("n"), policy, of_class("a", {"cpu": "1"}, "critical")) == []
