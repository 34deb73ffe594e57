"""Values within objects that may not have been validated."""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw


def value_at(raw: Any, *path: str) -> Any:
    """Return the value at a path of field names, or None."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw


def object_at(raw: Any, *path: str) -> Raw:
    """Return the object at a path; {} for anything else."""
    found = value_at(raw, *path)
    return found if isinstance(found, dict) else {}


def list_at(raw: Any, *path: str) -> list[Any]:
    """Return the list at a path; [] for anything else."""
    found = value_at(raw, *path)
    return found if isinstance(found, list) else []


def objects_at(raw: Any, *path: str) -> list[Raw]:
    """Return the objects in the list at a path."""
    found = value_at(raw, *path)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def key_of(metadata: Raw) -> str:
    """Return the key of the object with this metadata: `namespace/name`, or the name alone."""
    name, namespace = metadata.get("name", ""), metadata.get("namespace")
    return f"{namespace}/{name}" if namespace else str(name)
