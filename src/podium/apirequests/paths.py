"""The paths of the API: the mapping between paths and kinds, names and subresources.

Source: apiserver (pkg/endpoints/request/requestinfo.go, pkg/endpoints/installer.go).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from podium.apirequests.request import Verb
from podium.store.api_resource import APIResource
from podium.store.api_resources import APIResources
from podium.store.errors import StoreError

_NAMESPACES = "namespaces"
# Segments after a namespace's name that are subresources of the namespace itself.
_OF_NAMESPACES = frozenset(("status", "finalize"))
_WATCH = "watch"


class ResourcePath(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a path: a collection, an object, or a subresource.

    `namespace` is "" for cluster-scoped kinds and for all namespaces; `name` is "" for a collection. `watches` is
    whether the path itself requests a watch, as those that begin with `watch/` do. `is_stored_version` is whether the
    version in the path is the storage version.
    """

    resource: APIResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watches: bool = False
    is_stored_version: bool = True

    @property
    def key(self) -> str:
        """The object's key in the store; "" for a collection."""
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.name


class Paths:
    """The paths of the served kinds, kept in step with `resources`."""

    def __init__(self, resources: APIResources) -> None:
        self._resources = resources

    def place(self, path: str) -> ResourcePath | None:
        """Return the place of a decoded path, or None. A trailing slash is ignored."""
        parts = path.removesuffix("/").split("/")
        if parts[0] or "" in parts[1:]:
            return None
        if len(parts) > 3 and parts[1] == "api":
            api_version, rest = parts[2], parts[3:]
        elif len(parts) > 4 and parts[1] == "apis":
            api_version, rest = f"{parts[2]}/{parts[3]}", parts[4:]
        else:
            return None
        watches, namespace = rest[0] == _WATCH and len(rest) > 1, ""
        rest = rest[1:] if watches else rest
        if len(rest) > 2 and rest[0] == _NAMESPACES and rest[2] not in _OF_NAMESPACES:
            namespace, rest = rest[1], rest[2:]
        resource = self._resources.served_at(api_version, rest[0])
        if resource is None or len(rest) > 3:
            return None
        _, name, subresource = (*rest, "", "")[:3]
        if (namespace and not resource.namespaced) or (name and resource.namespaced and not namespace):
            return None
        return ResourcePath(
            resource=resource.served_as(api_version),
            namespace=namespace,
            name=name,
            subresource=subresource,
            watches=watches,
            is_stored_version=resource.api_version == api_version,
        )

    def serves(self, group: str, version: str) -> bool:
        """Return whether any kind of a group is served in a version."""
        api_version = f"{group}/{version}" if group else version
        return any(api_version in of.served_versions for of in self._resources.all())


def path_of(resource: APIResource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the decoded path of a collection, an object, or a subresource.

    Raises ValueError for what no path can express: a segment with a slash, or a namespaced object without a namespace.
    """
    if any("/" in part for part in (namespace, name, subresource)):
        raise ValueError(f"{resource.kind} {namespace} {name}: no part of a path has a slash")
    if name and resource.namespaced and not namespace:
        raise ValueError(f"{resource.kind} {name}: is in a namespace, and none is given")
    base = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    within = (_NAMESPACES, namespace) if namespace and resource.namespaced else ()
    return "/".join((base, *within, resource.plural, *filter(None, (name, subresource))))


def name_problem(name: str) -> str:
    """Return the problem of a name as a path segment; "" if it is valid (apimachinery's api/validation/path)."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    return "; ".join(f"may not contain '{letter}'" for letter in "/%" if letter in name)


METHODS: Mapping[Verb, str] = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""The method of each verb."""

_ON_ONE: Mapping[str, Verb] = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_A_COLLECTION: Mapping[str, Verb] = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_A_SUBRESOURCE: Mapping[str, Verb] = {**_ON_ONE, "POST": "create"}


def verb_of(method: str, place: ResourcePath, *, watches: bool) -> Verb:
    """Return the verb of a method at a place; `watches` is whether the parameters request a watch.

    Raises StoreError 405 for a method that is not served there.
    """
    if place.subresource:
        verb = _ON_A_SUBRESOURCE.get(method)
    elif place.name:
        verb = _ON_ONE.get(method)
    else:
        verb = _ON_A_COLLECTION.get(method)
        if verb != "list" and place.resource.namespaced and not place.namespace:
            # Across all namespaces, only lists and watches are served.
            verb = None
    if verb is None or (place.watches and method != "GET"):
        raise not_allowed()
    if method == "GET" and (place.watches or watches) and not place.subresource:
        return "watch"
    return verb


def not_allowed() -> StoreError:
    """Return the refusal of a method that is not served at a path."""
    return StoreError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
