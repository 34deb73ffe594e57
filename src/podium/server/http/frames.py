"""The events of watches as bytes, made once for all who are told the same."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.server.http.forms import MakeTable, metadata_of
from podium.server.http.negotiation import Form
from podium.store.api_resource import APIResource
from podium.store.encoding import encoded, framed
from podium.store.errors import StoreError
from podium.store.reads.watch import Notice


class Frames:
    """The events of one turn of the loop, each encoded when it is first wanted.

    A frame ends with a line's end, and stands in a chunk of HTTP of its own.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, str], bytes] = {}

    def chunk(self, notice: Notice) -> bytes:
        """The event of a plain watch."""
        stored = notice.stored
        if stored is None:
            return chunked(notice.encoded())
        known = id(stored), notice.type
        made = self._made.get(known)
        if made is None:
            # The notice keeps what is stored, so that nothing else has its id meanwhile.
            made = self._made[known] = chunked(notice.encoded())
        return made


class Shaper:
    """Makes the events of one watch: plain ones, tables, or metadata."""

    def __init__(self, resource: APIResource, form: Form, make_table: MakeTable) -> None:
        self._resource = resource
        self._form = form
        self._make_table = make_table
        self._has_columns = False

    def chunk(self, notice: Notice, frames: Frames) -> bytes:
        """The event as it is sent."""
        if not self._form.kind:
            return frames.chunk(notice)
        raw = self._table(notice) if self._form.is_table else metadata_of(notice.raw)
        return chunked(framed(notice.type, encoded(raw)))

    def _table(self, notice: Notice) -> Raw:
        """The object as a row; what the columns are, the first table says alone."""
        objects = [] if notice.type == "BOOKMARK" else [notice.raw]
        table = self._make_table(self._resource, objects)
        metadata: dict[str, Any] = {**notice.raw["metadata"]}
        told = {name: metadata[name] for name in ("resourceVersion", "annotations") if name in metadata}
        if objects:
            told.pop("annotations", None)
        if self._has_columns:
            table = {name: value for name, value in table.items() if name != "columnDefinitions"}
        self._has_columns = True
        return {**table, "metadata": told}


def error_chunk(error: StoreError) -> bytes:
    """The event that ends a watch which cannot go on."""
    return chunked(framed("ERROR", encoded(error.to_dict())))


def chunked(event: bytes) -> bytes:
    """An event on a line of its own, as a chunk of HTTP."""
    return b"%x\r\n%b\n\r\n" % (len(event) + 1, event)
