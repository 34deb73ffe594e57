"""What an API server serves: groups, their versions, the kinds in each, and what these can be asked for.

The kinds that are stored come from the store's list; those that are only answered, such as reviews and metrics, stand
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from podium.api.kind_names import categories, group_order, short_names
from podium.store.api_resource import APIResource

_ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_STATUS_VERBS = ("get", "patch", "update")
_CREATE = ("create",)
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A part or an action of the objects of a kind: its name, verbs, and the type that it takes and gives.

    `group` and `version` are None where they are those of the kind.
    """

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str | None = None
    version: str | None = None


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
    _answered("", "Binding", namespaced=True),
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

_STATUS = "status"
_SCALE = Subresource("scale", "Scale", _STATUS_VERBS, "autoscaling", "v1")
# The further subresources of single kinds (pkg/registry, the REST storage of each).
_SUBRESOURCES = {
    ("", "Namespace"): (Subresource("finalize", "Namespace", ("update",)),),
    ("", "Pod"): (
        Subresource("binding", "Binding", _CREATE),
        Subresource("ephemeralcontainers", "Pod", _STATUS_VERBS),
        Subresource("eviction", "Eviction", _CREATE, "policy", "v1"),
        Subresource("resize", "Pod", _STATUS_VERBS),
    ),
    ("", "ServiceAccount"): (Subresource("token", "TokenRequest", _CREATE, "authentication.k8s.io", "v1"),),
}


def served_kinds(resources: Iterable[APIResource]) -> list[ServedKind]:
    """All kinds, in the order of their groups, then the best version first, then by name."""
    kinds = [*map(_stored, resources), *ANSWERED]
    return sorted(kinds, key=lambda kind: (*group_order(kind.group), version_order(kind.version), kind.plural))


def version_order(version: str) -> tuple[int, int, int, str]:
    """By what versions are ordered, the best first (apimachinery, pkg/version CompareKubeAwareVersionStrings)."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stability, minor = match.groups()
    return (_STABILITY[stability], -int(major), -int(minor or 0), version)


def _stored(resource: APIResource) -> ServedKind:
    return ServedKind(
        resource.group,
        resource.version,
        resource.plural,
        resource.kind,
        resource.namespaced,
        _ALL_VERBS,
        resource.kind.lower(),
        short_names(resource.group, resource.kind),
        categories(resource.group, resource.kind),
        tuple(sorted(_subresources(resource), key=lambda subresource: subresource.name)),
    )


def _subresources(resource: APIResource) -> Iterator[Subresource]:
    if resource.has_status:
        yield Subresource(_STATUS, resource.kind, _STATUS_VERBS)
    if resource.has_scale:
        yield _SCALE
    if not resource.is_custom:
        yield from _SUBRESOURCES.get((resource.group, resource.kind), ())
