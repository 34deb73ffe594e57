"""What each request is called, so that a client can ask about it."""

from __future__ import annotations

from collections.abc import Mapping

_LONGEST = 64


class AuditIDs:
    """Gives each request an id, in the form of a UUID: the server's part and a count."""

    def __init__(self, own: bytes) -> None:
        """`own` are ten bytes that no other server has."""
        text = own.hex()
        self._own = f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-"
        self._count = 0

    def audit_id(self, headers: Mapping[str, str]) -> str:
        """The id of a request: what its client calls it, or the next one."""
        given = headers.get("Audit-ID")
        if given is not None and given.isascii() and given.isprintable():
            return given[:_LONGEST]
        self._count += 1
        return f"{self._own}{self._count:012x}"
