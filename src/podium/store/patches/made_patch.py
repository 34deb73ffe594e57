"""Patches that were made from two forms of an object, by somebody who knows what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from podium.api.meta import Raw


class MadePatch(msgspec.Struct, frozen=True):
    """A strategic merge patch of an object's status that was made of what the status is and what it is to be.

    To the very object that it was made from it does what `after` says; that need not be worked out again, and neither
    need the patch. To any other it is a patch like all others, as it is when it is sent somewhere.

    `before` is the object, `after` the status without nulls, with its fields in the order that merging makes. `make`
    makes the patch of both.
    """

    before: Raw
    after: Raw
    make: Callable[[Raw, Raw], Raw]


def plain_patch(patch: Any) -> Any:
    """A patch as it is sent, whoever made it."""
    return patch.make(patch.before, patch.after) if isinstance(patch, MadePatch) else patch
