"""Reading the bytes of files that people name: the one place of this layer that touches the file system."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

from podium.api.errors import InputError

FileName = str | Path
"""A path, or "-" for standard input."""

MAX_FILE_BYTES = 1 << 30
"""The size up to which a file is read."""

_SUFFIXES = (".json", ".yaml", ".yml")


def files_of(name: FileName) -> list[FileName]:
    """The file itself; for a directory, its .yaml, .yml and .json files, sorted by name.

    Raises InputError for a directory without any.
    """
    if name == "-" or not Path(name).is_dir():
        return [name]
    files = sorted(file for file in Path(name).iterdir() if file.suffix in _SUFFIXES and file.is_file())
    if not files:
        raise InputError("the directory has no .yaml, .yml or .json file", source=shown_name(name))
    return list(files)


def shown_name(name: FileName) -> str:
    """The file's name as errors and documents give it."""
    return "standard input" if name == "-" else str(name)


def read_bytes(name: FileName) -> bytes:
    """The file's content. Raises InputError when it cannot be read, or is too large."""
    try:
        if name == "-":
            return _read(sys.stdin.buffer, name)
        with Path(name).open("rb") as stream:
            return _read(stream, name)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        raise InputError(problem, source=shown_name(name)) from None


def _read(stream: BinaryIO, name: FileName) -> bytes:
    content = stream.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InputError(f"is larger than {MAX_FILE_BYTES} bytes; split it", source=shown_name(name))
    return content
