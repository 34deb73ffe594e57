"""How much an object may list, so that judging it holds up nobody.

It is looked at before all else, and costs little. kube-apiserver has no such limits; it judges on many threads.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.checks import MAX_ENTRIES
from podium.api.errors import field_path
from podium.api.meta import Raw
from podium.store.api_resource import APIResource
from podium.store.errors import invalid

MOST_ENTRIES = 10_000
"""How many entries a list or a map in an object may have."""

MOST_IN_ALL = 50_000
"""How many entries all lists and objects in an object may have together."""

_ENCODER = msgspec.json.Encoder()
# What holds as much as the body of a request.
_HOLDERS = frozenset(("ConfigMap", "CustomResourceDefinition", "Secret"))
# What each entry of takes long to judge.
_LONG = frozenset(
    (
        "containers",
        "ephemeralContainers",
        "imagePullSecrets",
        "initContainers",
        "nodeSelectorTerms",
        "preferredDuringSchedulingIgnoredDuringExecution",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "resourceClaims",
        "schedulingGates",
        "tolerations",
        "topologySpreadConstraints",
        "volumes",
    )
)
# What each entry of is judged in no time.
_QUICK = frozenset(("annotations", "labels"))


def check_size(resource: APIResource, key: str, body: Any) -> None:
    """Raise StoreError 422 for an object of Kubernetes' own kinds, or a patch of one, that lists too much."""
    if resource.is_custom or resource.name in _HOLDERS:
        return
    if _is_short(body):
        return
    left = MOST_IN_ALL
    # How many operations a JSON patch may have is its own limit; here it is about the values.
    operations = body if isinstance(body, list) else [{"value": body}]
    found: list[tuple[str, str, Any]] = [("", "", part.get("value")) for part in operations if isinstance(part, dict)]
    while found:
        path, name, value = found.pop()
        if not isinstance(value, dict | list):
            continue
        most = MAX_ENTRIES if name in _LONG and isinstance(value, list) else MOST_ENTRIES
        most = MOST_IN_ALL if name in _QUICK else most
        if len(value) > most:
            problem = f"Too many: {len(value)}: must have at most {most} items"
            raise invalid(resource, key or _name_in(body), problem, path or "metadata", "FieldValueTooMany")
        left -= len(value)
        if left < 0:
            problem = f"Too many: the object must have at most {MOST_IN_ALL} fields and items in all"
            raise invalid(resource, key or _name_in(body), problem, path, "FieldValueTooMany")
        if isinstance(value, dict):
            found += [
                (field_path(path, key_), key_, part) for key_, part in value.items() if isinstance(part, dict | list)
            ]
        else:
            found += [(f"{path}[{index}]", "", part) for index, part in enumerate(value) if part]


def _is_short(body: Any) -> bool:
    """Whether a body takes no more bytes than the shortest list that is too long, of which each entry takes two."""
    try:
        return len(_ENCODER.encode(body)) <= 2 * MAX_ENTRIES
    except (OverflowError, RecursionError, TypeError, ValueError):
        return False


def _name_in(body: Any) -> str:
    metadata: Raw | None = body.get("metadata") if isinstance(body, dict) else None
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
