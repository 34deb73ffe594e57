"""The strategic merge patch that leads from one form of an object to another.

Source: apimachinery (pkg/util/strategicpatch, CreateTwoWayMergePatch), which is how kube-scheduler and the kubelet make
their patches of a pod's status.
"""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.store.patches.merge_keys import Schema

_ORDER = "$setElementOrder/"
_DELETE_FROM = "$deleteFromPrimitiveList/"


def strategic_diff(old: Raw, new: Raw, schema: Schema) -> Raw:
    """The patch that makes `new` of `old`: {} where they are equal. None of them has nulls."""
    patch: Raw = {}
    for field, value in new.items():
        before = old.get(field)
        if before is value or before == value:
            continue
        if isinstance(value, dict) and isinstance(before, dict) and field not in schema.replaced:
            patch[field] = strategic_diff(before, value, schema.of(field))
        elif isinstance(value, list) and isinstance(before, list) and field in schema.lists:
            _diff_list(patch, field, before, value, schema)
        else:
            patch[field] = value
    for field in old:
        if field not in new:
            patch[field] = None
    return patch


def _diff_list(patch: Raw, field: str, old: list[Any], new: list[Any], schema: Schema) -> None:
    """Put into the patch what changes a list that is merged."""
    key = schema.lists[field]
    if not key:
        _diff_set(patch, field, old, new)
        return
    before, after = _by_key(old, key), _by_key(new, key)
    if before is None or after is None:
        patch[field] = [*new, {"$patch": "replace"}]
        return
    inner = schema.of(field)
    changes: list[Any] = []
    for identity, item in after.items():
        known = before.get(identity)
        if known is None:
            changes.append(item)
        elif known != item:
            changes.append({**strategic_diff(known, item, inner), key: identity})
    changes += [{"$patch": "delete", key: identity} for identity in before if identity not in after]
    patch[_ORDER + field] = [{key: identity} for identity in after]
    if changes:
        patch[field] = changes


def _diff_set(patch: Raw, field: str, old: list[Any], new: list[Any]) -> None:
    added = [value for value in new if value not in old]
    gone = [value for value in old if value not in new]
    if added:
        patch[field] = added
    if gone:
        patch[_DELETE_FROM + field] = gone
    patch[_ORDER + field] = new


def _by_key(items: list[Any], key: str) -> dict[Any, Raw] | None:
    """The items by what tells them apart; None where two are the same, or one does not say."""
    found: dict[Any, Raw] = {}
    for item in items:
        identity = item.get(key) if isinstance(item, dict) else None
        if identity is None or identity in found:
            return None
        found[identity] = item
    return found
