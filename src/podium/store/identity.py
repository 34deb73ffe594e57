"""Names that the store makes up: uids, and the ends of generated names."""

from __future__ import annotations

from hashlib import blake2b

# The letters and digits of apimachinery's util/rand: without vowels, so that no words come about.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_BASE_LENGTH = 58


class Identities:
    """A sequence of identities that depends on nothing but the seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._count = 0

    def uid(self) -> str:
        """The next uid, in the form of a UUID."""
        text = self._next(16).hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def name(self, base: str) -> str:
        """A name for `metadata.generateName`: the base, shortened where needed, and five letters and digits."""
        drawn = int.from_bytes(self._next(8))
        suffix = ""
        for _ in range(_SUFFIX_LENGTH):
            drawn, index = divmod(drawn, len(_ALPHABET))
            suffix += _ALPHABET[index]
        return base[:_MAX_BASE_LENGTH] + suffix

    def _next(self, size: int) -> bytes:
        self._count += 1
        return blake2b(f"{self._seed}:{self._count}".encode(), digest_size=size).digest()
