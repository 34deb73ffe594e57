"""A kind of object as the API serves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from podium.api.kinds import ALL_VERBS
from podium.api.meta import Kubernetes, Raw

_CHANGED = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource: its name, its verbs, and the kind of object that requests to it carry.

    `api_version` and `kind` are "" if it carries the object itself.
    """

    name: str
    verbs: tuple[str, ...]
    api_version: str = ""
    kind: str = ""


STATUS = Subresource("status", _CHANGED)
SCALE = Subresource("scale", _CHANGED, "autoscaling/v1", "Scale")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePaths:
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
    table columns (additionalPrinterColumns) and deprecation warnings.
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
        return replace(self, group=group, version=version, stored_as=self.stored_as or self.api_version)
