"""Who writes an object, while a request is answered: the store asks it what becomes of `metadata.managedFields`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from podium.api.meta import Raw
from podium.api.ownership.field_sets import FieldSet
from podium.api.ownership.owned import Comparison
from podium.api.ownership.shapes import Shape, shape_of_structural, shape_of_type
from podium.api.schemas.schema import is_type
from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources
from podium.store.ownership.entries import FIELD, Entries, Manager, entries_of, read_entries, with_entries
from podium.store.ownership.ownership import after_update, changes_of, comparable
from podium.store.ownership.parts import owned_part

_KEPT_SPECS = 1_024
# The fields of specifications, which pods of one sort share; by identity, with the specification itself.
_specs: dict[int, tuple[Raw, FieldSet]] = {}
_RESET: list[Raw] = [{}]


@dataclass(slots=True)
class Writer:
    """A manager and the one object that it writes, which is of this `resource` and `shape`.

    `given` are the entries that an update brings along, which count, as long as they can be read; `settled` are those
    that an application has come to, which are written whatever there was.
    """

    manager: Manager
    resource: APIResource
    shape: Shape
    api_version: str
    now: int
    given: Any = None
    settled: Entries | None = None
    is_done: bool = field(default=False)

    def writes(self, resource: APIResource) -> bool:
        """Whether it is about the object that is being written, and has not been told of it yet."""
        return not self.is_done and resource.name == self.resource.name

    def recorded(self, previous: Raw | None, raw: Raw) -> Raw:
        """The object with the entries as they are after it is written so."""
        self.is_done = True
        before = self._entries_before(previous)
        entries = before
        if self.settled is not None:
            entries = self.settled
        elif previous is None or not _same_but_for_entries(previous, raw):
            entries = after_update(before, self.manager, self._changes(previous, raw), self.api_version, self.now)
        return raw if entries_of(raw) == entries else with_entries(raw, entries)

    def _entries_before(self, previous: Raw | None) -> Entries:
        if self.given == _RESET:
            return {}
        kept = {} if previous is None else entries_of(previous)
        is_kept = not self.given or (previous is not None and self.given is previous["metadata"].get(FIELD))
        return kept if is_kept else read_entries(self.given) or kept

    def _changes(self, previous: Raw | None, raw: Raw) -> Comparison:
        if previous is not None:
            return changes_of(comparable(previous), comparable(raw), self.shape)
        # Whoever registers a node reports on it, too.
        part = comparable(raw) if self.resource.name == "Node" else owned_part(raw, self.resource, "")
        added = _of_pod if self.resource.name == "Pod" else _added
        return Comparison(added(part, self.shape), {}, {})


def shape_of(resources: APIResources, resource: APIResource) -> Shape:
    """How the objects of a kind are put together for those who own parts of them."""
    structural = resources.structural(resource)
    if structural is not None:
        return shape_of_structural(structural)
    return shape_of_type(resource.kind if not resource.is_custom and is_type(resource.kind) else "PartialObject")


def _added(raw: Raw, shape: Shape) -> FieldSet:
    return changes_of({}, raw, shape).added


def _of_pod(raw: Raw, shape: Shape) -> FieldSet:
    """The fields of a pod that is created."""
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        return _added(raw, shape)
    known = _specs.get(id(spec))
    if known is None or known[0] is not spec:
        known = spec, _added({"spec": spec}, shape)
        if len(_specs) >= _KEPT_SPECS:
            del _specs[next(iter(_specs))]
        _specs[id(spec)] = known
    return {**_added({name: value for name, value in raw.items() if name != "spec"}, shape), **known[1]}


def _same_but_for_entries(previous: Raw, raw: Raw) -> bool:
    """Whether an update changes nothing of an object that anybody could own."""
    return all(
        raw.get(name) is value or raw.get(name) == value for name, value in previous.items() if name != "metadata"
    ) and (len(previous), comparable(previous).get("metadata")) == (len(raw), comparable(raw).get("metadata"))
