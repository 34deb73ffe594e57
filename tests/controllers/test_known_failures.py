"""The pods for which a known failure holds; tests/sim/test_known_failures.py compares each with an attempt."""

from msgspec.structs import replace

from podium.api.pod import Pod, PodResourceClaim
from podium.controllers.scheduling import known_failures
from podium.controllers.scheduling.known_failures import KnownFailure, KnownFailures
from podium.controllers.scheduling.scheduler import Scheduler
from tests.builders import cluster_of, configuration, node, pod
from tests.controllers.driving import nominated

FAILURE = KnownFailure(("NodeResourcesFit",), "0/1 nodes are available")
A, B = pod("a"), pod("b")


def using_a_gpu(one: Pod) -> Pod:
    """Return the pod with a resource claim that is made for it."""
    claims = (PodResourceClaim(name="gpu", resource_claim_template_name="gpu"),)
    return replace(one, spec=replace(one.spec, resource_claims=claims))


def is_told(of: Pod, to: Pod, seconds: int = 0) -> bool:
    """Return whether another pod shares the failed attempt of a pod, ``seconds`` later."""
    cluster = cluster_of(node("n1"))
    failures = KnownFailures(Scheduler().runners)
    first, second = cluster.read(of), cluster.read(to)
    failures.keep(first, FAILURE, 0)
    return failures.find(second, seconds) is FAILURE


def test_a_failure_is_shared_by_pods_of_its_class_at_the_same_instant() -> None:
    assert is_told(A, B)
    assert not is_told(A, B, seconds=1)
    assert not is_told(A, pod("b", cpu=3))
    assert not is_told(A, pod("b", priority=1))


def test_a_nominated_pod_neither_gives_nor_receives_cached_outcomes() -> None:
    assert not is_told(nominated(A, "n1"), B)
    assert not is_told(A, nominated(B, "n1"))


def test_a_pod_with_resource_claims_neither_gives_nor_receives_cached_outcomes() -> None:
    assert not is_told(using_a_gpu(A), using_a_gpu(B))


def test_taints_alone_explain_a_rejection_only_if_no_other_filter_comes_before_them() -> None:
    def place_of_taints(*plugins: str) -> int:
        (runner,) = Scheduler(configuration(only=plugins)).runners.values()
        return known_failures._place_of_taints(runner)

    assert place_of_taints("NodeUnschedulable", "NodeName", "TaintToleration", "NodeResourcesFit") == 3
    assert place_of_taints("NodeUnschedulable", "NodeResourcesFit", "TaintToleration") == -1
    assert place_of_taints("NodeUnschedulable", "NodeResourcesFit") == -1
