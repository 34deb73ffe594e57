"""The lives of namespaces.

The rules of apiserver's admission/plugin/namespace/lifecycle, and of pkg/registry/core/namespace.
"""

from __future__ import annotations

from podium.api.meta import Raw
from podium.store.api_resource import APIResource
from podium.store.api_resources import BUILT_IN
from podium.store.errors import forbidden, not_found
from podium.store.revisions import Revisions
from podium.store.stored import Stored

FINALIZER = "kubernetes"
"""What stands in the `spec.finalizers` of a namespace until it is empty."""

NAME_LABEL = "kubernetes.io/metadata.name"
"""The label of a namespace that holds its name."""

_NAMESPACE = BUILT_IN["", "Namespace"]


def check_namespace(revisions: Revisions, resource: APIResource, namespace: str, key: str, *, must_exist: bool) -> None:
    """Raise StoreError for an object that is to be created where it cannot be.

    404 in a namespace that does not exist, where it has to; 403 with cause NamespaceTerminating in one that is going.
    """
    if not resource.namespaced:
        return
    found = revisions.of("Namespace").get(namespace)
    if found is None:
        if must_exist:
            raise not_found(_NAMESPACE, namespace)
        return
    if found.object.metadata.deletion_timestamp is not None:
        problem = f"the namespace {namespace} is being deleted, and nothing new can be created in it"
        raise forbidden(resource, key, problem, "NamespaceTerminating")


def as_new_namespace(raw: Raw) -> Raw:
    """A namespace as it is when it is created: active, held until it is empty, and selectable by its name.

    Raises nothing for what is no namespace; validation does.
    """
    metadata = raw["metadata"]
    labels = metadata.get("labels", {})
    spec = raw.get("spec", {})
    if not isinstance(labels, dict) or not isinstance(spec, dict):
        return raw
    finalizers = spec.get("finalizers")
    kept = finalizers if isinstance(finalizers, list) else []
    return {
        **raw,
        "metadata": {**metadata, "labels": {**labels, NAME_LABEL: metadata.get("name")}},
        "spec": {**spec, "finalizers": kept if FINALIZER in kept else [*kept, FINALIZER]},
        "status": {"phase": "Active"},
    }


def account_of(namespace: str) -> Raw:
    """The ServiceAccount of pods that name none, which every namespace has."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}


def is_going(stored: Stored) -> bool:
    """Whether a namespace is being deleted."""
    return stored.kind == "Namespace" and stored.object.metadata.deletion_timestamp is not None


def terminating(raw: Raw, *, is_empty: bool) -> Raw:
    """A namespace that is deleted; one that is not empty is held until it is."""
    spec, status = raw.get("spec", {}), raw.get("status", {})
    others = [finalizer for finalizer in spec.get("finalizers", []) if finalizer != FINALIZER]
    finalizers = others if is_empty else [*others, FINALIZER]
    return {**raw, "spec": {**spec, "finalizers": finalizers}, "status": {**status, "phase": "Terminating"}}


def is_held(resource: APIResource, raw: Raw) -> bool:
    """Whether an object is a namespace that somebody has yet to let go."""
    return resource.name == "Namespace" and bool(raw.get("spec", {}).get("finalizers"))
