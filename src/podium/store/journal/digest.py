"""Checksums by which a journal notices that its content is not what was written.

They are no protection from someone who means to deceive: who can write the file can write its checksums too.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

DIGEST_SIZE = 16
FIRST_DIGEST = bytes(DIGEST_SIZE)

_SUMS = 1 << 8 * DIGEST_SIZE


def row_digest(*fields: str | int, after: bytes = b"") -> bytes:
    """The digest of a row; with ``after``, the digest of the row before, a link of a chain."""
    # No field holds a NUL: names cannot, and JSON writes it as an escape.
    return blake2b("\0".join(map(str, fields)).encode(), digest_size=DIGEST_SIZE, key=after).digest()


def total(digests: Iterable[bytes], begin: bytes = FIRST_DIGEST) -> bytes:
    """One digest for a set of rows, whatever their order; ``begin`` is that of others that belong to it."""
    return _written(int.from_bytes(begin) + sum(map(int.from_bytes, digests)))


def without(whole: bytes, digests: Iterable[bytes]) -> bytes:
    """The total of a set of rows when some of them have left it."""
    return _written(int.from_bytes(whole) - sum(map(int.from_bytes, digests)))


def _written(number: int) -> bytes:
    return (number % _SUMS).to_bytes(DIGEST_SIZE)
