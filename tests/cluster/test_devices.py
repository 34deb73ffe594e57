"""The scheduler's view of devices, updated change by change."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podium.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from podium.api.input.codec import decode
from podium.cluster.devices import NOTHING_OFFERED, Devices
from tests.devices import DRIVER, allocated, claim, device, device_class, devices_of, resource_slice
from tests.fuzzing import usual
from tests.store.objects import Raw

DeviceObject = ResourceClaim | ResourceSlice | DeviceClass | DeviceTaintRule


def read(raw: Raw) -> DeviceObject:
    item = decode(raw)
    assert isinstance(item, DeviceObject)
    return item


def known(*objects: Raw) -> Devices:
    devices = Devices()
    for raw in objects:
        devices.put(read(raw))
    return devices


def of(name: str, **fields: Any) -> ResourceClaim:
    item = read(claim(name, **fields))
    assert isinstance(item, ResourceClaim)
    return item


def rule(name: str, **selector: str) -> Raw:
    spec: Raw = {"taint": {"key": name, "effect": "NoSchedule"}}
    if selector:
        spec["deviceSelector"] = selector
    return {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name},
        "spec": spec,
    }


NODES = ("n1", "n2")
slices = st.builds(
    lambda node, names, generation, name: devices_of(
        node, *(device(one) for one in sorted(names)), name=name, generation=generation
    ),
    st.sampled_from(NODES),
    st.sets(st.sampled_from("abc")),
    st.integers(1, 2),
    st.sampled_from(["s1", "s2", "s3"]),
)
shared = st.sampled_from([resource_slice("net", device("x"), allNodes=True)])
claims = st.builds(
    lambda name, node, names: claim(name, status=allocated(node, *sorted(names)) if names else {}),
    st.sampled_from(["c", "d"]),
    st.sampled_from(NODES),
    st.sets(st.sampled_from("abc")),
)
rules = st.sampled_from([rule("all"), rule("one", device="a"), rule("other", driver="other.example.com")])
classes = st.sampled_from([device_class("gpu"), device_class("big", extendedResourceName="example.com/big")])
changes = st.lists(st.tuples(st.booleans(), st.one_of(slices, shared, claims, rules, classes)), max_size=14)


def reported(devices: Devices) -> dict[str, object]:
    """All that the devices answer."""
    return {
        "slices": devices.slices,
        "on nodes": {name: [one.key for one in devices.on_node(name)] for name in NODES},
        "shared": [one.key for one in devices.shared],
        "pools": {name: [one.key for one in devices.in_pool((DRIVER, name))] for name in NODES},
        "held": (devices.allocated.dedicated, devices.allocated.shared, devices.allocated.capacity),
        "offers": {name: devices.offer(name) for name in NODES},
        "backed": devices.backed,
        "claims": devices.claims,
    }


@settings(max_examples=usual(40), deadline=None)
@given(changes)
def test_the_device_index_equals_one_built_from_the_remaining_objects(
    story: list[tuple[bool, Raw]],
) -> None:
    devices, left = Devices(), dict[tuple[str, str], Raw]()
    for comes, raw in story:
        key = (raw["kind"], raw["metadata"]["name"])
        if comes:
            left[key] = raw
            devices.put(read(raw))
        elif key in left:
            devices.remove(read(left.pop(key)))
        reported(devices)

    assert reported(devices) == reported(known(*left.values()))


def test_nothing_is_left_of_what_is_gone() -> None:
    objects = [
        devices_of("n1", device("a")),
        resource_slice("net", device("x"), allNodes=True),
        claim("c", status=allocated("n1", "a")),
        rule("all"),
        device_class(extendedResourceName="example.com/gpu"),
    ]
    devices = known(*objects)
    reported(devices)
    for raw in objects:
        devices.remove(read(raw))

    kept = {name: value for name, value in vars(devices).items() if isinstance(value, dict) and value}

    assert set(kept) <= {"_offers"}
    assert {devices.offer(name) for name in NODES} == {NOTHING_OFFERED}
    assert not devices.allocated.dedicated


def test_nodes_that_offer_the_same_are_alike_and_others_are_not() -> None:
    alike = known(devices_of("n1", device("a")), devices_of("n2", device("a")))
    other = known(devices_of("n1", device("a")), devices_of("n2", device("a", "80Gi")))
    held = known(devices_of("n1", device("a")), devices_of("n2", device("a")), claim("c", status=allocated("n1", "a")))
    network = known(devices_of("n1", device("a")), devices_of("n2", device("a")), resource_slice("net", allNodes=True))

    assert alike.offer("n1") == alike.offer("n2")
    for devices in (other, held, network):
        assert devices.offer("n1") != devices.offer("n2")


def test_the_newest_device_class_of_a_resource_wins_then_the_first_by_name() -> None:
    def named(name: str, created: str) -> Raw:
        raw = device_class(name, extendedResourceName="example.com/gpu")
        return {**raw, "metadata": {"name": name, "creationTimestamp": created}}

    old, b, a = (
        named(*one)
        for one in (("old", "2026-01-01T00:00:00Z"), ("b", "2026-02-01T00:00:00Z"), ("a", "2026-02-01T00:00:00Z"))
    )

    assert known(b, old).backed["example.com/gpu"].metadata.name == "b"
    assert known(b, a, old).backed["example.com/gpu"].metadata.name == "a"
    assert known(old).backed["deviceclass.resource.kubernetes.io/old"].metadata.name == "old"
