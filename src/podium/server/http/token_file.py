"""The file with the token that whoever asks has to show."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from podium.api.errors import InputError

SHORTEST_TOKEN = 16
"""How many letters a token has at least."""

_LONGEST = 4_096


def read_token(path: str, *, is_shared: bool = False) -> str:
    """The token in a file; one that is mounted for a container may be ``is_shared`` with its group.

    Raises InputError for a file that cannot be read, that others than its owner can read, or that holds no token.
    """
    file = Path(path)
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        with file.open(encoding="utf-8", errors="replace") as opened:
            token = opened.read(_LONGEST + 1).strip()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    if not is_shared and sys.platform != "win32" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError("others than its owner can read or write it; chmod 600 would be right", source=path)
    if not token or len(token) > _LONGEST or any(character.isspace() for character in token):
        raise InputError("one token is needed, and nothing else", source=path)
    if len(token) < SHORTEST_TOKEN:
        raise InputError(f"holds a token of less than {SHORTEST_TOKEN} letters; make it longer", source=path)
    return token
