"""Validation of CustomResourceDefinitions.

Source: apiextensions-apiserver (pkg/apis/apiextensions/validation/validation.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from podium.api.meta import Raw
from podium.api.names import label_name_problem, subdomain_problem
from podium.api.nested import list_at, object_at, objects_at, value_at
from podium.api.structural.soundness import find_schema_problems
from podium.api.validation.findings import (
    MAX_FINDINGS,
    Finding,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)

APPROVED = "api-approved.kubernetes.io"
"""The annotation that definitions in Kubernetes' own API groups must have."""

_PROTECTED = ("k8s.io", "kubernetes.io")
_VERSION_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_PATH = re.compile(r"(\.[A-Za-z_][A-Za-z0-9_-]*)+", re.ASCII)
_WORD = "must be lower-case letters, digits and '-', with a letter at its beginning"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_NO_WEBHOOK = (
    "no webhook is called here, so that a kind that one converts is served in one version alone: "
    "leave that version in spec.versions, or write None where all versions are alike"
)
_MOST_COLUMNS, _MOST_SELECTABLE = 1_000, 8


def find_definition_problems(raw: Raw, previous: Raw | None) -> list[Finding]:
    """Return the problems of a definition that is created, or that replaces `previous`."""
    return list(islice(_problems(raw, previous), MAX_FINDINGS))


def _problems(raw: Raw, previous: Raw | None) -> Iterator[Finding]:
    spec = raw.get("spec")
    if not isinstance(spec, dict):
        yield required(".spec")
        return
    names, group = object_at(spec, "names"), spec.get("group")
    yield from _of_group(raw, group)
    yield from _of_names(raw, names, group)
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        scopes = ("Cluster", "Namespaced")
        yield unsupported(".spec.scope", spec["scope"], scopes) if spec.get("scope") else required(".spec.scope")
    if spec.get("preserveUnknownFields"):
        detail = "must be false in order to use defaults in the schema"
        yield invalid(".spec.preserveUnknownFields", True, detail)
    strategy = object_at(spec, "conversion").get("strategy", "None")
    if strategy not in ("None", "Webhook"):
        yield unsupported(".spec.conversion.strategy", strategy, ("None", "Webhook"))
    elif strategy == "Webhook" and len(list_at(spec, "versions")) > 1:
        # A webhook answers asynchronously, while requests here are answered synchronously, one after the other.
        yield forbidden(".spec.conversion.strategy", _NO_WEBHOOK)
    yield from _of_versions(spec.get("versions"))
    if previous is not None:
        yield from _of_changes(spec, previous["spec"])


def _of_group(raw: Raw, group: Any) -> Iterator[Finding]:
    if not group:
        yield required(".spec.group")
    elif not isinstance(group, str) or subdomain_problem(group):
        yield invalid(".spec.group", group, "must be a lower-case domain name such as example.com")
    elif "." not in group:
        yield invalid(".spec.group", group, "should be a domain with at least one dot")
    elif any(group == domain or group.endswith(f".{domain}") for domain in _PROTECTED):
        annotations = object_at(raw, "metadata", "annotations")
        if not annotations.get(APPROVED):
            detail = f'protected groups must have approval annotation "{APPROVED}"'
            see = "see https://github.com/kubernetes/enhancements/pull/1111"
            yield required(f".metadata.annotations[{APPROVED}]", f"{detail}, {see}")


def _of_names(raw: Raw, names: Raw, group: Any) -> Iterator[Finding]:
    for field in ("plural", "kind"):
        if not names.get(field):
            yield required(f".spec.names.{field}")
    for field in ("plural", "singular", "kind", "listKind"):
        name = names.get(field)
        if name and (not isinstance(name, str) or label_name_problem(name.lower())):
            yield invalid(f".spec.names.{field}", name, _WORD)
    for field in ("shortNames", "categories"):
        for index, name in enumerate(list_at(names, field)):
            if not isinstance(name, str) or label_name_problem(name):
                yield invalid(f".spec.names.{field}[{index}]", name, "must be lower-case letters, digits and '-'")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid(".spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
    if names.get("plural") and group and raw["metadata"].get("name") != f"{names['plural']}.{group}":
        yield invalid(".metadata.name", raw["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')


def _of_versions(versions: Any) -> Iterator[Finding]:
    listed = list_at(versions)
    if not listed:
        yield required(".spec.versions", "must have at least one version")
        return
    known: set[str] = set()
    for index, version in enumerate(listed):
        path = f".spec.versions[{index}]"
        if not isinstance(version, dict):
            yield invalid(path, version, "must be an object")
            return
        name = version.get("name")
        if not isinstance(name, str) or len(name) > 63 or not _VERSION_NAME.fullmatch(name):
            yield invalid(f"{path}.name", name, _WORD)
        elif name in known:
            yield duplicate(f"{path}.name", name)
        known.add(str(name))
        yield from _of_version(version, path)
    if sum(bool(version.get("storage")) for version in listed if isinstance(version, dict)) != 1:
        detail = "must have exactly one version marked as storage version"
        yield invalid(".spec.versions", [version.get("name") for version in listed], detail)


def _of_version(version: Raw, path: str) -> Iterator[Finding]:
    for flag in ("served", "storage"):
        if not isinstance(version.get(flag, False), bool):
            yield invalid(f"{path}.{flag}", version[flag], "must be true or false")
    schema = value_at(version, "schema", "openAPIV3Schema")
    yield from find_schema_problems(schema, f"{path}.schema.openAPIV3Schema")
    columns = list_at(version, "additionalPrinterColumns")[:_MOST_COLUMNS]
    for index, column in enumerate(columns):
        place = f"{path}.additionalPrinterColumns[{index}]"
        for field in ("jsonPath", "name", "type"):
            if not value_at(column, field):
                yield required(f"{place}.{field}")
        type_ = value_at(column, "type")
        if type_ and type_ not in _COLUMN_TYPES:
            yield unsupported(f"{place}.type", type_, _COLUMN_TYPES)
    selectable = list_at(version, "selectableFields")
    if len(selectable) > _MOST_SELECTABLE:
        yield invalid(f"{path}.selectableFields", len(selectable), f"must have at most {_MOST_SELECTABLE} items")
    for index, field in enumerate(selectable):
        yield from _of_path(value_at(field, "jsonPath"), f"{path}.selectableFields[{index}].jsonPath", "")
    scale = value_at(version, "subresources", "scale")
    if isinstance(scale, dict):
        yield from _of_scale(scale, f"{path}.subresources.scale")


def _of_scale(scale: Raw, path: str) -> Iterator[Finding]:
    yield from _of_path(scale.get("specReplicasPath"), f"{path}.specReplicasPath", ".spec.")
    yield from _of_path(scale.get("statusReplicasPath"), f"{path}.statusReplicasPath", ".status.")
    if scale.get("labelSelectorPath"):
        yield from _of_path(scale["labelSelectorPath"], f"{path}.labelSelectorPath", "")


def _of_path(value: Any, path: str, start: str) -> Iterator[Finding]:
    """Yield the problems of a field path such as `.spec.replicas`."""
    if not value:
        yield required(path)
    elif not isinstance(value, str) or not _PATH.fullmatch(value):
        yield invalid(path, value, "must be a simple json path of fields, such as .spec.replicas")
    elif not value.startswith(start):
        yield invalid(path, value, f"should be a json path under {start.rstrip('.')}")


def _of_changes(spec: Raw, before: Raw) -> Iterator[Finding]:
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        new = value_at(spec, *path)
        if new != value_at(before, *path):
            yield invalid(f".spec.{'.'.join(path)}", new, "field is immutable")


def check_stored_versions(spec: Raw, stored: list[str]) -> Iterator[Finding]:
    """Yield a finding for each version that objects may be stored in and that the definition no longer has."""
    names = [version.get("name") for version in objects_at(spec, "versions")]
    for index, version in enumerate(stored):
        if version not in names:
            yield not_found(f".status.storedVersions[{index}]", version, "must appear in spec.versions")
