"""Which part of an object a request writes, and what of it somebody can come to own by that.

Source: the reset fields of pkg/registry: of a status, of what is not the status, of the resources and the ephemeral
containers of pods (core/pod/strategy.go), and of scales (apimachinery, pkg/util/managedfields/scalehandler.go).
"""

from __future__ import annotations

from typing import Any

from podium.api.meta import Raw
from podium.api.ownership.field_sets import EMPTY, FieldSet
from podium.store.api_resource import APIResource
from podium.store.ownership.ownership import OF_THE_SERVER, comparable
from podium.store.verbs.pod_parts import CONTAINERS, EPHEMERAL, RESIZED


def owned_part(raw: Raw, resource: APIResource, subresource: str) -> Raw:
    """The object without what nobody owns, and without what a request to this part of it does not write."""
    found = comparable(raw)
    if subresource in ("ephemeralcontainers", "resize"):
        spec = _pod_part(_object(found.get("spec")), subresource)
        return {"spec": spec} if spec else {}
    if subresource == "status":
        return {"status": found["status"]} if "status" in found else {}
    if resource.has_status:
        found.pop("status", None)
    return found


def owned_fields(fields: FieldSet, subresource: str) -> FieldSet:
    """Those of the fields in a part of an object that whoever applies the part owns: no container for its resources."""
    if subresource != "resize":
        return fields
    spec = fields.get("f:spec", EMPTY)
    found = {name: inner for name, inner in spec.items() if name == "f:resources"}
    for name in (f"f:{field}" for field in CONTAINERS):
        items = {
            item: {field: part for field, part in inner.items() if field.removeprefix("f:") in RESIZED}
            for item, inner in spec.get(name, EMPTY).items()
        }
        items = {item: parts for item, parts in items.items() if parts}
        if items:
            found[name] = items
    return {"f:spec": found} if found else EMPTY


def with_part(raw: Raw, part: Raw, resource: APIResource, subresource: str) -> Raw:
    """The object with another part in the place of its own."""
    if subresource == "ephemeralcontainers":
        return {**raw, "spec": {**raw["spec"], EPHEMERAL: _object(part.get("spec")).get(EPHEMERAL, [])}}
    if subresource == "resize":
        return {**raw, "spec": _resized(raw["spec"], _object(part.get("spec")))}
    kept = {name: value for name, value in raw.items() if name not in owned_part(raw, resource, subresource)}
    if subresource == "status":
        return {**kept, **part}
    metadata = {name: value for name, value in raw["metadata"].items() if name in OF_THE_SERVER}
    return {**kept, **part, "metadata": {**metadata, **part.get("metadata", {})}}


def _pod_part(spec: Raw, subresource: str) -> Raw:
    if subresource == "ephemeralcontainers":
        return {EPHEMERAL: spec[EPHEMERAL]} if EPHEMERAL in spec else {}
    found = {"resources": spec["resources"]} if "resources" in spec else {}
    for field in CONTAINERS:
        if isinstance(spec.get(field), list):
            named = ("name", *RESIZED)
            found[field] = [{name: item[name] for name in named if name in item} for item in map(_object, spec[field])]
    return found


def _resized(spec: Raw, part: Raw) -> Raw:
    """The specification with the resources of containers as a part of it has them."""
    found = dict(spec)
    for field in CONTAINERS:
        known = {container.get("name"): container for container in spec.get(field, [])}
        if field in part:
            found[field] = [{**known.get(item.get("name"), {}), **item} for item in part[field]]
    return {**found, "resources": part["resources"]} if "resources" in part else found


def _object(value: Any) -> Raw:
    return value if isinstance(value, dict) else {}
