"""File input: the only module of this layer that accesses the file system."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from podium.api.errors import InputError

FileName = str | Path
"""A path, or "-" for standard input."""

MAX_FILE_BYTES = 1 << 30
"""The maximum size in bytes of a file, and of its decompressed content."""

_GZIP = b"\x1f\x8b"
_GZIP_FORMAT = 16
# Manifests compress by a factor of ten or twenty; decompression bombs by a thousand.
_MAX_RATIO = 200
_ALWAYS_UNPACKED_BYTES = 1 << 26


def shown_name(name: FileName) -> str:
    """Return the file's name for errors and documents."""
    return "standard input" if name == "-" else str(name)


def size_of(name: FileName) -> int:
    """Return the size of the file in bytes; 0 if it is not known in advance."""
    try:
        return 0 if name == "-" else Path(name).stat().st_size
    except OSError:
        return 0


@contextmanager
def opened(name: FileName) -> Iterator[BinaryIO]:
    """Open the file's content as a seekable stream, decompressed if it is gzip.

    Raises InputError if it cannot be read, or is too large.
    """
    try:
        if name == "-":
            yield BytesIO(_read(sys.stdin.buffer, name))
            return
        with Path(name).open("rb") as stream:
            size = size_of(name)
            _check_size(size, name)
            # A special file has no size, and can be read only once.
            is_plain = size > 0 and not stream.peek(len(_GZIP)).startswith(_GZIP)
            yield stream if is_plain else BytesIO(_read(stream, name))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=shown_name(name)) from None


def read_bytes(name: FileName) -> bytes:
    """Return the file's content, decompressed if it is gzip. Raises InputError as `opened` does."""
    with opened(name) as stream:
        return stream.read()


def _read(stream: BinaryIO, name: FileName) -> bytes:
    content = stream.read(MAX_FILE_BYTES + 1)
    _check_size(len(content), name)
    return _unpacked(content, name) if content.startswith(_GZIP) else content


def _check_size(size: int, name: FileName) -> None:
    if size > MAX_FILE_BYTES:
        raise InputError(f"is larger than {MAX_FILE_BYTES} bytes; split it", source=shown_name(name))


def _unpacked(packed: bytes, name: FileName) -> bytes:
    """Return the decompressed content of one or several gzip members. Raises InputError if invalid or too large."""
    most = min(MAX_FILE_BYTES, max(_ALWAYS_UNPACKED_BYTES, len(packed) * _MAX_RATIO))
    parts: list[bytes] = []
    size = 0
    while packed.startswith(_GZIP):
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | _GZIP_FORMAT)
        try:
            parts.append(unpacker.decompress(packed, most - size + 1))
        except zlib.error:
            raise InputError("is no whole gzip file", source=shown_name(name)) from None
        size += len(parts[-1])
        if size > most:
            problem = f"unpacks to more than {most} bytes; unpack it yourself if it is meant to"
            raise InputError(problem, source=shown_name(name))
        if not unpacker.eof:
            raise InputError("is no whole gzip file", source=shown_name(name))
        packed = unpacker.unused_data
    return b"".join(parts)
