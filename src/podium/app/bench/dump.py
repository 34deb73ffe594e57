"""A made dump of a cluster, as `kubectl get nodes,pods -A -o json --show-managed-fields` prints one.

A pod has its managedFields and a full status, and takes some 12 kB. Pods differ in what pods differ in: names, uids,
nodes, addresses, requests, apps. Their shapes are those of Deployments, with a sidecar here and there, of DaemonSets,
and of Jobs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podium.api.meta import Raw

QUESTIONS = 50
"""How many of the pods are pending."""

PODS_PER_NODE = 10

_TIME = "2026-01-01T00:00:00Z"
_APPS = 200
_NODE, _NAME, _APP, _UID, _ADDRESS, _CPU = "@node", "@name", "@app", "@uid", "@address", "@cpu"


def write_dump(file: Path, nodes: int, pods: int) -> None:
    """Write a dump with so many nodes and pods, those that are pending among them; the same for the same numbers."""
    with file.open("w", encoding="ascii") as stream:
        stream.write('{\n "apiVersion": "v1",\n "items": [\n')
        for index, text in enumerate(_objects(nodes, pods)):
            stream.write(",\n" if index else "")
            stream.write(text)
        stream.write('\n ],\n "kind": "List",\n "metadata": {"resourceVersion": ""}\n}\n')


def question(index: int) -> str:
    """The key of a pending pod."""
    return f"team-0/pending-{index}"


def _objects(nodes: int, pods: int) -> Iterator[str]:
    node = _text(_node())
    for index in range(nodes):
        yield _filled(node, {_NAME: _node_name(index), _UID: _uid(index), _ADDRESS: _address(index)})
    shapes = [_text(_pod("ReplicaSet", sidecar=index == 0)) for index in range(3)]
    shapes += [_text(_pod("DaemonSet")), _text(_pod("Job"))]
    pending = _text(_pod("ReplicaSet", is_pending=True))
    waiting = min(QUESTIONS, pods)
    for index in range(pods - waiting):
        values = _pod_values(f"app-{index % _APPS}-{index:07d}", index)
        yield _filled(shapes[index % len(shapes)], {**values, _NODE: _node_name(index % nodes)})
    for index in range(waiting):
        yield _filled(pending, _pod_values(f"pending-{index}", index * _APPS))


def _pod_values(name: str, index: int) -> dict[str, str]:
    app = index % _APPS
    return {
        _NAME: name,
        _APP: str(app),
        _UID: _uid(index),
        _ADDRESS: _address(index),
        _CPU: f"{20 + app % 7 * 15}m",
    }


def _text(value: Raw) -> str:
    return json.dumps(value, indent=1).replace("\n", "\n  ")


def _filled(text: str, values: dict[str, str]) -> str:
    for place, value in values.items():
        text = text.replace(place, value)
    return f"  {text}"


def _node_name(index: int) -> str:
    return f"node-{index:05d}"


def _uid(index: int) -> str:
    return f"00000000-0000-4000-8000-{index:012x}"


def _address(index: int) -> str:
    return f"10.{index >> 16 & 255}.{index >> 8 & 255}.{index & 255}"


def _managed(manager: str, subresource: str, owned: Raw) -> Raw:
    fields: Raw = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned, "manager": manager}
    if subresource:
        fields["subresource"] = subresource
    return {**fields, "operation": "Update", "time": _TIME}


def _fields(value: Any) -> Raw:
    """Who owns all of a value, as managedFields say it."""
    if isinstance(value, dict):
        return {f"f:{key}": _fields(entry) for key, entry in value.items()}
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        key = next((key for key in ("name", "type", "key", "ip", "containerPort") if key in value[0]), "name")
        return {f'k:{{"{key}":"{entry.get(key, "")}"}}': {".": {}, **_fields(entry)} for entry in value}
    return {}


def _condition(kind: str, status: str, reason: str = "") -> Raw:
    condition: Raw = {"lastProbeTime": None, "lastTransitionTime": _TIME, "status": status, "type": kind}
    return {**condition, "reason": reason} if reason else condition


def _node() -> Raw:
    amounts = {
        "cpu": "32",
        "ephemeral-storage": "103880232Ki",
        "hugepages-2Mi": "0",
        "memory": "131072Mi",
        "pods": "110",
    }
    images = [
        {"names": [f"registry.example.com/team/image-{number}@sha256:{number:064x}"], "sizeBytes": 90_000_000 + number}
        for number in range(30)
    ]
    status: Raw = {
        "addresses": [{"address": _ADDRESS, "type": "InternalIP"}, {"address": _NAME, "type": "Hostname"}],
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [
            _condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            _condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            _condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            _condition("Ready", "True", "KubeletReady"),
        ],
        "images": images,
        "nodeInfo": {"architecture": "amd64", "kubeletVersion": "v1.36.2", "operatingSystem": "linux"},
    }
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": _NAME,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": "zone-1",
    }
    metadata: Raw = {"creationTimestamp": _TIME, "labels": labels}
    owned = {"f:metadata": {"f:labels": _fields(labels)}, "f:status": _fields({**status, "images": []})}
    metadata["managedFields"] = [_managed("kubelet", "status", owned)]
    metadata |= {"name": _NAME, "resourceVersion": "1000", "uid": _UID}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": status,
    }


def _pod(owner: str, *, sidecar: bool = False, is_pending: bool = False) -> Raw:
    containers = [_container("main"), *([_container("proxy")] if sidecar else [])]
    labels = {
        "app.kubernetes.io/name": f"app-{_APP}",
        "app.kubernetes.io/part-of": "shop",
        "pod-template-hash": "7d4b9c6f5",
    }
    reference: Raw = {"apiVersion": "batch/v1" if owner == "Job" else "apps/v1", "blockOwnerDeletion": True}
    reference |= {"controller": True, "kind": owner, "name": f"app-{_APP}", "uid": f"owner-{_APP}"}
    metadata: Raw = {
        "annotations": {"prometheus.io/port": "9090", "prometheus.io/scrape": "true"},
        "creationTimestamp": _TIME,
        "generateName": f"app-{_APP}-",
        "labels": labels,
    }
    spec = _spec(owner, containers, is_pending=is_pending)
    status = {"phase": "Pending", "qosClass": "Burstable"} if is_pending else _status(containers)
    owned = {key: spec[key] for key in ("containers", "dnsPolicy", "restartPolicy", "schedulerName", "securityContext")}
    by_controller = {"f:metadata": _fields({"labels": labels}), "f:spec": _fields(owned)}
    metadata["managedFields"] = [
        _managed("kube-controller-manager", "", by_controller),
        _managed("kubelet", "status", {"f:status": _fields(status)}),
    ]
    metadata |= {"name": _NAME, "namespace": "team-0", "ownerReferences": [reference]}
    metadata |= {"resourceVersion": "2000", "uid": _UID}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _container(name: str) -> Raw:
    probe: Raw = {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1}
    env: list[Raw] = [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(2)]
    env.append({"name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}})
    return {
        "env": env,
        "image": f"registry.example.com/team/{name}:1.2.3",
        "imagePullPolicy": "IfNotPresent",
        "name": name,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "readinessProbe": {**probe, "httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}},
        "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": _CPU, "memory": "128Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"mountPath": "/etc/settings", "name": "settings", "readOnly": True},
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": True},
        ],
    }


def _spec(owner: str, containers: list[Raw], *, is_pending: bool) -> Raw:
    passing = {"effect": "NoExecute", "operator": "Exists"}
    tolerations = [
        {**passing, "key": "node.kubernetes.io/not-ready", "tolerationSeconds": 300},
        {**passing, "key": "node.kubernetes.io/unreachable", "tolerationSeconds": 300},
    ]
    if owner == "DaemonSet":
        tolerations = [{"operator": "Exists"}]
    spec: Raw = {
        "containers": containers,
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": _NODE,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "OnFailure" if owner == "Job" else "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {"fsGroup": 1000, "runAsNonRoot": True},
        "serviceAccount": f"app-{_APP}",
        "serviceAccountName": f"app-{_APP}",
        "terminationGracePeriodSeconds": 30,
        "tolerations": tolerations,
        "volumes": [
            {"configMap": {"defaultMode": 420, "name": f"app-{_APP}"}, "name": "settings"},
            {"name": "token", "projected": {"defaultMode": 420, "sources": _token_sources()}},
        ],
    }
    if is_pending:
        del spec["nodeName"]
    return spec


def _token_sources() -> list[Raw]:
    own = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {"downwardAPI": {"items": [{"fieldRef": own, "path": "namespace"}]}},
    ]


def _status(containers: list[Raw]) -> Raw:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "conditions": [_condition(kind, "True") for kind in kinds],
        "containerStatuses": [
            {
                "containerID": f"containerd://{_UID}",
                "image": container["image"],
                "imageID": f"{container['image']}@sha256:{0:064x}",
                "lastState": {},
                "name": container["name"],
                "ready": True,
                "resources": container["resources"],
                "restartCount": 0,
                "started": True,
                "state": {"running": {"startedAt": _TIME}},
            }
            for container in containers
        ],
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "phase": "Running",
        "podIP": _ADDRESS,
        "podIPs": [{"ip": _ADDRESS}],
        "qosClass": "Burstable",
        "startTime": _TIME,
    }
