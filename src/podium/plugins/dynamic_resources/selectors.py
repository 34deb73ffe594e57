"""Which devices an expression selects: the environment it is evaluated in, and what it answered before.

Source: k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from podium.api.cel.compiler import Declaration
from podium.api.cel.overloads import DYN
from podium.api.cel.program import Program, compile_expression
from podium.api.cel.values import CompileError, EvaluationError, Quantity, Semver, Value, WithDefault
from podium.api.devices import Device, DeviceAttribute, DeviceSelector
from podium.cluster.devices import device_key
from podium.plugins.dynamic_resources.errors import AllocationError

COST_LIMIT = 1_000_000
"""What the evaluation of a selector may cost (resource.k8s.io CELSelectorExpressionMaxCost)."""

_KEPT_ANSWERS = 65_536
_KEPT_PROGRAMS = 1_024


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


@lru_cache(maxsize=_KEPT_PROGRAMS)
def _compiled(text: str) -> Program | str:
    """The program of an expression, or why there is none."""
    try:
        return compile_expression(text, _ENVIRONMENT)
    except CompileError as error:
        return f"CEL compile error: compilation failed: {error}"


class Selectors:
    """Answers what selectors say of devices, each question once: devices that are alike get the same answer."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str, bytes], bool | str] = {}

    def match(self, selectors: tuple[DeviceSelector, ...], driver: str, device: Device, owner: str) -> bool:
        """Whether all of them select the device.

        ``owner`` is the class or claim that they belong to. Raises AllocationError for one that cannot be evaluated:
        that is not the same as no.
        """
        if not selectors:
            return True
        key = device_key(device)
        for number, selector in enumerate(selectors):
            if selector.cel is None:
                raise AllocationError(f"{owner}: selector #{number}: CEL expression empty (unsupported selector type?)")
            question = (selector.cel.expression, driver, key)
            answer = self._answers.get(question)
            if answer is None:
                answer = _answer(selector.cel.expression, driver, device)
                if len(self._answers) >= _KEPT_ANSWERS:
                    self._answers.pop(next(iter(self._answers)))
                self._answers[question] = answer
            if isinstance(answer, str):
                raise AllocationError(f"{owner}: selector #{number}: {answer}")
            if not answer:
                return False
        return True


def _answer(text: str, driver: str, device: Device) -> bool | str:
    """What an expression says of a device, or the error."""
    program = _compiled(text)
    if isinstance(program, str):
        return program
    try:
        return program.is_true({"device": _seen(driver, device)}, COST_LIMIT)
    except EvaluationError as error:
        return f"CEL runtime error: {error}"


def _seen(driver: str, device: Device) -> dict[str, Value]:
    """A device as expressions see it: attributes and capacities by domain, the driver's where they name none."""
    fields = device.fields
    attributes = {name: _attribute(name, attribute) for name, attribute in fields.attributes.items()}
    capacity = {name: Quantity.of(capacity.value) for name, capacity in fields.capacity.items()}
    return {
        "driver": driver,
        "allowMultipleAllocations": fields.allow_multiple_allocations,
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
