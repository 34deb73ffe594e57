"""Where the API has its objects: from paths to kinds and names, and back.

Source: apiserver (pkg/endpoints/request/requestinfo.go, pkg/endpoints/installer.go).
"""

from __future__ import annotations

import msgspec

from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources

_NAMESPACES = "namespaces"
# What follows a namespace's name and is no resource within it.
_OF_NAMESPACES = frozenset(("status", "finalize"))
_WATCH = "watch"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a path stands for: objects of a kind, one of them, or a subresource of one.

    `namespace` is "" for kinds without namespaces and for the objects of all namespaces, `name` for a collection.
    `watches` is whether the path itself asks for a watch, as those that begin with `watch/` do. `is_stored_version` is
    whether the version of the path is the one that the store has the objects in.
    """

    resource: APIResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watches: bool = False
    is_stored_version: bool = True

    @property
    def key(self) -> str:
        """How the store names the object; "" for a collection."""
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name


class Paths:
    """The paths of the kinds that are served. They follow `resources` as kinds come and go."""

    def __init__(self, resources: APIResources) -> None:
        self._resources = resources

    def place(self, path: str) -> Place | None:
        """What a decoded path stands for; None for one that the API does not have. A slash at its end is no matter."""
        parts = path.removesuffix("/").split("/")
        if len(parts) > 3 and parts[1] == "api":
            group, version, rest = "", parts[2], parts[3:]
        elif len(parts) > 4 and parts[1] == "apis":
            group, version, rest = parts[2], parts[3], parts[4:]
        else:
            return None
        if parts[0] or "" in parts[1:]:
            return None
        watches = rest[0] == _WATCH and len(rest) > 1
        return self._place(group, version, rest[1:] if watches else rest, watches=watches)

    def serves(self, group: str, version: str) -> bool:
        """Whether any kind of a group is served in a version."""
        api_version = f"{group}/{version}" if group else version
        return any(api_version in of.served_versions for of in self._resources.all())

    def _place(self, group: str, version: str, rest: list[str], *, watches: bool) -> Place | None:
        namespace = ""
        if len(rest) > 2 and rest[0] == _NAMESPACES and rest[2] not in _OF_NAMESPACES:
            namespace, rest = rest[1], rest[2:]
        if len(rest) > 3:
            return None
        resource = self._find(group, version, rest[0])
        if resource is None or (namespace and not resource.namespaced):
            return None
        _, name, subresource = (*rest, "", "")[:3]
        if name and resource.namespaced and not namespace:
            return None
        return Place(
            resource=resource,
            namespace=namespace,
            name=name,
            subresource=subresource,
            watches=watches,
            is_stored_version=self._resources.named(resource.name).api_version == resource.api_version,
        )

    def _find(self, group: str, version: str, plural: str) -> APIResource | None:
        """The kind, as it is in the version of the path."""
        api_version = f"{group}/{version}" if group else version
        found = self._resources.served_at(api_version, plural)
        return found and found.served_as(api_version)


def path_of(resource: APIResource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The decoded path of the objects of a kind, of one of them, or of a subresource of one.

    Raises ValueError for what no path can name: a part with a slash, or an object of a kind with namespaces without
    one.
    """
    if any("/" in part for part in (namespace, name, subresource)):
        raise ValueError(f"{resource.kind} {namespace} {name}: no part of a path has a slash")
    if name and resource.namespaced and not namespace:
        raise ValueError(f"{resource.kind} {name}: is in a namespace, and none is given")
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    within = (_NAMESPACES, namespace) if namespace and resource.namespaced else ()
    return "/".join((base, *within, resource.plural, *filter(None, (name, subresource))))


def name_problem(name: str) -> str:
    """What is wrong with a name of which a path is made; "" for nothing (apimachinery's api/validation/path)."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    return "; ".join(f"may not contain '{letter}'" for letter in "/%" if letter in name)
