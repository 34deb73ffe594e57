"""The order of importance of the pods on a node."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.cluster.ranking import EqualPriorityOrder, PreemptionRanking, natural
from tests.builders import cluster_of, node, pod
from tests.fuzzing import usual


def ranked(cluster: Cluster, order: EqualPriorityOrder = "StartTime", name: str = "n") -> list[str]:
    ranking = PreemptionRanking(cluster, order)
    ranking.refresh()
    return names(cluster, ranking, name)


def names(cluster: Cluster, ranking: PreemptionRanking, name: str = "n") -> list[str]:
    slots = ranking.slots[cluster.nodes.row_of[name]].tolist()
    return [cluster.pods.record(slot).name for slot in slots if slot >= 0]


def in_matrix(ranking: PreemptionRanking, row: int) -> list[tuple[int, int]]:
    slots, priorities = ranking.slots[row].tolist(), ranking.priorities[row].tolist()
    return [(slot, priority) for slot, priority in zip(slots, priorities, strict=True) if slot >= 0]


def with_pods(*pods: Pod) -> Cluster:
    return cluster_of(node("n"), *pods)


def test_priority_comes_first_then_the_earlier_start_then_the_name() -> None:
    cluster = with_pods(
        pod("late", on="n", started=9),
        pod("never", on="n"),
        pod("b", on="n", started=1),
        pod("a", on="n", started=1),
        pod("high", on="n", priority=1, started=99),
        pod("low", on="n", priority=-1, started=0),
    )

    assert ranked(cluster) == ["high", "a", "b", "late", "never", "low"]


def test_by_qos_guaranteed_comes_before_burstable_before_best_effort() -> None:
    guaranteed = pod("guaranteed", on="n", cpu=1, memory="1Gi", limits={"cpu": 1, "memory": "1Gi"}, started=9)
    others = [pod("best-effort", on="n", started=0), pod("burstable", on="n", cpu=1, started=5)]
    cluster = with_pods(guaranteed, *others, pod("high", on="n", priority=1, started=10))

    assert ranked(cluster, "QoS") == ["high", "guaranteed", "burstable", "best-effort"]
    assert ranked(cluster) == ["high", "best-effort", "burstable", "guaranteed"]


def test_numbers_in_names_count_as_numbers() -> None:
    listed = ["web-10", "web-2", "web-2-b", "web-2-a10", "web", "web-02", "10", "9"]

    assert sorted(listed, key=natural) == ["9", "10", "web", "web-2", "web-02", "web-2-a10", "web-2-b", "web-10"]


def test_pods_that_no_preemption_removes_are_not_ranked() -> None:
    cluster = with_pods(pod("kept", on="n", policy="NonPreemptible"), pod("q", on="n", policy="Never"))

    assert ranked(cluster) == ["q"]


def test_unused_ranks_are_above_every_priority() -> None:
    """No pod has a lower priority there."""
    cluster = with_pods(pod("q", on="n", priority=2**31 - 1))
    ranking = PreemptionRanking(cluster)
    ranking.refresh()

    assert (ranking.priorities[0][1:] > 2**31 - 1).all()


def test_only_rows_that_changed_are_ranked_again_and_there_may_be_more_rows_and_pods_than_before() -> None:
    cluster = with_pods(pod("q0", on="n"))
    ranking = PreemptionRanking(cluster)
    ranking.refresh()

    for number in range(1, 30):
        cluster.add_pod(cluster.read(pod(f"q{number}", on="n")))
        cluster.put(node(f"n{number}"))
        cluster.add_pod(cluster.read(pod(f"r{number}", on=f"n{number}")))
    ranking.refresh()

    assert names(cluster, ranking) == [f"q{number}" for number in range(30)]
    assert [names(cluster, ranking, f"n{number}") for number in range(1, 30)] == [[f"r{n}"] for n in range(1, 30)]


PODS = st.builds(
    pod,
    st.sampled_from([*(f"web-{number}" for number in (1, 2, 10, 20)), "web", "db-1-a", "db-10-a", "db-2-a"]),
    namespace=st.sampled_from(["default", "shop"]),
    on=st.sampled_from(["n1", "n2", "n3"]),
    priority=st.integers(-1, 1),
    started=st.sampled_from([None, 1, 2]),
    cpu=st.sampled_from([None, 1]),
    policy=st.sampled_from([None, None, None, "NonPreemptible"]),
)


@settings(max_examples=usual(80))
@given(st.lists(PODS, max_size=12, unique_by=lambda one: one.metadata.uid), st.sampled_from(["StartTime", "QoS"]))
def test_ranking_all_nodes_at_once_comes_to_ranking_each(pods: list[Pod], order: EqualPriorityOrder) -> None:
    cluster = cluster_of(node("n1"), node("n2"), *pods)
    ranking = PreemptionRanking(cluster, order)
    ranking.refresh()

    for row in cluster.nodes.row_of.values():
        expected = sorted((one for one in cluster.pods_on(row) if one.is_preemptible), key=ranking.key)

        assert in_matrix(ranking, row) == [(one.slot, one.priority) for one in expected]
        for least in range(-1, 3):
            lower = [one for one in expected if one.priority < least]
            assert ranking.below(row, least) == ranking.below(row, least) == lower
        cluster.nodes.changes.touch(row)
        ranking.refresh()
        assert in_matrix(ranking, row) == [(one.slot, one.priority) for one in expected]
        assert ranking.below(row, 2) == expected


@settings(max_examples=usual(80))
@given(st.lists(PODS, max_size=24, unique_by=lambda one: one.metadata.uid), st.sampled_from(["StartTime", "QoS"]))
def test_many_changed_rows_are_ranked_together_as_each_is_by_itself(pods: list[Pod], order: EqualPriorityOrder) -> None:
    """Twenty nodes that stay as they are, and those of the pods."""
    others = [node(f"o{number}") for number in range(20)]
    cluster = cluster_of(*others, *(pod(f"q{number}", on=f"o{number}") for number in range(20)))
    ranking = PreemptionRanking(cluster, order)
    ranking.refresh()

    cluster.put(node("n1"))
    cluster.put(node("n2"))
    for one in pods:
        cluster.add_pod(cluster.read(one))
    for row in range(20):
        cluster.nodes.changes.touch(row)
    ranking.refresh()

    for row in cluster.nodes.row_of.values():
        expected = sorted((one for one in cluster.pods_on(row) if one.is_preemptible), key=ranking.key)
        assert in_matrix(ranking, row) == [(one.slot, one.priority) for one in expected]


def test_numbers_beyond_64_bits_in_names_are_compared() -> None:
    large = [f"q-{number}" for number in (10**30, 10**30 + 1, 7, 10**18, 10**17)]
    cluster = with_pods(*(pod(name, on="n") for name in large), pod("q-", on="n"))

    assert ranked(cluster) == ["q-", "q-7", *(f"q-{number}" for number in (10**17, 10**18, 10**30, 10**30 + 1))]


def test_the_pods_on_a_row_are_its_newest_readings() -> None:
    cluster = with_pods(pod("a", on="n"), pod("b", on="n"))
    ranking, row = PreemptionRanking(cluster), cluster.nodes.row_of["n"]
    assert [one.name for one in ranking.below(row, 1)] == ["a", "b"]

    newer = cluster.read(pod("a", on="n"))
    cluster.replace_pod(newer)
    cluster.remove_pod(cluster.pods_on(row)[1].uid)

    (left,) = ranking.below(row, 1)
    assert left is newer
