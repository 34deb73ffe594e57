"""Parts of a pod's specification that change by requests of their own.

Source: pkg/registry/core/pod/strategy.go (podResizeStrategy, podEphemeralContainersStrategy) and
pkg/apis/core/validation (ValidatePodResize, ValidatePodEphemeralContainersUpdate).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podium.api.meta import Raw
from podium.store.errors import invalid
from podium.store.stored import Stored

RESIZED = ("resources", "resizePolicy")
"""What a resize changes of containers."""

CONTAINERS = ("containers", "initContainers")
"""The lists of containers that a resize changes."""

EPHEMERAL = "ephemeralContainers"
"""The list of containers that come while a pod runs."""


def with_resources(previous: Stored, raw: Raw) -> Raw:
    """The pod with the resources of `raw`, container by container and as a whole, and nothing else of it.

    Raises StoreError 422 for other containers than it has.
    """
    before, after = previous.raw["spec"], _spec(raw)
    spec = dict(before)
    for field in CONTAINERS:
        old, new = before.get(field, []), after.get(field, [])
        if [container.get("name") for container in old] != [other.get("name") for other in _objects(new)]:
            problem = "Forbidden: pod resize may not add, remove or reorder containers"
            raise invalid(previous.resource, previous.key, problem, f"spec.{field}", "FieldValueForbidden")
        if old:
            spec[field] = [_resized(container, other) for container, other in zip(old, new, strict=True)]
    if "resources" in after:
        spec["resources"] = after["resources"]
    return {**previous.raw, "spec": spec}


def with_ephemeral_containers(previous: Stored, raw: Raw) -> Raw:
    """The pod with the ephemeral containers of `raw`, and nothing else of it.

    Those that there are stay as they are; raises StoreError 422 where they do not.
    """
    before = previous.raw["spec"].get(EPHEMERAL, [])
    after = _spec(raw).get(EPHEMERAL) or []
    names = {container.get("name"): container for container in _objects(after)}
    if any(names.get(container.get("name")) != container for container in before):
        problem = "Forbidden: existing ephemeral containers may not be removed or changed"
        raise invalid(previous.resource, previous.key, problem, f"spec.{EPHEMERAL}", "FieldValueForbidden")
    return {**previous.raw, "spec": {**previous.raw["spec"], EPHEMERAL: after}}


def _resized(container: Raw, other: Raw) -> Raw:
    return {**container, **{field: other[field] for field in RESIZED if field in other}}


def _spec(raw: Raw) -> Raw:
    spec = raw.get("spec")
    return spec if isinstance(spec, dict) else {}


def _objects(value: Any) -> list[Raw]:
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


PARTS: Mapping[str, Callable[[Stored, Raw], Raw]] = {
    "ephemeralcontainers": with_ephemeral_containers,
    "resize": with_resources,
}
"""What each subresource makes of a pod and of another that has the part as it is to be."""
