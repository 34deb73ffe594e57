"""What becomes of fields that no schema knows (the parameter fieldValidation)."""

from __future__ import annotations

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.api.schemas.structure import findings
from podium.requests.request import Request
from podium.store.errors import bad_request


def check_fields(request: Request, raw: Raw) -> tuple[str, ...]:
    """The warnings about fields that there are not, where the request wants to be warned.

    Raises StoreError 400 where it is strict, and for a `fieldValidation` that there is not.
    """
    mode = request.field_validation
    if mode not in ("Ignore", "Warn", "Strict"):
        raise bad_request(f"fieldValidation: {shown(mode)} is not one of Ignore, Warn, Strict")
    if mode == "Ignore":
        return ()
    unknown = [f'unknown field "{finding.path.removeprefix(".")}"' for finding in findings(raw) if finding.is_unknown]
    if unknown and mode == "Strict":
        raise bad_request(f"{request.kind}: strict decoding error: {', '.join(unknown)}")
    return tuple(unknown)
