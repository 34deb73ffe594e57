"""A parsed structural schema: the specification of one location in an object, and of those below it.

Source: apiextensions-apiserver (pkg/apiserver/schema/structural.go, convert.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podium.api.meta import Raw

if TYPE_CHECKING:
    from podium.api.structural.rules import Rule

NOTHING: Any = object()
"""The marker for an absent default; null is a valid default."""

TYPE_FIELDS = ("apiVersion", "kind", "metadata")
"""The fields that every object has, whatever its schema."""


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    """The specification of one location.

    `type` is that of OpenAPI, "" if there is none. `values` specifies the values of arbitrary keys, None if only
    `properties` are allowed. `said` is the schema itself, which contains the value limits.
    """

    type: str = ""
    properties: Mapping[str, Structural] = field(default_factory=dict)
    values: Structural | None = None
    items: Structural | None = None
    default: Any = NOTHING
    is_nullable: bool = False
    keeps_unknown: bool = False
    is_embedded: bool = False
    is_number_or_text: bool = False
    list_type: str = "atomic"
    list_keys: tuple[str, ...] = ()
    is_atomic_map: bool = False
    rules: tuple[Rule, ...] = ()
    said: Raw = field(default_factory=dict)


ANYTHING = Structural(keeps_unknown=True, is_nullable=True)


def read_structural(said: Raw) -> Structural:
    """Return the parsed form of a valid structural schema (`podium.api.structural.soundness`)."""
    values, items = said.get("additionalProperties"), said.get("items")
    return Structural(
        type=said.get("type", ""),
        properties={name: read_structural(inner) for name, inner in said.get("properties", {}).items()},
        values=read_structural(values) if isinstance(values, dict) else ANYTHING if values else None,
        items=read_structural(items) if isinstance(items, dict) else None,
        default=said.get("default", NOTHING),
        is_nullable=bool(said.get("nullable")),
        keeps_unknown=bool(said.get("x-kubernetes-preserve-unknown-fields")),
        is_embedded=bool(said.get("x-kubernetes-embedded-resource")),
        is_number_or_text=bool(said.get("x-kubernetes-int-or-string")),
        list_type=said.get("x-kubernetes-list-type") or "atomic",
        list_keys=tuple(said.get("x-kubernetes-list-map-keys") or ()),
        is_atomic_map=said.get("x-kubernetes-map-type") == "atomic",
        rules=_rules_of(said.get("x-kubernetes-validations")),
        said=said,
    )


def _rules_of(said: Any) -> tuple[Rule, ...]:
    if not said:
        return ()
    from podium.api.structural.rules import read_rules  # noqa: PLC0415 - few schemas have rules, which need CEL

    return read_rules(said)
