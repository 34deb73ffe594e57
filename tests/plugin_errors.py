"""The message about a failed plugin, with the place in its code."""

from __future__ import annotations

import re

_PLACE = re.compile(r" \(\w+\.py, line [0-9]+\)$")


def without_place(message: str) -> str:
    """Return the message without the file and line at its end, which one about a failure has to have."""
    report = _PLACE.sub("", message)
    assert report != message or " failed at " not in message, f"no file and line: {message}"
    return report
