"""The pods that a kubelet ends for a critical pod (TestGetPodsToPreempt, row 59 of the scenarios)."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.decide.kubelet import EvictablePod, Holding, Refusal, is_critical, make_room
from tests.builders import pod

CRITICAL = pod("critical", priority=2_000_000_000)
BEST_EFFORT = pod("best-effort")


def guaranteed(name: str, cpu: int) -> Pod:
    return pod(name, cpu=cpu, memory="1Gi", limits={"cpu": cpu, "memory": "1Gi"})


def room(lacking: Mapping[str, int], *pods: Pod, preemptor: Pod = CRITICAL) -> list[str] | None:
    holders = [EvictablePod(one, Holding.of(one).amounts) for one in pods]
    victims = make_room(preemptor, holders, lacking)
    return None if isinstance(victims, Refusal) else [victim.metadata.name for victim in victims]


@pytest.mark.upstream(59)
def test_burstable_pods_end_before_guaranteed_ones() -> None:
    assert room({"cpu": 2000}, guaranteed("g", 2), pod("b", cpu=3)) == ["b"]


def test_guaranteed_pods_end_only_for_what_the_others_cannot_give() -> None:
    assert room({"cpu": 3000}, guaranteed("g1", 1), guaranteed("g2", 2), pod("b", cpu=2)) == ["b", "g1"]


def test_besteffort_pods_end_where_places_are_lacking() -> None:
    assert room({"pods": 1}, pod("b", cpu=1), BEST_EFFORT, guaranteed("g", 1)) == ["best-effort"]


def test_besteffort_pods_stay_where_they_give_nothing() -> None:
    assert room({"cpu": 1000}, BEST_EFFORT, pod("b", cpu=1)) == ["b"]


@pytest.mark.upstream(59)
def test_few_pods_end_rather_than_many() -> None:
    assert room({"cpu": 3000}, pod("b1", cpu=1), pod("b2", cpu=2), pod("b3", cpu=3)) == ["b3"]


def test_the_smallest_sufficient_pod_ends() -> None:
    assert room({"cpu": 1000}, pod("b1", cpu=3), pod("b2", cpu=2, memory="2Gi"), pod("b3", cpu=2)) == ["b3"]


def test_resources_count_alike_however_large_their_numbers() -> None:
    lacking = {"cpu": 2000, "memory": 4 << 30}

    assert room(lacking, pod("b1", cpu=2), pod("b2", memory="3Gi"), pod("b3", cpu=2, memory="4Gi")) == ["b3"]


def test_no_pod_ends_when_all_candidates_together_free_too_little() -> None:
    assert room({"cpu": 3000}, pod("b", cpu=1), guaranteed("g", 1)) is None


def test_a_critical_pod_is_told_what_no_victim_can_give() -> None:
    holder = EvictablePod(pod("b", cpu=1), {"cpu": 1000, "pods": 1})

    refusal = make_room(CRITICAL, [holder], {"cpu": 3000, "memory": 5, "pods": 1})

    assert isinstance(refusal, Refusal)
    assert refusal.reason == "UnexpectedAdmissionError"
    assert refusal.message.endswith("to reclaim resources: [(res: cpu, q: 2000), (res: memory, q: 5), ]")


@pytest.mark.upstream(59)
@pytest.mark.parametrize(("priority", "ends"), [(2_000_000_001, None), (2_000_000_000, None), (1_999_999_999, ["b"])])
def test_critical_pods_end_only_for_more_important_ones(priority: int, ends: list[str] | None) -> None:
    assert room({"cpu": 1000}, pod("b", cpu=1, priority=priority)) == ends


def test_pods_are_critical_by_priority_or_because_a_kubelet_reads_them_from_a_file() -> None:
    def annotated(**annotations: str) -> Pod:
        plain = pod("a")
        named = {f"kubernetes.io/config.{name}": value for name, value in annotations.items()}
        return replace(plain, metadata=replace(plain.metadata, annotations=named))

    assert is_critical(CRITICAL)
    assert is_critical(annotated(mirror="0123"))
    assert is_critical(annotated(source="file"))
    assert not is_critical(annotated(source="api"))
    assert not is_critical(pod("a", priority=1_999_999_999))


@pytest.mark.parametrize("policy", ["NonPreemptible", "NonPreemptiblePreemptNever"])
def test_the_kubelet_never_ends_non_preemptible_pods(policy: str) -> None:
    """The spec or the annotation may state the policy."""
    there = pod("never", cpu=3, policy=policy)
    annotations = {"podium.dev/preemption-policy": policy}
    annotated = replace(pod("never", cpu=3), metadata=replace(there.metadata, annotations=annotations))

    for never in (there, annotated):
        assert room({"cpu": 2000}, never, pod("b", cpu=1), pod("c", cpu=1)) == ["b", "c"]
        assert room({"cpu": 2000}, never) is None
        holder = EvictablePod(never, Holding.of(never).amounts)
        assert make_room(CRITICAL, [holder], {"cpu": 2000}, honors_policy=False) == [never]
