"""What can be asked of a kind, as paths of OpenAPI: what kubectl looks for before it creates, applies or explains.

Each operation names its kind, and those that write say that they validate fields and by which patches they change.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.api.meta import Raw
from podium.requests.wire.content_types import JSON, PATCH_TYPES, PROTOBUF, YAML
from podium.server.discovery.served import ServedKind, Subresource
from podium.server.openapi.components import REFERENCE

_ACTIONS = {
    "create": ("post", "post"),
    "delete": ("delete", "delete"),
    "deletecollection": ("delete", "deletecollection"),
    "get": ("get", "get"),
    "list": ("get", "list"),
    "patch": ("patch", "patch"),
    "update": ("put", "put"),
}
"""The method of each verb, and what kubectl calls it."""

_OF_COLLECTIONS = ("create", "deletecollection", "list")
_WRITING = ("create", "patch", "update")
_BODIES = (JSON, YAML, PROTOBUF)


def paths_of(kind: ServedKind, schema: str, *, is_custom: bool) -> dict[str, Raw]:
    """The paths of a kind whose schema has that name, with what can be asked there."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    within = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    collection = f"{within}/{kind.plural}"
    one = f"{collection}/{{name}}"
    reference = {"$ref": f"{REFERENCE}{schema}"}
    of_collection = [verb for verb in kind.verbs if verb in _OF_COLLECTIONS]
    of_one = [verb for verb in kind.verbs if verb in _ACTIONS and verb not in _OF_COLLECTIONS]
    paths = {
        collection: _operations(kind, of_collection, reference, is_custom),
        one: _operations(kind, of_one, reference, is_custom),
    }
    if kind.namespaced and "list" in kind.verbs:
        paths[f"{root}/{kind.plural}"] = _operations(kind, ["list"], reference, is_custom)
    for subresource in kind.subresources:
        operations = _operations(_as_kind(kind, subresource), subresource.verbs, None, is_custom)
        paths[f"{one}/{subresource.name}"] = operations
    return {path: operations for path, operations in paths.items() if operations}


def _as_kind(kind: ServedKind, subresource: Subresource) -> ServedKind:
    """What a subresource takes and gives."""
    found = subresource
    return ServedKind(found.group, found.version, kind.plural, found.kind, kind.namespaced, found.verbs)


def _operations(kind: ServedKind, verbs: Sequence[str], reference: Raw | None, is_custom: bool) -> Raw:
    return {_ACTIONS[verb][0]: _operation(kind, verb, reference, is_custom) for verb in verbs if verb in _ACTIONS}


def _operation(kind: ServedKind, verb: str, reference: Raw | None, is_custom: bool) -> Raw:
    schema = {"schema": reference} if reference is not None else {}
    operation: Raw = {
        "responses": {"200": {"description": "OK", "content": {JSON: schema if verb != "list" else {}}}},
        "x-kubernetes-action": _ACTIONS[verb][1],
        "x-kubernetes-group-version-kind": {"group": kind.group, "kind": kind.kind, "version": kind.version},
    }
    if verb in _WRITING:
        operation["parameters"] = [_parameter(name) for name in ("dryRun", "fieldManager", "fieldValidation")]
        types = _patches(is_custom) if verb == "patch" else _BODIES
        operation["requestBody"] = {"content": dict.fromkeys(types, schema)}
    return operation


def _patches(is_custom: bool) -> list[str]:
    """How objects of a kind can be patched; strategic merge patch is for Kubernetes' own kinds alone."""
    return sorted(name for name, type_ in PATCH_TYPES.items() if not is_custom or type_ != "strategic")


def _parameter(name: str) -> Raw:
    return {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
