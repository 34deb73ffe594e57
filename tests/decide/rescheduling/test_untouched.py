"""How an answer reports pods that are never moved."""

from __future__ import annotations

from podium.cluster.cluster import Cluster
from podium.decide.rescheduling.round_robin import MOST_REASONS, ExcludedPods, untouched_pods
from tests.builders import pending_in, pod

PODS = [pending_in(Cluster(), pod(f"p{number:02}")) for number in range(30)]


def test_reasons_are_counted_those_of_most_pods_first_then_by_their_words() -> None:
    reasons = {"p00": "young", "p01": "busy", "p02": "young", "p03": "alone"}
    found = untouched_pods(PODS, lambda pod: reasons.get(pod.name, ""))
    assert found == ExcludedPods(30, (("young", 2), ("alone", 1), ("busy", 1)))
    assert found.pods == 4


def test_a_pod_is_untouched_only_with_a_reason() -> None:
    assert untouched_pods(PODS, lambda pod: "") == ExcludedPods(of=30)
    assert untouched_pods((), lambda pod: "young") == ExcludedPods()


def test_reasons_are_limited_and_further_pods_counted() -> None:
    found = untouched_pods(PODS, lambda pod: f"it is {pod.name}")
    assert [why for why, _ in found.reasons] == [f"it is p{number:02}" for number in range(MOST_REASONS)]
    assert (found.others, found.pods) == (10, 30)
