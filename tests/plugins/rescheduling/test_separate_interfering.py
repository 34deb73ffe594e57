"""SeparateInterfering: if pods slow one another down, one of them moves."""

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.framework.rescheduling.policy import Picture, PodSignals, Signals
from tests.builders import node, pod
from tests.plugins.rescheduling.pictures import first, gain, leaving, picture_of, policy_of


def web(name: str, on: str, cpu: str | None = "500m", **fields: Any) -> Pod:
    return pod(name, on=on, cpu=cpu, owner="ReplicaSet/web", **fields)


def using(milli: int, pressure: float | None = None) -> PodSignals:
    return PodSignals(cpu_used_milli=milli, cpu_pressure=pressure)


def crowded(*pods: Pod, cpu: str = "4", fixed: tuple[str, ...] = (), **report: PodSignals) -> Picture:
    """Return three nodes of 4 cpu; ``report`` are pods by name."""
    signals = Signals({f"default/{name}": signal for name, signal in report.items()})
    return picture_of(*(node(name, cpu=cpu) for name in "abc"), *pods, signals=signals, fixed=fixed)


def test_without_measurements_no_pod_counts_as_slowed_down() -> None:
    picture = crowded(*(web(f"a{i}", "a") for i in range(10)))
    policy = policy_of("SeparateInterfering")
    assert policy.objective(picture) == 0
    assert list(policy.proposals(picture)) == []


def test_no_pod_is_moved_from_a_node_with_enough_cpu() -> None:
    picture = crowded(web("hog", "a"), web("a1", "a"), hog=using(3000), a1=using(400))
    assert policy_of("SeparateInterfering").objective(picture) == 0


def test_pods_that_get_what_they_request_are_not_slowed_down() -> None:
    picture = crowded(web("hog", "a"), web("a1", "a", "1"), hog=using(4000), a1=using(1000))
    assert policy_of("SeparateInterfering").objective(picture) == 1


def test_the_aggressor_leaves_a_crowded_node_before_its_victims() -> None:
    picture = crowded(
        web("hog", "a"), web("a1", "a"), web("a2", "a"),
        hog=using(2800, 0.3), a1=using(600, 0.25), a2=using(600, 0.25),
    )  # fmt: skip
    policy = policy_of("SeparateInterfering")
    assert policy.objective(picture) == 3
    assert leaving(policy.proposals(picture)) == [["hog"], ["a1"], ["a2"]]
    reasons = [proposal.reason for proposal in policy.proposals(picture)]
    assert reasons[0] == "the pods on a want 5.6 of its 4 cpu; default/hog wants 4 and requests 0.5"
    assert reasons[1] == "the pods on a want 5.6 of its 4 cpu; default/a1 is slowed down by others there"


def test_the_aggressors_leaving_helps_all_that_of_a_victim_itself() -> None:
    picture = crowded(
        web("hog", "a"), web("a1", "a"), web("a2", "a"),
        hog=using(2800, 0.3), a1=using(600, 0.25), a2=using(600, 0.25),
    )  # fmt: skip
    policy = policy_of("SeparateInterfering")
    assert gain(policy, picture, {"hog": "b"}) > 2
    assert gain(policy, picture, {"a1": "b"}) == 1


def test_an_aggressor_takes_its_appetite_along() -> None:
    picture = crowded(
        web("hog", "a"), web("a1", "a"), *(web(f"b{i}", "b") for i in range(3)),
        hog=using(3800, 0.2), a1=using(800), b0=using(900), b1=using(900), b2=using(900),
    )  # fmt: skip
    assert gain(policy_of("SeparateInterfering"), picture, {"hog": "b"}) < 0


def test_victims_move_when_the_aggressor_may_not() -> None:
    picture = crowded(
        web("hog", "a"), web("a1", "a"), hog=using(3800, 0.2), a1=using(600, 0.25), fixed=("hog",)
    )  # fmt: skip
    assert leaving(policy_of("SeparateInterfering").proposals(picture)) == [["a1"]]


def test_once_one_has_left_no_more_of_the_node_is_proposed() -> None:
    picture = crowded(web("hog", "a"), web("a1", "a"), hog=using(3800, 0.2), a1=using(800))
    policy = policy_of("SeparateInterfering")
    proposals = iter(policy.proposals(picture))
    hog = next(proposals).relocations[0].pod
    picture.cluster.remove_pod(hog.uid)
    assert list(proposals) == []


def test_the_worst_node_comes_first() -> None:
    pods = [web("a1", "a"), web("a2", "a"), *(web(f"b{i}", "b") for i in range(4))]
    picture = crowded(
        *pods, a1=using(2000), a2=using(2000), b0=using(1000), b1=using(1000), b2=using(1000), b3=using(1000)
    )
    assert leaving(policy_of("SeparateInterfering").proposals(picture))[0] == ["b0"]


def test_moved_pods_prefer_the_node_with_the_most_spare_cpu() -> None:
    picture = crowded(
        web("hog", "a"), web("a1", "a"), web("b1", "b"), hog=using(3800), a1=using(800), b1=using(700)
    )  # fmt: skip
    preferred = first(policy_of("SeparateInterfering"), picture).relocations[0].preferred
    assert preferred is not None
    assert preferred.tolist() == [-600, 3300, 4000]


@pytest.mark.parametrize("pressure", [-1.0, 0.0, 1.0, 5.0, float("inf")])
def test_pressure_that_is_no_share_is_believed_no_further_than_it_makes_sense(pressure: float) -> None:
    picture = crowded(web("hog", "a"), hog=using(1000, pressure))
    assert 0 <= policy_of("SeparateInterfering").objective(picture) <= 1


def test_a_node_that_offers_no_cpu_has_none_to_share() -> None:
    picture = crowded(web("hog", "a"), cpu="0", hog=using(1000))
    assert policy_of("SeparateInterfering").objective(picture) == 1


@pytest.mark.parametrize("args", [{"utilization": 0}, {"pressure": 2}, {"aggressorRatio": 0.5}, {"pressures": 0.1}])
def test_arguments_that_make_no_sense_are_refused_by_name(args: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        policy_of("SeparateInterfering", **args)
    assert next(iter(args)) in str(refused.value)
