"""The resize of a pod in place (podResizeStrategy in pkg/registry/core/pod, ValidatePodResize in pkg/apis/core)."""

from __future__ import annotations

from collections.abc import Iterator

from podium.api.meta import Raw, object_at, objects_at, value_at
from podium.api.pod import MIRROR_ANNOTATION, PodSpec
from podium.api.quantity import CPU, MEMORY, parse_quantity
from podium.api.resource_requests import qos_class
from podium.api.validation.findings import Finding, forbidden, invalid
from podium.store.errors import invalid_fields
from podium.store.stored import Stored
from podium.store.verbs.readings import decoded

RESIZED = ("resources", "resizePolicy")
"""The container fields that a resize changes."""

CONTAINERS = ("containers", "initContainers")
"""The lists of containers that a resize changes."""

_AMOUNTS = ("requests", "limits")
_FIXED = "only cpu and memory resources"


def with_resources(previous: Stored, raw: Raw) -> Raw:
    """Return the pod with only the resources from `raw`: per container, and of the pod as a whole.

    Raises StoreError 422 with everything that a resize may not change.
    """
    before, after = previous.raw["spec"], object_at(raw, "spec")
    spec = {**before, **({"resources": after["resources"]} if "resources" in after else {})}
    found = [each for field in CONTAINERS for each in _order(field, before, after)]
    if not found:
        for field in CONTAINERS:
            pairs = zip(objects_at(before, field), objects_at(after, field), strict=True)
            changed = [
                {**old, "resources": {}, **{name: new[name] for name in RESIZED if name in new}} for old, new in pairs
            ]
            spec |= {field: changed} if changed else {}
        pod = decoded(previous.resource, {**previous.raw, "spec": spec}, None, previous.raw)
        specs: list[PodSpec] = [each.spec for each in (previous.object, pod)]  # type: ignore[attr-defined]
        was_class, new_class = map(qos_class, specs)
        if was_class != new_class:
            found.append(invalid("spec", new_class, "Pod QOS Class may not change as a result of resizing"))
        found += _findings(previous, spec)
    if found:
        raise invalid_fields(previous.resource, previous.key, found)
    return {**previous.raw, "spec": spec}


def _order(field: str, before: Raw, after: Raw) -> Iterator[Finding]:
    """Yield which containers are others than before."""
    old, new = ([container.get("name") for container in objects_at(spec, field)] for spec in (before, after))
    if len(old) != len(new):
        yield forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
    elif old != new:
        changed = (index for index, name in enumerate(old) if name != new[index])
        said = f"{field} may not be renamed or reordered on resize"
        yield from (forbidden(f"spec.{field}[{index}].name", said) for index in changed)


def _findings(previous: Stored, spec: Raw) -> Iterator[Finding]:
    """Yield why the resources of a pod, and of its containers in the same order, cannot become those of `spec`."""
    before = previous.raw["spec"]
    if MIRROR_ANNOTATION in previous.object.metadata.annotations:
        yield forbidden("", "static pods cannot be resized")
    if value_at(before, "os", "name") == "windows":
        yield forbidden("", "windows pods cannot be resized")
    statuses = objects_at(previous.raw, "status", "containerStatuses")
    running = next((status for status in statuses if value_at(status, "state", "running") is not None), {})
    if running and "resources" not in running:
        yield forbidden("spec", "Pod running on node without support for resize")
    parts = [("spec", "pod-level resource", before, spec)]
    for field in CONTAINERS:
        pairs = zip(objects_at(before, field), objects_at(spec, field), strict=True)
        parts += [(f"spec.{field}[{index}]", "resource", old, new) for index, (old, new) in enumerate(pairs)]
    for path, what, old, new in parts:
        was, now = object_at(old, "resources"), object_at(new, "resources")
        for kind in _AMOUNTS:
            if object_at(was, kind).keys() - object_at(now, kind).keys():
                yield forbidden(f"{path}.resources.{kind}", f"{what} {kind} cannot be removed")
        is_init = "init" in path
        if _fixed(was) != _fixed(now) or old.get("resizePolicy") != new.get("resizePolicy"):
            of_init = forbidden(path, f"{_FIXED} for init or sidecar containers are mutable")
            yield of_init if is_init else forbidden("spec", f"{_FIXED} are mutable{' at pod-level' * (path == 'spec')}")
        policies = {policy.get("restartPolicy") for policy in objects_at(old, "resizePolicy")}
        if is_init and old.get("restartPolicy") != "Always" and was != now and "RestartContainer" in policies:
            said = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            yield forbidden(path, said)


def _fixed(resources: Raw) -> Raw:
    """Return the part of resources that a resize may not change."""
    rest = {name: value for name, value in resources.items() if name not in _AMOUNTS and value}
    for kind in _AMOUNTS:
        amounts = object_at(resources, kind).items()
        rest[kind] = {name: parse_quantity(amount) for name, amount in amounts if name not in (CPU, MEMORY)}
    return rest
