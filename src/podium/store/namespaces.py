"""The lives of namespaces (apiserver's admission/plugin/namespace/lifecycle)."""

from __future__ import annotations

from podium.store.errors import forbidden, not_found
from podium.store.resource import Resource
from podium.store.resources import BUILT_IN
from podium.store.revisions import Revisions
from podium.store.stored import Stored

_NAMESPACE = BUILT_IN["", "Namespace"]
_IMMORTAL = ("default", "kube-public", "kube-system")


def check_namespace(revisions: Revisions, resource: Resource, namespace: str, key: str) -> None:
    """Raise StoreError for an object that is to be created where it cannot be.

    404 in a namespace that does not exist, 403 with cause NamespaceTerminating in one that is going.
    """
    if not resource.namespaced:
        return
    found = revisions.of("Namespace").get(namespace)
    if found is None:
        raise not_found(_NAMESPACE, namespace)
    if found.object.metadata.deletion_timestamp is not None:
        problem = f"the namespace {namespace} is being deleted, and nothing new can be created in it"
        raise forbidden(resource, key, problem, "NamespaceTerminating")


def check_mortal(stored: Stored) -> None:
    """Raise StoreError 403 for the deletion of a namespace that every cluster has."""
    if stored.kind == "Namespace" and stored.key in _IMMORTAL:
        raise forbidden(stored.resource, stored.key, "this namespace may not be deleted")
