"""Discovery documents: unaggregated, one for each group and version, and aggregated, all in one.

Source: apimachinery (meta/v1 APIVersions, APIGroupList, APIGroup, APIResourceList), k8s.io/api/apidiscovery/v2.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from podium.api.kinds import group_order
from podium.api.meta import Raw
from podium.store.api_resources import APIResource, Subresource
from podium.store.custom_kinds import version_order

AGGREGATED = "apidiscovery.k8s.io"
"""The group of the aggregated form, as Accept headers name it."""

AGGREGATED_VERSIONS = ("v2", "v2beta1")
"""The versions of the aggregated form; they differ only in name."""


def group_list(kinds: Iterable[APIResource]) -> Raw:
    """Return `/apis`: all groups but the core."""
    groups = [_group(group, found) for group, found in _by_group(kinds) if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: Iterable[APIResource], name: str) -> Raw | None:
    """Return `/apis/GROUP`; None for a group that is not served."""
    found = [kind for kind in kinds if kind.group == name]
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, found)} if found and name else None


def resource_list(kinds: Iterable[APIResource], api_version: str) -> Raw | None:
    """Return `/api/v1` or `/apis/GROUP/VERSION`; None for a version that is not served."""
    found = [kind for kind in kinds if kind.api_version == api_version]
    if not found:
        return None
    resources = [entry for kind in found for entry in (_resource(kind), *map(partial(_part, kind), kind.subresources))]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def aggregated(kinds: Iterable[APIResource], version: str, *, is_core: bool) -> Raw:
    """Return `/api` or `/apis` with its full content, as in `version` of apidiscovery.k8s.io."""
    items: list[Raw] = []
    for name, found in _by_group(kinds):
        if is_core is (not name):
            versions = [
                {
                    "version": served,
                    "resources": [_aggregated_resource(kind) for kind in found if kind.version == served],
                    "freshness": "Current",
                }
                for served in _versions(found)
            ]
            items.append({"metadata": {"name": name} if name else {}, "versions": versions})
    api_version = f"{AGGREGATED}/{version}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _by_group(kinds: Iterable[APIResource]) -> list[tuple[str, list[APIResource]]]:
    return [(name, list(found)) for name, found in groupby(kinds, key=lambda kind: kind.group)]


def _versions(kinds: Iterable[APIResource]) -> list[str]:
    """Return the versions of a group, the preferred one first."""
    return list(dict.fromkeys(kind.version for kind in kinds))


def _group(name: str, kinds: Sequence[APIResource]) -> Raw:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _versions(kinds)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(kind: APIResource) -> Raw:
    # The hash of a storage version, as in apiserver's pkg/endpoints/discovery/storageversionhash.go.
    group, _, version = (kind.stored_as or kind.api_version).rpartition("/")
    digest = hashlib.sha256(f"{group}/{version}/{kind.kind}".encode()).digest()[:8]
    return {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
        **_also_called(kind),
        **({} if kind in ANSWERED else {"storageVersionHash": base64.b64encode(digest).decode()}),
    }


def _part(of: APIResource, part: Subresource) -> Raw:
    """Return the entry of a subresource, which may carry a type of another version."""
    type_ = type_of(of, part)
    return {
        "name": f"{of.plural}/{part.name}",
        "singularName": "",
        "namespaced": of.namespaced,
        **({} if part.api_version in ("", of.api_version) else type_),
        "kind": type_["kind"],
        "verbs": list(part.verbs),
    }


def _also_called(kind: APIResource) -> Raw:
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {field: found for field, found in names.items() if found}


def _aggregated_resource(kind: APIResource) -> Raw:
    subresources = [
        {"subresource": found.name, "responseKind": type_of(kind, found), "verbs": list(found.verbs)}
        for found in kind.subresources
    ]
    return {
        "resource": kind.plural,
        "responseKind": type_of(kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **_also_called(kind),
        **({"subresources": subresources} if subresources else {}),
    }


def type_of(kind: APIResource, part: Subresource | None = None) -> Raw:
    """Return the group, version and kind of the objects of a kind, or of those that its subresource carries."""
    api_version, name = kind.type_of(part)
    group, _, version = api_version.rpartition("/")
    return {"group": group, "version": version, "kind": name}


def _answered(group: str, kind: str, **fields: Any) -> APIResource:
    known = {"plural": f"{kind.lower()}s", "namespaced": False, "verbs": ("create",), "has_status": False, **fields}
    return APIResource(group=f"{group}.k8s.io", kind=kind, **known)


REVIEWS = (
    _answered("authentication", "SelfSubjectReview"),
    _answered("authentication", "TokenReview"),
    _answered("authorization", "LocalSubjectAccessReview", namespaced=True),
    _answered("authorization", "SelfSubjectAccessReview"),
    _answered("authorization", "SelfSubjectRulesReview"),
    _answered("authorization", "SubjectAccessReview"),
)
"""The kinds of reviews."""

_MEASURED: dict[str, Any] = {"version": "v1beta1", "singular": "", "verbs": ("get", "list")}
ANSWERED = (
    *REVIEWS,
    _answered("metrics", "NodeMetrics", plural="nodes", **_MEASURED),
    _answered("metrics", "PodMetrics", plural="pods", namespaced=True, **_MEASURED),
)
"""The kinds that are answered and not stored."""


def served_kinds(resources: Iterable[APIResource]) -> list[APIResource]:
    """Return all kinds, one for each version, by group, then version (preferred first), then name."""
    stored = (resource.served_as(version) for resource in resources for version in resource.served_versions)
    kinds = [*stored, *ANSWERED]
    return sorted(kinds, key=lambda kind: (*group_order(kind.group), version_order(kind.version), kind.plural))
