"""Patches that were made from two forms of an object, by somebody who knows what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from podium.api.meta import Raw


class MadePatch(Mapping[str, Any]):
    """A strategic merge patch of an object's status that was made of what the status is and what it is to be.

    To the very object that it was made from it does what `after` says; that need not be worked out again, and neither
    need the patch. To any other it is a patch like all others, as it is when it is sent somewhere.
    """

    __slots__ = ("_make", "_patch", "after", "before")

    def __init__(self, before: Raw, after: Raw, make: Callable[[], Raw]) -> None:
        """`before` is the object, `after` the status without nulls, with its fields in the order that merging makes.

        `make` makes the patch, when somebody first asks for it.
        """
        self.before = before
        self.after = after
        self._make = make
        self._patch: Raw | None = None

    @property
    def patch(self) -> Raw:
        """The patch as it is sent."""
        if self._patch is None:
            self._patch = self._make()
        return self._patch

    def __getitem__(self, name: str) -> Any:
        return self.patch[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.patch)

    def __len__(self) -> int:
        return len(self.patch)


def plain_patch(patch: Any) -> Any:
    """A patch as it is sent, whoever made it."""
    return patch.patch if isinstance(patch, MadePatch) else patch
