"""One write, as those hear of it who watch."""

from __future__ import annotations

from typing import Literal

import msgspec

from podium.store.stored import Stored


class WatchEvent(msgspec.Struct, frozen=True):
    """One committed write.

    `stored` is the object after it; for DELETED the object as it was last, at the version of its removal.
    `previous` is the object before it, None for ADDED.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    stored: Stored
    previous: Stored | None

    @property
    def version(self) -> int:
        """The version that the write committed."""
        return self.stored.version
