"""Dumps shaped like real clusters: cloud names, workloads of all kinds, budgets and classes."""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]
_TIME = "2026-01-01T00:00:00Z"
_CLASSES = {"batch": 100, "standard": 1_000, "high": 100_000}
_CPU, _MEMORY = 8_000, 32_768


def cloud_name(number: int) -> str:
    """Return the name of a node as a cloud provider makes it."""
    return f"ip-10-0-{number // 250}-{number % 250}.eu-west-1.compute.internal"


def dump(nodes: int, pods: int, *, each: int = 10) -> list[Raw]:
    """So many nodes in three zones, and so many pods that run: of Deployments, StatefulSets and DaemonSets.

    Each Deployment and StatefulSet has `each` pods and a budget that lets one be missing.
    """
    made = [_node(number) for number in range(nodes)]
    made += [_class(name, value) for name, value in _CLASSES.items()]
    made += [_owner("DaemonSet", "agent", "kube-system", "standard", "100m", 0)]
    made += [_pod("DaemonSet", "agent", "kube-system", f"agent-{n:05x}", "standard", "100m", n) for n in range(nodes)]
    left, app, place = pods - nodes, 0, 0
    while left > 0:
        number = min(each, left)
        made += _app(app, number, place, nodes)
        left, app, place = left - number, app + 1, place + number
    return made


def as_list(objects: list[Raw]) -> Raw:
    """Return the objects as kubectl prints them."""
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def _app(number: int, pods: int, place: int, nodes: int) -> list[Raw]:
    """Return a workload with its pods from a place on, and its budget."""
    name, namespace = f"app-{number:04}", f"team-{number % 7}"
    level, cpu = list(_CLASSES)[number % 3], f"{100 + 100 * (number % 4)}m"
    kind = "StatefulSet" if number % 4 == 3 else "Deployment"
    made = [_owner(kind, name, namespace, level, cpu, pods), _budget(name, namespace)]
    owner, owned_by = (kind, name) if kind == "StatefulSet" else ("ReplicaSet", f"{name}-5d4f8c7b9")
    if owner == "ReplicaSet":
        made.append(_replica_set(owned_by, name, namespace, level, cpu, pods))
    for index in range(pods):
        pod = f"{name}-{index}" if kind == "StatefulSet" else f"{owned_by}-{index:05x}"
        made.append(_pod(owner, owned_by, namespace, pod, level, cpu, (place + index) % nodes, app=name))
    return made


def _node(number: int) -> Raw:
    name = cloud_name(number)
    amounts = {"cpu": f"{_CPU}m", "memory": f"{_MEMORY}Mi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"eu-west-1{'abc'[number % 3]}"}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": _TIME}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "uid": f"node-{number}"},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": conditions},
    }


def _class(name: str, value: int) -> Raw:
    meta = {"name": name}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value}


def _budget(name: str, namespace: str) -> Raw:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
    }


def _template(name: str, level: str, cpu: str) -> Raw:
    return {"metadata": {"labels": {"app": name}}, "spec": _spec(level, cpu)}


def _spec(level: str, cpu: str) -> Raw:
    requests = {"cpu": cpu, "memory": "256Mi"}
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"requests": requests}}
    return {"priorityClassName": level, "terminationGracePeriodSeconds": 30, "containers": [container]}


def _owner(kind: str, name: str, namespace: str, level: str, cpu: str, replicas: int) -> Raw:
    spec: Raw = {"selector": {"matchLabels": {"app": name}}, "template": _template(name, level, cpu)}
    if kind != "DaemonSet":
        spec["replicas"] = replicas
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": f"{kind}-{name}"},
        "spec": spec,
    }


def _replica_set(name: str, app: str, namespace: str, level: str, cpu: str, replicas: int) -> Raw:
    revision = name.rpartition("-")[2]
    found = _owner("ReplicaSet", name, namespace, level, cpu, replicas)
    labels = {"app": app, "pod-template-hash": revision}
    found["metadata"] |= {
        "labels": labels,
        "annotations": {"deployment.kubernetes.io/revision": "1"},
        "ownerReferences": [_reference("Deployment", app)],
    }
    found["spec"]["selector"] = {"matchLabels": labels}
    found["spec"]["template"]["metadata"] = {"labels": labels}
    return found


def _reference(kind: str, name: str) -> Raw:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}


def _pod(  # noqa: PLR0913 - each is a field of the pod
    kind: str, owner: str, namespace: str, name: str, level: str, cpu: str, node: int, *, app: str = ""
) -> Raw:
    labels = {"app": app or owner}
    if kind == "ReplicaSet":
        labels["pod-template-hash"] = owner.rpartition("-")[2]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"pod-{namespace}-{name}",
            "labels": labels,
            "creationTimestamp": _TIME,
            "ownerReferences": [_reference(kind, owner)],
        },
        "spec": {**_spec(level, cpu), "priority": _CLASSES[level], "nodeName": cloud_name(node)},
        "status": {
            "phase": "Running",
            "startTime": _TIME,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _TIME}],
        },
    }
