"""Letting a namespace go (PUT namespaces/finalize)."""

from __future__ import annotations

from podium.requests.answering.context import Context, done
from podium.requests.request import Request, Response


def finalize(context: Context, request: Request, now: int) -> Response:
    """The namespace with other finalizers in its specification; the last one that goes takes it along."""
    given = context.object_of(request)
    raw = context.store.get(request.kind, request.key).raw
    spec = given.get("spec")
    finalizers = spec.get("finalizers") if isinstance(spec, dict) else None
    identity = {
        name: value for name, value in given["metadata"].items() if name in ("uid", "resourceVersion") and value
    }
    metadata = {name: value for name, value in raw["metadata"].items() if name not in ("uid", "resourceVersion")}
    updated = {
        **raw,
        "metadata": {**metadata, **identity},
        "spec": {**raw.get("spec", {}), "finalizers": finalizers or []},
    }
    return done(context.store.update(updated))
