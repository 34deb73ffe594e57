"""The evictions of the descheduler's rules: its documentation's examples and the limits of its rules."""

from __future__ import annotations

from tools.rescheduling_study.descheduler_rules import (
    LoadedNode,
    RunningPod,
    high_node_utilization,
    low_node_utilization,
)

LOW = {"cpu": 20.0, "memory": 20.0, "pods": 20.0}
HIGH = {"cpu": 50.0, "memory": 50.0, "pods": 50.0}


def node(name: str, cpus: tuple[int, ...], *, is_schedulable: bool = True, **pods: int) -> LoadedNode:
    """Return a node with 10 cpus and room for 20 pods; its pods ask for so many cpus each, of priority 0."""
    running = [
        RunningPod(f"{name}-{number}", f"{name}-{number}", {"cpu": 1000.0 * cpu}, 0, "Burstable", is_removable=True)
        for number, cpu in enumerate(cpus)
    ]
    return LoadedNode(name, {"cpu": 10_000.0, "memory": 1e9, "pods": 20.0}, running, is_schedulable)


def with_pods(name: str, *pods: RunningPod) -> LoadedNode:
    return LoadedNode(name, {"cpu": 10_000.0, "memory": 1e9, "pods": 20.0}, pods)


def keys(pods: list[RunningPod]) -> list[str]:
    return [pod.key for pod in pods]


def test_over_used_nodes_lose_pods_until_they_are_at_the_target() -> None:
    assert keys(low_node_utilization([node("a", (2, 2, 2, 2)), node("b", ())], LOW, HIGH)) == ["a-0", "a-1"]


def test_nothing_is_evicted_without_an_under_used_and_an_over_used_node() -> None:
    assert low_node_utilization([node("a", (2, 2, 2, 2)), node("b", (3,))], LOW, HIGH) == []
    assert low_node_utilization([node("a", (2, 2)), node("b", ())], LOW, HIGH) == []
    assert low_node_utilization([node("a", (1,)), node("b", ())], LOW, HIGH) == []


def test_a_cordoned_node_is_not_underused() -> None:
    assert low_node_utilization([node("a", (2, 2, 2, 2)), node("b", (), is_schedulable=False)], LOW, HIGH) == []


def test_low_node_utilization_stops_at_the_target_without_checking_fit() -> None:
    assert keys(low_node_utilization([node("a", (3, 3, 3)), node("b", (2,))], LOW, HIGH)) == ["a-0"]
    # The rule does not check whether the second pod fits where one cpu is left.
    assert keys(low_node_utilization([node("a", (2, 4, 4)), node("b", (2,))], LOW, HIGH)) == ["a-0", "a-1"]


def test_the_least_important_pods_go_first_then_those_of_the_lowest_class_of_service() -> None:
    def pod(name: str, priority: int, qos: str, *, is_removable: bool = True) -> RunningPod:
        return RunningPod(name, name, {"cpu": 2000.0}, priority, qos, is_removable)

    crowded = with_pods(
        "a",
        pod("high", 9, "BestEffort"),
        pod("guaranteed", 0, "Guaranteed"),
        pod("stays", 0, "BestEffort", is_removable=False),
        pod("burstable", 0, "Burstable"),
    )

    assert keys(low_node_utilization([crowded, node("b", ())], LOW, HIGH)) == ["burstable", "guaranteed"]


def test_the_pods_of_hardly_used_nodes_go_while_others_have_any_room() -> None:
    nodes = [node("a", (1,)), node("b", (2,)), node("c", (5,))]

    assert keys(high_node_utilization(nodes, LOW)) == ["a-0", "b-0"]


def test_no_pod_moves_when_all_nodes_or_none_are_underused() -> None:
    assert high_node_utilization([node("a", (1,)), node("b", (2,))], LOW) == []
    assert high_node_utilization([node("a", (3,)), node("b", (4,))], LOW) == []


def test_marks_that_are_not_given_exclude_no_node() -> None:
    nodes = [node("a", (1, 1, 0, 0, 0, 0)), node("b", (4,))]

    assert high_node_utilization(nodes, LOW) == []
    assert len(high_node_utilization(nodes, {"cpu": 20.0})) == 6
