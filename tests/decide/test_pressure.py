"""The pods that a node short of memory evicts (invariant B8)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.decide.kubelet import MemoryUse, eviction_message, is_critical, memory_ranking
from tests.builders import pod

pytestmark = pytest.mark.upstream(60)

GI = 1 << 30


def use(name: str, *, used: int, requested: int, priority: int = 0) -> MemoryUse:
    return MemoryUse(pod(name, priority=priority), used, requested)


def order(*uses: MemoryUse) -> list[str]:
    return [one.pod.metadata.name for one in memory_ranking(uses)]


@pytest.mark.upstream(60)
def test_a_pod_above_its_request_is_evicted_before_less_important_pods_below_theirs() -> None:
    modest = use("modest", used=GI, requested=GI, priority=0)
    greedy = use("greedy", used=GI + 1, requested=GI, priority=1000)

    assert order(modest, greedy) == ["greedy", "modest"]


@pytest.mark.upstream(60)
def test_the_least_important_of_these_pods_is_evicted_first() -> None:
    assert order(
        use("high", used=9, requested=0, priority=2000),
        use("low", used=2, requested=1, priority=-5),
        use("middle", used=5, requested=0, priority=10),
    ) == ["low", "middle", "high"]


@pytest.mark.upstream(60)
def test_the_pod_furthest_above_its_request_is_evicted_first_among_equals() -> None:
    assert order(
        use("much", used=10, requested=8), use("little", used=4, requested=1), use("none", used=2, requested=2)
    ) == ["little", "much", "none"]


def test_names_decide_between_equals() -> None:
    assert order(use("b", used=2, requested=1), use("a", used=3, requested=2)) == ["a", "b"]


@pytest.mark.upstream(60)
def test_critical_and_static_pods_never_go() -> None:
    plain = use("static", used=9, requested=0)
    annotated = replace(
        plain.pod, metadata=replace(plain.pod.metadata, annotations={"kubernetes.io/config.mirror": "x"})
    )

    assert order(use("critical", used=9, requested=0, priority=2_000_000_000), MemoryUse(annotated, 9, 0)) == []


uses = st.lists(
    st.builds(
        use,
        st.sampled_from("abcdefgh"),
        used=st.integers(0, 5),
        requested=st.integers(0, 5),
        priority=st.sampled_from([-1, 0, 10, 1_999_999_999, 2_000_000_000]),
    ),
    unique_by=lambda one: one.pod.key,
)


@given(found=uses, seed=st.randoms(use_true_random=False))
def test_the_ranking_depends_on_nothing_else(found: list[MemoryUse], seed: st.DataObject) -> None:
    ranking = memory_ranking(found)
    shuffled = list(found)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]

    assert memory_ranking(shuffled) == ranking
    assert {one.pod.key for one in ranking} == {one.pod.key for one in found if not is_critical(one.pod)}
    for first, second in pairwise(ranking):
        exceeds = (first.used > first.requested, second.used > second.requested)
        assert exceeds != (False, True)
        if exceeds[0] == exceeds[1]:
            assert first.pod.priority <= second.pod.priority
            if first.pod.priority == second.pod.priority:
                assert first.used - first.requested >= second.used - second.requested


def test_the_message_says_how_short_the_node_is_and_what_the_pod_uses_beyond_its_request() -> None:
    assert eviction_message(use("a", used=2 * GI, requested=GI), 100 << 20, 0) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 0. "
        "Container main was using 2Gi, request is 1Gi, has larger consumption of memory."
    )
    assert eviction_message(use("a", used=GI, requested=GI), 100 << 20, 5 << 20) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 5Mi."
    )


def test_by_percentage_the_one_goes_first_that_uses_most_of_what_it_requested() -> None:
    """The preemption design's order; a pod without a request is furthest beyond it."""
    uses = [
        use("half-more", used=6 * GI, requested=4 * GI),
        use("twice", used=2 * GI, requested=GI),
        use("best-effort", used=1, requested=0),
        use("more-of-it", used=2, requested=0),
        use("within", used=GI, requested=2 * GI),
    ]

    assert order(*uses) == ["half-more", "twice", "more-of-it", "best-effort", "within"]
    by_percentage = [one.pod.metadata.name for one in memory_ranking(uses, "PercentageOfRequest")]
    assert by_percentage == ["more-of-it", "best-effort", "twice", "half-more", "within"]


def test_by_percentage_too_priority_comes_first() -> None:
    uses = [use("high", used=9, requested=1, priority=5), use("low", used=3, requested=2, priority=1)]

    assert [one.pod.metadata.name for one in memory_ranking(uses, "PercentageOfRequest")] == ["low", "high"]
