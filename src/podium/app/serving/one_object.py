"""Files that hold one object, and nothing else."""

from __future__ import annotations

from typing import Any

from podium.api.errors import InputError
from podium.api.input import yaml
from podium.api.input.files import read_bytes
from podium.api.meta import Raw


def read_one(path: str, kind: str) -> Raw:
    """The object in a file of YAML or JSON, without nulls, whatever it is. Raises InputError."""
    try:
        text = read_bytes(path).decode()
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8", source=path) from None
    try:
        found: list[Any] = [root for _, root in yaml.parse_documents(text) if root is not None]
    except InputError as error:
        raise error.located(source=path) from None
    if len(found) != 1 or not isinstance(found[0], dict):
        raise InputError(f"holds {len(found)} objects; one {kind} is needed, and nothing else", source=path)
    raw: Raw = found[0]
    return raw
