"""Devices and claims that no API server would store."""

from __future__ import annotations

import re

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import decode
from tests.devices import attributes, claim, device, device_class, devices_of, first_of, request, resource_slice
from tests.store.objects import Raw


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (
            devices_of("n1", *(device(f"d{i}") for i in range(129))),
            "ResourceSlice n1-gpus, .spec.devices: Too many: 129: must have at most 128 items",
        ),
        (devices_of("n1", device("a", "lots")), ".spec.devices[0].capacity.memory.value: "),
        (devices_of("n1", count=0), ".spec.pool.resourceSliceCount: Invalid value: 0: must be greater"),
        (
            devices_of("n1", device("a", attributes={"model": {"string": "x", "int": 1}})),
            ".spec.devices[0].attributes.model: Invalid value: a list: exactly one of `bool`",
        ),
        (
            devices_of("n1", device("a", **attributes(**{f"a{i}": i for i in range(33)}))),
            ".spec.devices[0].attributes: has 34 entries; at most 32 are allowed",
        ),
        (
            resource_slice("s", sharedCounters=[{"name": "x", "counters": {"slots": {"value": "?"}}}]),
            ".spec.sharedCounters[0].counters.slots.value: ",
        ),
        (device_class("c", "x" * 10_241), ".spec.selectors[0].cel.expression: has 10241 characters; at most 10240"),
        (
            claim("c", request(count=0)),
            ".spec.devices.requests[0].exactly.count: Invalid value: 0: must be",
        ),
        (claim("c", *(request(f"r{i}") for i in range(33))), ".spec.devices.requests: Too many: 33"),
        (
            claim("c", first_of("r", request("s", "y" * 20_000))),
            ".spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression: has 20000",
        ),
        (
            claim("c", request(capacity={"requests": {"memory": "much"}})),
            ".spec.devices.requests[0].exactly.capacity.requests.memory: ",
        ),
    ],
)
def test_unstorable_device_objects_are_rejected_with_their_place(raw: Raw, problem: str) -> None:
    with pytest.raises(InputError, match=re.escape(problem)):
        decode(raw)
