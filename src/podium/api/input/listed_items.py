"""The items of a List, each a separate text, so that a dump is read one object at a time; and their reader."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from io import SEEK_END
from itertools import islice
from typing import Any, BinaryIO, Protocol, SupportsBytes

import msgspec

from podium.api.input.documents import Encoded
from podium.api.input.exact_json import UncertainError, decode
from podium.api.input.pod_stencil import PodStencils, ReadPod
from podium.api.input.pod_table import is_table_text, read_table
from podium.api.input.text_forms import UNREADABLE, TextForm
from podium.api.meta import Raw
from podium.api.pod import Pod


class ListText(Protocol):
    """The text of a List with at least one item."""

    @property
    def envelope(self) -> Raw:
        """The List without its items."""
        ...

    @property
    def share(self) -> float:
        """The share of the text that has been split, from 0 to 1."""
        ...

    def items(self) -> Iterator[bytes]:
        """Yield the unparsed text of each item. Raises UncertainError if the whole text is needed."""
        ...


class ItemReader:
    """A reader of single items; `common` is what the List states for each of them."""

    def __init__(self, form: TextForm) -> None:
        self._form = form
        self._stencils = PodStencils(form)

    def pod(self, item: bytes, common: Raw) -> ReadPod | None:
        """Return the pod of an item that certainly has no findings; None for any other item."""
        return self._stencils.of(item, common).read(item)

    def pods_of_table(self, item: bytes) -> Iterator[ReadPod | bytes] | None:
        """Yield the pods of a table, see `podium.api.input.pod_table`; return None for any other item."""
        return read_table(item, self._stencils) if is_table_text(item) else None

    def value(self, item: bytes) -> Any:
        """Return the item's value, without nulls except in lists. Raises UncertainError if the whole text is needed."""
        try:
            return self._form.read(item)
        except UNREADABLE:
            raise UncertainError from None

    def written(self, item: SupportsBytes, common: Raw, raw: Raw | None) -> Raw | Encoded:
        """Return the stored form of the item; `raw` is its wire form, if known."""
        if raw is not None and self._form.keeps_values:
            return raw
        # A dump for people is twice as long as it needs to be.
        text = msgspec.json.format(item, indent=-1) if isinstance(item, bytes) else item
        return Encoded(text, common, self._form)

    def learn(self, item: bytes, common: Raw, pod: Pod) -> None:
        """Record a pod without findings that `pod` did not read."""
        self._stencils.of(item, common).learn(item, pod)


# The read size, if an item ends within it; a larger buffer would not be reused by the allocator.
_WINDOW_BYTES = 1 << 16
# The number of bytes that are inspected before and after the items.
_AROUND_BYTES = 1 << 12
_ITEMS = re.compile(rb'"items"\s*:\s*\[\s*(?=\{)')
# An object up to the colon after its first key; and from that key's string value, if it has one, to the second key.
_FIRST_KEYS = re.compile(rb'(\{\s*"[^"\\]*"\s*:)(?:\s*"[^"\\]*"(\s*,\s*"[^"\\]*"))?')
_MARK = "podium.items"
# The number of candidate item borders to try before more is read, and the maximum usual space before one.
_TRIED = 4
_MOST_SPACE = 256
_SPACE = b" \t\r\n"
_DECODER = msgspec.json.Decoder(list[msgspec.Raw])


class JSONList:
    """A List of at least one item: the List without its items, and the text of each item, read lazily."""

    def __init__(self, envelope: dict[str, Any], stream: BinaryIO, begin: int, end: int) -> None:
        self.envelope = envelope
        self.share = 0.0
        self._stream = stream
        self._begin = begin
        self._end = end

    def items(self) -> Iterator[bytes]:
        """Yield the items. Raises UncertainError if the brackets contain anything else."""
        place, rest = self._stream.seek(self._begin), b""
        while place < self._end:
            read = self._stream.read(min(max(_WINDOW_BYTES, len(rest)), self._end - place))
            if not read:
                raise UncertainError
            place += len(read)
            found, rest = _taken_apart(rest + read, is_last=place == self._end)
            yield from map(bytes, found)
            self.share = place / self._end


def json_list(stream: BinaryIO) -> JSONList | None:
    """Return the List that is the whole stream; None for other content, or if only a full parse can tell.

    The text around the items is checked here, so that the items are exactly what is between the brackets, if that is
    valid: none has been read yet.
    """
    stream.seek(0)
    head = stream.read(_AROUND_BYTES)
    begin = _ITEMS.search(head)
    if begin is None:
        return None
    tail_begin = max(begin.end(), stream.seek(0, SEEK_END) - _AROUND_BYTES)
    stream.seek(tail_begin)
    tail = stream.read()
    bracket = tail.rfind(b"]")
    if bracket < 0:
        return None
    before, behind = head[: begin.end()].removeprefix(codecs.BOM_UTF8), tail[bracket:]
    try:
        # A marker replaces the items: only if it is in their position, it is their only item.
        envelope = decode(b'%b"%b"%b' % (before, _MARK.encode(), behind))
    except UncertainError:
        return None
    if not isinstance(envelope, dict) or envelope.get("items") != [_MARK]:
        return None
    return JSONList({**envelope, "items": []}, stream, begin.end(), tail_begin + bracket)


def _taken_apart(text: bytes, *, is_last: bool) -> tuple[list[msgspec.Raw], bytes]:
    """Return the items at the start of a text, and the rest from the start of the next item.

    Raises UncertainError if the text is the last one and does not end with an item.
    """
    if is_last:
        return _decoded(text), b""
    for end, begin in islice(_borders(text), _TRIED):
        try:
            return _decoded(text[:end]), text[begin:]
        except UncertainError:
            # It begins something within an item.
            continue
    return [], text


def _borders(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield candidate borders between items, from the last on, where the next item starts like the first one."""
    first = _FIRST_KEYS.match(text)
    if first is None:
        return
    key, second = first.groups()
    alike = re.compile(re.escape(key) + (b"" if second is None else rb'\s*"[^"\\]*"' + re.escape(second)))
    begin = text.rfind(key, 1)
    while begin >= 0:
        start = max(0, begin - _MOST_SPACE)
        before = text[start:begin].rstrip(_SPACE)
        if before.endswith(b",") and alike.match(text, begin):
            yield start + len(before) - 1, begin
        begin = text.rfind(key, 1, begin)


def _decoded(items: bytes) -> list[msgspec.Raw]:
    try:
        return _DECODER.decode(b"[%b]" % items)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise UncertainError from None
