"""CEL selectors of devices, with a cache of results."""

from __future__ import annotations

from podium.api.devices import Device, DeviceSelector
from podium.cluster.devices import device_key

_KEPT_ANSWERS = 65_536


# Results by expression, driver, and the device without its name: equal devices share them.
_ANSWERS: dict[tuple[str, str, bytes], bool | str] = {}


def selects(selectors: tuple[DeviceSelector, ...], driver: str, device: Device, owner: str) -> bool:
    """Return whether all selectors of a class or claim, the ``owner``, match the device.

    Raises AllocationError for one that cannot be evaluated, which is not a mismatch.
    """
    if not selectors:
        return True
    from podium.plugins.dynamic_resources.selector_programs import evaluate  # noqa: PLC0415 - few clusters need CEL

    key = device_key(device)
    for number, selector in enumerate(selectors):
        if selector.cel is None:
            raise AllocationError(f"{owner}: selector #{number}: CEL expression empty (unsupported selector type?)")
        question = (selector.cel.expression, driver, key)
        answer = _ANSWERS.get(question)
        if answer is None:
            if len(_ANSWERS) >= _KEPT_ANSWERS:
                del _ANSWERS[next(iter(_ANSWERS))]
            answer = _ANSWERS[question] = evaluate(selector.cel.expression, driver, device)
        if isinstance(answer, str):
            raise AllocationError(f"{owner}: selector #{number}: {answer}")
        if not answer:
            return False
    return True


class AllocationError(Exception):
    """An invalid claim or class; the pod's attempt fails."""


class NodeAllocationError(Exception):
    """Invalid pools of a node; other nodes may work."""


class TooManyStepsError(Exception):
    """The search reached its limit."""
