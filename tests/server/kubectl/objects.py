"""The objects that the tests create."""

from __future__ import annotations

from typing import Any

from tests.store.objects import Raw

# Pods end at once when they are deleted, so that no test waits for them.
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


_PODS: Raw = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
_NEVER: Raw = {"spec": {**_PODS["spec"], "restartPolicy": "Never"}}
_SELECTED: Raw = {"selector": {"matchLabels": {"a": "b"}}, "template": _PODS}
_STORAGE: Raw = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_ROLE: Raw = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
_TARGET: Raw = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
_TOKEN: list[Raw] = [{"serviceAccountToken": {"path": "token"}}]
_BACKEND: Raw = {"service": {"name": "web", "port": {"number": 80}}}
# Of each kind, what an object must say at least.
LEAST: dict[str, Raw] = {
    "apps/v1 DaemonSet": {"spec": _SELECTED},
    "apps/v1 Deployment": {"spec": {**_SELECTED, "replicas": 0}},
    "apps/v1 ReplicaSet": {"spec": {**_SELECTED, "replicas": 0}},
    "apps/v1 StatefulSet": {"spec": {**_SELECTED, "replicas": 0}},
    "autoscaling/v2 HorizontalPodAutoscaler": {"spec": {"maxReplicas": 3, "scaleTargetRef": _TARGET}},
    "batch/v1 CronJob": {"spec": {"schedule": "@yearly", "jobTemplate": {"spec": {"template": _NEVER}}}},
    "batch/v1 Job": {"spec": {"template": _NEVER, "parallelism": 0}},
    "coordination.k8s.io/v1 Lease": {},
    "discovery.k8s.io/v1 EndpointSlice": {
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"]}],
        "ports": [{"port": 80}],
    },
    "networking.k8s.io/v1 Ingress": {"spec": {"defaultBackend": _BACKEND}},
    "networking.k8s.io/v1 IngressClass": {"spec": {"controller": "example.com/ingress"}},
    "networking.k8s.io/v1 NetworkPolicy": {"spec": {"podSelector": {}}},
    "node.k8s.io/v1 RuntimeClass": {"handler": "runc"},
    "policy/v1 PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
    "rbac.authorization.k8s.io/v1 ClusterRole": {"rules": []},
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": {"roleRef": _ROLE},
    "rbac.authorization.k8s.io/v1 Role": {"rules": []},
    "rbac.authorization.k8s.io/v1 RoleBinding": {"roleRef": _ROLE},
    "resource.k8s.io/v1 DeviceClass": {"spec": {}},
    "scheduling.k8s.io/v1 PriorityClass": {"value": 7},
    "storage.k8s.io/v1 CSIDriver": {"spec": {}},
    "storage.k8s.io/v1 CSINode": {"spec": {"drivers": []}},
    "storage.k8s.io/v1 StorageClass": {"provisioner": "example.com/disk"},
    "v1 Endpoints": {"subsets": [{"addresses": [{"ip": "10.1.2.3"}]}]},
    "v1 LimitRange": {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    "v1 PersistentVolume": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    "v1 PersistentVolumeClaim": {"spec": _STORAGE},
    "v1 Pod": {"spec": {**_PODS["spec"], "volumes": [{"name": "t", "projected": {"sources": _TOKEN}}]}},
    "v1 PodTemplate": {"template": _PODS},
    "v1 ReplicationController": {"spec": {"replicas": 0, "selector": {"a": "b"}, "template": _PODS}},
    "v1 ResourceQuota": {"spec": {"hard": {"pods": "9"}}},
    "v1 Secret": {},
    "v1 Service": {"spec": {"ports": [{"port": 80}]}},
    "v1 ServiceAccount": {},
}


def least(of: str, prefix: str) -> Raw:
    """Return an object of a kind that says no more than it must, with a name that begins so."""
    api_version, _, kind = of.partition(" ")
    name = f"{prefix}-{kind.lower()}"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **LEAST[of]}
