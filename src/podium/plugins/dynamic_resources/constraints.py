"""What the devices of a claim must have in common, or not.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating (allocator_incubating.go, constraint.go).
"""

from __future__ import annotations

from podium.api.devices import Device, DeviceAttribute
from podium.api.resource_claims import DeviceConstraint
from podium.cluster.allocated_devices import DeviceID

AttributeValue = tuple[str, str | int | bool]


class Constraint:
    """A constraint and the devices that were taken under it: all of them have the attribute.

    Of a distinct attribute only the value taken last is remembered for each request, so that within one request a value
    may come again after another: kube-scheduler's distinctAttributeConstraint keeps them by the request's name.
    """

    def __init__(self, written: DeviceConstraint) -> None:
        self.attribute = written.match_attribute or written.distinct_attribute or ""
        self._requests = frozenset(written.requests)
        self._is_distinct = written.match_attribute is None
        self._count = 0
        self._common: AttributeValue | None = None
        self._last: dict[str, AttributeValue] = {}

    def concerns(self, request: str, alternative: str) -> bool:
        """Whether it holds for the devices of a request, or of one of its alternatives ("" for none)."""
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests

    def add(self, request: str, device: Device, id_: DeviceID) -> bool:
        """Take one more device; False where that would break the constraint."""
        found = _find(device, id_, self.attribute)
        value = None if found is None else _value(found)
        if value is None or (self._count and not self._allows(value)):
            return False
        if not self._count:
            self._common = value
        self._last[request] = value
        self._count += 1
        return True

    def remove(self, request: str) -> None:
        """Give back a device of the request."""
        self._last.pop(request, None)
        self._count -= 1

    def _allows(self, value: AttributeValue) -> bool:
        return value not in self._last.values() if self._is_distinct else value == self._common


def _find(device: Device, id_: DeviceID, name: str) -> DeviceAttribute | None:
    """An attribute by its full name; without a domain it stands under the driver's."""
    attributes = device.fields.attributes
    if name in attributes:
        return attributes[name]
    domain, slash, rest = name.partition("/")
    return attributes.get(rest) if slash and domain == id_[0] else None


def _value(attribute: DeviceAttribute) -> AttributeValue | None:
    for kind, value in (
        ("string", attribute.string),
        ("int", attribute.int_),
        ("bool", attribute.bool_),
        ("version", attribute.version),
    ):
        if value is not None:
            return kind, value
    return None
