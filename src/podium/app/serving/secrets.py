"""The token by which clients are let in."""

from __future__ import annotations

import secrets


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)
