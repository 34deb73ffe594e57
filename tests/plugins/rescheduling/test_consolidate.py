"""Consolidate: nearly unused nodes are freed, and room is made that no single node has."""

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import decode
from podium.api.meta import Kubernetes
from podium.api.pod import Pod
from podium.cluster.pods import PodRecord
from podium.framework.rescheduling.policy import MonthlyCost, Picture, Policy, PricedPolicy
from tests.builders import node, pod, term
from tests.devices import allocated, claim, device, device_class, devices_of, request, using
from tests.plugins.rescheduling.pictures import (
    first,
    gain,
    leaving,
    names,
    picture_of,
    policy_of,
    replace_pods,
    scratch_of,
)
from tests.store.objects import Raw
from tests.store.objects import node as raw_node
from tests.store.objects import pod as raw_pod

GPU = "nvidia.com/gpu"


def web(name: str, on: str, cpu: str = "1", **fields: Any) -> Pod:
    return pod(name, on=on, cpu=cpu, owner="ReplicaSet/web", **fields)


def gpu_node(name: str, gpus: int = 8) -> Any:
    return node(name, nvidia_com__gpu=gpus)


def trainer(name: str, on: str, gpus: int, **fields: Any) -> Pod:
    return pod(name, on=on, nvidia_com__gpu=gpus, owner="ReplicaSet/trainer", **fields)


def freeing(picture: Picture, **args: Any) -> Policy:
    return policy_of("Consolidate", forWaitingPods=False, **args)


# Freeing nodes


def test_a_cluster_whose_nodes_are_full_or_empty_is_left_as_it_is() -> None:
    picture = picture_of(node("a", cpu="2"), node("b"), web("1", "a"), web("2", "a"))
    assert list(freeing(picture).proposals(picture)) == []
    empty = picture_of(node("a"), node("b"))
    assert freeing(empty).objective(empty) == 0


def test_all_nodes_in_use_count_the_same_and_empty_ones_nothing() -> None:
    picture = picture_of(node("a", cpu="2"), node("b"), node("c"), web("1", "a"), web("2", "a"), web("3", "b"))
    policy = freeing(picture, nodeWorth=3)
    assert policy.objective(picture) == 2 * 3
    assert gain(policy, picture, {"3": "c"}) == 0


def priced(name: str, price: str = "", kind: str = "") -> Any:
    labels = {"podium.dev/price": price, "node.kubernetes.io/instance-type": kind}
    return node(name, labels={key: value for key, value in labels.items() if value})


def test_a_node_counts_by_its_price_and_without_one_as_the_mean() -> None:
    nodes = priced("a", "1"), priced("b", kind="large"), priced("c", "free"), priced("d", "2", "large"), node("e")
    picture = picture_of(*nodes, *(web(name, name) for name in "abc"))
    policy = freeing(picture, prices={"large": 3})

    assert policy.objective(picture) == pytest.approx(2 * (1 / 2 + 3 / 2 + 1))
    assert isinstance(policy, PricedPolicy)
    assert policy.monthly_cost(picture) == MonthlyCost(730 * (1 + 3), unpriced=1)
    assert gain(policy, picture, {"b": "a"}) == pytest.approx(2 * 3 / 2)


def test_without_any_price_nodes_cost_no_money() -> None:
    picture = picture_of(node("a"), priced("b", "-1"), web("1", "a"))
    policy = freeing(picture)
    assert isinstance(policy, PricedPolicy)
    assert policy.monthly_cost(picture) is None
    assert policy.objective(picture) == 2


def test_of_nodes_with_as_many_pods_the_dearer_one_is_freed_first() -> None:
    picture = picture_of(priced("a", "1"), priced("b", "5"), priced("c", "1"), *(web(name, name) for name in "abc"))
    proposed = next(iter(freeing(picture, maxNodes=1).proposals(picture)))
    assert [relocation.pod.name for relocation in proposed.relocations] == ["b"]


def test_filling_a_node_up_and_emptying_one_in_part_gain_nothing() -> None:
    hardly, rather = [web(f"a{i}", "a") for i in range(3)], [web(f"b{i}", "b") for i in range(5)]
    picture = picture_of(node("a"), node("b"), *hardly, *rather)
    policy = freeing(picture)
    assert gain(policy, picture, {"b0": "a", "b1": "a"}) == 0
    assert gain(policy, picture, {"a0": "b", "a1": "b"}) == 0
    assert gain(policy, picture, {"a0": "b", "a1": "b", "a2": "b"}) == 2


def test_a_hardly_used_node_is_to_be_freed_as_a_whole() -> None:
    picture = picture_of(
        node("a"), node("b"), web("1", "a"), web("2", "a", "500m"), *(web(f"b{i}", "b") for i in range(6))
    )
    policy = freeing(picture)
    proposal = first(policy, picture)
    assert [relocation.pod.name for relocation in proposal.relocations] == ["1", "2"]
    assert proposal.reason == "19% of a is requested; without its 2 pods it is free"
    assert gain(policy, picture, {"1": "b", "2": "b"}) == policy.objective(picture) / 2


def test_pods_go_where_others_are_and_best_where_most_is_requested() -> None:
    picture = picture_of(node("a"), node("b"), node("c"), node("d"), web("1", "a"), web("2", "b"), web("3", "c", "6"))
    relocation = first(freeing(picture), picture).relocations[0]
    assert relocation.targets is not None
    assert relocation.preferred is not None
    assert names(picture, relocation.targets) == {"b", "c"}
    rows = picture.cluster.nodes.row_of
    assert relocation.preferred[rows["c"]] > relocation.preferred[rows["b"]]


def test_the_node_with_the_fewest_pods_comes_first_then_the_least_used_then_by_name() -> None:
    picture = picture_of(
        *(node(name) for name in "abcd"),
        web("a1", "a"),
        web("a2", "a"),
        web("b1", "b", "2"),
        web("c1", "c"),
        web("d1", "d"),
    )
    assert leaving(freeing(picture).proposals(picture)) == [["c1"], ["d1"], ["b1"], ["a1", "a2"]]


def test_two_nodes_whose_pods_come_together_count_less_whichever_way() -> None:
    picture = picture_of(node("a"), node("b"), web("1", "a"), web("2", "b"))
    policy = freeing(picture)
    assert gain(policy, picture, {"1": "b"}) > 1
    assert gain(policy, picture, {"2": "a"}) > 1


def test_moving_pods_to_an_empty_node_gains_nothing() -> None:
    picture = picture_of(node("a"), node("b"), web("1", "a"), web("2", "a"))
    policy = freeing(picture)
    assert gain(policy, picture, {"1": "b", "2": "b"}) == 0
    assert gain(policy, picture, {"1": "b"}) < 0


def test_a_node_with_a_pod_that_stays_is_left_alone() -> None:
    picture = picture_of(node("a"), node("b"), web("1", "a"), web("2", "a"), web("3", "b"), fixed=["2", "3"])
    assert leaving(freeing(picture).proposals(picture)) == []


def test_pods_of_daemon_sets_neither_move_nor_keep_a_node_in_use() -> None:
    agent = pod("agent", on="a", cpu="100m", owner="DaemonSet/agent")
    picture = picture_of(node("a"), node("b"), agent, web("1", "a"), web("2", "b", "6"))
    assert leaving(freeing(picture).proposals(picture)) == [["1"]]
    lone = picture_of(node("a"), node("b"), agent)
    assert freeing(lone).objective(lone) == 0


def test_pods_that_are_on_their_way_keep_no_node_in_use() -> None:
    picture = picture_of(node("a"), node("b"), web("1", "a", terminating=True))
    assert freeing(picture).objective(picture) == 0


def test_nodes_emptied_by_other_clients_are_ignored() -> None:
    picture = picture_of(node("a"), node("b"), web("1", "a"), web("2", "b", "6"), closed=["a"])
    assert gain(freeing(picture), picture, {"1": "b"}) == 0
    assert list(freeing(picture).proposals(picture)) == []


def test_the_scarcest_of_what_a_node_offers_decides_whether_it_is_hardly_used() -> None:
    picture = picture_of(gpu_node("a"), gpu_node("b"), trainer("1", "a", 7), trainer("2", "b", 1))
    assert leaving(freeing(picture).proposals(picture)) == [["2"]]


def test_a_threshold_of_zero_leaves_nodes_alone() -> None:
    picture = picture_of(node("a"), node("b"), web("1", "a"), web("2", "b"))
    policy = freeing(picture, utilizationThreshold=0)
    assert policy.objective(picture) == 0
    assert list(policy.proposals(picture)) == []


# Room for pods that wait


def room(picture: Picture, **args: Any) -> Policy:
    return policy_of("Consolidate", utilizationThreshold=0, **args)


def test_consolidation_moves_the_fewest_pods_that_block_a_large_pod() -> None:
    picture = picture_of(
        *(gpu_node(name) for name in "abc"),
        *(trainer(f"a{i}", "a", 1) for i in range(3)),
        trainer("b1", "b", 2),
        trainer("c1", "c", 1),
        trainer("c2", "c", 1),
        trainer("big", "", 8),
    )
    policy = room(picture)
    assert policy.objective(picture) == 4
    assert leaving(policy.proposals(picture)) == [["b1"], ["c1", "c2"], ["a0", "a1", "a2"]]
    reason = first(policy, picture).reason
    assert reason == (
        f"pod default/big could run on b, where a pod that can go elsewhere would leave what it lacks: 2 {GPU}"
    )
    assert gain(policy, picture, {"b1": "a"}) == 4
    # The room of another is no room.
    assert gain(policy, picture, {"c1": "b"}) == 0


def test_only_as_many_pods_leave_as_are_needed_and_the_least_important_ones() -> None:
    picture = picture_of(
        gpu_node("a"),
        gpu_node("b"),
        trainer("a1", "a", 2, priority=10),
        trainer("a2", "a", 2),
        trainer("a3", "a", 1),
        trainer("b1", "b", 6),
        trainer("big", "", 5),
    )
    assert leaving(room(picture).proposals(picture))[0] == ["a2"]


def test_pods_that_stay_are_worked_around() -> None:
    picture = picture_of(
        gpu_node("a"),
        gpu_node("b"),
        trainer("a1", "a", 2),
        trainer("a2", "a", 2),
        trainer("b1", "b", 6),
        trainer("big", "", 6),
        fixed=["a2", "b1"],
    )
    assert leaving(room(picture).proposals(picture)) == [["a1"]]


def test_moved_pods_avoid_room_needed_by_pending_pods() -> None:
    picture = picture_of(
        gpu_node("a"),
        gpu_node("b"),
        gpu_node("c"),
        trainer("b1", "b", 2),
        trainer("c1", "c", 3),
        trainer("big-1", "", 8),
        trainer("big-2", "", 8),
    )
    policy = room(picture)
    assert policy.objective(picture) == 4
    proposal = first(policy, picture)
    relocation = proposal.relocations[0]
    assert relocation.targets is not None
    assert relocation.preferred is not None
    assert names(picture, relocation.targets) == {"c"}
    assert proposal.reason.startswith("pod default/big-1 and 1 like it could run on b")


def test_pods_that_have_room_want_none() -> None:
    picture = picture_of(gpu_node("a"), gpu_node("b"), trainer("b1", "b", 2), trainer("big", "", 8))
    assert room(picture).objective(picture) == 0
    assert list(room(picture).proposals(picture)) == []


def test_room_assigned_to_one_pending_pod_is_not_offered_to_the_next() -> None:
    picture = picture_of(gpu_node("a"), trainer("large", "", 8, priority=1), trainer("small", "", 4))
    assert room(picture).objective(picture) == 4
    both = picture_of(gpu_node("a"), trainer("large", "", 4, priority=1), trainer("small", "", 3))
    assert room(both).objective(both) == 0


def test_a_pod_too_large_for_every_node_moves_no_pod() -> None:
    picture = picture_of(gpu_node("a"), trainer("a1", "a", 1), trainer("huge", "", 16))
    assert list(room(picture).proposals(picture)) == []


def test_only_nodes_that_the_waiting_pod_may_be_on_are_looked_into() -> None:
    tainted = node("a", nvidia_com__gpu=8, taints=["gpu=reserved:NoSchedule"])
    elsewhere = node("b", nvidia_com__gpu=8, labels={"pool": "other"})
    big = trainer("big", "", 8, node_selector={"pool": "mine"})
    mine = node("c", nvidia_com__gpu=8, labels={"pool": "mine"})
    picture = picture_of(
        tainted, elsewhere, mine, trainer("a1", "a", 1), trainer("b1", "b", 1), trainer("c1", "c", 1), big
    )
    assert leaving(room(picture).proposals(picture)) == [["c1"]]


def test_a_nominated_pod_has_its_room_made_already() -> None:
    picture = picture_of(gpu_node("a"), trainer("a1", "a", 1), trainer("big", "", 8, nominated="a"))
    assert room(picture).objective(picture) == 0


def test_a_pod_that_wants_a_node_to_itself_has_the_others_leave() -> None:
    alone = pod("alone", cpu="1", labels={"app": "alone"}, apart=[term("app in (web)")])
    labels = {"app": "web"}
    picture = picture_of(
        node("a", zone="1"),
        node("b", zone="1"),
        web("a1", "a", labels=labels),
        web("b1", "b", labels=labels),
        web("b2", "b", labels=labels),
        alone,
    )
    policy = room(picture)
    assert policy.objective(picture) == 4
    assert leaving(policy.proposals(picture)) == [["a1"], ["b1", "b2"]]
    assert gain(policy, picture, {"a1": "b"}) == 4


def test_the_number_of_pods_that_a_node_takes_counts_too() -> None:
    picture = picture_of(node("a", pods=1), node("b", pods=0), web("a1", "a"), pod("small"))
    assert leaving(room(picture).proposals(picture)) == [["a1"]]


def test_as_moves_are_made_no_more_is_proposed_than_is_still_wanted() -> None:
    picture = picture_of(
        gpu_node("a"), gpu_node("b"), gpu_node("c"), trainer("a1", "a", 2), trainer("b1", "b", 2),
        trainer("c1", "c", 4), trainer("big", "", 8),
    )  # fmt: skip
    proposals = iter(room(picture).proposals(picture))
    with scratch_of(picture) as transaction:
        next(proposals)
        replace_pods(picture, transaction, {"a1": "b"})
        assert list(proposals) == []


# Room for pods to come


def test_room_for_a_shape_is_kept_ahead_of_time() -> None:
    picture = picture_of(gpu_node("a"), gpu_node("b"), trainer("a1", "a", 1), trainer("b1", "b", 3))
    policy = room(picture, **{"for": {"requests": {GPU: 8}}}, worth=6)
    assert policy.objective(picture) == 6
    assert leaving(policy.proposals(picture)) == [["a1"], ["b1"]]
    assert gain(policy, picture, {"a1": "b"}) == 6
    assert first(policy, picture).reason.startswith(f"a pod to come with 8 {GPU} could run on a")


def test_the_objective_asks_for_the_configured_number_of_places() -> None:
    picture = picture_of(gpu_node("a"), gpu_node("b"), trainer("b1", "b", 3))
    policy = room(picture, **{"for": {"requests": {GPU: 4}, "places": 5}})
    assert policy.objective(picture) == 2 * 4


def test_requests_for_resources_that_no_node_has_move_no_pods() -> None:
    picture = picture_of(gpu_node("a"), trainer("a1", "a", 1))
    policy = room(picture, **{"for": {"requests": {"example.com/fpga": 1}, "devices": {"none": 1}}})
    assert policy.objective(picture) == 4
    assert list(policy.proposals(picture)) == []


# Arguments


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ({"utilizationThreshold": 2}, "utilizationThreshold"),
        ({"utilizationThreshold": "half"}, "utilizationThreshold"),
        ({"for": {}}, "needs requests or devices"),
        ({"for": {"requests": {"cpu": "-1"}}}, "requests[cpu] is -1"),
        ({"for": {"requests": {"cpu": "lots"}}}, "lots"),
        ({"for": {"requests": {"cpu": []}}}, "requests"),
        ({"for": {"devices": {"gpu": 0}}}, "devices"),
        ({"for": {"requests": {"cpu": 1}, "places": 10**9}}, "places"),
        ({"for": [1]}, "for"),
        ({"nodeWorth": 0}, "nodeWorth"),
        ({"worth": 0}, "worth"),
        ({"worth": float("nan")}, "worth"),
        ({"maxNodes": 0}, "maxNodes"),
        ({"threshold": 0.5}, "threshold"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_by_name(args: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match="Consolidate") as refused:
        policy_of("Consolidate", **args)
    assert named in str(refused.value)


# Devices


def decoded(*raws: Raw) -> list[Kubernetes]:
    return [item for item in map(decode, raws) if item is not None]


def anybody(pod: PodRecord) -> bool:
    return True


def with_gpus(*names: str, number: int = 4) -> list[Kubernetes]:
    """Nodes that offer devices, as their slices say."""
    gpus = [device(f"gpu-{index}") for index in range(number)]
    slices = [raw for name in names for raw in (raw_node(name), devices_of(name, *gpus))]
    return decoded(device_class(), *slices)


def holder(name: str, on: str, *devices: str) -> list[Kubernetes]:
    """Return a pod whose own claim has some of its node's devices, or waits for as many as are named where it has no
    node.
    """
    wanted = request(count=len(devices))
    status = allocated(on, *devices, to=[name]) if on else None
    raw = raw_pod(name, node=on) if on else raw_pod(name)
    raw["metadata"] |= {"uid": f"uid-{name}"}
    return decoded(claim(f"claim-{name}", wanted, status=status), using(raw, f"claim-{name}"))


def test_devices_that_claims_hold_are_counted_one_by_one() -> None:
    picture = picture_of(
        *with_gpus("a", "b"),
        *holder("a1", "a", "gpu-0"),
        *holder("b1", "b", "gpu-0"),
        *holder("b2", "b", "gpu-1"),
        *holder("big", "", "1", "2", "3", "4"),
        is_movable=anybody,
    )
    policy = room(picture)
    assert policy.objective(picture) == 4
    proposals = list(policy.proposals(picture))
    assert leaving(proposals) == [["a1"], ["b1", "b2"]]
    assert proposals[0].reason.endswith("what it lacks: 1 devices of class gpu")
    assert gain(policy, picture, {"a1": "b"}) == 4


def test_room_may_be_kept_for_devices() -> None:
    picture = picture_of(
        *with_gpus("a", "b"), *holder("a1", "a", "gpu-0"), *holder("b1", "b", "gpu-0", "gpu-1"), is_movable=anybody
    )
    policy = room(picture, **{"for": {"devices": {"gpu": 4}}})
    assert leaving(policy.proposals(picture)) == [["a1"], ["b1"]]
    assert gain(policy, picture, {"a1": "b"}) == 4


def test_devices_that_stand_for_an_extended_resource_are_counted_as_it() -> None:
    standing = decoded(device_class(extendedResourceName=GPU))
    picture = picture_of(
        *with_gpus("a", "b"), *standing, *holder("a1", "a", "gpu-0"), *holder("b1", "b", "gpu-0"), is_movable=anybody
    )
    policy = room(picture, **{"for": {"requests": {GPU: 4}}})
    assert leaving(policy.proposals(picture)) == [["a1"], ["b1"]]


def test_devices_of_other_classes_are_no_room() -> None:
    other = decoded(device_class("fpga", 'device.driver == "fpga.example.com"'))
    picture = picture_of(*with_gpus("a"), *other, *holder("a1", "a", "gpu-0"))
    policy = room(picture, **{"for": {"devices": {"fpga": 1}}})
    assert policy.objective(picture) == 4
    assert list(policy.proposals(picture)) == []


def test_a_class_whose_selectors_fail_has_no_devices() -> None:
    broken = decoded(device_class("broken", "device.attributes.nothing.at.all"))
    picture = picture_of(*with_gpus("a"), *broken, *holder("a1", "a", "gpu-0"))
    policy = room(picture, **{"for": {"devices": {"broken": 1}}})
    assert policy.objective(picture) == 4
