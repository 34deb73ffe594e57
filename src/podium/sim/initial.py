"""The cluster as it is when a simulation starts."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.errors import InputError
from podium.api.input.codec import Document, refuse_empty_pods
from podium.api.kinds import KIND_OF
from podium.api.meta import Kubernetes
from podium.api.present import as_running
from podium.sim.annotations import check_end
from podium.sim.scenario.scenario import Scenario
from podium.sim.scenario.steps import Apply, check_played
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import reread

_RANK = {kind: rank for rank, kind in enumerate(KIND_OF)}


def check_objects(documents: Iterable[Document], scenario: Scenario, has_end: bool) -> None:
    """Raise InputError for what no simulation can play: empty pods, annotations that cannot be read, endless ones."""
    documents = list(documents)
    refuse_empty_pods(documents)
    for document in documents:
        if document.object is not None:
            try:
                check_played(document.raw, document.object)
                if not has_end:
                    check_end(document.object)
            except InputError as error:
                raise _located(error, document) from None
    for step in scenario.steps:
        if isinstance(step.change, Apply) and not has_end:
            try:
                check_end(step.change.object)
            except InputError as error:
                raise step.error(f"{error.path}: {error.problem}") from None


def create_objects(store: Store, documents: Iterable[Document], now: int) -> None:
    """Create the objects, in an order that does not depend on theirs. Raises InputError for what the store refuses."""
    for document in sorted(documents, key=_place):
        if document.object is None:
            raise TypeError(f"{document.raw.get('kind')} is not of a kind that Podium reads")
        raw = as_running(document.raw, document.object, now)
        try:
            store.create(raw, now=now, reading=reread(document.object, document.raw, raw), was_there=True)
        except StoreError as error:
            raise _located(InputError(error.message), document) from None


def _place(document: Document) -> tuple[int, str, str]:
    object_ = document.object or Kubernetes()
    # Of a kind the older come first, as they came to the cluster; those without a time come last.
    return _RANK[type(object_)], object_.metadata.creation_timestamp or "~", object_.key


def _located(error: InputError, document: Document) -> InputError:
    name = f"{document.raw.get('kind')} {document.object.key}" if document.object else ""
    return error.located(source=document.source, document=document.index, object=name)
