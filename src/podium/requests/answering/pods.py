"""What is done to pods by requests of their own: binding, resizing, containers for debugging."""

from __future__ import annotations

from podium.requests.answering.context import CREATED, Context, done
from podium.requests.options import Binding, read_binding
from podium.requests.request import Request, Response
from podium.store.conversion.conversion import as_stored
from podium.store.errors import StoreError, bad_request
from podium.store.patches.patching import patched
from podium.store.verbs.pod_parts import PARTS

_NO_CONTAINERS = "nodes are simulated: containers do not run, so that they have no output and take no connections"
UNSERVED = {
    "attach": _NO_CONTAINERS,
    "exec": _NO_CONTAINERS,
    "log": _NO_CONTAINERS,
    "portforward": _NO_CONTAINERS,
    "proxy": _NO_CONTAINERS,
}
"""The subresources of pods that need containers that run, and why there are none."""


def bind(context: Context, request: Request, now: int) -> Response:
    """That a pod is on its way to a node."""
    body = request.body
    binding = body if isinstance(body, Binding) else read_binding(body, request.key)
    return _bound(context, request.key, binding, now)


def create_binding(context: Context, request: Request, now: int) -> Response:
    """The same for a pod that the Binding names by itself (POST bindings)."""
    metadata = request.body.get("metadata") if isinstance(request.body, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise bad_request("metadata.name is missing: a Binding names its pod")
    namespace = request.namespace or str(metadata.get("namespace") or "default") if metadata else "default"
    key = f"{namespace}/{name}"
    return _bound(context, key, read_binding(request.body, key), now)


def _bound(context: Context, key: str, binding: Binding, now: int) -> Response:
    context.store.bind(
        key,
        binding.node_name,
        now=now,
        uid=binding.uid,
        resource_version=binding.resource_version,
        target_kind=binding.target_kind,
    )
    return Response(code=201, object=CREATED)


def update_part(context: Context, request: Request, now: int) -> Response:
    """The pod with another part of its specification (PUT resize, ephemeralcontainers)."""
    return done(context.store.update_part(context.object_of(request), PARTS[request.subresource]))


def patch_part(context: Context, request: Request, now: int) -> Response:
    """The same by a patch."""
    stored = context.store.get(request.kind, request.key)
    result = patched(stored.resource, stored.raw, request.body, request.patch_type)
    result = as_stored(stored.resource, result, "")
    return done(context.store.update_part(context.completed(stored.resource, result), PARTS[request.subresource]))


def unserved(subresource: str) -> StoreError:
    """What cannot be had of pods whose containers do not run."""
    return StoreError(501, "NotImplemented", f"pods/{subresource}: {UNSERVED[subresource]}")
