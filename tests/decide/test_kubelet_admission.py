"""The pods that a kubelet rejects, and the reasons."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podium.api.node import Node
from podium.api.pod import Container, ContainerPort, ContainerStatus, Pod, PodStatus, ResourceRequirements
from podium.api.resource_requests import node_allocatable
from podium.decide.kubelet import HeldResources, Holding, Refusal, pressure_refusal, refusals
from tests.builders import node, node_term, pod, tolerate

pytestmark = pytest.mark.upstream(59)

MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
SMALL = node("n1", cpu=2, memory="2Gi", pods=2, ephemeral_storage="1Gi", example_com__gpu=1)


BIG = ResourceRequirements(requests={"cpu": "3"})
SIDECAR = Container(name="s", restart_policy="Always", ports=(ContainerPort(container_port=443),))


def refused(one: Pod, there: Node = SMALL, beside: Sequence[Pod] = ()) -> list[Refusal]:
    others = HeldResources(Holding.of(other) for other in beside)
    return refusals(one, Holding.of(one), there, node_allocatable(there.status), others)


def reasons(one: Pod, there: Node = SMALL, beside: Sequence[Pod] = ()) -> list[str]:
    return [refusal.reason for refusal in refused(one, there, beside)]


@pytest.mark.upstream(59)
@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (pod("a", cpu=3), "OutOfcpu"),
        (pod("a", memory="3Gi"), "OutOfmemory"),
        (pod("a", ephemeral_storage="2Gi"), "OutOfephemeral-storage"),
        (pod("a", example_com__gpu=2), "OutOfexample.com/gpu"),
        (pod("a", node_selector={"disk": "ssd"}), "NodeAffinity"),
        (pod("a", needs_nodes=[node_term("disk=ssd")]), "NodeAffinity"),
        (pod("a", on="n2"), "NodeName"),
    ],
)
def test_a_refusal_is_named_after_what_the_node_has_not(one: Pod, reason: str) -> None:
    assert reasons(one) == [reason]


def test_a_node_has_only_so_many_places_for_pods() -> None:
    assert reasons(pod("c"), beside=[pod("a"), pod("b")]) == ["OutOfpods"]


def test_the_message_says_what_was_asked_what_is_held_and_what_there_is() -> None:
    [refusal] = refused(pod("b", cpu="1500m"), beside=[pod("a", cpu=1)])

    assert refusal.message == "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000"
    assert refusal.lacking == ("cpu", 500)


def test_a_pod_that_is_resized_holds_the_most_of_what_it_wants_and_was_given() -> None:
    resources = ResourceRequirements(requests={"cpu": "1500m"})
    status = ContainerStatus(name="a", resources=resources, allocated_resources={"cpu": "1500m"})
    resized = replace(pod("a", cpu="500m"), status=PodStatus(container_statuses=(status,)))
    resized = replace(resized, spec=replace(resized.spec, containers=(replace(resized.spec.containers[0], name="a"),)))

    assert Holding.of(resized).amounts["cpu"] == 1500
    assert reasons(pod("b", cpu=1), beside=[resized]) == ["OutOfcpu"]


SHARED = pod("a", cpu=1, memory="1Gi", ports=[80]).spec
SHARING = st.fixed_dictionaries(
    {
        "host_network": st.booleans(),
        "overhead": st.sampled_from([{}, {"cpu": "250m"}]),
        "node_name": st.sampled_from(["", "n1"]),
        "init_containers": st.sampled_from([(), (Container(name="i", resources=BIG), SIDECAR)]),
    }
)


@given(st.lists(SHARING, max_size=8))
def test_the_resources_held_by_a_pod_depend_on_the_pod_alone(sharing: list[dict[str, Any]]) -> None:
    for fields in sharing:
        one = replace(pod("a"), spec=replace(SHARED, **fields))

        alone = msgspec.convert(msgspec.to_builtins(one), Pod)

        assert Holding.of(one) == Holding.of(alone)


def test_a_pod_that_fits_is_admitted() -> None:
    one = pod("a", cpu=1, memory="1Gi", example_com__gpu=1, needs_nodes=[node_term(name="n1")], on="n1")

    assert reasons(one, beside=[pod("b", cpu=1)]) == []


def test_a_resource_that_is_not_asked_for_may_be_overdrawn() -> None:
    shrunk = node("n1", cpu=1)

    assert reasons(pod("b", memory="1Gi"), shrunk, [pod("a", cpu=4)]) == []


def test_an_extended_resource_unknown_to_the_node_is_not_the_kubelets_to_count() -> None:
    assert reasons(pod("a", example_com__licence=5)) == []


@pytest.mark.parametrize("name", ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
def test_an_extended_resource_that_claimed_devices_stand_for_is_not_the_kubelets_to_count(name: str) -> None:
    wants = pod("a", spec={"containers": (Container(resources=ResourceRequirements(requests={name: 2})),)})
    claimed = {"requestMappings": [{"containerName": "main", "resourceName": name, "requestName": "r"}]}

    assert reasons(wants) == [f"OutOf{name}"]
    assert reasons(replace(wants, status=PodStatus(extended_resource_claim_status=claimed))) == []


@pytest.mark.parametrize(
    ("held", "wanted", "reason"),
    [
        (80, 80, ["NodePorts"]),
        ("10.0.0.1/TCP/80", 80, ["NodePorts"]),
        ("10.0.0.1/TCP/80", "10.0.0.2/TCP/80", []),
        ("0.0.0.0/UDP/80", 80, []),
    ],
)
def test_host_ports_conflict_by_port_protocol_and_address(
    held: int | str, wanted: int | str, reason: list[str]
) -> None:
    assert reasons(pod("b", ports=[wanted]), beside=[pod("a", ports=[held])]) == reason


@pytest.mark.parametrize(
    ("taints", "reason"),
    [(["gone:NoExecute"], ["TaintToleration"]), (["full:NoSchedule"], []), (["poor:PreferNoSchedule"], [])],
)
def test_only_noexecute_taints_reject_a_bound_pod(taints: list[str], reason: list[str]) -> None:
    tainted = node("n1", taints=taints)

    assert reasons(pod("a"), tainted) == reason
    assert reasons(pod("a", tolerations=[tolerate()]), tainted) == []


def test_static_pods_pass_by_taints() -> None:
    plain = pod("a")
    static = replace(plain, metadata=replace(plain.metadata, annotations={"kubernetes.io/config.source": "file"}))

    assert reasons(static, node("n1", taints=["gone:NoExecute"])) == []


@pytest.mark.upstream(59)
def test_missing_node_resources_are_reported_before_affinity() -> None:
    assert reasons(pod("a", cpu=3, memory="3Gi", node_selector={"disk": "ssd"})) == [
        "OutOfcpu",
        "OutOfmemory",
        "NodeAffinity",
    ]


def test_a_pod_for_another_operating_system_is_rejected_first() -> None:
    windows = {"kubernetes.io/os": "windows"}

    assert reasons(pod("a", labels=windows, cpu=3)) == ["PodOSSelectorNodeLabelDoesNotMatch", "OutOfcpu"]
    assert reasons(pod("a", labels=windows), node("n1", labels=windows)) == []
    assert reasons(pod("a", labels={"kubernetes.io/os": "linux"})) == []


def test_the_field_for_the_operating_system_must_name_that_of_the_node() -> None:
    linux, windows = (pod("a", cpu=3, spec={"os": {"name": name}}) for name in ("linux", "windows"))

    assert reasons(linux) == ["OutOfcpu"]
    assert reasons(windows) == ["PodOSNotSupported", "OutOfcpu"]
    assert reasons(windows, node("n1", cpu=4, labels={"kubernetes.io/os": "windows"})) == []


def test_a_node_that_is_unschedulable_takes_the_pods_that_are_bound_to_it() -> None:
    assert (
        reasons(pod("a"), node("n1", unschedulable=True, taints=["node.kubernetes.io/unschedulable:NoSchedule"])) == []
    )


SHORT_OF_MEMORY = ["MemoryPressure"]


def test_a_node_short_of_memory_rejects_besteffort_pods_that_do_not_tolerate_it() -> None:
    refusal = pressure_refusal(pod("a"), SHORT_OF_MEMORY)

    assert refusal is not None
    assert (refusal.reason, refusal.message) == ("Evicted", "The node had condition: [MemoryPressure].")
    assert pressure_refusal(pod("a"), []) is None
    assert pressure_refusal(pod("a", memory="1Mi"), SHORT_OF_MEMORY) is None
    assert pressure_refusal(pod("a", tolerations=[tolerate(MEMORY_PRESSURE)]), SHORT_OF_MEMORY) is None
    assert pressure_refusal(pod("a", priority=2_000_000_000), SHORT_OF_MEMORY) is None


@pytest.mark.parametrize("conditions", [["DiskPressure"], ["PIDPressure"], ["MemoryPressure", "DiskPressure"]])
def test_under_other_pressure_a_node_turns_away_all_but_critical_pods(conditions: list[str]) -> None:
    one = pod("a", memory="1Mi", tolerations=[tolerate()])
    refusal = pressure_refusal(one, conditions)

    assert refusal is not None
    assert refusal.message == f"The node had condition: [{' '.join(conditions)}]."
    assert pressure_refusal(pod("a", priority=2_000_000_000), conditions) is None


def test_jointly_held_resources_are_zero_when_all_pods_left() -> None:
    pods = [pod("a", cpu=1, memory="1Gi"), pod("b", cpu=0, ports=[80]), pod("c", cpu=2, ports=[80])]
    holdings = [Holding.of(one) for one in pods]
    held = HeldResources(holdings)
    assert held.amounts["cpu"] == 3000
    assert list(held.ports.values()) == [2]

    for holding in holdings:
        held.remove(holding)

    assert not held.amounts
    assert not held.ports
