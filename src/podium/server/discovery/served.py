"""What an API server serves: groups, their versions, the kinds in each, and what these can be asked for.

The kinds that are stored come from the store's list; those that are only answered, such as reviews and metrics, stand
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from podium.api.kind_names import categories, group_order, short_names
from podium.store import api_resource as store
from podium.store.api_resource import APIResource

_CREATE = ("create",)
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part or an action of the objects of a kind: its name, verbs, and the type that it takes and gives."""

    name: str
    verbs: tuple[str, ...]
    group: str
    version: str
    kind: str


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind in one version of its group, as discovery tells of it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()

    @property
    def api_version(self) -> str:
        """Group and version as objects carry them: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version


def _answered(group: str, kind: str, *, namespaced: bool = False, version: str = "v1") -> ServedKind:
    """A kind whose objects are only answered, and stored nowhere."""
    return ServedKind(group, version, f"{kind.lower()}s", kind, namespaced, _CREATE, kind.lower())


_REVIEWS = (
    _answered("authentication.k8s.io", "SelfSubjectReview"),
    _answered("authentication.k8s.io", "TokenReview"),
    _answered("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True),
    _answered("authorization.k8s.io", "SelfSubjectAccessReview"),
    _answered("authorization.k8s.io", "SelfSubjectRulesReview"),
    _answered("authorization.k8s.io", "SubjectAccessReview"),
)
_METRICS = (
    ServedKind("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False, ("get", "list")),
    ServedKind("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True, ("get", "list")),
)
ANSWERED = (*_REVIEWS, *_METRICS)
"""The kinds that are answered, and not stored."""


def served_kinds(resources: Iterable[APIResource]) -> list[ServedKind]:
    """All kinds, in the order of their groups, then the best version first, then by name."""
    stored = (_stored(resource, version) for resource in resources for version in resource.served_versions)
    kinds = [*stored, *ANSWERED]
    return sorted(kinds, key=lambda kind: (*group_order(kind.group), version_order(kind.version), kind.plural))


def version_order(version: str) -> tuple[int, int, int, str]:
    """By what versions are ordered, the best first (apimachinery, pkg/version CompareKubeAwareVersionStrings)."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stability, minor = match.groups()
    return (_STABILITY[stability], -int(major), -int(minor or 0), version)


def _stored(resource: APIResource, api_version: str) -> ServedKind:
    group, _, version = api_version.rpartition("/")
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
        tuple(_subresource(found, resource, api_version) for found in resource.subresources),
    )


def _subresource(found: store.Subresource, resource: APIResource, api_version: str) -> Subresource:
    """A subresource of the objects of a kind as served in a version."""
    group, _, version = (found.api_version or api_version).rpartition("/")
    return Subresource(found.name, found.verbs, group, version, found.kind or resource.kind)
