"""The documents of OpenAPI v3: the index, and one for each group and version.

Source: k8s.io/kube-openapi (pkg/handler3), for what the index says and how documents are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podium.api.meta import Raw
from podium.api.schemas.schema import Object, older_form_of, schema_of
from podium.server.discovery.served import ServedKind
from podium.server.openapi.components import REFERENCE, group_name, name_of, schemas_of
from podium.server.openapi.descriptions import described
from podium.server.openapi.messages import type_of
from podium.server.openapi.operations import paths_of
from podium.server.openapi.structs import schema_of_struct
from podium.server.tables.cells import value
from podium.store.api_resource import APIResource

_ANYTHING: Raw = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_OBJECT_META = Object("ObjectMeta")


def document_path(api_version: str) -> str:
    """Where the document of a version is, within the index: `api/v1`, `apis/apps/v1`."""
    return f"apis/{api_version}" if "/" in api_version else f"api/{api_version}"


def index(hashes: Mapping[str, str]) -> Raw:
    """`/openapi/v3`: where the documents of versions are; by its hash a client knows whether it has one already."""
    paths = {
        document_path(version): {"serverRelativeURL": f"/openapi/v3/{document_path(version)}?hash={hash_}"}
        for version, hash_ in hashes.items()
    }
    return {"paths": paths}


def definition_of(custom: Raw | None, api_version: str) -> Raw | None:
    """The structural schema that a CustomResourceDefinition has for a version; None where there is none."""
    version = api_version.rpartition("/")[2]
    for told in value(custom, "spec", "versions") or ():
        if value(told, "name") == version:
            schema = value(told, "schema", "openAPIV3Schema")
            return schema if isinstance(schema, dict) else None
    return None


def document(
    kinds: Iterable[tuple[ServedKind, APIResource | None]], api_version: str, definitions: Mapping[str, Raw | None]
) -> Raw:
    """The document of a version, of which `kinds` are; a kind that is not stored comes without its resource.

    `definitions` are the structural schemas that custom kinds of the version bring along, by kind.
    """
    paths: dict[str, Raw] = {}
    schemas: dict[str, Raw] = {}
    for kind, resource in kinds:
        name, found = _schemas(kind, resource, definitions.get(kind.kind))
        schemas |= found
        marked = {"group": kind.group, "kind": kind.kind, "version": kind.version}
        schemas[name] = {**schemas[name], "x-kubernetes-group-version-kind": [marked]}
        is_custom = resource is not None and (resource.is_custom or not _is_kubernetes(resource))
        paths |= paths_of(kind, name, is_custom=is_custom)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": api_version},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _schemas(kind: ServedKind, resource: APIResource | None, definition: Raw | None) -> tuple[str, dict[str, Raw]]:
    """The name of a kind's schema, and that with all others that it takes."""
    is_stored = resource is not None and not resource.is_custom and kind.api_version == resource.api_version
    known = (schema_of(kind.group, kind.kind) if is_stored else older_form_of(kind.api_version, kind.kind)) or type_of(
        kind.api_version, kind.kind
    )
    if known is not None:
        return name_of(known.name, kind.api_version), schemas_of(known, kind.api_version)
    if definition is None and resource is not None and not resource.is_custom and not _is_kubernetes(resource):
        definition = schema_of_struct(resource.type)
    is_own = resource is not None and (resource.is_custom or not _is_kubernetes(resource))
    base = f"{group_name(kind.api_version)}.{kind.version}" if is_own else ""
    name = f"{base}.{kind.kind}" if base else name_of(kind.kind, kind.api_version)
    return name, {**schemas_of(_OBJECT_META, kind.api_version), name: _with_metadata(definition or _ANYTHING, kind)}


def _is_kubernetes(resource: APIResource) -> bool:
    return "." not in resource.group or resource.group.endswith(".k8s.io")


def _with_metadata(definition: Raw, kind: ServedKind) -> Raw:
    """The schema of a kind with what every object has."""
    metadata = f"{REFERENCE}{name_of(_OBJECT_META.name, kind.api_version)}"
    properties: dict[str, Any] = {
        "apiVersion": {"description": described("*.apiVersion"), "type": "string"},
        "kind": {"description": described("*.kind"), "type": "string"},
        **definition.get("properties", {}),
        "metadata": {"description": described("*.metadata"), "allOf": [{"$ref": metadata}]},
    }
    return {**definition, "type": "object", "properties": properties}
