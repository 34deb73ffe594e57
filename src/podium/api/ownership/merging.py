"""The merge of an applied configuration into an object, and the removal of fields.

Source: structured-merge-diff (typed: merge.go, remove.go).
"""

from __future__ import annotations

from typing import Any

from podium.api.ownership.elements import elements_of
from podium.api.ownership.field_sets import SELF, FieldSet
from podium.api.ownership.shapes import ANYTHING, ONE, Shape


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """Return the live value with the configuration merged in. Raises KeyMissingError for items without keys."""
    if shape.form == "map" and isinstance(live, dict) and isinstance(applied, dict):
        found = dict(live)
        for key, value in applied.items():
            of = shape.fields.get(key) or shape.value or ANYTHING
            found[key] = merged(live[key], value, of) if key in live else value
        return found
    if shape.form in ("list", "set") and isinstance(live, list) and isinstance(applied, list):
        return _merged_lists(live, applied, shape)
    return applied


def _merged_lists(live: list[Any], applied: list[Any], shape: Shape) -> list[Any]:
    """Return the items of both lists: applied ones in their order, others in their place between them."""
    item = shape.item or ONE
    ours, theirs = elements_of(live, shape), elements_of(applied, shape)
    by_element, wanted = dict(zip(ours, live, strict=True)), dict(zip(theirs, applied, strict=True))
    order = list(dict.fromkeys(theirs))
    shared = [element for element in order if element in by_element]
    found: list[Any] = []

    def take_up_to(element: str) -> None:
        """Append applied items in order, up to an item that is in both lists."""
        while order:
            following = order.pop(0)
            new = wanted[following]
            found.append(merged(by_element[following], new, item) if following in by_element else new)
            if following == element:
                return

    for element, value in zip(ours, live, strict=True):
        if element not in wanted:
            found.append(value)
        elif shared and shared[0] == element:
            take_up_to(shared.pop(0))
    take_up_to("")
    return found


def without(value: Any, fields: FieldSet, shape: Shape) -> Any:
    """Return the value without these fields and everything within them."""
    if shape.form == "map" and isinstance(value, dict):
        found: dict[str, Any] = {}
        for key, inner in value.items():
            below = fields.get("f:" + key)
            if below is None:
                found[key] = inner
            elif below and SELF not in below:
                found[key] = without(inner, below, shape.fields.get(key) or shape.value or ANYTHING)
        return found
    if shape.form in ("list", "set") and isinstance(value, list):
        item = shape.item or ONE
        kept = []
        for element, inner in zip(elements_of(value, shape), value, strict=True):
            below = fields.get(element)
            if below is None:
                kept.append(inner)
            elif below and SELF not in below:
                kept.append(without(inner, below, item))
        return kept
    return value
