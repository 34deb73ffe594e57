"""Pruning and defaulting by a schema.

Source: apiextensions-apiserver (pkg/apiserver/schema/pruning, defaulting).
"""

from __future__ import annotations

from typing import Any

from podium.api.errors import field_path
from podium.api.meta import Raw
from podium.api.structural.structural import NOTHING, TYPE_FIELDS, Structural


def shaped(raw: Raw, node: Structural) -> tuple[Raw, list[str]]:
    """Return an object in its stored form, and the paths of pruned fields, such as `spec.size`."""
    gone: list[str] = []
    kept = {name: raw[name] for name in TYPE_FIELDS if name in raw}
    pruned = _pruned({name: value for name, value in raw.items() if name not in kept}, node, "", gone)
    filled: Raw = _filled(pruned, node)
    return {**kept, **{name: value for name, value in filled.items() if name not in TYPE_FIELDS}}, gone


def _pruned(value: Any, node: Structural, path: str, gone: list[str]) -> Any:
    if isinstance(value, list):
        if node.items is None:
            return value
        return [_pruned(item, node.items, f"{path}[{index}]", gone) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    found: Raw = {}
    for key, inner in value.items():
        place = field_path(path, key).removeprefix(".")
        if key in node.properties:
            found[key] = _pruned(inner, node.properties[key], place, gone)
        elif node.is_embedded and key in TYPE_FIELDS:
            found[key] = inner
        elif node.values is not None:
            found[key] = inner if node.values.keeps_unknown else _pruned(inner, node.values, place, gone)
        elif node.keeps_unknown:
            found[key] = inner
        else:
            gone.append(place)
    return found


def _filled(value: Any, node: Structural) -> Any:
    """Return the value with defaults; nulls that the schema does not allow count as absent."""
    if isinstance(value, list):
        return value if node.items is None else [_filled(item, node.items) for item in value]
    if not isinstance(value, dict):
        return value
    found: Raw = {}
    for key, inner in value.items():
        of = node.properties.get(key, node.values)
        if inner is None and of is not None and not of.is_nullable and key in node.properties:
            continue
        found[key] = inner if of is None else _filled(inner, of)
    for name, of in node.properties.items():
        if of.default is not NOTHING and name not in found:
            found[name] = _filled(of.default, of)
    return found
