"""Questions about pods with claims for volumes and devices."""

from __future__ import annotations

from pathlib import Path

from tests.app.planning.small import Raw, node, pod, priority_class, reported, written

ZONE = "topology.kubernetes.io/zone"
DRIVER = "disk.example.com"


def volume_claim(name: str) -> Raw:
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def zonal_nodes(**zones: str) -> list[Raw]:
    """Return nodes of two cpu in these zones, with a driver whose volumes belong to a zone."""
    driver = {"name": DRIVER, "topologyKeys": [ZONE]}
    return [
        each
        for name, zone in zones.items()
        for each in (
            node(name, "2", labels={ZONE: zone}),
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name},
                "spec": {"drivers": [{**driver, "nodeID": name}]},
            },
        )
    ]


def mounting(name: str, claim: str) -> Raw:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}])


def gpus(*nodes: str, each: int) -> list[Raw]:
    """Return a class of devices, and slices that offer so many of them on these nodes."""
    api, devices = "resource.k8s.io/v1", [{"name": f"gpu-{number}"} for number in range(each)]
    return [
        {"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        *(
            {
                "apiVersion": api,
                "kind": "ResourceSlice",
                "metadata": {"name": f"slice-{name}"},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": devices,
                },
            }
            for name in nodes
        ),
    ]


def device_claim(kind: str, name: str) -> Raw:
    requests = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    spec = {"spec": requests} if kind == "ResourceClaimTemplate" else requests
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}


def test_a_preemptor_takes_devices_which_no_other_pod_gets(tmp_path: Path) -> None:
    """Three devices serve three pods, however much cpu preemption frees."""
    running = [pod(f"old-{name}-{number}", "2", on=name) for name in ("n1", "n2") for number in range(2)]
    base = [node("n1"), node("n2"), *gpus("n1", each=2), gpus("n2", each=1)[1], *running]
    base += [priority_class("high", 1_000), device_claim("ResourceClaimTemplate", "gpu")]
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    asked = pod("train", priority=1_000, priorityClassName="high", resourceClaims=claims)
    del asked["metadata"]["uid"]
    file = written(tmp_path, asked, name="asked.json")
    cluster = written(tmp_path, *base)

    answer = reported("fit", "-f", cluster, file, "--preempt", "--replicas", "6")

    assert answer["fit"]["fits"] == 3
    assert answer["limits"] == [{"pods": 3, "why": "1 node: cannot allocate all claims"}]
    assert reported("fit", "-f", cluster, file, "--preempt")["fit"]["withPreemption"] == 3


def test_a_node_of_the_zone_of_a_volume_is_a_shape_of_its_own(tmp_path: Path) -> None:
    """The nodes differ in nothing that the pod itself names; its volume is in the zone of the full one."""
    claim, term = volume_claim("data"), {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    claim["metadata"] |= {"uid": "claim", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim |= {"spec": {**claim["spec"], "volumeName": "made"}, "status": {"phase": "Bound"}}
    reference = {"namespace": "default", "name": "data", "uid": "claim"}
    spec = {"claimRef": reference, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "made"}, "spec": spec}
    full = pod("old", "2", on="n2")
    cluster = written(tmp_path, claim, volume, *zonal_nodes(n1="a", n2="b"), full, mounting("web", "data"))

    changes = reported("pending", "-f", cluster)["changes"]

    assert [each["change"] for each in changes if each["type"] == "node"] == ["one more node like n2"]
