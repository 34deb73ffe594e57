"""Strategic merge patch: a merge patch that knows which lists are sets of items with keys.

The rules of apimachinery's util/strategicpatch: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and
`$setElementOrder/<field>`.
"""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.store.errors import bad_request
from podium.store.patches.element_order import identities, in_order
from podium.store.patches.merge_keys import Schema

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def strategic_patch(target: Raw, patch: Any, schema: Schema) -> Raw:
    """What the patch makes of the target; neither is changed. Raises StoreError 400 for what is no such patch."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is an object")
    return _merged(target, patch, schema)


def _merged(target: Raw, patch: Raw, schema: Schema) -> Raw:
    for field in patch:
        if field[:1] == "$":
            return _directed(target, patch, schema)
    return _with_values(dict(target), patch, schema)


def _directed(target: Raw, patch: Raw, schema: Schema) -> Raw:
    """What becomes of an object by a patch with directives."""
    directive = patch.get(_PATCH)
    if directive == "delete":
        return {}
    if directive == "replace":
        target = {}
    elif directive is not None:
        raise bad_request(f"{_PATCH} is delete or replace")
    result = _retained(target, patch)
    values = {field: value for field, value in patch.items() if not field.startswith("$")}
    for field in sorted({field.partition("/")[2] for field in patch if field.startswith((_ORDER, _DELETE_FROM))}):
        changed = _changed_list(result, patch, field, schema)
        values.pop(field, None)
        if changed is not None:
            result[field] = changed
    return _with_values(result, values, schema)


def _with_values(result: Raw, values: Raw, schema: Schema) -> Raw:
    """The object, which nobody else has yet, with the values of a patch."""
    for field, value in values.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = _value(result.get(field), value, field, schema)
    return result


def _retained(target: Raw, patch: Raw) -> Raw:
    """The target with the fields alone that `$retainKeys` lists, where it is given."""
    if _RETAIN not in patch:
        return dict(target)
    kept = patch[_RETAIN]
    given = (field for field, value in patch.items() if value is not None and not field.startswith("$"))
    if not isinstance(kept, list) or any(field not in kept for field in given):
        raise bad_request(f"{_RETAIN} is a list of all fields that stay, those of the patch among them")
    return {field: value for field, value in target.items() if field in kept}


def _value(old: Any, new: Any, field: str, schema: Schema) -> Any:
    """What becomes of one field's value."""
    if isinstance(new, dict):
        merges = isinstance(old, dict) and field not in schema.replaced
        return _merged(old if merges else {}, new, schema.of(field))
    if isinstance(new, list):
        key = schema.lists.get(field)
        if key is None:
            return [_without_directives(item) for item in new]
        old = old if isinstance(old, list) else []
        simple = _merged_simply(old, new, key, schema.of(field)) if key else None
        if simple is not None:
            return simple
        merged, given = _merged_list(old, new, key, schema.of(field))
        return in_order(merged, given, old, key)
    return new


def _merged_simply(old: list[Any], new: list[Any], key: str, schema: Schema) -> list[Any] | None:
    """The merged list in its order, in one go; None where it is not as simple as nearly all are.

    That is: no directives, each item there once, and those of the patch in the order in which they stood.
    """
    try:
        places = {item[key]: place for place, item in enumerate(old)}
    except (KeyError, TypeError):
        return None
    if len(places) != len(old):
        return None
    result: list[Any] = []
    begin = 0
    for item in new:
        identity = item.get(key) if isinstance(item, dict) and _PATCH not in item else None
        if identity is None or isinstance(identity, dict | list):
            return None
        place = places.get(identity)
        if place is None:
            places[identity] = -1
            result.append(_merged({}, item, schema))
        elif place < begin:
            return None
        else:
            result += old[begin:place]
            result.append(_merged(old[place], item, schema))
            begin = place + 1
    return result + old[begin:]


def _changed_list(target: Raw, patch: Raw, field: str, schema: Schema) -> list[Any] | None:
    """The list of a field with directives: merged, with plain values taken out, in the order that is asked for."""
    old, new = target.get(field, []), patch.get(field)
    order, deleted = patch.get(_ORDER + field), patch.get(_DELETE_FROM + field, [])
    for part in (old, new or [], order or [], deleted):
        if not isinstance(part, list):
            raise bad_request(f"{field} and the directives for it are lists")
    if field not in target and new is None:
        return None
    key = schema.lists.get(field)
    if key is None:
        raise bad_request(f"{field} is replaced as a whole, and takes no directives")
    simple = _merged_as_ordered(old, new or [], order, key, schema.of(field)) if key and order and not deleted else None
    if simple is not None:
        return simple
    merged, given = _merged_list(old, new or [], key, schema.of(field))
    if deleted:
        gone = set(identities(deleted, ""))
        merged = [item for item, identity in zip(merged, identities(merged, ""), strict=True) if identity not in gone]
    if order is None:
        return in_order(merged, given, old, key)
    _check_order(given, order, key)
    return in_order(merged, order, old, key)


def _merged_as_ordered(old: list[Any], new: list[Any], order: list[Any], key: str, schema: Schema) -> list[Any] | None:
    """The merged list where the order that is asked for names each of its items, and there are no directives.

    None where that is not so, or something is wrong.
    """
    try:
        names = [item[key] for item in order]
        merged = {item[key]: item for item in old}
        given = [item[key] for item in new]
        wanted = iter(names)
        is_ordered = all(name in wanted for name in given)
        if not is_ordered or len(merged) != len(old) or len(set(names)) != len(names):
            return None
    except (KeyError, TypeError):
        return None
    for name, item in zip(given, new, strict=True):
        if _PATCH in item:
            return None
        merged[name] = _merged(merged.get(name, {}), item, schema)
    if len(merged) != len(names) or any(name not in merged for name in names):
        return None
    return [merged[name] for name in names]


def _merged_list(old: list[Any], new: list[Any], key: str, schema: Schema) -> tuple[list[Any], list[Any]]:
    """The old items changed, with the new ones behind; and the patch's items without directives."""
    if not key:
        known = set(identities(old, key))
        added = dict(zip(identities(new, key), new, strict=True))
        return [*old, *(item for identity, item in added.items() if identity not in known)], new
    given, deleted, replaces = _sorted_out(new, key)
    if replaces:
        return [_merged({}, item, schema) for item in given], given
    merged = {
        identity: item for identity, item in zip(identities(old, key), old, strict=True) if identity not in deleted
    }
    for identity, item in zip(identities(given, key), given, strict=True):
        merged[identity] = _merged(merged.get(identity, {}), item, schema)
    return list(merged.values()), given


def _sorted_out(items: list[Any], key: str) -> tuple[list[Raw], set[Any], bool]:
    """The items without directives, the identities of those to be deleted, and whether the list is to be replaced."""
    given: list[Raw] = []
    deleted: list[Raw] = []
    replaces = False
    for item in items:
        directive = item.get(_PATCH) if isinstance(item, dict) else None
        if directive == "delete":
            deleted.append(item)
        elif directive == "replace":
            replaces = True
        elif directive is None:
            given.append(item)
        else:
            raise bad_request(f"{_PATCH} of an item is delete or replace")
    return given, set(identities(deleted, key)), replaces


def _check_order(given: list[Any], order: list[Any], key: str) -> None:
    """That the patch's own items stand in the order that it asks for."""
    wanted = iter(identities(order, key))
    if order and not all(identity in wanted for identity in identities(given, key)):
        raise bad_request("the order of the items in the patch is not that of $setElementOrder")


def _without_directives(item: Any) -> Any:
    return _merged({}, item, Schema()) if isinstance(item, dict) else item
