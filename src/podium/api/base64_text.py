"""Bytes that stand as text in objects, as those of Secrets do."""

from __future__ import annotations

from base64 import b64decode


def bytes_of(text: str) -> bytes:
    """The bytes. Line ends within the text are passed over (encoding/base64).

    Raises ValueError for what is not in base64, which does not tell what it is: it may be secret.
    """
    try:
        return b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        raise ValueError("the text is not in base64") from None
