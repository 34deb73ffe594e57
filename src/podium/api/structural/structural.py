"""A structural schema, read: what belongs at one place of an object, and below it.

Source: apiextensions-apiserver (pkg/apiserver/schema/structural.go, convert.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.api.meta import Raw
from podium.api.structural.rules import Rule, read_rules

NOTHING: Any = object()
"""What stands for a default that there is not; null is one."""

TYPE_FIELDS = ("apiVersion", "kind", "metadata")
"""What every object has, whatever its schema says."""


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    """What belongs at one place.

    `type` is that of OpenAPI, "" where there is none. `values` is what belongs under whatever keys, None where no other
    keys belong there than `properties`. `said` is the schema itself, in which the limits of values stand.
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
    """A schema that is structural (`podium.api.structural.soundness`)."""
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
        rules=read_rules(said.get("x-kubernetes-validations") or ()),
        said=said,
    )
