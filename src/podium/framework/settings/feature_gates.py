"""What can be switched on and off as a whole, named as Kubernetes' feature gates are written.

Source: priorityclass-preemption-policies.md, "Proposal" (the gate NonPreemptingPriority).
"""

from __future__ import annotations

from dataclasses import dataclass

from podium.api.errors import InputError, shown
from podium.api.schemas.suggestion import suggestion

_FIELDS = {"NonPreemptingPriority": "non_preempting_priority"}
_VALUES = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The gates. Without ``non_preempting_priority`` every pod preempts, and can be preempted, by priority alone."""

    non_preempting_priority: bool = True

    def __str__(self) -> str:
        """The gates as `read_feature_gates` takes them."""
        return ",".join(f"{name}={str(getattr(self, field)).lower()}" for name, field in _FIELDS.items())

    @property
    def is_any_off(self) -> bool:
        """Whether anything is switched off."""
        return not all(getattr(self, field) for field in _FIELDS.values())


def read_feature_gates(text: str) -> FeatureGates:
    """The gates of a text such as `NonPreemptingPriority=false`, with commas between several.

    Those that are not named stay as they are. Raises InputError for an unknown gate or a value that is no boolean.
    """
    chosen: dict[str, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.partition("=")
        if name not in _FIELDS:
            raise InputError(f"there is no feature gate {shown(name)}; {suggestion(name, list(_FIELDS))}")
        if value.lower() not in _VALUES:
            raise InputError(f"feature gate {name} is {shown(value)}; it must be true or false")
        chosen[_FIELDS[name]] = _VALUES[value.lower()]
    return FeatureGates(**chosen)
