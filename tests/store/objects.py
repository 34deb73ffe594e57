"""Objects as users write them, for the tests of the store."""

from typing import Any

from podium.store.api_resources import APIResource, APIResources

Raw = dict[str, Any]

SECOND = 1_000_000_000
HOUR = 3600 * SECOND


def pod(name: str, *, cpu: int | str = 1, priority: int | None = None, node: str = "", **more: Any) -> Raw:
    """Return a pod of one container. `more` may be labels, annotations, metadata (further fields), spec (further),
    status.
    """
    metadata: Raw = {"name": name, "namespace": more.get("namespace", "default"), **more.get("metadata", {})}
    metadata |= {field: more[field] for field in ("labels", "annotations") if field in more}
    main: Raw = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    spec: Raw = {"containers": [main], **more.get("spec", {})}
    if priority is not None:
        spec["priority"] = priority
    if node:
        spec["nodeName"] = node
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return {**raw, "status": more["status"]} if "status" in more else raw


def replicated(kind: str, name: str, replicas: int, spec: Raw, *, app: str = "", **metadata: Any) -> Raw:
    """Return a workload of so many pods of that spec, which are labelled with `app`, or with its name."""
    labels = {"app": app or name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def node(name: str, *, cpu: int | str = 10, pods: int = 110, **labels: str) -> Raw:
    """Return a node that offers cpu, plenty of memory, and room for `pods`."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "1Ti", "pods": pods}},
    }


def priority_class(name: str, value: int, **fields: Any) -> Raw:
    """Return a PriorityClass."""
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        **fields,
    }


def quota(name: str, hard: Raw, **spec: Any) -> Raw:
    """Return a ResourceQuota of the namespace `default`; `spec` may be scopes or scopeSelector."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def running(name: str, *, ready: bool = True, node: str = "n1", **more: Any) -> Raw:
    """Return a pod of the app `web` that runs on a node; `more` is as for `pod`."""
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": "Running", "conditions": conditions, **more.pop("status", {})}
    return pod(name, node=node, labels=more.pop("labels", {"app": "web"}), status=status, **more)


def budget(name: str = "web", *, allowed: int = 1, rate: str = "", **more: Any) -> Raw:
    """Return a budget over the app `web` whose controller has allowed so many disruptions; `more` may be spec or
    status.
    """
    metadata: Raw = {"name": name, "namespace": "default"}
    if rate:
        metadata["annotations"] = {"podium.dev/max-disruptions": rate}
    spec = {"selector": {"matchLabels": {"app": "web"}}, **more.get("spec", {})}
    status = {"observedGeneration": 1, "disruptionsAllowed": allowed, **more.get("status", {})}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def disruption_policy(**spec: Any) -> Raw:
    """Return the DisruptionPolicy of a cluster."""
    metadata = {"name": "default"}
    return {"apiVersion": "podium.dev/v1alpha1", "kind": "DisruptionPolicy", "metadata": metadata, "spec": spec}


def serving(*kinds: APIResource) -> APIResources:
    """Return the built-in kinds and these, which have no schemas."""
    resources = APIResources()
    for kind in kinds:
        resources.define(kind, {})
    return resources
