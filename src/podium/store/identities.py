"""Names that the store makes up: uids, and the ends of generated names; and the uids that others gave."""

from __future__ import annotations

from hashlib import blake2b

# The letters and digits of apimachinery's util/rand: without vowels, so that no words come about.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_BASE_LENGTH = 58


class Identities:
    """A sequence of identities that depends on nothing but the seed; `count` of them were drawn so far."""

    def __init__(self, seed: int) -> None:
        # What identities are drawn from but for their number: uids and names differ in size.
        self._uids = blake2b(f"{seed}:".encode(), digest_size=16)
        self._names = blake2b(f"{seed}:".encode(), digest_size=8)
        self.count = 0
        self._given: dict[str, None] = {}

    def uid(self) -> str:
        """The next uid, in the form of a UUID."""
        text = self._next(self._uids).hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def name(self, base: str) -> str:
        """A name for `metadata.generateName`: the base, shortened where needed, and five letters and digits."""
        drawn = int.from_bytes(self._next(self._names))
        suffix = ""
        for _ in range(_SUFFIX_LENGTH):
            drawn, index = divmod(drawn, len(_ALPHABET))
            suffix += _ALPHABET[index]
        return base[:_MAX_BASE_LENGTH] + suffix

    def give(self, uid: str) -> bool:
        """Take note of a uid that an object brought along; False when another had it, though it may be gone."""
        if uid in self._given:
            return False
        self._given[uid] = None
        return True

    def was_given(self, uid: str) -> bool:
        """Whether an object brought this uid along."""
        return uid in self._given

    def mark(self) -> tuple[int, int]:
        """What `rewind` needs to come back to here."""
        return self.count, len(self._given)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Forget what was drawn and given since."""
        self.count, given = mark
        while len(self._given) > given:
            self._given.popitem()

    def _next(self, begun: blake2b) -> bytes:
        self.count += 1
        drawn = begun.copy()
        drawn.update(str(self.count).encode())
        return drawn.digest()
