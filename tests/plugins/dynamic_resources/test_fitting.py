"""The nodes on which a pod's claims can be allocated, node by node and all at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.devices import ResourceClaim
from podium.api.input.codec import decode
from podium.api.node import Node
from podium.app.explaining.explainer import Explainer
from podium.app.explaining.explanation import Explanation
from podium.cluster.cluster import Cluster
from podium.plugins.dynamic_resources import fitting
from podium.plugins.dynamic_resources.allocator import allocate
from podium.plugins.dynamic_resources.selectors import AllocationError
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
    using,
)
from tests.fuzzing import usual
from tests.store.objects import Raw, node, pod


def explained(*objects: Raw, of: str = "default/p") -> Explanation:
    items = [decode(raw) for raw in (device_class(), *objects)]
    return Explainer([item for item in items if item is not None]).explain(of)


def verdicts(explanation: Explanation) -> dict[str, str]:
    return {name: status.message for name, status in explanation.nodes.items()}


offers = st.lists(
    st.tuples(st.lists(st.sampled_from(["a", "b"]), max_size=3), st.integers(0, 2)), min_size=1, max_size=6
)
MODEL = f'device.attributes["{DRIVER}"].model == "a"'


@settings(max_examples=usual(40), deadline=None)
@given(offers, st.booleans(), st.integers(1, 2), st.booleans())
def test_nodes_that_are_alike_are_asked_once_and_get_what_each_would_get_by_itself(
    offered: list[tuple[list[str], int]], has_network: bool, count: int, selects: bool
) -> None:
    """Against the plain way: the allocator asked about every node."""
    objects: list[Raw] = [claim("c", request("r", *([MODEL] if selects else []), count=count))]
    for number, (models, taken) in enumerate(offered):
        name = f"n{number}"
        found = [device(f"d{i}", **attributes(model=model)) for i, model in enumerate(models)]
        objects += [node(name), devices_of(name, *found)]
        held = [f"d{i}" for i in range(min(taken, len(models)))]
        if held:
            objects.append(claim(f"taken-{number}", status=allocated(name, *held)))
    if has_network:
        objects.append(resource_slice("net", device("x", **attributes(model="a")), allNodes=True))
    cluster = Cluster()
    for raw in (device_class(), *objects):
        item = decode(raw)
        assert item is not None
        cluster.put(item)
    wanted = cluster.devices.claims["default/c"]

    explanation = explained(*objects, using(pod("p"), "c"))

    for name, row in cluster.nodes.row_of.items():
        plain = allocate(cluster.devices, cluster.nodes.node(row), [("default/c", wanted)])
        assert explanation.nodes[name].is_success is (plain is not None)
        if plain is not None:
            ((_, shared),) = explanation.devices.claims[name]
            assert shared == plain[0]


def test_many_nodes_that_offer_the_same_cost_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counting(devices: Any, where: Node, *rest: Any) -> Any:
        asked.append(where.metadata.name)
        return allocate(devices, where, *rest)

    monkeypatch.setattr(fitting, "allocate", counting)
    nodes = [raw for i in range(50) for raw in (node(f"n{i:02}"), devices_of(f"n{i:02}", device("a")))]

    explanation = explained(*nodes, claim("c"), using(pod("p"), "c"))

    assert sum(status.is_success for status in explanation.nodes.values()) == 50
    assert len(asked) == 1


def test_a_node_that_another_filter_refused_is_not_searched() -> None:
    """A selector that fails there is no error, as in kube-scheduler, whose filters stop at the first refusal."""
    wrong = claim("c", request("r", 'device.attributes["none"].model == "a"'))
    full = node("n1", cpu=0)

    assert verdicts(explained(full, devices_of("n1", device("a")), wrong, using(pod("p"), "c"))) == {
        "n1": "Insufficient cpu"
    }
    failed = explained(full, node("n2"), devices_of("n2", device("a")), wrong, using(pod("p"), "c"))
    assert failed.outcome == "error"
    assert failed.error == (
        'running "DynamicResources" filter plugin: claim default/c: selector #0: CEL runtime error: no such key: model'
    )


@pytest.mark.parametrize(
    ("objects", "wants", "reason"),
    [
        ([], "c", 'could not find ResourceClaim "default/c"'),
        ([claim("c", request(of="none"))], "c", "request r: device class none does not exist"),
        ([claim("c", first_of("r", request("s", of="none")))], "c", "request r/s: device class none does not exist"),
        ([claim("c", {"name": "r"})], "c", "resource claim default/c, request r: unknown request type"),
    ],
)
def test_unservable_claims_reject_the_pod_before_node_filters(objects: list[Raw], wants: str, reason: str) -> None:
    found = explained(node("n1"), *objects, using(pod("p"), wants))
    said = found.pre_enqueue or found.pre_filter

    assert said is not None
    assert (said.plugin, said.message) == ("DynamicResources", reason)


def test_a_claim_is_not_made_yet() -> None:
    found = explained(node("n1"), using(pod("p"), template="t"))

    assert found.pre_enqueue is not None
    assert found.pre_enqueue.message == 'pod "default/p": ResourceClaim not created yet'


def test_a_claim_with_devices_binds_its_pods_to_them() -> None:
    offered = [node("n1"), node("n2"), devices_of("n1", device("a")), devices_of("n2", device("a"))]
    found = explained(*offered, claim("c", status=allocated("n1", "a")), using(pod("p"), "c"))

    assert found.node == "n1"
    assert verdicts(found)["n2"] == "resourceclaim not available on the node"


def test_the_earlier_of_several_alternatives_is_better() -> None:
    large = f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("50Gi"))'
    wanted = claim("c", first_of("r", request("large", large), request("any")))
    offered = [node("n1"), node("n2"), devices_of("n1", device("a")), devices_of("n2", device("b", "80Gi"))]
    found = explained(*offered, wanted, using(pod("p"), "c"))

    assert found.node == "n2"
    # Eight for the first alternative and seven for the second, scaled to 100 and weighted with 2.
    assert {name: scores["DynamicResources"] for name, scores in found.scores.items()} == {"n1": 174, "n2": 200}


def asking(amount: int, *, init: int = 0) -> Raw:
    raw = pod("p")
    requests = {"cpu": "1", "example.com/gpu": str(amount)}
    raw["spec"]["containers"] = [{"name": "main", "resources": {"requests": requests}}]
    if init:
        wants = {"example.com/gpu": str(init)}
        raw["spec"]["initContainers"] = [{"name": "first", "resources": {"requests": wants}}]
    return raw


STANDS_FOR = device_class("extended", extendedResourceName="example.com/gpu")


def test_an_extended_resource_is_counted_where_the_node_has_it_and_served_with_devices_where_not() -> None:
    own = node("n1")
    own["status"]["allocatable"]["example.com/gpu"] = "1"
    offered = [own, node("n2"), node("n3"), devices_of("n2", device("a"), device("b"))]

    assert verdicts(explained(STANDS_FOR, *offered, asking(2))) == {
        "n1": "Insufficient example.com/gpu",
        "n2": "",
        "n3": "cannot allocate all claims",
    }
    without_class = explained(*offered, asking(2))
    assert verdicts(without_class)["n2"] == "Insufficient example.com/gpu"


def test_a_limit_of_an_extended_resource_stands_in_for_the_request_that_is_left_open() -> None:
    offered = [STANDS_FOR, node("n1"), node("n2"), devices_of("n1", device("a"))]
    limited = pod("p")
    limited["spec"]["containers"] = [{"name": "main", "resources": {"limits": {"example.com/gpu": "1"}}}]

    found = explained(*offered, limited)

    assert verdicts(found) == {"n1": "", "n2": "cannot allocate all claims"}
    ((_, allocation),) = found.devices.claims["n1"]
    assert [one.device for one in allocation.devices.results] == ["a"]


def test_an_init_container_uses_the_devices_of_those_that_come_after_it() -> None:
    offered = [STANDS_FOR, node("n1"), devices_of("n1", *(device(name) for name in "abc"))]

    def devices(amount: int, init: int) -> list[str]:
        ((_, allocation),) = explained(*offered, asking(amount, init=init)).devices.claims["n1"]
        return [one.request for one in allocation.devices.results]

    assert devices(2, 2) == ["container-1-request-1"] * 2
    assert devices(1, 3) == ["container-0-request-0", "container-0-request-0", "container-1-request-1"]


def test_an_unused_claim_that_keeps_a_pod_from_all_nodes_gives_its_devices_back() -> None:
    offered = [node("n1", cpu=0), node("n2"), devices_of("n1", device("a")), devices_of("n2", device("a"))]
    unused = explained(*offered, claim("c", status=allocated("n1", "a")), using(pod("p"), "c"))
    in_use = explained(*offered, claim("c", status=allocated("n1", "a", to=["other"])), using(pod("p"), "c"))

    assert unused.devices.post_filter is not None
    assert unused.devices.post_filter.message == "deallocation of ResourceClaim completed"
    assert unused.devices.releases == ("default/c",)
    assert in_use.devices.post_filter is not None
    assert in_use.devices.post_filter.message == "still not schedulable"


def test_preemption_does_not_free_devices() -> None:
    """kube-scheduler's AddPod and RemovePod do not change claims: the rejection is final."""
    held = claim("c", status=allocated("n1", "a", to=["low"]))
    low = using(pod("low", node="n1", priority=1), "c")
    found = explained(
        node("n1"), devices_of("n1", device("a")), held, low, claim("d"), using(pod("p", priority=9), "d")
    )

    assert found.outcome == "unschedulable"
    assert found.nodes["n1"].code.value == "UnschedulableAndUnresolvable"


def test_devices_of_older_versions_of_the_api_are_read() -> None:
    old = devices_of("n1", {"name": "a", "basic": device("")["capacity"] and {"capacity": device("a")["capacity"]}})
    old["apiVersion"] = "resource.k8s.io/v1beta1"
    wanted = claim("c", {"name": "r", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1})
    wanted["apiVersion"] = "resource.k8s.io/v1beta1"

    assert explained(node("n1"), old, wanted, using(pod("p"), "c")).outcome == "schedulable"


def test_an_error_names_the_expression_that_cannot_be_compiled() -> None:
    item = decode(claim("c", request("r", "device.nothing")))
    assert isinstance(item, ResourceClaim)
    cluster = Cluster()
    for raw in (device_class(), devices_of("n1", device("a")), node("n1")):
        known = decode(raw)
        assert known is not None
        cluster.put(known)

    with pytest.raises(AllocationError, match=r"ERROR: <input>:1:7: undefined field 'nothing'"):
        allocate(cluster.devices, cluster.nodes.node(0), [("default/c", item)])
