"""The registry of kinds: built-in ones and custom resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podium.api.kinds import SERVED_KINDS, Kind, group_of
from podium.api.meta import Raw
from podium.api.versions.apis import has_subresource, versions_in
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.store.api_resource import APIResource, Subresource
from podium.store.errors import unknown_kind

if TYPE_CHECKING:
    # It needs CEL, and few clusters have custom kinds.
    from podium.api.structural.structural import Structural

# The field labels of pkg/registry: by kind, its selectable fields, each with the value for an absent one.
_SELECTABLE_FIELDS = """
CertificateSigningRequest spec.signerName=
Event involvedObject.kind= involvedObject.namespace= involvedObject.name= involvedObject.uid=
Event involvedObject.apiVersion= involvedObject.resourceVersion= involvedObject.fieldPath=
Event reason= reportingComponent= source= type=
Job status.successful=0
Namespace status.phase=
Node spec.unschedulable=false
Pod spec.nodeName= spec.restartPolicy=Always spec.schedulerName= spec.serviceAccountName= spec.hostNetwork=false
Pod status.phase= status.podIP= status.nominatedNodeName=
ReplicaSet status.replicas=0
ReplicationController status.replicas=0
Secret type=
"""
_SELECTABLE = dict[str, tuple[tuple[str, str], ...]]()
for _kind, *_fields in map(str.split, _SELECTABLE_FIELDS.strip().splitlines()):
    _SELECTABLE[_kind] = (*_SELECTABLE.get(_kind, ()), *(field.partition("=")[::2] for field in _fields))
# The subresources besides status and scale.
_FURTHER = {
    "CertificateSigningRequest": (Subresource("approval", ("get", "patch", "update")),),
    "Namespace": (Subresource("finalize", ("update",)),),
    "Pod": (
        Subresource("binding", ("create",), "v1", "Binding"),
        Subresource("ephemeralcontainers", ("get", "patch", "update")),
        Subresource("eviction", ("create",), "policy/v1", "Eviction"),
        Subresource("resize", ("get", "patch", "update")),
    ),
    "ServiceAccount": (Subresource("token", ("create",), "authentication.k8s.io/v1", "TokenRequest"),),
}


def _built_in(kind: Kind, release: Release = DEFAULT_RELEASE) -> APIResource:
    """Return a kind as a version serves it."""
    changing = versions_in(kind.group, kind.name, release)
    versions = (kind.api_version,) if changing is None else changing
    always = (other for other in kind.other_versions if changing is None or group_of(other) != kind.group)
    return APIResource(
        group=kind.group,
        kind=kind.name,
        plural=kind.plural,
        namespaced=kind.namespaced,
        version=kind.version,
        type=kind.type,
        has_status=kind.has_status,
        has_scale=kind.has_scale,
        has_generation=kind.has_generation,
        short_names=kind.short_names,
        categories=kind.categories,
        served=(*versions, *always),
        verbs=kind.verbs,
        further=tuple(of for of in _FURTHER.get(kind.name, ()) if has_subresource(kind.name, of.name, release)),
        selectable=_SELECTABLE.get(kind.name, ()),
    )


BUILT_IN = {of: _built_in(kind) for of, kind in SERVED_KINDS.items()}
POD = BUILT_IN["", "Pod"]
POD_GROUP = BUILT_IN["scheduling.k8s.io", "PodGroup"]


class APIResources:
    """The built-in and the custom kinds; lookups ignore the version in an object's `apiVersion`.

    `version` counts the changes, so that callers can invalidate what they derive from the kinds, such as discovery.
    """

    def __init__(self) -> None:
        self.version = 0
        # The schemas of custom kinds by name and `apiVersion`.
        self._structurals: dict[str, Mapping[str, Structural]] = {}
        self._by_name = {resource.name: resource for resource in BUILT_IN.values()}
        self._index()

    def serve_as(self, release: Release) -> None:
        """Serve the built-in kinds as a version does."""
        self._by_name |= {kind.name: _built_in(kind, release) for kind in SERVED_KINDS.values()}
        self._index()

    def define(self, resource: APIResource, structurals: Mapping[str, Structural]) -> None:
        """Serve a custom kind as its definition says, replacing how it was served before.

        `structurals` are the schemas of its versions by `apiVersion`. Raises ValueError for a built-in kind.
        """
        if resource.name in self._by_name and not self._is_custom(resource.name):
            raise ValueError(f"{resource.name} is a kind of Kubernetes'")
        self._by_name[resource.name] = resource
        self._structurals[resource.name] = structurals
        self._index()

    def remove(self, name: str) -> None:
        """Stop serving a custom kind. Raises ValueError for a kind that is not served."""
        if not self._is_custom(name):
            raise ValueError(f"there is no custom kind {name}")
        del self._by_name[name]
        self._structurals.pop(name, None)
        self._index()

    def structural(self, resource: APIResource, api_version: str = "") -> Structural | None:
        """Return the schema of a custom kind in a version, or None; "" is the storage version."""
        versions = self._structurals.get(resource.name) if resource.is_custom else None
        return versions.get(api_version or self._by_name[resource.name].api_version) if versions else None

    def all(self) -> list[APIResource]:
        """Return all kinds, by name."""
        return [resource for _, resource in sorted(self._by_name.items())]

    def named(self, name: str) -> APIResource:
        """Return the kind of that name. Raises StoreError 404."""
        resource = self._by_name.get(name)
        if resource is None:
            raise unknown_kind(name)
        return resource

    def of(self, raw: Raw) -> APIResource:
        """Return the kind of an object. Raises StoreError 404."""
        try:
            return self._by_written[raw["apiVersion"], raw["kind"]]
        except (KeyError, TypeError):
            version, kind = raw.get("apiVersion"), raw.get("kind")
        found = None
        if isinstance(version, str) and isinstance(kind, str):
            found = self._by_kind.get((group_of(version), kind))
        if found is None:
            raise unknown_kind(f"{version} {kind}")
        return found

    def served_at(self, api_version: str, plural: str) -> APIResource | None:
        """Return the kind with that plural in the API paths of that version, or None."""
        return self._by_path.get((api_version, plural))

    def _index(self) -> None:
        """Index the kinds by the `apiVersion` and kind of objects, in every version, and by API path."""
        self.version += 1
        self._by_kind: dict[tuple[str, str], APIResource] = {}
        # By the most common `apiVersion` and kind of objects.
        self._by_written: dict[tuple[str, str], APIResource] = {}
        self._by_path: dict[tuple[str, str], APIResource] = {}
        # Built-in kinds come last: another version of one may also have a definition, but is not custom.
        for resource in sorted(self._by_name.values(), key=lambda resource: not resource.is_custom):
            self._by_kind[resource.group, resource.kind] = resource
            self._by_written[resource.api_version, resource.kind] = resource
            for api_version in resource.served_versions:
                self._by_kind[group_of(api_version), resource.kind] = resource
                self._by_written[api_version, resource.kind] = resource
                self._by_path[api_version, resource.plural] = resource

    def _is_custom(self, name: str) -> bool:
        return name in self._by_name and self._by_name[name].is_custom
