"""What becomes of fields that no schema knows (the parameter fieldValidation)."""

from __future__ import annotations

from podium.api.errors import shown
from podium.api.meta import Raw
from podium.api.schemas.structure import findings
from podium.api.structural.shaping import shaped
from podium.requests.request import Request
from podium.store.api_resources import APIResources
from podium.store.errors import bad_request


def check_fields(resources: APIResources, request: Request, raw: Raw) -> tuple[str, ...]:
    """The warnings about fields that there are not, where the request wants to be warned.

    Raises StoreError 400 where it is strict, for a `fieldValidation` that there is not, and for a field with something
    in it that does not belong there.
    """
    mode = request.field_validation
    if mode not in ("Ignore", "Warn", "Strict"):
        raise bad_request(f"fieldValidation: {shown(mode)} is not one of Ignore, Warn, Strict")
    structural = resources.structural(resources.of(raw), str(raw["apiVersion"]))
    if structural is not None:
        return _told(request, raw, [] if mode == "Ignore" else shaped(raw, structural)[1])
    found = findings(raw, advises=False)
    for finding in found:
        if not finding.is_unknown:
            place = finding.path.removeprefix(".")
            raise bad_request(f"{_unhandled(raw)}: {place}: {finding.message}")
    if mode == "Ignore":
        return ()
    return _told(request, raw, [finding.path.removeprefix(".") for finding in found if finding.is_unknown])


def _told(request: Request, raw: Raw, paths: list[str]) -> tuple[str, ...]:
    """What is said of fields that there are not. Raises StoreError 400 where that is strict."""
    unknown = [f'unknown field "{path}"' for path in paths]
    if unknown and request.field_validation == "Strict":
        raise bad_request(f"{_unhandled(raw)}: strict decoding error: {', '.join(unknown)}")
    return tuple(unknown)


def _unhandled(raw: Raw) -> str:
    version = shown(str(raw["apiVersion"]).rpartition("/")[2])
    return f"{raw['kind']} in version {version} cannot be handled as a {raw['kind']}"
