"""The items of a JSON List, each as the text that it is: so that a dump is read one object at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api.input.exact_json import UncertainError, decode

_COMMA = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class JSONList:
    """A List of at least one item: the List without its items, and the text of each."""

    envelope: dict[str, Any]
    items: list[msgspec.Raw]


class _List(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """What a List has."""

    items: list[msgspec.Raw]
    api_version: msgspec.Raw = msgspec.Raw()
    kind: msgspec.Raw = msgspec.Raw()
    metadata: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(_List)


def json_list(content: bytes) -> JSONList | None:
    """The List that is all of the content; None where it is something else, or where only a closer reading can tell.

    What is in the items has not been looked at, but that each is one value.
    """
    try:
        items = _DECODER.decode(content).items
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    if not items:
        return None
    start = content.find(bytes(items[0]))
    end = _end(content, start, items)
    if end is None:
        return None
    try:
        # With all of the items left out it shows whether they are what stands between the brackets, and that nothing
        # is given twice.
        envelope = decode(content[:start] + content[end:])
    except UncertainError:
        return None
    return JSONList(envelope, items) if envelope.get("items") == [] else None


def _end(content: bytes, start: int, items: list[msgspec.Raw]) -> int | None:
    """Where the last of the items ends, if nothing but commas stands between them."""
    end = start
    for item in items:
        if end != start:
            comma = _COMMA.match(content, end)
            if comma is None:
                return None
            end = comma.end()
        end += len(item)
    return end
