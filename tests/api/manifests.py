"""Manifests that kube-apiserver accepts, and changes to them by path, for tests of validation."""

from __future__ import annotations

import copy
from typing import Any

Raw = dict[str, Any]
GONE = object()


def changed(raw: Raw, changes: dict[str, Any]) -> Raw:
    """Return the object with values at paths such as `spec.containers.0.image`; GONE takes the field away."""
    result = copy.deepcopy(raw)
    for path, value in changes.items():
        *way, last = path.split("/" if "/" in path else ".")
        place: Any = result
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if isinstance(place, list):
            place[int(last) : int(last) + 1] = [value]
        elif value is GONE:
            del place[last]
        else:
            place[last] = value
    return result


def pod(**spec: Any) -> Raw:
    """Return a pod with one container that says what it needs."""
    main = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [main], **spec},
    }


def workload(kind: str, **spec: Any) -> Raw:
    """Return a workload of apps/v1 with a template that it selects."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def job(**spec: Any) -> Raw:
    """Return a Job whose pods do not restart."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "default"},
        "spec": {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}, **spec},
    }


def claim(**spec: Any) -> Raw:
    """Return a claim on storage."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {**wanted, **spec},
    }


def volume(**spec: Any) -> Raw:
    """Return a persistent volume of a CSI driver."""
    source = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}
    size = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {**source, **size, **spec},
    }


def of(api_version: str, kind: str, namespaced: bool = True, **fields: Any) -> Raw:
    """Return an object of any kind."""
    metadata = {"name": "web", **({"namespace": "default"} if namespaced else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def paths_of(value: Any, path: str = "") -> list[str]:
    """Return the paths of all values in an object, as `changed` takes them after their first slash."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, one in entries for found in paths_of(one, f"{path}/{key}"))]
