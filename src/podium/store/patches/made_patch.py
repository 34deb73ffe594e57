"""Patches that were made from two forms of an object, by somebody who knows what comes of them."""

from __future__ import annotations

from podium.api.meta import Raw


class MadePatch(dict[str, object]):
    """A strategic merge patch of an object's status that was made of what the status is and what it is to be.

    To the very object that it was made from it does what `after` says; that need not be worked out again. To any other
    it is a patch like all others, as it is when it has been sent somewhere.
    """

    __slots__ = ("after", "before")

    def __init__(self, patch: Raw, before: Raw, after: Raw) -> None:
        """`before` is the object, `after` the status without nulls, with its fields in the order that merging makes."""
        super().__init__(patch)
        self.before = before
        self.after = after
