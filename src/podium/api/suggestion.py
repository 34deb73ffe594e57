"""What a person may have meant by a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to try instead of a name that is none of those known."""
    names = list(known)
    # The time to compare grows with the square of the length, and no name is longer than this.
    near = get_close_matches(name[:100], names)
    return f"did you mean {' or '.join(near)}?" if near else f"known are: {', '.join(names) or 'none'}"
