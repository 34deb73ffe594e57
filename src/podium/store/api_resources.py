"""The kinds that a store holds: those built in, and custom resources that are added."""

from __future__ import annotations

from collections.abc import Iterable

from podium.api.kinds import KEPT_KINDS, KINDS, Kind, group_of
from podium.api.meta import Raw
from podium.api.schemas.schema_registry import SchemaRegistry
from podium.store.api_resource import APIResource
from podium.store.errors import unknown_kind

# The field labels of pkg/registry: what each kind's objects can be selected by, and what stands for an absent field.
_SELECTABLE = {
    "Event": (
        ("involvedObject.kind", ""),
        ("involvedObject.namespace", ""),
        ("involvedObject.name", ""),
        ("involvedObject.uid", ""),
        ("involvedObject.apiVersion", ""),
        ("involvedObject.resourceVersion", ""),
        ("involvedObject.fieldPath", ""),
        ("reason", ""),
        ("reportingComponent", ""),
        ("source.component", ""),
        ("type", ""),
    ),
    "Job": (("status.successful", "0"),),
    "Namespace": (("status.phase", ""),),
    "Node": (("spec.unschedulable", "false"),),
    "Pod": (
        ("spec.nodeName", ""),
        ("spec.restartPolicy", "Always"),
        ("spec.schedulerName", ""),
        ("spec.serviceAccountName", ""),
        ("spec.hostNetwork", "false"),
        ("status.phase", ""),
        ("status.podIP", ""),
        ("status.nominatedNodeName", ""),
    ),
    "ReplicaSet": (("status.replicas", "0"),),
    "ReplicationController": (("status.replicas", "0"),),
    "Secret": (("type", ""),),
}


def _built_in(kind: Kind) -> APIResource:
    return APIResource(
        group=kind.group,
        kind=kind.name,
        plural=kind.plural,
        namespaced=kind.namespaced,
        version=kind.version,
        type=kind.type,
        has_status=kind.has_status,
        has_scale=kind.has_scale,
        selectable=_SELECTABLE.get(kind.name, ()),
    )


BUILT_IN = {(kind.group, kind.name): _built_in(kind) for kind in (*KEPT_KINDS, *KINDS.values())}
POD = BUILT_IN["", "Pod"]


class APIResources:
    """The built-in kinds, and custom ones that are added; the version of an object's `apiVersion` does not matter."""

    def __init__(self, custom: Iterable[APIResource] = ()) -> None:
        self._by_kind = dict(BUILT_IN)
        self._by_name = {resource.name: resource for resource in BUILT_IN.values()}
        self.schemas = SchemaRegistry()
        # By `apiVersion` and kind as most objects have them.
        self._by_written = {(resource.api_version, resource.kind): resource for resource in BUILT_IN.values()}
        for resource in custom:
            self.add(resource)

    def add(self, resource: APIResource, schema: Raw | None = None) -> None:
        """Serve one more kind, with the structural schema of its objects where there is one.

        Raises ValueError for one that is served already.
        """
        if (resource.group, resource.kind) in self._by_kind or resource.name in self._by_name:
            raise ValueError(f"there is a kind {resource.kind} in {resource.group or 'the core'} already")
        self._by_kind[resource.group, resource.kind] = resource
        self._by_name[resource.name] = resource
        self._by_written[resource.api_version, resource.kind] = resource
        if schema is not None:
            self.schemas.add(resource.group, resource.kind, schema)

    def defaulted(self, resource: APIResource, raw: Raw) -> Raw:
        """An object of a custom kind with the defaults of its schema; those of other kinds are admission's."""
        type_ = self.schemas.of(resource.group, resource.kind) if resource.is_custom else None
        return raw if type_ is None else self.schemas.defaulted(raw, type_)

    def all(self) -> list[APIResource]:
        """All kinds, by name."""
        return [resource for _, resource in sorted(self._by_name.items())]

    def named(self, name: str) -> APIResource:
        """The kind of that name. Raises StoreError 404."""
        resource = self._by_name.get(name)
        if resource is None:
            raise unknown_kind(name)
        return resource

    def of(self, raw: Raw) -> APIResource:
        """The kind of an object. Raises StoreError 404."""
        version, kind = raw.get("apiVersion"), raw.get("kind")
        if isinstance(version, str) and isinstance(kind, str):
            found = self._by_written.get((version, kind)) or self._by_kind.get((group_of(version), kind))
            if found is not None:
                return found
        raise unknown_kind(f"{version} {kind}")
