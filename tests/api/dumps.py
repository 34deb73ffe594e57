"""Pods as in a cluster dump: made from one template, each with the fields that a cluster sets."""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]
ACCESS = "kube-api-access-"


def dumped_pod(number: int = 0, **spec: Any) -> Raw:
    """Return a pod of a ReplicaSet that runs: one of those that are the same but for what each has for itself."""
    name, node, address = f"web-5d4f-{'abcdefgh'[number]}x2zq", f"node-{number}", f"10.0.{number}.7"
    volume = f"{ACCESS}{'bcdfghjk'[number]}4x8z"
    mount = {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": volume, "readOnly": True}
    requests = {"cpu": "100m", "memory": "64Mi"}
    main = {
        "name": "main",
        "image": "web:1",
        "resources": {"requests": requests, "limits": {"memory": "64Mi"}},
        "volumeMounts": [mount],
    }
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    time = f"2026-01-01T00:0{number}:00Z"
    status = {
        "conditions": [
            {"lastProbeTime": None, "lastTransitionTime": time, "status": "True", "type": kind}
            for kind in ("PodScheduled", "Ready")
        ],
        "containerStatuses": [
            {
                "allocatedResources": requests,
                "containerID": f"containerd://{number:064x}",
                "image": "web:1",
                "imageID": "web@sha256:1",
                "name": "main",
                "ready": True,
                "resources": main["resources"],
                "restartCount": number,
                "started": True,
                "state": {"running": {"startedAt": time}},
                "volumeMounts": [mount],
            }
        ],
        "hostIP": "10.1.0.1",
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": time,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**_metadata(number, name, address, time)},
        "spec": {
            "containers": [main],
            "nodeName": node,
            "volumes": [{"name": volume, "projected": {"sources": [token]}}, {"name": "own", "emptyDir": {}}],
            **spec,
        },
        "status": status,
    }


def _metadata(number: int, name: str, address: str, time: str) -> Raw:
    owner = {"apiVersion": "apps/v1", "controller": True, "kind": "ReplicaSet", "name": "web-5d4f", "uid": "r"}
    managed = {"apiVersion": "v1", "fieldsType": "FieldsV1", "operation": "Update", "time": time}
    addresses: Raw = {".": {}, f'k:{{"ip":"{address}"}}': {".": {}, "f:ip": {}}}
    return {
        "annotations": {"checksum": "1"},
        "creationTimestamp": time,
        "generateName": "web-5d4f-",
        "labels": {"app": "web"},
        "managedFields": [
            {**managed, "manager": "kube-controller-manager", "fieldsV1": {"f:spec": {"f:containers": {}}}},
            {
                **managed,
                "manager": "kubelet",
                "subresource": "status",
                "fieldsV1": {"f:status": {"f:podIPs": addresses}},
            },
        ],
        "name": name,
        "namespace": "default",
        "ownerReferences": [owner],
        "resourceVersion": str(100 + number),
        "uid": f"uid-{number}",
    }


def dump(*items: Any, kind: str = "List") -> Raw:
    """Return the List that has them."""
    return {"apiVersion": "v1", "items": [*items], "kind": kind, "metadata": {"resourceVersion": ""}}
