"""The steps `patch` of a scenario, as they are written.

- at: 1m
  patch: {kind: PriorityClass, name: batch, patch: {preemptionPolicy: Never}}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import msgspec

from podium.api.errors import InputError, shown
from podium.sim.scenario.changes import Patch, StepPatchType
from podium.sim.scenario.fields import Fields

PATCH_TYPES: tuple[StepPatchType, ...] = get_args(StepPatchType)
SUBRESOURCES: tuple[Literal["", "status"], ...] = ("", "status")
_LONGEST = 1_000_000


def read_patch(target: Fields, key_of: Callable[[Fields, str], str], is_namespaced: Mapping[str, bool]) -> Patch:
    """Which object is patched, in which of the API's ways, and how. Raises InputError with the field's path."""
    kind = target.text("kind")
    if kind not in is_namespaced:
        raise InputError(f"the kind {shown(kind)} is not simulated", path=f"{target.path}.kind")
    key = key_of(target, kind)
    type_ = target.choice("type", PATCH_TYPES, "strategic")
    is_status = bool(target.choice("subresource", SUBRESOURCES, ""))
    return Patch(kind, key, type_, _body(target, type_), "status" if is_status else "")


def _body(target: Fields, type_: StepPatchType) -> Any:
    """The patch: an object or, of type `json`, a list; or text with it in JSON, which keeps nulls."""
    path = f"{target.path}.patch"
    body = target.take("patch")
    is_text = isinstance(body, str)
    if is_text:
        if len(body) > _LONGEST:
            raise InputError(f"has more than {_LONGEST:,} characters", path=path)
        try:
            body = msgspec.json.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f"is text, and no JSON: {error}", path=path) from None
    wanted = list if type_ == "json" else dict
    if not isinstance(body, wanted):
        what = "a list of operations" if type_ == "json" else "an object"
        raise InputError(f"{shown(body)} is not {what}, as a patch of type {type_} is", path=path)
    if not is_text and type_ != "json" and _has_empty(body):
        problem = 'has an empty object; to remove fields write text, as in \'{"metadata": {"labels": {"app": null}}}\''
        raise InputError(problem, path=path)
    return body


def _has_empty(value: Any) -> bool:
    """Whether nulls may have stood there, which are left out where objects are read."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value == {} or any(map(_has_empty, inner))
