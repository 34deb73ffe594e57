"""A dump with one object of each kind can be explained and simulated."""

from __future__ import annotations

from typing import Any

import pytest

import podium
from podium.api.kinds import KINDS, Kind

Raw = dict[str, Any]
POD_SPEC = {"containers": [{"name": "main", "image": "web", "resources": {"requests": {"cpu": "1"}}}]}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": POD_SPEC}
SELECTOR = {"matchLabels": {"app": "web"}}
WORKLOAD = {"replicas": 1, "selector": SELECTOR, "template": TEMPLATE}
# What a kind's object must have, beside a name; all else is left out.
NEEDED: dict[str, Raw] = {
    "CSIStorageCapacity": {"storageClassName": "fast"},
    "DaemonSet": {"spec": {"selector": SELECTOR, "template": TEMPLATE}},
    "Deployment": {"spec": WORKLOAD},
    "DeviceTaintRule": {"spec": {"taint": {"key": "a", "effect": "NoSchedule"}}},
    "ResourceSlice": {"spec": {"driver": "a.com", "nodeName": "web", "pool": {"name": "web", "resourceSliceCount": 1}}},
    "Job": {"spec": {"template": {**TEMPLATE, "spec": {**POD_SPEC, "restartPolicy": "Never"}}}},
    "Node": {"status": {"allocatable": {"cpu": "4", "pods": "10"}}},
    "Pod": {"spec": POD_SPEC},
    "PriorityClass": {"value": 5},
    "ReplicaSet": {"spec": WORKLOAD},
    "ReplicationController": {"spec": {**WORKLOAD, "selector": {"app": "web"}}},
    "StatefulSet": {"spec": {**WORKLOAD, "serviceName": "web"}},
    "StorageClass": {"provisioner": "example.com/disk"},
    "VolumeAttachment": {
        "spec": {"attacher": "example.com", "nodeName": "web", "source": {"persistentVolumeName": "web"}}
    },
}
# Kinds of a dump that Podium does not read: Kubernetes' own, and operators'.
UNREAD: list[Raw] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}},
    {"apiVersion": "v1", "kind": "Secret", "type": "Opaque"},
    {"apiVersion": "v1", "kind": "Endpoints", "subsets": []},
    {"apiVersion": "v1", "kind": "Event", "involvedObject": {}},
    {"apiVersion": "v1", "kind": "ServiceAccount"},
    {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {"maxReplicas": 3}},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {}},
    {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "endpoints": []},
    {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": {"podSelector": {}}},
    {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "containers": []},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []},
    {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "spec": {"secretName": "web"}},
    {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"versions": [{"schema": {"openAPIV3Schema": {"enum": [None, "a"]}}}]},
    },
]


def made(kind: Kind) -> Raw:
    name = "default" if kind.name == "DisruptionPolicy" else "web"
    metadata: Raw = {"name": name, "uid": f"{kind.name}-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    if kind.namespaced:
        metadata["namespace"] = "default"
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **NEEDED.get(kind.name, {})}


def waiting() -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": POD_SPEC}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_an_object_of_every_kind_that_is_read_is_explained_and_simulated(kind: Kind) -> None:
    check([made(kind)])


def test_objects_of_all_kinds_together_are_explained_and_simulated() -> None:
    check([made(kind) for kind in KINDS.values()] + UNREAD)


@pytest.mark.parametrize("raw", UNREAD, ids=lambda raw: raw["kind"])
def test_an_object_of_a_kind_that_is_not_read_is_passed_over(raw: Raw) -> None:
    check([{**raw, "metadata": {"name": "web", "namespace": "default"}}])


ODD_DATA = [5, "text", [1], {"spec": 5}, {"spec": {"template": [1]}}, {"spec": {"template": {"metadata": 5}}}, None]


@pytest.mark.parametrize("data", ODD_DATA, ids=str)
def test_a_revision_may_hold_anything(data: Any) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "StatefulSet-1", "controller": True}
    stateful_set = made(KINDS["apps", "StatefulSet"])
    revision = made(KINDS["apps", "ControllerRevision"])
    revision["metadata"] = {**revision["metadata"], "ownerReferences": [owner]}
    status = {"currentRevision": "web", "updateRevision": "web"}

    check([{**stateful_set, "status": status}, {**revision, "revision": 1, "data": data}])


def check(objects: list[Raw]) -> None:
    """Raise an error for an object that cannot be explained or simulated."""
    named = [{"metadata": {"name": "web"}, **one} for one in [*objects, waiting()]]

    assert podium.explain(named, "waits").pod == "default/waits"
    assert podium.simulate(named, until="1m").to_dict()
