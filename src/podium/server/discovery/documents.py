"""The documents of discovery: plain, one for each group and version, and aggregated, all in one.

Source: apimachinery (meta/v1 APIVersions, APIGroupList, APIGroup, APIResourceList), k8s.io/api/apidiscovery/v2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from podium.api.meta import Raw
from podium.server.discovery.served import ServedKind, Subresource

AGGREGATED = "apidiscovery.k8s.io"
"""The group of the aggregated form, as Accept headers name it."""

AGGREGATED_VERSIONS = ("v2", "v2beta1")
"""The versions of it; they differ in nothing but the name."""


def api_versions() -> Raw:
    """`/api`: the versions of the core."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(kinds: Iterable[ServedKind]) -> Raw:
    """`/apis`: all groups but the core."""
    groups = [_group(group, found) for group, found in _by_group(kinds) if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: Iterable[ServedKind], name: str) -> Raw | None:
    """`/apis/GROUP`; None for a group that is not served."""
    found = [kind for kind in kinds if kind.group == name]
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, found)} if found and name else None


def resource_list(kinds: Iterable[ServedKind], api_version: str) -> Raw | None:
    """`/api/v1` and `/apis/GROUP/VERSION`; None for a version that is not served."""
    found = [kind for kind in kinds if kind.api_version == api_version]
    resources = [entry for kind in found for entry in (_resource(kind), *_plain_subresources(kind))]
    if not found:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def aggregated(kinds: Iterable[ServedKind], version: str, *, is_core: bool) -> Raw:
    """`/api` or `/apis` with all that is in it, as `version` of apidiscovery.k8s.io has it."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{AGGREGATED}/{version}",
        "metadata": {},
        "items": [_aggregated_group(name, found) for name, found in _by_group(kinds) if is_core is (not name)],
    }


def _by_group(kinds: Iterable[ServedKind]) -> list[tuple[str, list[ServedKind]]]:
    return [(name, list(found)) for name, found in groupby(kinds, key=lambda kind: kind.group)]


def _versions(kinds: Iterable[ServedKind]) -> list[str]:
    """The versions of a group, the best first."""
    return list(dict.fromkeys(kind.version for kind in kinds))


def _group(name: str, kinds: Sequence[ServedKind]) -> Raw:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _versions(kinds)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(kind: ServedKind) -> Raw:
    entry: Raw = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    return entry | _also_called(kind)


def _plain_subresources(kind: ServedKind) -> list[Raw]:
    return [
        {
            "name": f"{kind.plural}/{subresource.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **_type_of(kind, subresource),
            "kind": subresource.kind,
            "verbs": list(subresource.verbs),
        }
        for subresource in kind.subresources
    ]


def _type_of(kind: ServedKind, subresource: Subresource) -> Raw:
    """Of which group and version what a subresource carries is, where that is not the kind's own."""
    if (subresource.group, subresource.version) == (kind.group, kind.version):
        return {}
    return {"group": subresource.group, "version": subresource.version}


def _also_called(kind: ServedKind) -> Raw:
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {field: found for field, found in names.items() if found}


def _aggregated_group(name: str, kinds: Sequence[ServedKind]) -> Raw:
    versions = [
        {
            "version": version,
            "resources": [_aggregated_resource(kind) for kind in kinds if kind.version == version],
            "freshness": "Current",
        }
        for version in _versions(kinds)
    ]
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _aggregated_resource(kind: ServedKind) -> Raw:
    entry: Raw = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **_also_called(kind),
    }
    if kind.subresources:
        entry["subresources"] = [_aggregated_subresource(subresource) for subresource in kind.subresources]
    return entry


def _aggregated_subresource(subresource: Subresource) -> Raw:
    return {
        "subresource": subresource.name,
        "responseKind": {
            "group": subresource.group,
            "version": subresource.version,
            "kind": subresource.kind,
        },
        "verbs": list(subresource.verbs),
    }
