"""The fields of a value, the differences of two values, and the merge of an applied one.

Source: structured-merge-diff (typed: tofieldset.go, compare.go, merge.go, remove.go).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from podium.api.ownership.field_sets import ANYTHING, EMPTY, ONE, SELF, FieldSet, Shape, elements_of

_LEAF: FieldSet = {}


def fields_of_value(value: Any, shape: Shape, *, with_maps: bool = False) -> FieldSet:
    """Return the fields of an object. Raises KeyMissingError for a list with items without keys.

    With `with_maps`, maps are fields themselves besides their entries, as they are for managers that add them by an
    update.
    """
    return _parts(value, shape, with_maps) or EMPTY


def _parts(value: Any, shape: Shape, with_maps: bool) -> FieldSet | None:
    """Return the nested fields of a value; None if it has none and is a single field."""
    if shape.form == "map" and isinstance(value, dict):
        return _parts_of_map(value, shape, with_maps)
    if shape.form in ("list", "set") and isinstance(value, list) and shape.item is not None:
        found: FieldSet = {}
        for element, item in zip(elements_of(value, shape), value, strict=True):
            parts = None if element in found else _parts(item, shape.item, with_maps)
            found[element] = {SELF: _LEAF, **parts} if parts else _LEAF
        return found
    return None


def _parts_of_map(value: dict[str, Any], shape: Shape, with_maps: bool) -> FieldSet:
    found: FieldSet = {}
    fields = shape.fields
    for key, inner in value.items():
        named = fields.get(key)
        of = named or shape.value or ANYTHING
        if of is ONE or not isinstance(inner, dict | list):
            found["f:" + key] = _LEAF
            continue
        parts = _parts(inner, of, with_maps)
        if parts is None or (not inner and isinstance(inner, dict)):
            found["f:" + key] = _LEAF
        elif parts:
            is_itself = named is None or (with_maps and (isinstance(inner, list) or not of.fields))
            found["f:" + key] = {SELF: _LEAF, **parts} if is_itself else parts
        elif with_maps:
            found["f:" + key] = _LEAF
    return found


@dataclass(slots=True)
class Comparison:
    """The difference between two values: added, modified and removed fields."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


def compared(old: Any, new: Any, shape: Shape) -> Comparison:
    """Return the difference between two objects. Raises KeyMissingError as `fields_of_value` does."""
    found = Comparison({}, {}, {})
    _compare_maps(old, new, shape, found)
    return found


def _compare_maps(old: dict[str, Any], new: dict[str, Any], shape: Shape, found: Comparison) -> None:
    for key in {**old, **new}:
        of = shape.fields.get(key) or shape.value or ANYTHING
        if key not in new:
            found.removed["f:" + key] = _whole(old[key], of)
        elif key not in old:
            found.added["f:" + key] = _whole(new[key], of)
        elif old[key] is not new[key] and old[key] != new[key]:
            _compare(old[key], new[key], of, "f:" + key, found)


def _compare(old: Any, new: Any, shape: Shape, name: str, found: Comparison) -> None:
    """Add the differences of two unequal values with this name."""
    inner = Comparison({}, {}, {})
    if shape.form == "map" and isinstance(old, dict) and isinstance(new, dict) and (old or new):
        _compare_maps(old, new, shape, inner)
    elif shape.form in ("list", "set") and isinstance(old, list) and isinstance(new, list) and shape.item is not None:
        item = shape.item
        before = dict(zip(elements_of(old, shape), old, strict=True))
        after = dict(zip(elements_of(new, shape), new, strict=True))
        for element in {**before, **after}:
            if element not in after:
                inner.removed[element] = _item(before[element], item)
            elif element not in before:
                inner.added[element] = _item(after[element], item)
            elif before[element] != after[element]:
                _compare(before[element], after[element], item, element, inner)
    else:
        found.modified[name] = _LEAF
        return
    for mine, theirs in ((found.added, inner.added), (found.modified, inner.modified), (found.removed, inner.removed)):
        if theirs:
            mine[name] = theirs


def _item(value: Any, shape: Shape) -> FieldSet:
    parts = _parts(value, shape, True)
    return {SELF: _LEAF, **parts} if parts else _LEAF


def _whole(value: Any, shape: Shape) -> FieldSet:
    """Return the fields of a value that only one side has."""
    parts = _parts(value, shape, True)
    if not parts:
        return _LEAF
    is_itself = shape.form == "map" and not shape.fields
    return {SELF: _LEAF, **parts} if is_itself or isinstance(value, list) else parts


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
    order = deque(dict.fromkeys(theirs))
    shared = deque(element for element in order if element in by_element)
    found: list[Any] = []

    def take_up_to(element: str) -> None:
        """Append applied items in order, up to an item that is in both lists."""
        while order:
            following = order.popleft()
            new = wanted[following]
            found.append(merged(by_element[following], new, item) if following in by_element else new)
            if following == element:
                return

    for element, value in zip(ours, live, strict=True):
        if element not in wanted:
            found.append(value)
        elif shared and shared[0] == element:
            take_up_to(shared.popleft())
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
