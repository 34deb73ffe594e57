"""The population of a store with the objects of an earlier cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec
from msgspec import structs

from podium.api import kinds, node
from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.input.documents import Encoded
from podium.api.input.pod_stencil import FilledStencil, PodStencil, WireTemplate
from podium.api.meta import Kubernetes, Raw
from podium.api.pod import Pod
from podium.api.times import format_time
from podium.store import errors
from podium.store.admission.defaults import with_defaults
from podium.store.revisions import with_version
from podium.store.store import Store
from podium.store.stored import Stored, reread

_RANK = {kind: rank for rank, kind in enumerate(kinds.KIND_OF)}
_DEFINITION = "CustomResourceDefinition"
_SHARED_PARTS = {"metadata": ("annotations", "labels", "ownerReferences"), "status": ("conditions",)}
_FIELDS = "fieldsV1"
_MOST_SHARED = 4_096
_ENCODER = msgspec.msgpack.Encoder()
_known = lru_cache(maxsize=_MOST_SHARED)(msgspec.msgpack.decode)


def create_objects(
    store: Store, documents: Iterable[Document], now: int, complete: Callable[[Raw], Raw] = lambda raw: raw
) -> None:
    """Create the objects as `complete` returns them, in an order independent of the input's.

    Pods that were read with a stencil are created from the first pod of that stencil: their texts differ only in names,
    uids, times, addresses and the like, on which neither defaults nor admission of a pod from a cluster depend. That
    holds while no classes change. Raises InputError for objects that the store refuses.
    """
    # By stencil; None for pods that the store completes.
    patterns: dict[PodStencil, _Pattern | None] = {}
    for document in sorted(documents, key=_place):
        object_, filled = document.object, document.filled
        if object_ is None:
            raise TypeError(f"{document.raw.get('kind')} is not of a kind that Podium reads")
        pattern = None if filled is None else patterns.get(filled.stencil)
        try:
            if pattern is not None and filled is not None and isinstance(object_, Pod):
                store.create_alike(partial(pattern.raw, filled), pattern.reading(object_), pattern.stored)
                continue
            written = _with_shared_parts(document.read_raw())
            raw = complete(as_running(written, object_, now))
            stored = store.create(raw, now=now, reading=reread(object_, written, raw), was_there=True)
        except errors.StoreError as error:
            raise located(InputError(error.message), document) from None
        if filled is not None and filled.stencil not in patterns:
            patterns[filled.stencil] = _pattern_of(document, filled, stored)


def as_running(raw: Raw, object_: Kubernetes, now: int) -> Raw:
    """Return a pod with a node as running and ready since `now`, unless its status says otherwise."""
    if not isinstance(object_, Pod) or not object_.spec.node_name:
        return raw
    status: Raw = {"phase": "Running", **raw.get("status", {})}
    if status["phase"] != "Running":
        return raw
    status.setdefault("startTime", format_time(now))
    if object_.status.condition("Ready") is None:
        status["conditions"] = [*status.get("conditions", ()), {"type": "Ready", "status": "True"}]
    return {**raw, "status": status}


def _with_shared_parts(raw: Raw) -> Raw:
    """Return an object that shares common parts with others: labels, owners, managed fields, conditions."""
    found = dict(raw)
    for section, names in _SHARED_PARTS.items():
        parts = raw.get(section)
        if isinstance(parts, dict):
            found[section] = {name: _shared(part) if name in names else part for name, part in parts.items()}
    metadata = found.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
        metadata["managedFields"] = [
            {**entry, _FIELDS: _shared(entry[_FIELDS])} if isinstance(entry, dict) and _FIELDS in entry else entry
            for entry in metadata["managedFields"]
        ]
    return found


def _shared(part: Any) -> Any:
    try:
        # Equal encodings mean equal JSON values.
        found = _known(_ENCODER.encode(part))
    except (OverflowError, RecursionError, TypeError, UnicodeEncodeError):
        return part
    return found if found == part else part


class _Pattern:
    """A pod as the store created it, and the wire form of all pods like it."""

    def __init__(self, stored: Stored, template: WireTemplate) -> None:
        self.stored = stored
        self._generation = stored.object.metadata.generation
        # Pods that started at the same times share parts of their status: by name of the part and values.
        self._template, self._parts = template.apart("status")
        self._shared: dict[tuple[str, ...], Any] = {}

    def raw(self, filled: FilledStencil, version: str) -> Raw:
        """Return the wire form of a pod at a version."""
        values = filled.values
        raw: Raw = self._template.of(values)
        for name, part in self._parts.items():
            own = (name, *[values[number] for number in part.numbers])
            found = self._shared.get(own)
            if found is None:
                if len(self._shared) >= _MOST_SHARED:
                    self._shared.clear()
                found = self._shared[own] = part.of(values)
            raw["status"][name] = found
        return with_version(raw, version)

    def reading(self, pod: Pod) -> Pod:
        """Return the typed reading of a pod as the store has it, from that of its text."""
        if pod.metadata.generation != self._generation:
            return structs.replace(pod, metadata=structs.replace(pod.metadata, generation=self._generation))
        return pod


def _pattern_of(document: Document, filled: FilledStencil, stored: Stored) -> _Pattern | None:
    """Return the pattern of a pod; None if the store completed its reading, or if the text has no template."""
    template = document.written.template() if isinstance(document.written, Encoded) else None
    pod = document.object
    if template is None or not isinstance(pod, Pod) or not pod.metadata.uid:
        return None
    pattern = _Pattern(stored, template.on(stored.raw, filled.values))
    reading, version = pattern.reading(pod), stored.object.metadata.resource_version
    made = structs.replace(reading, metadata=structs.replace(reading.metadata, resource_version=version))
    return pattern if (made, pattern.raw(filled, version)) == (stored.object, stored.raw) else None


class Population(msgspec.Struct, frozen=True):
    """The result of creating a cluster's initial objects.

    ``left_out`` counts objects of kinds that are not served, by `apiVersion` and kind.
    """

    created: int
    left_out: Mapping[str, int]


def populate(store: Store, documents: Iterable[Document], now: int) -> Population:
    """Create objects of all served kinds, with their namespaces, as an earlier cluster had them.

    Existing objects are left unchanged. Raises InputError for objects that the store refuses.
    """
    read: list[Document] = []
    definitions: list[Document] = []
    others: list[Document] = []
    for document in documents:
        if document.object is None:
            (definitions if document.raw.get("kind") == _DEFINITION else others).append(document)
        elif store.find(kinds.KIND_OF[type(document.object)].name, document.object.key) is None:
            read.append(document)
    version, left_out = store.count(), Counter[str]()
    objects = [document.object for document in read if document.object is not None]
    given = {object_.metadata.name for object_ in objects if isinstance(object_, node.Namespace)}
    for namespace in sorted({object_.metadata.namespace for object_ in objects} - given):
        _create_namespace(store, namespace, now)
    create_objects(store, read, now, _completed)
    for document in [*definitions, *others]:
        raw = document.raw
        try:
            resource = store.resources.of(raw)
        except errors.StoreError:
            left_out[f"{raw.get('apiVersion')} {raw.get('kind')}"] += 1
            continue
        metadata: Raw = raw.get("metadata", {})
        namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
        name = str(metadata.get("name", ""))
        if name and store.find(resource.name, f"{namespace}/{name}" if namespace else name) is not None:
            continue
        _create_namespace(store, namespace, now)
        try:
            store.create(raw if resource.is_custom else _completed(raw), now=now, was_there=True)
        except errors.StoreError as error:
            raise located(InputError(error.message), document) from None
    return Population(store.count() - version, dict(sorted(left_out.items())))


def _completed(raw: Raw) -> Raw:
    """Return an object of a built-in kind with API defaults; a pod from a cluster has them already."""
    metadata = raw.get("metadata")
    was_there = isinstance(metadata, dict) and metadata.get("uid")
    return raw if was_there and raw["kind"] == "Pod" else with_defaults(raw["kind"], raw)


def located(error: InputError, document: Document) -> InputError:
    """Return the error with the document's location and object."""
    name = f"{document.raw.get('kind')} {document.object.key}" if document.object else ""
    return error.located(source=document.source, document=document.index, object=name)


def _create_namespace(store: Store, name: str, now: int) -> None:
    if name and store.find("Namespace", name) is None:
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, now=now)


def _place(document: Document) -> tuple[int, str, str]:
    object_ = document.object or Kubernetes()
    # Within a kind older objects come first, as in the original cluster; those without a time come last.
    return _RANK[type(object_)], object_.metadata.creation_timestamp or "~", object_.key
