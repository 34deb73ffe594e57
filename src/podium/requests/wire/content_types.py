"""What bodies of requests and replies are called."""

from __future__ import annotations

from collections.abc import Mapping

from podium.store.errors import StoreError
from podium.store.patches.patching import PatchType

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

BODY_TYPES = (JSON, YAML, PROTOBUF)
"""What an object in a request may be written in, the usual one first."""

PATCH_TYPES: Mapping[str, PatchType] = {
    "application/apply-patch+yaml": "apply",
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
"""How a patch is called, and which it is."""

PATCH_NAMES: Mapping[PatchType, str] = {type_: name for name, type_ in PATCH_TYPES.items()}
"""The same the other way round."""


def media_type(content_type: str) -> str:
    """The type that a header Content-Type names, without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def patch_type(content_type: str) -> PatchType:
    """Which patch a body of a type is. Raises StoreError 415."""
    found = PATCH_TYPES.get(media_type(content_type))
    if found is None:
        raise unsupported(PATCH_TYPES)
    return found


def body_type(content_type: str) -> str:
    """Which of `BODY_TYPES` a body is written in; JSON where nothing is said. Raises StoreError 415."""
    named = media_type(content_type) or JSON
    if named not in BODY_TYPES:
        raise unsupported(BODY_TYPES)
    return named


def unsupported(accepted: Mapping[str, object] | tuple[str, ...]) -> StoreError:
    """The body is of no type that is read (apiserver's negotiation.NewUnsupportedMediaTypeError)."""
    listed = ", ".join(accepted)
    problem = f"the body of the request was in an unknown format - accepted media types include: {listed}"
    return StoreError(415, "UnsupportedMediaType", problem)
