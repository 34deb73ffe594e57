"""PrepareForMaintenance: nodes with announced maintenance are emptied ahead of time."""

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.pod import Pod
from podium.framework.rescheduling.policy import NodeSignals, Picture, Signals
from tests.builders import DAY_ONE_NS, node, pod
from tests.plugins.rescheduling.pictures import first, gain, leaving, names, picture_of, policy_of

MINUTE = 60 * 10**9


def web(name: str, on: str) -> Pod:
    return pod(name, on=on, cpu="1", owner="ReplicaSet/web")


def announced(**minutes: int) -> Signals:
    """Nodes that go down in so many minutes."""
    return Signals(
        nodes={name: NodeSignals(maintenance_ns=DAY_ONE_NS + after * MINUTE) for name, after in minutes.items()}
    )


def cluster_with(signals: Signals, **further: Any) -> Picture:
    return picture_of(
        node("a"), node("b"), node("c"), web("a1", "a"), web("a2", "a"), web("b1", "b"), signals=signals, **further
    )


def test_without_announced_maintenance_the_objective_is_zero() -> None:
    picture = cluster_with(Signals())
    policy = policy_of("PrepareForMaintenance")
    assert policy.objective(picture) == 0
    assert list(policy.proposals(picture)) == []


def test_from_the_lead_time_on_each_pod_there_is_in_the_wrong_place() -> None:
    assert policy_of("PrepareForMaintenance").objective(cluster_with(announced(a=61))) == 0
    assert policy_of("PrepareForMaintenance").objective(cluster_with(announced(a=60))) == 2


def test_the_nearer_the_time_the_more_a_pod_counts() -> None:
    half = cluster_with(announced(a=30))
    assert policy_of("PrepareForMaintenance").objective(half) == 3
    due = cluster_with(announced(a=-10))
    assert policy_of("PrepareForMaintenance").objective(due) == 4


def test_the_lead_time_is_what_is_given() -> None:
    picture = cluster_with(announced(a=119))
    assert policy_of("PrepareForMaintenance", leadTime="2h").objective(picture) > 2
    assert policy_of("PrepareForMaintenance", leadTime="90m").objective(picture) == 0


def test_an_announcement_from_long_ago_is_ignored() -> None:
    picture = cluster_with(announced(a=-61))
    assert policy_of("PrepareForMaintenance").objective(picture) == 0
    assert policy_of("PrepareForMaintenance", overdueAfter="2h").objective(picture) == 4


def test_pods_leave_one_by_one_from_the_node_that_goes_first() -> None:
    picture = cluster_with(announced(a=20, b=10))
    policy = policy_of("PrepareForMaintenance")
    assert leaving(policy.proposals(picture)) == [["b1"], ["a1"], ["a2"]]
    assert first(policy, picture).reason == "b is announced to go down at 2026-01-01T00:10:00Z"


def test_nodes_that_go_down_too_are_no_place_to_go() -> None:
    picture = cluster_with(announced(a=20, b=10))
    policy = policy_of("PrepareForMaintenance")
    relocation = first(policy, picture).relocations[0]
    assert relocation.targets is not None
    assert names(picture, relocation.targets) == {"c"}
    assert gain(policy, picture, {"a1": "c"}) > 1
    assert gain(policy, picture, {"a1": "b"}) < 0.5


def test_until_it_is_over_the_node_is_avoided() -> None:
    picture = cluster_with(announced(a=20))
    assert first(policy_of("PrepareForMaintenance", overdueAfter="10m"), picture).avoid_for_ns == 30 * MINUTE


def test_moving_any_pod_to_a_node_in_maintenance_worsens_the_objective() -> None:
    picture = cluster_with(announced(a=20))
    assert gain(policy_of("PrepareForMaintenance"), picture, {"b1": "a"}) < -1


def test_pods_that_stay_are_not_proposed_and_the_nodes_own_do_not_count() -> None:
    agent = pod("agent", on="a", owner="DaemonSet/agent")
    picture = picture_of(node("a"), node("b"), agent, web("a1", "a"), signals=announced(a=0), fixed=["a1"])
    policy = policy_of("PrepareForMaintenance")
    assert policy.objective(picture) == 2
    assert list(policy.proposals(picture)) == []


def test_an_announcement_for_a_missing_node_is_ignored() -> None:
    picture = cluster_with(announced(z=5))
    assert policy_of("PrepareForMaintenance").objective(picture) == 0


@pytest.mark.parametrize(
    "args",
    [{"leadTime": "0s"}, {"leadTime": "soon"}, {"leadTime": []}, {"overdueAfter": "-1m"}, {"lead": "1h"}],
)
def test_arguments_that_make_no_sense_are_refused_by_name(args: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        policy_of("PrepareForMaintenance", **args)
    assert next(iter(args)) in str(refused.value)
