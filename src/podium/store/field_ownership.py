"""Field ownership: the entries of `metadata.managedFields`, and the rules for updates and for apply.

Source: structured-merge-diff (merge/update.go), apimachinery (pkg/util/managedfields/internal: managedfields.go,
capmanagers.go, structuredmerge.go, stripmeta.go, skipnonapplied.go, lastapplied.go, conflict.go).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, Literal, NamedTuple

import msgspec

from podium.api import ownership
from podium.api.meta import MAX_OBJECT_BYTES, Raw, object_at, objects_at, value_at
from podium.api.objects import shared_spec
from podium.api.ownership import EMPTY, Comparison, FieldSet, KeyMissingError, Shape
from podium.api.schemas.schema import is_type, without_unknown
from podium.api.times import format_time
from podium.store.api_resources import APIResource, APIResources
from podium.store.errors import StoreError, bad_request
from podium.store.stored import SET_BY_SERVER, encoded
from podium.store.verbs.readings import open_in_status
from podium.store.verbs.updates import CONTAINERS, EPHEMERAL, PARTS, RESIZED
from podium.store.version_conversion import OWNED_NAMES

BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager that owns the existing fields when the first apply meets an object without managed fields."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
"""The manager with which kubectl applies on the server."""

SERVER_FIELDS = frozenset((*SET_BY_SERVER, "managedFields", "name", "namespace"))
"""The metadata fields that no manager owns."""

_HEAD = ("apiVersion", "kind", "metadata")
Operation = Literal["Apply", "Update"]
_KEPT_SPECS = 1_024
# The field sets of specs that pods of one class share; by identity, with the spec itself.
_specs: dict[int, tuple[Raw, FieldSet]] = {}
_RESETS: list[list[Raw]] = [[], [{}]]


class FieldManager(NamedTuple):
    """A field manager: a program, its operation, and the subresource that it writes.

    A manager that applies is the same in all versions, so its `api_version` is "".
    """

    name: str
    operation: Operation
    api_version: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class FieldsEntry:
    """The fields of a manager, their API version, and the time since when it owns exactly these.

    `raw` is the entry's serialized form, if known.
    """

    fields: FieldSet
    api_version: str
    time: str
    raw: Raw | None = dataclasses.field(default=None, compare=False)


Entries = Mapping[FieldManager, FieldsEntry]

FIELD = "managedFields"
"""The metadata field that holds the entries."""

ANCIENT = "ancient-changes"
"""The manager that owns the fields of entries beyond the maximum number."""

_MOST_UPDATERS = 10
_KEPT_LISTS = 4_096
# Entries by the identity of their list, which is kept alive with them.
_read: dict[int, tuple[list[Raw], Entries]] = {}
# FieldsV1 has sorted keys.
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")


def read_entries(listed: Any) -> dict[FieldManager, FieldsEntry] | None:
    """Return the entries of an object; None if they cannot be read."""
    if not isinstance(listed, list):
        return {} if listed is None else None
    found: dict[FieldManager, FieldsEntry] = {}
    for raw in listed:
        if not isinstance(raw, dict) or raw.get("operation") not in ("Apply", "Update"):
            return None
        fields, version = raw.get("fieldsV1", {}), raw.get("apiVersion", "")
        if raw.get("fieldsType") != "FieldsV1" or not ownership.is_set(fields) or not isinstance(version, str):
            return None
        operation: Operation = raw["operation"]
        key = "" if operation == "Apply" else version
        manager = FieldManager(str(raw.get("manager", "")), operation, key, str(raw.get("subresource", "")))
        fields = _renamed(fields, {other: name for name, other in OWNED_NAMES.get(version, {}).items()})
        found[manager] = FieldsEntry(fields, version, str(raw.get("time", "")), raw)
    return found


def entries_of(raw: Raw) -> Entries:
    """Return the entries of a stored object; unreadable entries own nothing.

    The result is cached for the next write: most objects that are written are written again.
    """
    listed = raw["metadata"].get(FIELD)
    if not listed:
        return {}
    known = _read.get(id(listed))
    if known is None or known[0] is not listed:
        known = _remembered(listed, read_entries(listed) or {})
    return known[1]


def _remembered(listed: list[Raw], entries: Entries) -> tuple[list[Raw], Entries]:
    if len(_read) >= _KEPT_LISTS:
        del _read[next(iter(_read))]
    _read[id(listed)] = listed, entries
    return listed, entries


def _renamed(fields: FieldSet, names: Mapping[str, str]) -> FieldSet:
    """Return the fields, some of them with other names."""
    return {names.get(name, name): _renamed(inner, names) for name, inner in fields.items()} if names else fields


def _written(manager: FieldManager, entry: FieldsEntry) -> Raw:
    if entry.raw is not None:
        return entry.raw
    fields = _renamed(entry.fields, OWNED_NAMES.get(entry.api_version, {}))
    raw: Raw = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": _shared(_ENCODER.encode(fields)),
    }
    if manager.subresource:
        raw["subresource"] = manager.subresource
    return raw


def _place(item: tuple[FieldManager, FieldsEntry]) -> tuple[str, ...]:
    manager, entry = item
    return manager.operation, entry.time, manager.name, manager.api_version, manager.subresource


def entry_of(fields: FieldSet, api_version: str, now: int) -> FieldsEntry:
    """Return an entry for a manager that owns these fields from now on."""
    return FieldsEntry(fields, api_version, format_time(now))


@lru_cache(maxsize=8_192)
def _shared(packed: bytes) -> FieldSet:
    """Return the one instance of an encoded field set."""
    found: FieldSet = msgspec.msgpack.decode(packed)
    return found


def with_entries(raw: Raw, entries: Entries) -> Raw:
    """Return the object with these entries, appliers first, then by time and name; without any, without the field."""
    metadata = {name: value for name, value in raw["metadata"].items() if name != FIELD}
    if entries:
        capped = dict(entries)
        updaters = sorted((item for item in entries.items() if item[0].operation == "Update"), key=_place)
        excess = len(updaters) - _MOST_UPDATERS
        # The oldest updaters beyond the maximum number are merged.
        for manager, entry in updaters[: excess + 1] if excess > 0 else ():
            del capped[manager]
            ancient = FieldManager(ANCIENT, "Update", entry.api_version)
            before = capped.get(ancient)
            fields = entry.fields if before is None else ownership.union(before.fields, entry.fields)
            capped[ancient] = FieldsEntry(fields, entry.api_version, entry.time)
        metadata[FIELD] = [_written(manager, entry) for manager, entry in sorted(capped.items(), key=_place)]
        _remembered(metadata[FIELD], capped)
    return {**raw, "metadata": metadata}


def comparable(raw: Raw) -> Raw:
    """Return the object without fields that no manager owns: type, identity and lifecycle metadata."""
    found = {name: value for name, value in raw.items() if name not in _HEAD}
    metadata = {name: value for name, value in raw.get("metadata", {}).items() if name not in SERVER_FIELDS}
    return {**found, "metadata": metadata} if metadata else found


def changes_of(old: Raw, new: Raw, shape: Shape) -> Comparison:
    """Return the changes that an update makes; no changes if list items cannot be identified."""
    try:
        return ownership.compared(old, new, shape)
    except KeyMissingError:
        return Comparison({}, {}, {})


def _taken_from_others(entries: Entries, manager: FieldManager, changes: Comparison) -> dict[FieldManager, FieldsEntry]:
    """Return the entries of all other managers without changed and removed fields."""
    lost = ownership.union(ownership.union(changes.modified, changes.added), changes.removed)
    found: dict[FieldManager, FieldsEntry] = {}
    for other, entry in entries.items():
        left = ownership.difference(entry.fields, ownership.intersection(entry.fields, lost))
        if left and other != manager:
            found[other] = entry if left == entry.fields else FieldsEntry(left, entry.api_version, entry.time)
    return found


def _pruned(result: Raw, last: FieldSet, claimed: Entries, shape: Shape) -> Raw:
    """Return the object without fields that the manager applied before, omits now, and no other manager owns."""
    if not last:
        return result
    kept = ownership.with_named_fields(
        reduce(ownership.union, (entry.fields for entry in claimed.values()), EMPTY), shape
    )
    present = ownership.fields_of_value(result, shape, with_maps=True)
    gone = ownership.difference(ownership.intersection(ownership.with_named_fields(last, shape), present), kept)
    return ownership.without(result, gone, shape) if gone else result


def _is_kubectls_own(
    live: Raw, shape: Shape, conflicts: Mapping[FieldManager, FieldSet], manager: FieldManager
) -> bool:
    """Return whether the only conflict is with kubectl's own client-side apply, unchanged since."""
    text = value_at(live, "metadata", "annotations", LAST_APPLIED)
    if manager.name != KUBECTL or not isinstance(text, str):
        return False
    try:
        known = json.loads(text)
        if not isinstance(known, dict):
            return False
        known = comparable(known)
        fields = ownership.fields_of_value(known, shape)
        changes = ownership.compared(known, live, shape)
        differs = ownership.union(changes.modified, changes.removed)
    except (KeyMissingError, ValueError, RecursionError):
        return False
    contested = reduce(ownership.union, conflicts.values(), EMPTY)
    return not ownership.difference(contested, fields) and not ownership.intersection(contested, differs)


def with_last_applied(raw: Raw, config: Raw) -> Raw:
    """Return an object to which kubectl applied a configuration, with that in the annotation of client-side apply.

    An object without the annotation is returned unchanged (apimachinery's lastappliedupdater.go).
    """
    annotations = object_at(raw, "metadata", "annotations")
    if LAST_APPLIED not in annotations:
        return raw
    own = {name: value for name, value in object_at(config, "metadata", "annotations").items() if name != LAST_APPLIED}
    metadata = {name: value for name, value in object_at(config, "metadata").items() if name != "annotations"}
    applied = {**config, "metadata": {**metadata, **({"annotations": own} if own else {})}}
    text = json.dumps(applied, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    return {**raw, "metadata": {**raw["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}


def _conflict(conflicts: Mapping[FieldManager, FieldSet]) -> StoreError:
    """Return the 409 refusal of an apply request that would take fields from other managers."""
    named = ((manager_name(other), conflicts[other]) for other in sorted(conflicts))
    found = [(name, path) for name, fields in named for path in sorted(ownership.paths(fields))]
    causes: list[dict[str, Any]] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager_text}", "field": path}
        for manager_text, path in found
    ]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    else:
        lines: list[str] = []
        for manager_text in sorted({manager_text for manager_text, _ in found}):
            lines += [
                f"conflicts with {manager_text}:",
                *(f"- {path}" for owner, path in found if owner == manager_text),
            ]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return StoreError(409, "Conflict", message, {"causes": causes}, message)


def manager_name(manager: FieldManager) -> str:
    """Return a manager as conflicts name it."""
    shown = f'"{manager.name}"'
    if manager.subresource:
        shown = f'{shown} with subresource "{manager.subresource}"'
    return f"{shown} using {manager.api_version}" if manager.operation == "Update" else shown


def owned_part(raw: Raw, resource: APIResource, subresource: str) -> Raw:
    """Return the object without unowned fields and without fields that a request to this subresource does not write."""
    found = comparable(raw)
    if subresource in PARTS:
        spec = object_at(found, "spec")
        if subresource == "ephemeralcontainers":
            part = {EPHEMERAL: spec[EPHEMERAL]} if EPHEMERAL in spec else {}
        else:
            part = {"resources": spec["resources"]} if "resources" in spec else {}
            for field in CONTAINERS:
                if isinstance(spec.get(field), list):
                    listed = objects_at(spec, field)
                    part[field] = [{name: of for name, of in one.items() if name in _SIZED} for one in listed]
        return {"spec": part} if part else {}
    if subresource == "status":
        names = open_in_status(resource)
        metadata = {name: value for name, value in found.get("metadata", {}).items() if name in names}
        part = {"status": found["status"]} if "status" in found else {}
        return {**part, "metadata": metadata} if metadata else part
    if resource.has_status:
        found.pop("status", None)
    return found


_SIZED = {"name", *RESIZED}
_SIZES = {f"f:{field}" for field in RESIZED}


def _owned_fields(fields: FieldSet, subresource: str) -> FieldSet:
    """Return the fields that an applier of the subresource owns: for resize the resources, not the containers."""
    if subresource != "resize":
        return fields
    found: dict[str, FieldSet] = {}
    for name, inner in fields.get("f:spec", EMPTY).items():
        parts = {item: {part: each[part] for part in _SIZES & each.keys()} for item, each in inner.items()}
        kept = inner if name == "f:resources" else {item: part for item, part in parts.items() if part}
        found |= {name: kept} if kept else {}
    return {"f:spec": found} if found else EMPTY


def with_part(raw: Raw, part: Raw, resource: APIResource, subresource: str) -> Raw:
    """Return the object with one part replaced."""
    if subresource in PARTS:
        # The store takes from the spec only what the subresource writes.
        return {**raw, "spec": object_at(part, "spec")}
    owned = owned_part(raw, resource, subresource)
    kept = {name: value for name, value in raw.items() if name not in owned}
    metadata = {name: value for name, value in raw["metadata"].items() if name not in owned.get("metadata", {})}
    return {**kept, **part, "metadata": {**metadata, **part.get("metadata", {})}}


class FieldWriter(msgspec.Struct):
    """A manager and the one object that it writes, which is of this `resource` and `shape`.

    `given` are the entries in the update itself, which are used if they can be read. `settled` are the entries that an
    apply request computed, which are written unconditionally. `unadmitted` is a new object before admission: no
    manager owns what that adds.
    """

    manager: FieldManager
    resource: APIResource
    shape: Shape
    api_version: str
    now: int
    given: Any = None
    settled: Entries | None = None
    unadmitted: Raw | None = None
    is_done: bool = False

    def recorded(self, previous: Raw | None, raw: Raw) -> Raw:
        """Return the object with the entries after this write."""
        self.is_done = True
        kept = {} if previous is None else entries_of(previous)
        entries = {} if self.given in _RESETS else kept
        if self.given and entries is kept and (previous is None or self.given is not previous["metadata"].get(FIELD)):
            entries = read_entries(self.given) or kept
        if self.settled is not None:
            entries = self.settled
        elif previous is None or previous.keys() != raw.keys() or comparable(previous) != comparable(raw):
            entries = self._after_update(entries, self._changes(previous, raw))
        found = raw if entries_of(raw) == entries else with_entries(raw, entries)
        # An object that has room only without them goes without, except where an apply request would lose its fields.
        is_large = self.settled is None and len(encoded(found)) > MAX_OBJECT_BYTES
        return with_entries(raw, {}) if is_large else found

    def applied(self, stored: Raw, live: Raw, config: Raw, *, force: bool, subresource: str = "") -> Raw:
        """Return the `live` part of a stored object after the application of a configuration; settle the entries.

        Raises StoreError 400 if the configuration cannot be merged, and 409 with the fields that would change and that
        other managers own, unless `force` takes them over.
        """
        entries, manager, shape = entries_of(stored), self.manager, self.shape
        if not entries:
            first = FieldManager(BEFORE_FIRST_APPLY, "Update", self.api_version)
            fields = changes_of({}, live, shape).added
            entries = {first: entry_of(fields, self.api_version, self.now)} if fields else {}
        try:
            own = _owned_fields(ownership.fields_of_value(config, shape), subresource)
            last = entries.get(manager)
            mine = entry_of(own, self.api_version, self.now)
            if last is not None and (last.fields, last.api_version) == (own, self.api_version):
                mine = last
            claimed = {**entries, manager: mine}
            result = _pruned(
                ownership.merged(live, config, shape), last.fields if last is not None else EMPTY, claimed, shape
            )
            changes = ownership.compared(live, result, shape)
        except KeyMissingError as error:
            raise bad_request(f"failed to create typed patch object: {error}") from None
        changed = ownership.union(changes.modified, changes.added)
        contested = {
            other: ownership.intersection(entry.fields, changed) for other, entry in claimed.items() if other != manager
        }
        conflicts = {other: fields for other, fields in contested.items() if fields}
        if conflicts and not force and not _is_kubectls_own(live, shape, conflicts, manager):
            raise _conflict(conflicts)
        self.settled = {**_taken_from_others(claimed, manager, changes), **({manager: mine} if own else {})}
        return result

    def _after_update(self, entries: Entries, changes: Comparison) -> Entries:
        """Return the entries after the manager's changes: it owns the changed fields, exclusively."""
        found = _taken_from_others(entries, self.manager, changes)
        before = entries.get(self.manager)
        own = EMPTY if before is None else ownership.difference(before.fields, changes.removed)
        fields = ownership.union(own, ownership.union(changes.modified, changes.added))
        if before is not None and fields == before.fields:
            found[self.manager] = before
        elif fields:
            found[self.manager] = entry_of(fields, self.api_version, self.now)
        return found

    def _changes(self, previous: Raw | None, raw: Raw) -> Comparison:
        if previous is not None:
            return changes_of(comparable(previous), comparable(raw), self.shape)
        # The client that registers a node also reports its status.
        raw = raw if self.unadmitted is None else without_unknown(self.unadmitted)
        part = comparable(raw) if self.resource.name == "Node" else owned_part(raw, self.resource, "")
        added = _of_pod if self.resource.name == "Pod" else _added
        return Comparison(added(part, self.shape), {}, {})


def shape_of(resources: APIResources, resource: APIResource, api_version: str = "") -> Shape:
    """Return the shape of a kind's objects in a version, "" for the storage version: how fields merge for ownership."""
    if (structural := resources.structural(resource, api_version)) is not None:
        return ownership.shape_of_structural(structural)
    return ownership.shape_of_type(
        resource.kind if not resource.is_custom and is_type(resource.kind) else "PartialObject"
    )


def _added(raw: Raw, shape: Shape) -> FieldSet:
    return changes_of({}, raw, shape).added


def _of_pod(raw: Raw, shape: Shape) -> FieldSet:
    """Return the fields of a pod that is created."""
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return _added(raw, shape)
    shared = shared_spec(spec)
    spec = spec if shared is None else shared.raw
    known = _specs.get(id(spec))
    if known is None or known[0] is not spec:
        known = spec, _added({"spec": spec}, shape)
        if len(_specs) >= _KEPT_SPECS:
            del _specs[next(iter(_specs))]
        _specs[id(spec)] = known
    return {**_added({name: value for name, value in raw.items() if name != "spec"}, shape), **known[1]}
