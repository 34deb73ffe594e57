"""The token by which clients are let in."""

from __future__ import annotations

import secrets
import stat
import sys
from pathlib import Path

from podium.api.errors import InputError

_LONGEST = 4_096


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def read_token(path: str) -> str:
    """The token in a file. Raises InputError for a file that others can read, and for one without a token."""
    file = Path(path)
    if sys.platform != "win32" and stat.S_IMODE(file.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError("others than its owner can read or write it; chmod 600 would be right", source=path)
    with file.open(encoding="utf-8", errors="replace") as opened:
        token = opened.read(_LONGEST + 1).strip()
    if not token or len(token) > _LONGEST or any(character.isspace() for character in token):
        raise InputError("one token is needed, and nothing else", source=path)
    return token
