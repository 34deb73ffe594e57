"""The items of a YAML List, each as the text that it is, where the List is written as kubectl writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from podium.api.errors import InputError
from podium.api.input.yaml import parse_part

_ITEMS = re.compile(rb"(?:\A|(?<=\n))items:\n(?=- )")
_ITEM = b"- "
# The beginning of a line that belongs to nothing before it.
_OUTERMOST = re.compile(rb"\n(?=[^ \n])")
# What ends a line for YAML beside line feeds, and what makes another document of what follows.
_OTHER_BREAKS = (b"\r", "\u0085".encode(), "\u2028".encode(), "\u2029".encode())
_DIRECTIVES = (b"---", b"...", b"%")
_DOCUMENTS = tuple(b"\n" + directive for directive in _DIRECTIVES)
_MARK = "podium.items"


class YAMLList:
    """A List of at least one item: the List without its items, and the text of each, as a list of one."""

    def __init__(self, envelope: dict[str, Any], text: bytes, bounds: Sequence[int]) -> None:
        self.envelope = envelope
        self.share = 0.0
        self._text = text
        self._bounds = bounds

    def items(self) -> Iterator[bytes]:
        """The items, cut out as they are asked for."""
        for start, end in pairwise(self._bounds):
            yield self._text[start:end]
            self.share = end / len(self._text)


def yaml_list(content: bytes) -> YAMLList | None:
    """The List that is all of the content; None where it is something else, or where only a closer reading can tell.

    Every item begins with a dash at the beginning of a line, and all of its other lines are indented; so that it is in
    the List what it is by itself, if it is anything by itself: what is cut within quotes or brackets is not. An item
    has not been looked at yet.
    """
    begin = _ITEMS.search(content)
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
    envelope = _envelope(content[: begin.start()], content[end:])
    return None if envelope is None else YAMLList(envelope, content, [*bounds, end])


def _envelope(before: bytes, after: bytes) -> dict[str, Any] | None:
    """The List without its items; None where these do not stand in its place for them.

    A mark stands there for them: whatever they are put in the place of, only there it is their only item.
    """
    try:
        envelope = parse_part(f"{before.decode()}items: [{_MARK}]\n{after.decode()}", 0)
    except (InputError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(envelope, dict) or envelope.get("items") != [_MARK]:
        return None
    return {**envelope, "items": []}
