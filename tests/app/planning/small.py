"""Objects of small clusters, for questions whose exact answers are tested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from podium.app.console.command import podium as command
from tests.store.objects import replicated

Raw = dict[str, Any]

PLACES_GROUPS: Raw = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}}],
}
"""A configuration that places the pods of groups together."""


def node(name: str, cpu: str = "4", *, labels: Raw | None = None, taints: list[Raw] | None = None, **spec: Any) -> Raw:
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {**spec, **({"taints": taints} if taints else {})},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def group(name: str, least: int) -> Raw:
    """Return a group of which so many pods at least are placed together."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def priority_class(name: str, value: int, **fields: Any) -> Raw:
    meta = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value, **fields}


def pod(name: str, cpu: str = "1", *, on: str = "", owner: str = "", priority: int = 0, **spec: Any) -> Raw:
    """Return a pod, of the ReplicaSet `owner` where there is one; it runs on the node `on`, or waits."""
    requests = {"cpu": cpu}
    meta: Raw = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": owner or name}}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": f"uid-{owner}"}
        meta["ownerReferences"] = [{**reference, "controller": True}]
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": requests}}
    status: Raw = {"phase": "Pending"}
    if on:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": [ready]}
        spec["nodeName"] = on
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"priority": priority, "containers": [container], **spec},
        "status": status,
    }


def member(name: str, of: str, cpu: str = "2", priority: int = 0) -> Raw:
    """Return a pod of a group."""
    return pod(name, cpu, priority=priority, schedulingGroup={"podGroupName": of})


def replica_set(name: str, replicas: int, cpu: str = "1", **spec: Any) -> Raw:
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": {"cpu": cpu}}}
    return replicated("ReplicaSet", name, replicas, {"containers": [container], **spec}, uid=f"uid-{name}")


def budget(name: str, **spec: Any) -> Raw:
    """Return a budget over the pods of the ReplicaSet of that name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


def written(folder: Path, *objects: Raw, name: str = "cluster.json") -> str:
    file = folder / name
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(file)


def ask(*args: str, code: int = 0) -> Result:
    result = CliRunner().invoke(command, ["plan", *args])
    assert result.exit_code == code, result.output
    return result


def reported(*args: str) -> Raw:
    found: Raw = json.loads(ask(*args, "-o", "json").stdout)
    return found
