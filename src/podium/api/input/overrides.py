"""Overrides: later files whose objects replace earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from podium.api.errors import InputError
from podium.api.input.documents import Document, identity_of
from podium.api.kinds import group_of
from podium.api.meta import Raw
from podium.api.objects import label_of, metadata_of, read_object

_KEPT = ("uid", "creationTimestamp")
# Kinds of which an input has at most one, whatever its name.
_SINGLE = ("Scenario",)


def overridden(documents: Sequence[Document], later: Sequence[Document]) -> list[Document]:
    """Return the documents, each replaced by the one of ``later`` with its kind and name; others are appended.

    As with `kubectl replace`, the object keeps its uid, its creation time, and its status if the later file has none,
    so that references to it stay valid. A Scenario replaces any other Scenario. Raises InputError if the result is
    unreadable.
    """
    by_place = {place_of(document): document for document in later}
    found: list[Document] = []
    for document in documents:
        other = by_place.pop(place_of(document), None)
        found.append(document if other is None else in_place_of(document, other))
    return [*found, *by_place.values()]


def place_of(document: Document) -> tuple[str, ...]:
    """Return the key under which a document replaces another: group, kind, and usually namespace and name."""
    if document.object is not None:
        return identity_of(document.object)
    raw = document.raw
    group, kind = group_of(str(raw.get("apiVersion", ""))), str(raw.get("kind", ""))
    metadata = metadata_of(raw)
    named = () if kind in _SINGLE else (str(metadata.get("namespace", "")), str(metadata.get("name", "")))
    return group, kind, *named


def in_place_of(earlier: Document, later: Document) -> Document:
    """Return the later document with what the earlier object keeps. Raises InputError as `overridden` does."""
    if later.object is None:
        return later
    before, after = earlier.raw, later.raw
    given = metadata_of(after)
    kept: dict[str, Any] = {
        name: value for name, value in metadata_of(before).items() if name in _KEPT and name not in given
    }
    raw: Raw = {**after, "metadata": {**given, **kept}}
    if "status" in before and "status" not in after:
        raw["status"] = before["status"]
    if raw == after:
        return later
    try:
        read = read_object(raw, later.validation)
    except InputError as error:
        raise later.located(error) from None
    place = {"source": later.source, "document": later.index, "object": label_of(raw)}
    warnings = tuple(replace(warning, **place) for warning in read.warnings)  # type: ignore[arg-type]
    return replace(later, written=read.raw, object=read.object, warnings=warnings)
