"""The evaluation of device selectors: the environment of their expressions, and their compiled programs.

Source: k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from podium.api.cel.compiler import Compiled, Declaration, compile_expression
from podium.api.cel.values import DYN, CompileError, EvaluationError, Quantity, Semver, Value, WithDefault
from podium.api.devices import Device, DeviceAttribute

COST_LIMIT = 1_000_000
"""The cost limit of an evaluation (resource.k8s.io CELSelectorExpressionMaxCost)."""


def _domains(of: str) -> Declaration:
    return Declaration("map", items=Declaration("map", items=Declaration(of)))


_ENVIRONMENT = {
    "device": Declaration(
        "object",
        fields={
            "driver": Declaration("string"),
            "allowMultipleAllocations": Declaration("bool"),
            "attributes": _domains(DYN),
            "capacity": _domains("kubernetes.Quantity"),
        },
    )
}


@lru_cache(maxsize=1_024)
def _compiled(text: str) -> Compiled | str:
    """Return a compiled expression, or the error message."""
    try:
        return compile_expression(text, _ENVIRONMENT)
    except CompileError as error:
        return f"CEL compile error: compilation failed: {error}"


def evaluate(text: str, driver: str, device: Device) -> bool | str:
    """Return an expression's result for a device, or the error message."""
    compiled = _compiled(text)
    if isinstance(compiled, str):
        return compiled
    try:
        return compiled.is_true({"device": _device_value(driver, device)}, COST_LIMIT)
    except EvaluationError as error:
        return f"CEL runtime error: {error}"


def _device_value(driver: str, device: Device) -> dict[str, Value]:
    """Return a device's CEL value: attributes and capacities by domain, by default the driver's."""
    attributes = {name: _attribute(name, attribute) for name, attribute in device.attributes.items()}
    capacity = {name: Quantity.of(capacity.value) for name, capacity in device.capacity.items()}
    return {
        "driver": driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": _by_domain(driver, attributes),
        "capacity": _by_domain(driver, capacity),
    }


def _by_domain(driver: str, values: Mapping[str, Value]) -> WithDefault:
    found = WithDefault()
    for name, value in values.items():
        domain, slash, rest = name.partition("/")
        found.setdefault(domain if slash else driver, {})[rest if slash else name] = value
    return found


def _attribute(name: str, attribute: DeviceAttribute) -> Value:
    for value in (attribute.int_, attribute.bool_, attribute.string):
        if value is not None:
            return value
    if attribute.version is None:
        raise EvaluationError(f"attribute {name}: unsupported attribute value")
    try:
        return Semver.of(attribute.version)
    except EvaluationError as error:
        raise EvaluationError(f"attribute {name}: parse semantic version: {error}") from None
