"""Kinds of objects as the API serves them, and their registry: built-in ones and custom resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from podium.api.kinds import ALL_VERBS, SERVED_KINDS, Kind, group_of
from podium.api.meta import Kubernetes, Raw
from podium.api.versions.apis import has_subresource, versions_in
from podium.api.versions.release import DEFAULT_RELEASE, Release
from podium.store.errors import unknown_kind

if TYPE_CHECKING:
    # It needs CEL, and few clusters have custom kinds.
    from podium.api.structural.structural import Structural
    from podium.store.custom_conversion import Converter

_CHANGED = ("get", "patch", "update")


class Subresource(Struct, frozen=True):
    """A subresource: its name, its verbs, and the kind of object that requests to it carry.

    `api_version` and `kind` are "" if it carries the object itself.
    """

    name: str
    verbs: tuple[str, ...]
    api_version: str = ""
    kind: str = ""


STATUS = Subresource("status", _CHANGED)
SCALE = Subresource("scale", _CHANGED, "autoscaling/v1", "Scale")


class ScalePaths(Struct, frozen=True, kw_only=True):
    """The paths of a custom kind's scale values, as the names of nested fields; () if there is no selector."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    label_selector: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class APIResource:
    """A kind: its group and version, how its objects are named, and its subresources.

    `name` identifies it in the store: the kind alone for built-in kinds, `Widget.example.com` for a custom resource.
    With `has_generation`, `metadata.generation` counts the changes of the desired state. `type` is the typed reading of
    an object; plain Kubernetes reads only the metadata. `version` is the storage version; one that is
    served in another has the storage version's `apiVersion` in `stored_as`. `served` are the
    `apiVersion`s in which the objects are served, the preferred one first; None means only the storage version.
    `selectable` are the fields that field selectors support besides name and namespace, each with the value for an
    absent field. `subresources` are the subresources by name.

    Custom kinds have more fields: the names from their definition, the paths of their scale, and by `apiVersion` the
    table columns (additionalPrinterColumns), selectable fields and deprecation warnings; and the `converter` between
    their versions, None if objects are alike in all of them.
    """

    group: str
    kind: str
    plural: str
    namespaced: bool
    version: str = "v1"
    stored_as: str = ""
    type: type[Kubernetes] = Kubernetes
    has_status: bool = True
    has_scale: bool = False
    has_generation: bool = True
    is_custom: bool = False
    selectable: tuple[tuple[str, str], ...] = ()
    served: tuple[str, ...] | None = None
    verbs: tuple[str, ...] = ALL_VERBS
    singular: str | None = None
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scale_paths: ScalePaths | None = None
    columns: Mapping[str, tuple[Raw, ...]] = field(default_factory=dict, hash=False)
    deprecations: Mapping[str, str] = field(default_factory=dict, hash=False)
    selectables: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict, hash=False)
    converter: Converter | None = field(default=None, compare=False, repr=False)
    further: tuple[Subresource, ...] = ()
    name: str = field(init=False)
    subresources: tuple[Subresource, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.kind}.{self.group}" if self.is_custom else self.kind)
        if self.singular is None:
            object.__setattr__(self, "singular", self.kind.lower())
        object.__setattr__(self, "list_kind", self.list_kind or f"{self.kind}List")

        found = (*self.further, *((STATUS,) if self.has_status else ()), *((SCALE,) if self.has_scale else ()))
        object.__setattr__(self, "subresources", tuple(sorted(found, key=lambda subresource: subresource.name)))

    @property
    def api_version(self) -> str:
        """The group and version as objects state them: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def served_versions(self) -> tuple[str, ...]:
        """The `apiVersion`s in which the objects are served, the preferred one first."""
        return (self.api_version,) if self.served is None else self.served

    @property
    def qualified(self) -> str:
        """The plural with its group: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def subresource(self, name: str) -> Subresource | None:
        return next((subresource for subresource in self.subresources if subresource.name == name), None)

    def type_of(self, subresource: Subresource | None) -> tuple[str, str]:
        """Return the `apiVersion` and kind of the objects in requests to a subresource, or to the kind for None."""
        if subresource is None:
            return self.api_version, self.kind
        return subresource.api_version or self.api_version, subresource.kind or self.kind

    def served_as(self, api_version: str) -> APIResource:
        group, _, version = api_version.rpartition("/")
        if api_version == self.api_version:
            return self
        return replace(
            self,
            group=group,
            version=version,
            stored_as=self.stored_as or self.api_version,
            selectable=self.selectables.get(api_version, self.selectable),
        )


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
ResourceSlice spec.driver= spec.nodeName=
Secret type=
Service spec.clusterIP= spec.type=
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


@cache
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
        found = self.find(version, kind) if isinstance(version, str) and isinstance(kind, str) else None
        if found is None:
            raise unknown_kind(f"{version} {kind}")
        return found

    def find(self, api_version: str, kind: str) -> APIResource | None:
        """Return the kind of that name in the group of the version, or None."""
        return self._by_kind.get((group_of(api_version), kind))

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
