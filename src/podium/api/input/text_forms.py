"""The text formats of a List's items, JSON and YAML: how an item is read, and how a value in it is delimited."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from podium.api.errors import InputError
from podium.api.input import json
from podium.api.input.json import UncertainError
from podium.api.input.yaml import parse_part
from podium.api.meta import Raw

UNREADABLE = (InputError, UncertainError, msgspec.MsgspecError, TypeError, ValueError, RecursionError)
"""The errors for an unreadable text."""

# An item is in the list within the List.
_LIST_DEPTH = 1


@dataclass(frozen=True, slots=True)
class TextForm:
    """A text format.

    `read` returns a value without nulls except in lists; it raises one of `UNREADABLE` for an unreadable text, or if
    only a full parse can decide. `decode` is faster, for texts that `read` takes, and may leave nulls.
    `status` returns only the status of an object. `owners` delimit the pod's owner. After `patience` pods of an owner,
    a stencil is made of one. `keeps_values` says that decoding takes so long that a value is kept once it is read.
    """

    read: Callable[[bytes], Any]
    decode: Callable[[bytes], Any]
    status: Callable[[bytes], Raw]
    opening: tuple[bytes, ...]
    closing: tuple[bytes, ...]
    owners: tuple[bytes, bytes]
    patience: int
    keeps_values: bool


class _StatusAlone(msgspec.Struct):
    status: Raw | None = None


_STATUS = msgspec.json.Decoder(_StatusAlone)


def _from_yaml(item: bytes) -> Any:
    (value,) = parse_part(item.decode(), _LIST_DEPTH)
    return value


# Functions by name, because documents are sent to other processes.
def _status_of_json(item: bytes) -> Raw:
    return _STATUS.decode(item).status or {}


def _status_of_yaml(item: bytes) -> Raw:
    status: Raw = _from_yaml(item).get("status", {})
    return status


JSON = TextForm(
    read=json.decode,
    decode=msgspec.json.decode,
    status=_status_of_json,
    opening=(b'"',),
    closing=(b'"', b'\\"'),
    owners=(b'"ownerReferences"', b"]"),
    patience=1,
    keeps_values=False,
)
YAML = TextForm(
    read=_from_yaml,
    decode=_from_yaml,
    status=_status_of_yaml,
    opening=(b'"', b"'", b" "),
    closing=(b'"', b"'", b"\n", b'\\"'),
    owners=(b"\n    ownerReferences:\n", b"\n    resourceVersion:"),
    # Finding the gaps takes as long as reading a few pods.
    patience=3,
    keeps_values=True,
)
