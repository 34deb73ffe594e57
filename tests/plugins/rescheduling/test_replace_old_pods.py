"""ReplaceOldPods: pods that have run for too long are replaced, if configured."""

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.framework.rescheduling.policy import Picture
from tests.builders import DAY_ONE_NS, node, pod
from tests.plugins.rescheduling.pictures import first, gain, leaving, picture_of, policy_of

HOUR = 3_600
NOW = DAY_ONE_NS + 100 * HOUR * 10**9


def web(name: str, on: str, hours: int | None, **fields: Any) -> Pod:
    """Return a pod that is so many hours old."""
    return pod(name, on=on, owner="ReplicaSet/web", created=None if hours is None else (100 - hours) * HOUR, **fields)


def aged(*pods: Pod, **further: Any) -> Picture:
    return picture_of(node("a"), node("b"), *pods, now=NOW, **further)


def test_pods_beyond_the_age_are_to_be_replaced_the_oldest_first() -> None:
    picture = aged(web("1", "a", 30), web("2", "b", 50), web("3", "a", 24), web("4", "a", 2))
    policy = policy_of("ReplaceOldPods", maxAge="24h")
    assert policy.objective(picture) == 2
    assert leaving(policy.proposals(picture)) == [["2"], ["1"]]
    assert first(policy, picture).reason == "default/2 is 2d2h old; pods are to be no older than 24h"


def test_a_replacement_is_young_wherever_it_goes() -> None:
    picture = aged(web("1", "a", 30))
    assert gain(policy_of("ReplaceOldPods", maxAge="24h"), picture, {"1": "b"}) == 1


def test_as_time_passes_pods_grow_old() -> None:
    picture = aged(web("1", "a", 23))
    policy = policy_of("ReplaceOldPods", maxAge="24h")
    assert policy.objective(picture) == 0
    later = picture_of(node("a"), web("1", "a", 23), now=NOW + 2 * HOUR * 10**9)
    assert policy.objective(later) == 1


def test_fixed_terminating_and_ageless_pods_are_not_replaced() -> None:
    picture = aged(web("1", "a", 30), web("2", "a", None), web("3", "a", 30, terminating=True), fixed=["1"])
    policy = policy_of("ReplaceOldPods", maxAge="24h")
    assert policy.objective(picture) == 1
    assert list(policy.proposals(picture)) == []


@pytest.mark.parametrize("args", [{"maxAge": "0s"}, {"maxAge": "old"}, {"maxAge": {}}, {"maxAge": "1h", "of": 1}])
def test_an_invalid_age_is_rejected(args: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        policy_of("ReplaceOldPods", **args)
    assert "maxAge" in str(refused.value) or "of" in str(refused.value)
