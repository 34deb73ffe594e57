"""Objects as JSON, and what is put together from such bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import msgspec

from podium.api.meta import Raw

_ENCODER = msgspec.json.Encoder()


def encoded(raw: Raw) -> bytes:
    """The JSON of an object."""
    try:
        return _ENCODER.encode(raw)
    except UnicodeEncodeError:
        # Half a surrogate pair, which JSON can write as an escape alone.
        return json.dumps(raw, separators=(",", ":")).encode()


def spliced(head: Mapping[str, object], field: str, items: Iterable[bytes]) -> bytes:
    """The JSON of an object with the fields of `head`, of which there are some, and last a list of encoded items."""
    return b'%b,"%b":[%b]}' % (_ENCODER.encode(head)[:-1], field.encode(), b",".join(items))


def framed(type_: str, item: bytes) -> bytes:
    """The JSON of an event of a watch: what happened, and the encoded object."""
    return b'{"type":"%b","object":%b}' % (type_.encode(), item)
