"""Base64 text in objects, such as the data of Secrets."""

from __future__ import annotations

from base64 import b64decode


def bytes_of(text: str) -> bytes:
    """Return the decoded bytes. Line breaks within the text are ignored (encoding/base64).

    Raises ValueError for invalid base64, without quoting the text: it may be secret.
    """
    try:
        return b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except ValueError:
        raise ValueError("the text is not in base64") from None
