"""Who owns what after a write: the rules for those who update objects, and for those who apply a part of them.

Source: structured-merge-diff (merge/update.go), apimachinery (pkg/util/managedfields/internal: structuredmerge.go,
stripmeta.go, skipnonapplied.go, lastapplied.go, conflict.go).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from podium.api.meta import Raw
from podium.api.ownership.elements import KeyMissingError
from podium.api.ownership.field_sets import (
    EMPTY,
    FieldSet,
    difference,
    intersection,
    paths,
    union,
    with_named_fields,
)
from podium.api.ownership.merging import merged, without
from podium.api.ownership.owned import Comparison, compared, fields_of_value
from podium.api.ownership.shapes import Shape
from podium.store.errors import StoreError, bad_request
from podium.store.ownership.entries import Entries, Entry, Manager, entry_of, of_managers

BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager that owns what was there when an object of which nobody kept account is applied to."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL = "kubectl"
OF_THE_SERVER = frozenset(
    (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)
"""The fields of metadata that nobody owns."""

_TYPE = ("apiVersion", "kind")


def comparable(raw: Raw) -> Raw:
    """The object without what nobody owns: its type, its identity, its life."""
    found = {name: value for name, value in raw.items() if name not in _TYPE}
    metadata = {name: value for name, value in raw.get("metadata", {}).items() if name not in OF_THE_SERVER}
    if metadata:
        found["metadata"] = metadata
    else:
        found.pop("metadata", None)
    return found


def changes_of(old: Raw, new: Raw, shape: Shape) -> Comparison:
    """In what an update changes an object. Where items cannot be told apart, nothing is."""
    try:
        return compared(old, new, shape)
    except KeyMissingError:
        return Comparison({}, {}, {})


def after_update(entries: Entries, manager: Manager, changes: Comparison, api_version: str, now: int) -> Entries:
    """Who owns what once a manager has made these changes: what it changed is its own, and nobody else's."""
    found = _taken_from_others(entries, manager, changes)
    before = entries.get(manager)
    own = before.fields if before is not None else EMPTY
    fields = union(union(difference(own, changes.removed), changes.modified), changes.added)
    if before is not None and fields == before.fields:
        found[manager] = before
    elif fields:
        found[manager] = entry_of(fields, api_version, now)
    return found


def _taken_from_others(entries: Entries, manager: Manager, changes: Comparison) -> dict[Manager, Entry]:
    """The entries of all others, without what was changed and what is gone."""
    lost = union(union(changes.modified, changes.added), changes.removed)
    found: dict[Manager, Entry] = {}
    for other, entry in entries.items():
        if other == manager:
            continue
        left = difference(entry.fields, intersection(entry.fields, lost))
        if left:
            found[other] = entry if left == entry.fields else Entry(left, entry.api_version, entry.time)
    return found


def _everything(fields: FieldSet) -> FieldSet:
    return fields


class Claim(NamedTuple):
    """Who applies something, in which version, and when; and what of it is owned by that."""

    manager: Manager
    api_version: str
    now: int
    owned: Callable[[FieldSet], FieldSet] = _everything


class Application:
    """What somebody applies to an object, and what comes of it.

    `result` is the object, `entries` who owns what in it. Raises StoreError 400 for what cannot be merged, and 409 with
    the fields that others own and that would change, unless `force` takes them.
    """

    def __init__(
        self,
        live: Raw,
        config: Raw,
        shape: Shape,
        entries: Entries,
        claim: Claim,
        *,
        force: bool,
    ) -> None:
        manager, api_version, now, owned = claim
        if not entries:
            first = Manager(BEFORE_FIRST_APPLY, "Update", api_version)
            fields = changes_of({}, live, shape).added
            entries = {first: entry_of(fields, api_version, now)} if fields else {}
        try:
            applied = owned(fields_of_value(config, shape))
            last = entries.get(manager)
            mine = entry_of(applied, api_version, now)
            if last is not None and (last.fields, last.api_version) == (applied, api_version):
                mine = last
            claimed = {**entries, manager: mine}
            result = merged(live, config, shape)
            result = _pruned(result, last.fields if last is not None else EMPTY, claimed, shape)
            changes = compared(live, result, shape)
        except KeyMissingError as error:
            raise bad_request(f"failed to create typed patch object: {error}") from None
        conflicts = _conflicts(claimed, manager, changes)
        if conflicts and not force and not _is_kubectls_own(live, shape, conflicts, manager):
            raise _conflict(conflicts)
        others = _taken_from_others(claimed, manager, changes)
        self.result: Raw = result
        self.entries: Entries = {**others, **({manager: mine} if applied else {})}


def _pruned(result: Raw, last: FieldSet, claimed: Entries, shape: Shape) -> Raw:
    """The object without what the manager applied before, applies no longer, and nobody else owns."""
    if not last:
        return result
    kept = with_named_fields(of_managers(claimed), shape)
    present = with_named_fields(fields_of_value(result, shape, with_maps=True), shape)
    gone = difference(intersection(with_named_fields(last, shape), present), kept)
    pruned: Raw = without(result, gone, shape) if gone else result
    return pruned


def _conflicts(claimed: Entries, manager: Manager, changes: Comparison) -> Mapping[Manager, FieldSet]:
    """The fields that change, by the managers that own them."""
    changed = union(changes.modified, changes.added)
    found = {other: intersection(entry.fields, changed) for other, entry in claimed.items() if other != manager}
    return {other: fields for other, fields in found.items() if fields}


def _is_kubectls_own(live: Raw, shape: Shape, conflicts: Mapping[Manager, FieldSet], manager: Manager) -> bool:
    """Whether kubectl changes what it applied itself before, on the client's side, and nobody has changed since."""
    text = live.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED)
    if manager.name != _KUBECTL or not isinstance(text, str):
        return False
    try:
        known = json.loads(text)
        if not isinstance(known, dict):
            return False
        known.pop("metadata", None)
        fields = fields_of_value(known, shape)
        differs = compared(known, {name: live[name] for name in known if name in live}, shape).modified
    except (KeyMissingError, ValueError, RecursionError):
        return False
    contested: FieldSet = {}
    for fields_of_another in conflicts.values():
        contested = union(contested, fields_of_another)
    return not difference(contested, fields) and not intersection(contested, differs)


def _conflict(conflicts: Mapping[Manager, FieldSet]) -> StoreError:
    """The answer to who would take fields from others."""
    found = [(shown_manager(other), path) for other in sorted(conflicts) for path in paths(conflicts[other])]
    causes: list[dict[str, Any]] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for who, path in found
    ]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    else:
        lines: list[str] = []
        for who in sorted({who for who, _ in found}):
            lines += [f"conflicts with {who}:", *(f"- {path}" for whose, path in found if whose == who)]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return StoreError(409, "Conflict", message, {"causes": causes}, message)


def shown_manager(manager: Manager) -> str:
    """A manager as conflicts name it."""
    shown = f'"{manager.name}"'
    if manager.subresource:
        shown = f'{shown} with subresource "{manager.subresource}"'
    return f"{shown} using {manager.api_version}" if manager.operation == "Update" else shown
