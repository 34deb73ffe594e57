"""A preempting gang considers devices: one that a member gets is not offered to another."""

import podium
from tests.builders import configuration
from tests.devices import claim, device, device_class, devices_of, using
from tests.sim.objects import scenario
from tests.store.objects import Raw, node, pod


def low(number: int, on: str) -> Raw:
    return pod(f"low-{on}-{number}", cpu=4, node=on, priority=1, spec={"terminationGracePeriodSeconds": 1})


def worker(number: int) -> Raw:
    return using(pod(f"w{number}", cpu=4, priority=9, spec={"schedulingGroup": {"podGroupName": "g"}}), f"c{number}")


def test_each_member_gets_a_node_with_a_device_of_its_own() -> None:
    group: Raw = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    nodes = [item for name in ("n1", "n2") for item in (node(name, cpu=8), devices_of(name, device("gpu")))]
    full = [low(number, on) for on in ("n1", "n2") for number in range(2)]
    made = scenario({"at": "5s", "apply": [worker(0), worker(1)]}, until="1m")
    settings = configuration(plugins={"multiPoint": {"enabled": ["GangScheduling"]}})

    result = podium.simulate(
        [*nodes, device_class(), claim("c0"), claim("c1"), *full, group, made], configuration=settings
    )

    scheduled = [event for event in result.events if event.reason == "Scheduled" and event.time > 1]
    assert sorted(event.node or "" for event in scheduled) == ["n1", "n2"]
    assert sum(event.reason == "Preempted" for event in result.events) == 2
