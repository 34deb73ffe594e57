"""Discovery documents: unaggregated, one for each group and version, and aggregated, all in one.

Source: apimachinery (meta/v1 APIVersions, APIGroupList, APIGroup, APIResourceList), k8s.io/api/apidiscovery/v2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from podium.api.kinds import categories, group_order, short_names
from podium.api.meta import Raw
from podium.store.api_resource import APIResource

AGGREGATED = "apidiscovery.k8s.io"
"""The group of the aggregated form, as Accept headers name it."""

AGGREGATED_VERSIONS = ("v2", "v2beta1")
"""The versions of the aggregated form; they differ only in name."""


def api_versions() -> Raw:
    """Return `/api`: the versions of the core group."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(kinds: Iterable[ServedKind]) -> Raw:
    """Return `/apis`: all groups but the core."""
    groups = [_group(group, found) for group, found in _by_group(kinds) if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(kinds: Iterable[ServedKind], name: str) -> Raw | None:
    """Return `/apis/GROUP`; None for a group that is not served."""
    found = [kind for kind in kinds if kind.group == name]
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, found)} if found and name else None


def resource_list(kinds: Iterable[ServedKind], api_version: str) -> Raw | None:
    """Return `/api/v1` or `/apis/GROUP/VERSION`; None for a version that is not served."""
    found = [kind for kind in kinds if kind.api_version == api_version]
    resources = [_resource(entry, kind) for kind in found for entry in (kind, *kind.subresources)]
    if not found:
        return None
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def aggregated(kinds: Iterable[ServedKind], version: str, *, is_core: bool) -> Raw:
    """Return `/api` or `/apis` with its full content, as in `version` of apidiscovery.k8s.io."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{AGGREGATED}/{version}",
        "metadata": {},
        "items": [_aggregated_group(name, found) for name, found in _by_group(kinds) if is_core is (not name)],
    }


def _by_group(kinds: Iterable[ServedKind]) -> list[tuple[str, list[ServedKind]]]:
    return [(name, list(found)) for name, found in groupby(kinds, key=lambda kind: kind.group)]


def _versions(kinds: Iterable[ServedKind]) -> list[str]:
    """Return the versions of a group, the preferred one first."""
    return list(dict.fromkeys(kind.version for kind in kinds))


def _group(name: str, kinds: Sequence[ServedKind]) -> Raw:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _versions(kinds)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _resource(found: ServedKind, of: ServedKind) -> Raw:
    """Return the entry of a kind or of one of its subresources, which may carry a type of another version."""
    is_same = (found.group, found.version) == (of.group, of.version)
    return {
        "name": found.plural,
        "singularName": found.singular,
        "namespaced": found.namespaced,
        **({} if is_same else {"group": found.group, "version": found.version}),
        "kind": found.kind,
        "verbs": list(found.verbs),
        **_also_called(found),
    }


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
    subresources = [
        {"subresource": found.name, "responseKind": _type(found), "verbs": list(found.verbs)}
        for found in kind.subresources
    ]
    return {
        "resource": kind.plural,
        "responseKind": _type(kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **_also_called(kind),
        **({"subresources": subresources} if subresources else {}),
    }


def _type(kind: ServedKind) -> Raw:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind in one version of its group, as in discovery.

    A subresource is one too: `plural` is such as `pods/status`, and the type is that of its requests and responses.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[ServedKind, ...] = ()

    @property
    def api_version(self) -> str:
        """The group and version as objects state them: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The name of a subresource."""
        return self.plural.partition("/")[2]


def _review(group: str, kind: str, *, namespaced: bool = False) -> ServedKind:
    return ServedKind(f"{group}.k8s.io", "v1", f"{kind.lower()}s", kind, namespaced, ("create",), kind.lower())


REVIEWS = (
    _review("authentication", "SelfSubjectReview"),
    _review("authentication", "TokenReview"),
    _review("authorization", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization", "SelfSubjectAccessReview"),
    _review("authorization", "SelfSubjectRulesReview"),
    _review("authorization", "SubjectAccessReview"),
)
"""The kinds of reviews."""

ANSWERED = (
    *REVIEWS,
    ServedKind("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False, ("get", "list")),
    ServedKind("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True, ("get", "list")),
)
"""The kinds that are answered and not stored."""


def served_kinds(resources: Iterable[APIResource]) -> list[ServedKind]:
    """Return all kinds, by group, then version (preferred first), then name."""
    stored = (_stored(resource, version) for resource in resources for version in resource.served_versions)
    kinds = [*stored, *ANSWERED]
    return sorted(kinds, key=lambda kind: (*group_order(kind.group), version_order(kind.version), kind.plural))


def version_order(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version, best first (apimachinery, pkg/version CompareKubeAwareVersionStrings)."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stability, minor = match.groups()
    return (_STABILITY[stability], -int(major), -int(minor or 0), version)


def _stored(resource: APIResource, api_version: str) -> ServedKind:
    group, _, version = api_version.rpartition("/")
    subresources = []
    for found in resource.subresources:
        own_group, _, own_version = (found.api_version or api_version).rpartition("/")
        plural, kind = f"{resource.plural}/{found.name}", found.kind or resource.kind
        subresources.append(ServedKind(own_group, own_version, plural, kind, resource.namespaced, found.verbs))
    return ServedKind(
        group,
        version,
        resource.plural,
        resource.kind,
        resource.namespaced,
        resource.verbs,
        resource.singular,
        resource.short_names or short_names(group, resource.kind),
        resource.categories or categories(group, resource.kind),
        tuple(subresources),
    )
