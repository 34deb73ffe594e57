"""The keys of list items in field sets."""

from __future__ import annotations

import json
from typing import Any

from podium.api.ownership.shapes import Shape


class KeyMissingError(ValueError):
    """An error for a list item without its key fields."""


def element_of(item: Any, shape: Shape) -> str:
    """Return the key of an item in a list of that shape. Raises KeyMissingError."""
    if shape.form == "set":
        return "v:" + json.dumps(item, separators=(",", ":"), ensure_ascii=False)
    if not isinstance(item, dict):
        raise KeyMissingError("associative list with keys may not have non-map elements")
    keys = {key: item.get(key, shape.defaults.get(key)) for key in shape.keys}
    told = {key: value for key, value in sorted(keys.items()) if value is not None}
    if not told:
        listed = ", ".join(shape.keys)
        raise KeyMissingError(f"associative list with keys has an element that omits key field {listed}")
    return "k:" + json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def elements_of(items: list[Any], shape: Shape) -> list[str]:
    """Return the keys of all items of a list."""
    return [element_of(item, shape) for item in items]
