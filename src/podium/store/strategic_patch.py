"""Strategic merge patch: a merge patch that merges lists of items with keys.

The rules of apimachinery's util/strategicpatch: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and
`$setElementOrder/<field>`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from podium.api.meta import Raw
from podium.api.schemas.schema import ListOf, Object, fields_of, is_type
from podium.store.errors import StoreError, bad_request

_GO_TYPES = {bool: "bool", float: "float64", int: "int64", str: "string"}
_PATCH = "$patch"
_RETAIN = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"


def strategic_patch(target: Raw, patch: Any, schema: MergeSchema) -> Raw:
    """Return the patched target; neither argument is changed. Raises StoreError 400 for a malformed patch."""
    if not isinstance(patch, dict):
        raise bad_request("a strategic merge patch is an object")
    return _merged(target, patch, schema)


def _merged(target: Raw, patch: Raw, schema: MergeSchema) -> Raw:
    for field in patch:
        if field[:1] == "$":
            return _with_directives(target, patch, schema)
    return _with_values(dict(target), patch, schema)


def _with_directives(target: Raw, patch: Raw, schema: MergeSchema) -> Raw:
    """Return an object after a patch with directives."""
    directive = patch.get(_PATCH)
    if directive == "delete":
        return {}
    if directive == "replace":
        target = {}
    elif directive is not None:
        raise bad_request(f"{_PATCH} is delete or replace")
    result = dict(target)
    values = {field: value for field, value in patch.items() if not field.startswith("$")}
    if _RETAIN in patch:
        kept = patch[_RETAIN]
        if not isinstance(kept, list) or any(values[field] is not None and field not in kept for field in values):
            raise bad_request(f"{_RETAIN} is a list of all fields that stay, those of the patch among them")
        result = {field: value for field, value in target.items() if field in kept}
    for field in sorted({field.partition("/")[2] for field in patch if field.startswith((ORDER, DELETE_FROM))}):
        changed = _changed_list(result, patch, field, schema)
        values.pop(field, None)
        if changed is not None:
            result[field] = changed
    return _with_values(result, values, schema)


def _with_values(result: Raw, values: Raw, schema: MergeSchema) -> Raw:
    """Return the object, which has no other reference yet, with the values of a patch merged in."""
    for field, value in values.items():
        if value is None:
            result.pop(field, None)
        else:
            result[field] = _value(result.get(field), value, field, schema)
    return result


def _value(old: Any, new: Any, field: str, schema: MergeSchema) -> Any:
    if isinstance(new, dict):
        merges = isinstance(old, dict) and field not in schema.replaced
        return _merged(old if merges else {}, new, schema.of(field))
    if isinstance(new, list):
        key = schema.lists.get(field)
        if key is None:
            return [_merged({}, item, _PLAIN) if isinstance(item, dict) else item for item in new]
        old = old if isinstance(old, list) else []
        merged, given = _merged_list(old, new, key, schema.of(field))
        return in_order(merged, given, old, key)
    if isinstance(old, dict):
        problem = f"cannot restore map from {_GO_TYPES[type(new)]}"
        message = f' "" is invalid: patch: Invalid value: {problem}'
        raise StoreError(422, "Invalid", f"the patch is invalid in {field}: {problem}", None, message)
    return new


def _changed_list(target: Raw, patch: Raw, field: str, schema: MergeSchema) -> list[Any] | None:
    """Return the list of a field with directives: merged, without deleted plain values, in the requested order."""
    old, new = target.get(field, []), patch.get(field)
    order, deleted = patch.get(ORDER + field), patch.get(DELETE_FROM + field, [])
    for part in (old, new or [], order or [], deleted):
        if not isinstance(part, list):
            raise bad_request(f"{field} and the directives for it are lists")
    if field not in target and new is None:
        return None
    key = schema.lists.get(field)
    if key is None:
        raise bad_request(f"{field} is replaced as a whole, and takes no directives")
    merged, given = _merged_list(old, new or [], key, schema.of(field))
    if deleted:
        gone = set(identities(deleted, ""))
        merged = [item for item, identity in zip(merged, identities(merged, ""), strict=True) if identity not in gone]
    wanted = iter(identities(order or [], key))
    if order and not all(identity in wanted for identity in identities(given, key)):
        raise bad_request("the order of the items in the patch is not that of $setElementOrder")
    return in_order(merged, given if order is None else order, old, key)


def _merged_list(old: list[Any], new: list[Any], key: str, schema: MergeSchema) -> tuple[list[Any], list[Any]]:
    """Return the merged items, old ones first, and the patch's items without directives."""
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
    """Return the items without directives, the identities to delete, and whether the list is replaced."""
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


def identities(items: Sequence[Any], key: str) -> list[Hashable]:
    """Return the identities of a list's items: their field `key`, or for "" the items themselves.

    Raises StoreError 400 for an item that has no identity.
    """
    found: list[Hashable] = []
    for item in items:
        if key and (not isinstance(item, dict) or key not in item):
            raise bad_request(f"an item of a list that is merged by {key} has no {key}")
        identity = item[key] if key else item
        if isinstance(identity, dict | list):
            raise bad_request("objects and lists do not tell items apart")
        found.append(identity)
    return found


def in_order(items: Sequence[Any], requested: Sequence[Any], before: Sequence[Any], key: str) -> list[Any]:
    """Return the items in the order that a patch requests.

    Items in `requested` follow its order. The others keep their order from `before`, and each precedes the first of the
    requested items that it preceded there.
    """
    wanted, before_of = _positions(identities(requested, key)), _positions(identities(before, key))
    named = dict(zip(identities(items, key), items, strict=True))
    first = sorted((one for one in named if one in wanted), key=wanted.__getitem__)
    rest = sorted((one for one in named if one not in wanted), key=lambda item: before_of.get(item, len(before_of)))
    result: list[Any] = []
    for one in first:
        while rest and one in before_of and before_of.get(rest[0], len(before_of)) < before_of[one]:
            result.append(named[rest.pop(0)])
        result.append(named[one])
    return result + [named[one] for one in rest]


def _positions(found: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the first position of each identity."""
    return {identity: position for position, identity in reversed([*enumerate(found)])}


class MergeSchema(Struct, frozen=True, kw_only=True):
    """The fields of an object with special merge behavior.

    `lists` are merged by the given field of their items; "" is a list of plain values, merged as a set. `replaced` are
    objects that are replaced as a whole. `fields` are the schemas of nested objects, and of items of lists.
    """

    lists: Mapping[str, str] = {}
    replaced: frozenset[str] = frozenset()
    fields: Mapping[str, MergeSchema] = {}

    def of(self, name: str) -> MergeSchema:
        """Return the schema of a field, or of its items."""
        return self.fields.get(name, _PLAIN)


_PLAIN = MergeSchema()


def merge_schema_of(kind: str) -> MergeSchema:
    """Return the schema of a built-in kind; that of the metadata alone if its fields are not known."""
    return _of_type(kind) if is_type(kind) else MergeSchema(fields={"metadata": _of_type("ObjectMeta")})


@cache
def _of_type(name: str) -> MergeSchema:
    fields = fields_of(name)
    inner = {key: one.type.item if isinstance(one.type, ListOf) else one.type for key, one in fields.items()}
    return MergeSchema(
        lists={key: one.merge_key for key, one in fields.items() if one.merge_key is not None},
        replaced=frozenset(key for key, one in fields.items() if one.strategy == "replace"),
        fields={key: _of_type(one.name) for key, one in inner.items() if isinstance(one, Object)},
    )
