"""The items of a List, each a separate text, so that a dump is read one object at a time; and their reader."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from io import SEEK_END
from itertools import islice, pairwise
from typing import Any, BinaryIO, NamedTuple, SupportsBytes

import msgspec

from podium.api.errors import InputError
from podium.api.input import documents, pod_gaps, pod_stencil, yaml
from podium.api.input.json import UncertainError, decode
from podium.api.meta import Raw


class ItemReader:
    """A reader of single items; `common` is what the List states for each of them."""

    def __init__(self, form: pod_gaps.TextForm) -> None:
        self._form = form
        self.stencils = pod_stencil.PodStencils(form)
        """The pods of earlier items, which read similar ones."""

    def value(self, item: bytes) -> Any:
        """Return the item's value, without nulls except in lists. Raises UncertainError if the whole text is needed."""
        try:
            return self._form.read(item)
        except pod_gaps.UNREADABLE:
            raise UncertainError from None

    def written(self, item: SupportsBytes, common: Raw, raw: Raw | None) -> Raw | documents.Encoded:
        """Return the stored form of the item; `raw` is its wire form, if known."""
        if raw is not None and self._form.keeps_values:
            return raw
        # A dump for people is twice as long as it needs to be.
        text = msgspec.json.format(item, indent=-1) if isinstance(item, bytes) else item
        return documents.Encoded(text, common, self._form)


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
_DECODER = msgspec.json.Decoder(list[msgspec.Raw])


class ListText(NamedTuple):
    """The text of a List of at least one item: the List without its items, and the text of each item, split lazily.

    Each item comes with the share of the text, from 0 to 1, that has been split. In YAML, its text is a one-element
    list. The items raise UncertainError if there is anything else among them.
    """

    envelope: dict[str, Any]
    items: Iterator[tuple[bytes, float]]


def json_list(stream: BinaryIO) -> ListText | None:
    """Return the List that is the whole stream; None for other content, or if only a full parse can decide.

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
        envelope = _without_mark(decode(b'%b"%b"%b' % (before, _MARK.encode(), behind)))
    except UncertainError:
        return None
    return None if envelope is None else ListText(envelope, _json_items(stream, begin.end(), tail_begin + bracket))


def _json_items(stream: BinaryIO, begin: int, end: int) -> Iterator[tuple[bytes, float]]:
    place, rest = stream.seek(begin), b""
    while place < end:
        read = stream.read(min(max(_WINDOW_BYTES, len(rest)), end - place))
        if not read:
            raise UncertainError
        place += len(read)
        found, rest = _taken_apart(rest + read, is_last=place == end)
        yield from ((bytes(item), place / end) for item in found)


def _without_mark(envelope: Any) -> dict[str, Any] | None:
    """Return a List without the marker that stands for its items; None if it is not their only item."""
    if not isinstance(envelope, dict) or envelope.get("items") != [_MARK]:
        return None
    return {**envelope, "items": []}


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
        before = text[start:begin].rstrip(b" \t\r\n")
        if before.endswith(b",") and alike.match(text, begin):
            yield start + len(before) - 1, begin
        begin = text.rfind(key, 1, begin)


def _decoded(items: bytes) -> list[msgspec.Raw]:
    try:
        return _DECODER.decode(b"[%b]" % items)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise UncertainError from None


_YAML_ITEMS = re.compile(rb"(?:\A|(?<=\n))items:\n(?=- )")
_ITEM = b"- "
# The start of a line that does not continue an earlier construct.
_OUTERMOST = re.compile(rb"\n(?=[^ \n])")
# YAML line breaks other than line feeds, and document markers.
_OTHER_BREAKS = (b"\r", "\u0085".encode(), "\u2028".encode(), "\u2029".encode())
_DIRECTIVES = (b"---", b"...", b"%")
_DOCUMENTS = tuple(b"\n" + directive for directive in _DIRECTIVES)


def yaml_list(content: bytes) -> ListText | None:
    """Return the List that is the whole content; None for other content, or if only a full parse can decide.

    Every item begins with a dash at the start of a line, and all its other lines are indented. Therefore an item means
    the same in isolation as in the List, if it parses at all: a split within quotes or brackets does not. The items
    have not been parsed yet.
    """
    begin = _YAML_ITEMS.search(content)
    if begin is None or content.startswith(_DIRECTIVES):
        return None
    if any(breaking in content for breaking in (*_OTHER_BREAKS, *_DOCUMENTS, _MARK.encode())):
        return None
    bounds = [begin.end()]
    end = len(content)
    for match in _OUTERMOST.finditer(content, begin.end()):
        if not content.startswith(_ITEM, match.end()):
            end = match.end()
            break
        bounds.append(match.end())
    if content.find(b"\n- ", end - 1) >= 0:
        return None
    try:
        # A marker replaces the items: wherever else they could be, only in that position is it the only item.
        around = f"{content[: begin.start()].decode()}items: [{_MARK}]\n{content[end:].decode()}"
        envelope = _without_mark(yaml.parse_part(around, 0))
    except (InputError, UnicodeDecodeError, RecursionError):
        return None
    if envelope is None:
        return None
    items = ((content[start:stop], stop / len(content)) for start, stop in pairwise([*bounds, end]))
    return ListText(envelope, items)
