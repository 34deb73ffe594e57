"""The number of pods of each ReplicaSet in the next step of a rollout."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.workloads import DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment
from podium.controllers.workloads.deployments import Size, limits, plan


def spec(replicas: int, *, recreates: bool = False, paused: bool = False, **rolling: Any) -> DeploymentSpec:
    strategy = DeploymentStrategy(
        type="Recreate" if recreates else "RollingUpdate",
        rolling_update=RollingUpdateDeployment(**rolling) if rolling else None,
    )
    return DeploymentSpec(replicas=replicas, strategy=strategy, paused=paused)


def step(spec: DeploymentSpec, new: Size | None, *old: Size, has_old_pods: bool = False) -> tuple[int | None, ...]:
    found = plan(spec, new, old, has_old_pods=has_old_pods)
    return found.new, *found.old


@pytest.mark.parametrize(
    ("replicas", "rolling", "expected"),
    [
        (10, {}, (3, 2)),
        (3, {}, (1, 0)),
        (10, {"max_surge": 2, "max_unavailable": "0%"}, (2, 0)),
        (10, {"max_surge": "0%", "max_unavailable": "5%"}, (0, 1)),
        (0, {}, (0, 1)),
    ],
)
def test_shares_of_surge_are_rounded_up_and_of_unavailability_down_and_one_step_is_possible(
    replicas: int, rolling: Any, expected: tuple[int, int]
) -> None:
    assert limits(spec(replicas, **rolling)) == expected


def test_the_first_replica_set_gets_all_pods_at_once() -> None:
    assert step(spec(10), None) == (10,)


def test_a_new_one_begins_with_the_surge() -> None:
    assert step(spec(10), None, Size(10, 10)) == (3, 10)
    assert step(spec(10, max_surge=0, max_unavailable=1), None, Size(10, 10)) == (0, 10)


def test_old_ones_shrink_by_what_may_be_missing_and_by_what_is_available_beyond_that() -> None:
    assert step(spec(10), Size(3, 0), Size(10, 10)) == (3, 8)
    assert step(spec(10), Size(3, 3), Size(8, 8)) == (5, 8)
    assert step(spec(10), Size(5, 3), Size(8, 8)) == (5, 5)


def test_pods_of_old_ones_that_are_not_available_go_first() -> None:
    assert step(spec(10), Size(3, 0), Size(4, 4), Size(6, 3)) == (3, 4, 4)


def test_the_oldest_shrinks_first() -> None:
    assert step(spec(10), Size(5, 5), Size(4, 4), Size(4, 4)) == (5, 0, 3)


def test_a_smaller_scale_takes_from_the_new_one() -> None:
    assert step(spec(2), Size(5, 5)) == (2,)


def test_recreate_waits_for_the_last_old_pod() -> None:
    recreate = spec(3, recreates=True)

    assert step(recreate, None, Size(3, 3)) == (None, 0)
    assert step(recreate, None, Size(0, 0), has_old_pods=True) == (None, 0)
    assert step(recreate, None, Size(0, 0)) == (3, 0)
    assert step(recreate, Size(0), Size(0, 0)) == (3, 0)


def test_a_paused_deployment_only_scales_what_has_pods() -> None:
    paused = spec(5, paused=True)

    assert step(paused, None) == (None,)
    assert step(paused, Size(3, 3)) == (5,)
    assert step(paused, None, Size(0), Size(3, 3)) == (None, 0, 5)
    assert step(paused, None, Size(0), Size(0)) == (None, 0, 5)
    assert step(paused, Size(0), Size(0)) == (5, 0)


def scaled(replicas: int, available: int, by: int) -> Size:
    """Return a ReplicaSet of a Deployment that had ``by`` replicas, with a surge of 3."""
    return Size(replicas, available, by, by + 3)


def test_a_rollout_that_is_scaled_scales_all_replica_sets_in_proportion() -> None:
    rolling: Any = {"max_surge": 3, "max_unavailable": 2}

    # Upstream's example: 8 old pods and 5 new ones, scaled from 10 to 30.
    assert step(spec(30, **rolling), scaled(5, 0, 10), scaled(8, 8, 10)) == (13, 20)
    assert step(spec(5, **rolling), scaled(5, 0, 10), scaled(8, 8, 10)) == (3, 5)
    assert step(spec(0, **rolling), scaled(5, 0, 10), scaled(8, 8, 10)) == (0, 0)
    assert step(spec(30, paused=True, **rolling), scaled(5, 0, 10), scaled(8, 8, 10)) == (13, 20)


def test_the_largest_replica_set_gets_what_rounding_leaves_and_of_equal_ones_the_newest_grows() -> None:
    rolling: Any = {"max_surge": 3, "max_unavailable": 2}

    assert step(spec(11, **rolling), scaled(2, 0, 10), scaled(3, 3, 10), scaled(8, 8, 10)) == (2, 3, 9)
    assert step(spec(11, **rolling), scaled(0, 0, 10), scaled(6, 6, 10), scaled(6, 6, 10)) == (0, 6, 8)
    assert step(spec(9, **rolling), scaled(0, 0, 10), scaled(6, 6, 10), scaled(6, 6, 10)) == (0, 6, 6)


def test_a_finished_rollout_that_is_scaled_removes_old_pods_first() -> None:
    done, old = Size(5, 5, 5, 7), Size(2, 2, 4, 5)

    assert step(spec(5), done, old) == (5, 0)


def test_a_recreating_deployment_is_not_scaled_in_proportion() -> None:
    assert step(spec(5, recreates=True), scaled(2, 2, 4), scaled(2, 2, 4)) == (2, 2)


shares = st.integers(0, 5) | st.sampled_from(["0%", "25%", "50%", "100%"])


@given(
    replicas=st.integers(0, 12),
    surge=shares,
    unavailable=shares,
    old=st.lists(st.integers(0, 12), max_size=3),
    getting_ready=st.lists(st.integers(0, 3), max_size=20),
)
def test_a_rollout_keeps_its_limits_and_comes_to_its_end_however_slowly_pods_get_ready(
    replicas: int, surge: Any, unavailable: Any, old: list[int], getting_ready: list[int]
) -> None:
    asked = spec(replicas, max_surge=surge, max_unavailable=unavailable)
    most, least = replicas + limits(asked)[0], replicas - limits(asked)[1]
    new, sizes = Size(0), [Size(size, size) for size in old]
    for more in [*getting_ready, *[12] * 40]:
        found = plan(asked, new, sizes, has_old_pods=False)
        was = [new, *sizes]
        # Those that are not available go first.
        new = Size(found.new or 0, min(new.available, found.new or 0))
        sizes = [Size(now, min(one.available, now)) for one, now in zip(sizes, found.old, strict=True)]
        assert total([new, *sizes]) <= max(most, total(was))
        assert available([new, *sizes]) >= min(least, available(was))
        new = Size(new.replicas, min(new.replicas, new.available + more))

    assert (new.replicas, [size.replicas for size in sizes]) == (replicas, [0] * len(old))


def total(sizes: list[Size]) -> int:
    return sum(size.replicas for size in sizes)


def available(sizes: list[Size]) -> int:
    return sum(size.available for size in sizes)
