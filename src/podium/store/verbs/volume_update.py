"""What an update may change of volumes and claims (core/validation, Validate...Update)."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.api.quantity import parse_quantity
from podium.api.validation.storage import SOURCES
from podium.store.admission.object_defaults import with_defaults
from podium.store.errors import invalid
from podium.store.stored import Stored

_CLAIM = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_FORBIDDEN = "FieldValueForbidden"


def check_volume_update(previous: Stored, raw: Raw) -> None:
    """Raise StoreError 422 where a volume comes to be another: its source and its mode stay."""
    old, new = _specs(previous, raw)
    if any(old.get(source) != new.get(source) for source in SOURCES):
        problem = "Forbidden: spec.persistentvolumesource is immutable after creation"
        raise invalid(previous.resource, previous.key, problem, "spec.persistentvolumesource", _FORBIDDEN)
    if old.get("volumeMode") != new.get("volumeMode"):
        raise invalid(previous.resource, previous.key, "field is immutable", "spec.volumeMode")


def check_claim_update(previous: Stored, raw: Raw) -> None:
    """Raise StoreError 422 for a claim with changes that no update makes.

    It gets its volume and the default class once; one that is bound asks for more, and for other attributes.
    """
    old, new = _specs(previous, raw)
    open_fields = [name for name in ("volumeName", "storageClassName") if not old.get(name)]
    status = previous.raw.get("status") or {}
    if status.get("phase") == "Bound":
        open_fields += ["resources", "volumeAttributesClassName"]
    for field in sorted({*old, *new} - set(open_fields)):
        if (old.get(field) or None) != (new.get(field) or None):
            problem = f"Forbidden: {_CLAIM}; this one changes {field}"
            raise invalid(previous.resource, previous.key, problem, "spec", _FORBIDDEN)
    before, after = _storage(old), _storage(new)
    had = (status.get("capacity") or {}).get("storage")
    if after < before and had is not None and after <= parse_quantity(had):
        problem = "Forbidden: field can not be less than status.capacity"
        raise invalid(previous.resource, previous.key, problem, "spec.resources.requests.storage", _FORBIDDEN)


def _specs(previous: Stored, raw: Raw) -> tuple[Raw, Raw]:
    """Both specifications; what one of them leaves open is what the other says, where that is the default."""
    kind = previous.kind
    old, new = (with_defaults(kind, {"spec": given.get("spec", {})})["spec"] for given in (previous.raw, raw))
    return old, new


def _storage(spec: Raw) -> int:
    """How much is asked for, in nano units. The claim has been read, so that it is an amount."""
    requests: Any = (spec.get("resources") or {}).get("requests") or {}
    return parse_quantity(requests.get("storage", 0))
