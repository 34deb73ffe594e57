"""The objects with which a cluster begins."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.errors import InputError
from podium.api.input.codec import Document
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes
from podium.api.present import as_running
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import reread

_RANK = {kind: rank for rank, kind in enumerate(KIND_OF)}


def create_objects(store: Store, documents: Iterable[Document], now: int) -> None:
    """Create the objects, in an order that does not depend on theirs. Raises InputError for what the store refuses."""
    for document in sorted(documents, key=_place):
        if document.object is None:
            raise TypeError(f"{document.raw.get('kind')} is not of a kind that Podium reads")
        raw = as_running(document.raw, document.object, now)
        try:
            store.create(raw, now=now, reading=reread(document.object, document.raw, raw), was_there=True)
        except StoreError as error:
            raise located(InputError(error.message), document) from None


def located(error: InputError, document: Document) -> InputError:
    """The error with the place of the document, and what it is about."""
    name = f"{document.raw.get('kind')} {document.object.key}" if document.object else ""
    return error.located(source=document.source, document=document.index, object=name)


def _place(document: Document) -> tuple[int, str, str]:
    object_ = document.object or Kubernetes()
    # Of a kind the older come first, as they came to the cluster; those without a time come last.
    return _RANK[type(object_)], object_.metadata.creation_timestamp or "~", object_.key
