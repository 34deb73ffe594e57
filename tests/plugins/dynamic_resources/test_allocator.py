"""The devices that claims get on a node."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.devices import ResourceClaim
from podium.api.input.codec import decode
from podium.api.node import Node
from podium.api.versions.release import read_version
from podium.cluster.cluster import Cluster
from podium.plugins.dynamic_resources.allocator import allocate
from podium.plugins.dynamic_resources.selectors import (
    AllocationError,
    NodeAllocationError,
    TooManyStepsError,
)
from tests.devices import (
    DRIVER,
    allocated,
    attributes,
    claim,
    device,
    device_class,
    devices_of,
    first_of,
    request,
    resource_slice,
)
from tests.fuzzing import usual
from tests.store.objects import Raw, node

LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0'


def found(
    *objects: Raw, on: str = "n1", most_steps: int = 50_000, labels: Raw | None = None, version: str = "1.36"
) -> list[list[str]] | None:
    """Return what each unallocated claim gets on a node, as `request=device` (with its pool where that is not the
    node's).
    """
    cluster = Cluster(read_version(version))
    waiting = []
    for raw in (device_class(), *objects):
        item = decode(raw)
        assert item is not None
        cluster.put(item)
        if isinstance(item, ResourceClaim) and not item.is_allocated:
            waiting.append((item.key, item))
    where = decode(node(on, **(labels or {})))
    assert isinstance(where, Node)
    results = allocate(cluster.devices, where, waiting, most_steps)
    if results is None:
        return None
    return [
        [
            f"{one.request}={one.device if one.pool == on else f'{one.pool}/{one.device}'}"
            for one in result.devices.results
        ]
        for result in results
    ]


def test_the_first_device_that_will_do_is_taken_by_pool_slice_and_place() -> None:
    second = devices_of("n1", device("b"), name="slice-2", count=2)
    first = devices_of("n1", device("z"), name="slice-1", count=2)

    assert found(second, first, claim("c")) == [["r=z"]]
    assert found(second, first, claim("c", request(count=2))) == [["r=z", "r=b"]]
    assert found(second, first, claim("c", request(count=3))) is None


def test_allocated_devices_are_not_allocated_again() -> None:
    offered = devices_of("n1", device("a"), device("b"))

    assert found(offered, claim("taken", status=allocated("n1", "a")), claim("c")) == [["r=b"]]
    assert found(offered, claim("c"), claim("d")) == [["r=a"], ["r=b"]]
    assert found(offered, claim("c"), claim("d"), claim("e")) is None


def test_an_earlier_request_leaves_a_later_one_what_only_that_can_use() -> None:
    offered = devices_of("n1", device("big", "80Gi"), device("small"))

    assert found(offered, claim("c", request("any"), request("large", LARGE))) == [["any=small", "large=big"]]
    assert found(offered, claim("c"), claim("d", request("large", LARGE))) == [["r=small"], ["large=big"]]


def test_all_means_every_device_that_is_selected_and_at_least_one() -> None:
    offered = devices_of("n1", device("a", "80Gi"), device("b"), device("c", "80Gi"))
    everything = claim("c", request("r", LARGE, allocationMode="All"))

    assert found(offered, everything) == [["r=a", "r=c"]]
    assert found(devices_of("n1", device("b")), everything) is None
    assert found(offered, claim("taken", status=allocated("n1", "a")), everything) is None


def test_all_of_an_incomplete_pool_is_an_error_and_one_of_it_is_not_to_be_had() -> None:
    half = devices_of("n1", device("a"), count=2)

    assert found(half, claim("c")) is None
    with pytest.raises(AllocationError, match=r"resource pool gpu.example.com/n1 is currently being updated"):
        found(half, claim("c", request(allocationMode="All")))


@pytest.mark.parametrize(("version", "devices"), [("1.34", [["r=a"]]), ("1.35", None)])
def test_devices_of_incomplete_pools_are_not_taken_since_1_35(version: str, devices: list[list[str]] | None) -> None:
    assert found(devices_of("n1", device("a"), count=2), claim("c"), version=version) == devices


@pytest.mark.parametrize(("version", "devices"), [("1.34", [["r=p/a"]]), ("1.35", None)])
def test_a_newer_generation_on_another_node_counts_since_1_35(version: str, devices: list[list[str]] | None) -> None:
    older = devices_of("n1", device("a"), pool="p", name="older", count=2)
    newer = devices_of("n2", device("a"), pool="p", name="newer", generation=2)

    assert found(older, newer, claim("c"), version=version) == devices


@pytest.mark.parametrize(("version", "devices"), [("1.35", None), ("1.36", [["r/fast=b"]])])
def test_a_second_alternative_for_all_devices_has_matches_of_its_own_since_1_36(
    version: str, devices: list[list[str]] | None
) -> None:
    """kube-scheduler before 1.36 gives it those of the first one, here a device in use."""
    model = f'device.attributes["{DRIVER}"].model'
    offered = devices_of("n1", *(device(name, **attributes(model=name)) for name in ("a", "b")))
    either = [request(name, f'{model} == "{of}"', allocationMode="All") for name, of in (("slow", "a"), ("fast", "b"))]
    other = claim("other", status=allocated("n1", "a"))

    assert found(offered, other, claim("c", first_of("r", *either)), version=version) == devices


def test_slices_of_an_older_generation_count_for_nothing() -> None:
    old = devices_of("n1", device("old"), name="old")
    new = devices_of("n1", device("new"), name="new", generation=2)

    assert found(old, new, claim("c")) == [["r=new"]]
    # The new one may be elsewhere.
    elsewhere = devices_of("n2", device("new"), name="new", pool="n1", generation=2)
    assert (
        found(
            {**old, "spec": {**old["spec"], "pool": {**old["spec"]["pool"], "resourceSliceCount": 2}}},
            elsewhere,
            claim("c"),
        )
        is None
    )


def test_a_pool_with_duplicate_devices_is_invalid_and_reported_as_last_resort() -> None:
    twice = devices_of("n1", device("a"), device("a"))
    good = devices_of("n1", device("b"), name="good", pool="good")

    assert found(twice, good, claim("c")) == [["r=good/b"]]
    with pytest.raises(NodeAllocationError, match="invalid resource pools were encountered"):
        found(twice, claim("c"))


def test_devices_of_several_nodes_go_by_their_selectors() -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]}]}
    rack = resource_slice("rack", device("switch"), nodeSelector=selector)
    everywhere = resource_slice("all", device("net"), allNodes=True)
    each = resource_slice(
        "each", device("mine", nodeName="n1"), device("yours", nodeName="n2"), perDeviceNodeSelection=True
    )

    assert found(rack, claim("c"), labels={"rack": "a"}) == [["r=rack/switch"]]
    assert found(rack, claim("c"), labels={"rack": "b"}) is None
    assert found(everywhere, claim("c")) == [["r=all/net"]]
    assert found(each, claim("c")) == [["r=each/mine"]]
    assert found(each, claim("c", request(count=2))) is None


def test_alternatives_are_tried_in_their_order() -> None:
    offered = devices_of("n1", device("a"), device("b"))
    wanted = first_of("r", request("large", LARGE), request("two", count=2), request("one"))

    assert found(offered, claim("c", wanted)) == [["r/two=a", "r/two=b"]]
    assert found(offered, claim("c", wanted), claim("d")) == [["r/one=a"], ["r=b"]]


def test_an_alternative_that_needs_too_many_devices_gives_way_to_a_later_one() -> None:
    offered = devices_of("n1", *(device(f"gpu-{number:02}") for number in range(40)))
    wanted = first_of("r", request("most", count=30), request("few", count=2))

    assert found(offered, claim("c", request("first", count=20), wanted)) == [
        [*(f"first=gpu-{number:02}" for number in range(20)), "r/few=gpu-20", "r/few=gpu-21"]
    ]
    with pytest.raises(AllocationError, match="number of requested devices 40 exceeds the claim limit of 32"):
        found(offered, claim("c", request(count=40)))


def test_a_constraint_asks_for_one_value_or_for_different_ones() -> None:
    offered = devices_of(
        "n1",
        device("a", **attributes(numa=0)),
        device("b", **attributes(numa=1)),
        device("c", **attributes(numa=1)),
        device("d"),
    )
    alike: Raw = {"constraints": [{"matchAttribute": f"{DRIVER}/numa"}]}
    unlike: Raw = {"constraints": [{"distinctAttribute": f"{DRIVER}/numa", "requests": ["r", "s"]}]}

    assert found(offered, claim("x", request(count=2), **alike)) == [["r=b", "r=c"]]
    assert found(offered, claim("x", request(count=3), **alike)) is None
    assert found(offered, claim("x", request(), request("s"), **unlike)) == [["r=a", "s=b"]]
    assert found(offered, claim("x", request(), request("s"), request("t"), **unlike)) == [["r=a", "s=b", "t=c"]]
    everything = request(allocationMode="All")
    with pytest.raises(AllocationError, match=r"cannot add device gpu.example.com/n1/b because a claim constraint"):
        found(offered, claim("x", everything, **alike))


def test_each_request_for_a_distinct_attribute_keeps_only_the_last_value() -> None:
    """kube-scheduler's distinctAttributeConstraint keeps values by the request's name."""
    offered = devices_of(
        "n1", *(device(name, **attributes(numa=numa)) for name, numa in (("a", 0), ("b", 1), ("c", 0)))
    )
    unlike: Raw = {"constraints": [{"distinctAttribute": f"{DRIVER}/numa"}]}

    assert found(offered, claim("x", request(count=3), **unlike)) == [["r=a", "r=b", "r=c"]]
    assert found(offered, claim("x", request("r"), request("s"), request("t"), **unlike)) is None


def test_a_device_taint_excludes_requests_that_do_not_tolerate_it() -> None:
    broken: Raw = {"taints": [{"key": "broken", "value": "yes", "effect": "NoSchedule"}]}
    offered = devices_of("n1", device("a", **broken), device("b"))
    tolerating = request(tolerations=[{"key": "broken", "operator": "Exists"}])

    assert found(offered, claim("c")) == [["r=b"]]
    assert found(offered, claim("c", tolerating)) == [["r=a"]]
    report: Raw = {"taints": [{"key": "broken", "effect": "None"}]}
    assert found(devices_of("n1", device("a", **report)), claim("c")) == [["r=a"]]


def test_a_rule_taints_the_devices_that_it_names() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "drain-a"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": "n1", "device": "a"},
            "taint": {"key": "drain", "effect": "NoSchedule"},
        },
    }

    assert found(devices_of("n1", device("a"), device("b")), rule, claim("c")) == [["r=b"]]
    assert found(rule, devices_of("n1", device("a"), device("b")), claim("c")) == [["r=b"]]


def counted(name: str, slots: int) -> Raw:
    return device(name, consumesCounters=[{"counterSet": "gpu-0", "counters": {"slots": {"value": str(slots)}}}])


def test_devices_that_share_counters_are_given_as_long_as_the_counters_reach() -> None:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    counters = resource_slice(
        "counters", pool=pool, nodeName="n1", sharedCounters=[{"name": "gpu-0", "counters": {"slots": {"value": "4"}}}]
    )
    parts = resource_slice(
        "parts", counted("whole", 4), counted("half-1", 2), counted("half-2", 2), pool=pool, nodeName="n1"
    )

    assert found(counters, parts, claim("c")) == [["r=whole"]]
    assert found(counters, parts, claim("c"), claim("d")) == [["r=half-1"], ["r=half-2"]]
    assert found(counters, parts, claim("taken", status=allocated("n1", "half-1")), claim("c")) == [["r=half-2"]]
    assert found(counters, parts, claim("c"), claim("d"), claim("e")) is None


def test_a_device_that_several_may_share_is_given_as_long_as_its_capacity_reaches() -> None:
    policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}
    shared = {
        "name": "gpu",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "40Gi", "requestPolicy": policy}},
    }
    offered = devices_of("n1", shared)

    def asking(amount: str) -> Raw:
        return request(capacity={"requests": {"memory": amount}})

    assert found(offered, claim("c", asking("15Gi")), claim("d", asking("20Gi"))) == [["r=gpu"], ["r=gpu"]]
    # 15Gi are rounded up to 20Gi.
    assert found(offered, claim("c", asking("15Gi")), claim("d", asking("21Gi"))) is None
    taken = allocated("n1", "gpu", shareID="share", consumedCapacity={"memory": "30Gi"})
    assert found(offered, claim("taken", status=taken), claim("c")) == [["r=gpu"]]
    assert found(offered, claim("taken", status=taken), claim("c", asking("11Gi"))) is None
    assert found(offered, claim("c", request(capacity={"requests": {"cores": "1"}}))) is None


@pytest.mark.parametrize(
    ("policy", "wanted", "shown"),
    [
        ({}, "4096Mi", "4Gi"),
        ({}, "4000M", "4G"),
        ({}, "1500m", "1500m"),
        ({}, None, "40Gi"),
        ({"requestPolicy": {"default": "10240Mi"}}, None, "10Gi"),
        ({"requestPolicy": {"default": "10Gi", "validValues": ["10Gi", "20480Mi"]}}, "11Gi", "20Gi"),
        ({"requestPolicy": {"default": "10Gi", "validRange": {"min": "10240Mi"}}}, "1Gi", "10Gi"),
        ({"requestPolicy": {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}}, "15Gi", "20Gi"),
    ],
)
def test_a_claim_shows_the_capacity_that_it_consumes_in_canonical_form(
    policy: Raw, wanted: str | None, shown: str
) -> None:
    capacity = {"memory": {"value": "40Gi", **policy}}
    offered = devices_of("n1", {"name": "gpu", "allowMultipleAllocations": True, "capacity": capacity})
    asked: Raw = {} if wanted is None else {"capacity": {"requests": {"memory": wanted}}}
    cluster, waiting, where = Cluster(read_version("1.36")), decode(claim("c", request(**asked))), decode(node("n1"))
    assert isinstance(waiting, ResourceClaim)
    assert isinstance(where, Node)
    for raw in (device_class(), offered):
        item = decode(raw)
        assert item is not None
        cluster.put(item)

    (result,) = allocate(cluster.devices, where, [(waiting.key, waiting)], 50_000) or ()

    assert result.devices.results[0].consumed_capacity == {"memory": shown}


def test_an_administrator_gets_devices_that_others_have() -> None:
    offered = devices_of("n1", device("a"))
    seeing = request(adminAccess=True)

    assert found(offered, claim("taken", status=allocated("n1", "a")), claim("c", seeing)) == [["r=a"]]
    held = allocated("n1", "a", adminAccess=True)
    assert found(offered, claim("seen", status=held), claim("c")) == [["r=a"]]
    assert found(offered, claim("c", request("r", adminAccess=True), request("s", adminAccess=True))) is None


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (request("r", "device.attributes['x'].y"), "claim default/c: selector #0: CEL runtime error: no such key: y"),
        (
            request("r", "device.nothing"),
            "claim default/c: selector #0: CEL compile error: .*undefined field 'nothing'",
        ),
        (request("r", of="none"), "could not retrieve device class none"),
        (request("r", allocationMode="Some"), "unsupported count mode Some"),
    ],
)
def test_a_claim_that_cannot_be_served_anywhere_is_an_error(wanted: Raw, error: str) -> None:
    with pytest.raises(AllocationError, match=error):
        found(devices_of("n1", device("a")), claim("c", wanted))


def test_the_search_gives_up_after_so_many_steps() -> None:
    offered = devices_of("n1", *(device(f"gpu-{number}", **attributes(n=number)) for number in range(20)))
    hopeless = claim("c", request(count=12), constraints=[{"matchAttribute": f"{DRIVER}/none"}])
    many = claim("c", request(count=12), request("s", "false"))

    assert found(offered, hopeless) is None
    with pytest.raises(TooManyStepsError):
        found(offered, many, most_steps=1_000)


def test_many_claims_of_many_devices_are_no_depth() -> None:
    offered = [
        devices_of("n1", *(device(f"gpu-{part}-{number:03}") for number in range(128)), name=f"n1-{part}", count=5)
        for part in range(5)
    ]

    result = found(*offered, *(claim(f"c{number:02}", request(count=32)) for number in range(20)))

    assert result is not None
    assert [len(one) for one in result] == [32] * 20


MODELS = st.sampled_from(["a", "b", "c"])


@settings(max_examples=usual(60), deadline=None)
@given(
    st.lists(MODELS, max_size=5),
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "ab", "abc"]), st.integers(1, 2)), min_size=1, max_size=3),
    st.booleans(),
)
def test_a_solution_is_found_where_there_is_one(models: list[str], wanted: list[tuple[str, int]], match: bool) -> None:
    """Against the plain way: every choice of devices for every request."""
    offered = devices_of("n1", *(device(f"d{i}", **attributes(model=model)) for i, model in enumerate(models)))
    requests = [
        request(f"r{i}", f'device.attributes["{DRIVER}"].model in {list(allowed)}', count=count)
        for i, (allowed, count) in enumerate(wanted)
    ]
    constraints: Any = {"constraints": [{"matchAttribute": f"{DRIVER}/model"}]} if match else {}

    def solvable(left: list[int], rest: list[tuple[str, int]], taken: list[str]) -> bool:
        if not rest:
            return not match or len(set(taken)) <= 1
        allowed, count = rest[0]
        fitting = [i for i in left if models[i] in allowed]
        return any(
            solvable([i for i in left if i not in chosen], rest[1:], taken + [models[i] for i in chosen])
            for chosen in combinations(fitting, count)
        )

    result = found(offered, claim("c", *requests, **constraints))

    assert (result is not None) is solvable(list(range(len(models))), wanted, [])
