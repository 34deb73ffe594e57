"""What the tests create."""

from __future__ import annotations

from typing import Any

from tests.store.objects import Raw

# Pods end at once when they are deleted, so that nobody waits for them.
QUICK = {"podium.dev/termination": "0s"}


def config_map(name: str, **data: str) -> Raw:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name: str, *, node: str = "", annotations: dict[str, str] | None = None, **labels: str) -> Raw:
    metadata = {"name": name, "labels": {"app": "web", **labels}, "annotations": {**QUICK, **(annotations or {})}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(node)}


def pod_spec(node: str = "", image: str = "web:1") -> Raw:
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    spec: Raw = {"containers": [{"name": "main", "image": image, "resources": resources}]}
    return {**spec, "nodeSelector": {"kubernetes.io/hostname": node}} if node else spec


def deployment(name: str = "web", replicas: int = 2, *, node: str = "", image: str = "web:1", **spec: Any) -> Raw:
    labels = {"app": name}
    template = {"metadata": {"labels": labels, "annotations": QUICK}, "spec": pod_spec(node, image)}
    wanted = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": wanted}


def budget(name: str = "web", **spec: Any) -> Raw:
    wanted = {"selector": {"matchLabels": {"app": name}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": wanted}
