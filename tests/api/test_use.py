"""Usage of pods and nodes from metrics.k8s.io."""

from typing import Any

import pytest

from podium.api.use import Use, node_use, pod_use, uses_of


def test_container_usage_is_summed_per_pod() -> None:
    containers = [{"usage": {"cpu": "150m", "memory": "1Mi"}}, {"usage": {"cpu": "1", "memory": "512Ki"}}]
    assert pod_use({"containers": containers}) == Use(1150, 1572864)


def test_a_node_uses_what_its_metrics_say() -> None:
    assert node_use({"usage": {"cpu": "1500000000n", "memory": "2Gi"}}) == Use(1500, 2 * 1024**3)


@pytest.mark.parametrize(
    "usage", [None, [], {"cpu": "much"}, {"cpu": "-1"}, {"cpu": True}, {"memory": {}}, {"cpu": float("nan")}]
)
def test_unreadable_usage_counts_as_unmeasured(usage: Any) -> None:
    assert node_use({"usage": usage}) is None
    assert pod_use({"containers": [{"usage": usage}]}) is None


@pytest.mark.parametrize("containers", [None, {}, [3], "x"])
def test_pods_without_a_list_of_containers_are_not_measured(containers: Any) -> None:
    assert pod_use({"containers": containers}) is None


USAGE = {"cpu": "1", "memory": "1Ki"}


def test_lists_are_read_by_key_and_name_without_what_cannot_be_read() -> None:
    pods = [
        {"metadata": {"name": "a", "namespace": "shop"}, "containers": [{"usage": USAGE}]},
        {"metadata": {"name": "b", "namespace": "shop"}, "containers": "x"},
        {"metadata": {"name": 3}, "containers": []},
        {"metadata": []},
        7,
    ]
    assert uses_of({"items": pods}, pod_use) == {"shop/a": Use(1000, 1024)}
    assert uses_of({"items": [{"metadata": {"name": "n1"}, "usage": USAGE}]}, node_use) == {"n1": Use(1000, 1024)}


@pytest.mark.parametrize("raw", [{}, {"items": None}, {"items": {"a": 1}}])
def test_a_response_that_is_not_a_list_reports_no_usage(raw: dict[str, Any]) -> None:
    assert uses_of(raw, pod_use) == {}
