"""The objects with which a cluster begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes, Raw
from podium.api.node import Namespace
from podium.api.present import as_running
from podium.store.admission.object_defaults import with_defaults
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import reread

_RANK = {kind: rank for rank, kind in enumerate(KIND_OF)}
_DEFINITION = "CustomResourceDefinition"


def _as_it_is(raw: Raw) -> Raw:
    return raw


def create_objects(
    store: Store, documents: Iterable[Document], now: int, complete: Callable[[Raw], Raw] = _as_it_is
) -> None:
    """Create the objects as `complete` makes them, in an order that does not depend on theirs.

    Raises InputError for what the store refuses.
    """
    for document in sorted(documents, key=_place):
        if document.object is None:
            raise TypeError(f"{document.raw.get('kind')} is not of a kind that Podium reads")
        raw = complete(as_running(document.raw, document.object, now))
        try:
            store.create(raw, now=now, reading=reread(document.object, document.raw, raw), was_there=True)
        except StoreError as error:
            raise located(InputError(error.message), document) from None


@dataclass(frozen=True, slots=True)
class Population:
    """What became of the objects that a cluster was to begin with.

    ``left_out`` counts those that are not served, by `apiVersion` and kind; ``kept`` how many were there already.
    """

    created: int
    kept: int
    left_out: Mapping[str, int]


def populate(store: Store, documents: Iterable[Document], now: int) -> Population:
    """Create objects of all kinds that are served, with the namespaces that they name, as part of a cluster that was.

    What is there already stays as it is. Raises InputError for what the store refuses.
    """
    read: list[Document] = []
    definitions: list[Document] = []
    others: list[Document] = []
    kept = 0
    for document in documents:
        if document.object is None:
            (definitions if document.raw.get("kind") == _DEFINITION else others).append(document)
        elif store.find(KIND_OF[type(document.object)].name, document.object.key) is None:
            read.append(document)
        else:
            kept += 1
    version, left_out = store.count(), Counter[str]()
    _create_namespaces(store, read, now)
    create_objects(store, read, now, _completed)
    for document in [*definitions, *others]:
        raw = document.raw
        try:
            resource = store.resources.of(raw)
        except StoreError:
            left_out[f"{raw.get('apiVersion')} {raw.get('kind')}"] += 1
            continue
        metadata: Raw = raw.get("metadata", {})
        namespace = str(metadata.get("namespace") or "default") if resource.namespaced else ""
        name = str(metadata.get("name", ""))
        if name and store.find(resource.name, f"{namespace}/{name}" if namespace else name) is not None:
            kept += 1
            continue
        _create_namespace(store, namespace, now)
        try:
            store.create(raw if resource.is_custom else _completed(raw), now=now, was_there=True)
        except StoreError as error:
            raise located(InputError(error.message), document) from None
    return Population(store.count() - version, kept, dict(sorted(left_out.items())))


def _completed(raw: Raw) -> Raw:
    """An object of Kubernetes' own kinds with what clients expect in it; a pod that was in a cluster has it."""
    metadata = raw.get("metadata")
    was_there = isinstance(metadata, dict) and metadata.get("uid")
    return raw if was_there and raw["kind"] == "Pod" else with_defaults(raw["kind"], raw)


def has_absent_owners(store: Store) -> bool:
    """Whether objects name owners that are not there: then the cluster is known in part."""
    there: set[str] = set()
    owners: set[str] = set()
    for resource in store.resources.all():
        for stored in store.objects(resource.name):
            there.add(stored.uid)
            owners.update(owner.uid for owner in stored.object.metadata.owner_references)
    return not owners <= there


def located(error: InputError, document: Document) -> InputError:
    """The error with the place of the document, and what it is about."""
    name = f"{document.raw.get('kind')} {document.object.key}" if document.object else ""
    return error.located(source=document.source, document=document.index, object=name)


def _create_namespaces(store: Store, documents: Iterable[Document], now: int) -> None:
    """Create the namespaces in which objects are, but for those that are among them."""
    objects = [document.object for document in documents if document.object is not None]
    given = {object_.metadata.name for object_ in objects if isinstance(object_, Namespace)}
    wanted = {object_.metadata.namespace for object_ in objects}
    for namespace in sorted(wanted - given):
        _create_namespace(store, namespace, now)


def _create_namespace(store: Store, name: str, now: int) -> None:
    if name and store.find("Namespace", name) is None:
        store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, now=now)


def _place(document: Document) -> tuple[int, str, str]:
    object_ = document.object or Kubernetes()
    # Of a kind the older come first, as they came to the cluster; those without a time come last.
    return _RANK[type(object_)], object_.metadata.creation_timestamp or "~", object_.key
