"""What a person may have meant by a name that there is not."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to try instead of a name that is none of those known."""
    names = list(known)
    near = likely(name, names)
    return f"did you mean {' or '.join(near)}?" if near else f"known are: {', '.join(names) or 'none'}"


def likely(name: str, known: Iterable[str]) -> list[str]:
    """Those of the known names that somebody may have meant: the one in other letters, else those alike, best first."""
    names = list(known)
    same = [one for one in names if one.lower() == name.lower()]
    # The time to compare grows with the square of the length, and no name is longer than this.
    return same or get_close_matches(name[:100], names)
