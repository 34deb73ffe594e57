"""Questions about many pods with claims: claims that pods share, and claims that each pod has for itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podium.app.console.command import podium as command
from tests.app.planning.small import Raw, ask, node, pod, priority_class, reported, written

ZONE = "topology.kubernetes.io/zone"
DRIVER = "disk.example.com"


def storage_class(**fields: Any) -> Raw:
    meta = {"name": "late", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    base = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": DRIVER}
    return {**base, "volumeBindingMode": "WaitForFirstConsumer", **fields}


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


def stateful_set(replicas: int, **claim: Any) -> Raw:
    container = {"name": "main", "image": "registry.example/db:1", "resources": {"requests": {"cpu": "1"}}}
    claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **claim}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec}],
        },
    }


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


def bound_in_simulation(cluster: str) -> int:
    result = CliRunner().invoke(command, ["simulate", "-f", cluster, "-o", "json"])
    assert result.exit_code == 0, result.output
    found: int = json.loads(result.stdout)["summary"]["bindings"]
    return found


def test_pods_that_share_a_late_claim_are_placed_wherever_its_volume_is_reached(tmp_path: Path) -> None:
    """The first pod's binding creates the volume; the others may run on every node of its zone."""
    base = [storage_class(), volume_claim("shared"), *zonal_nodes(n1="a", n2="a", n3="b", n4="b")]
    pods = [mounting(f"web-{number}", "shared") for number in range(5)]
    cluster = written(tmp_path, *base, *pods)

    answer = reported("pending", "-f", cluster)

    assert len(answer["placed"]) == bound_in_simulation(cluster) == 4
    assert len({each["node"] for each in answer["placed"]}) == 2
    empty, asked = written(tmp_path, *base, name="empty.json"), written(tmp_path, pods[0], name="asked.json")
    assert reported("fit", "-f", empty, asked)["fit"]["fits"] == 4
    assert reported("fit", "-f", empty, asked, "--replicas", "5")["fit"]["fits"] == 4


def test_a_shared_claim_takes_an_existing_volume_once_for_all_pods(tmp_path: Path) -> None:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "late"}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "made"},
        "spec": {**spec, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}},
        "status": {"phase": "Available"},
    }
    no_more = storage_class(provisioner="kubernetes.io/no-provisioner")
    pods = [mounting(f"web-{number}", "shared") for number in range(5)]
    cluster = written(tmp_path, no_more, volume, volume_claim("shared"), *zonal_nodes(n1="a", n2="b", n3="b"), *pods)

    placed = reported("pending", "-f", cluster)["placed"]

    assert {each["node"] for each in placed} == {"n2", "n3"}
    assert len(placed) == bound_in_simulation(cluster) == 4


@pytest.mark.parametrize("named", [{"storageClassName": "late"}, {}], ids=["named", "default"])
def test_each_pod_of_a_stateful_set_has_claims_of_its_own(tmp_path: Path, named: Raw) -> None:
    cluster = written(tmp_path, storage_class(), *zonal_nodes(n1="a", n2="a", n3="b"))
    asked = written(tmp_path, stateful_set(5, **named), name="asked.json")

    answer = reported("fit", "-f", cluster, asked)

    assert answer["fit"]["fits"] == 6
    assert answer["limits"] == [{"why": "Insufficient cpu", "nodes": ["n1", "n2", "n3"]}]
    seven = ask("fit", "-f", cluster, asked, "--replicas", "7", "--save", str(tmp_path / "saved.yaml")).stdout
    assert seven.startswith("6 of 7 of StatefulSet default/db get a node; limit: 3 nodes: Insufficient cpu\n")
    assert bound_in_simulation(str(tmp_path / "saved.yaml")) == 6


def test_pods_share_the_devices_of_a_claim(tmp_path: Path) -> None:
    base = [node("n1", "4"), node("n2", "4"), *gpus("n1", "n2", each=1), device_claim("ResourceClaim", "shared")]
    claims = [{"name": "gpu", "resourceClaimName": "shared"}]
    pods = [pod(f"train-{number}", resourceClaims=claims) for number in range(6)]
    cluster = written(tmp_path, *base, *pods)

    placed = reported("pending", "-f", cluster)["placed"]

    assert len(placed) == bound_in_simulation(cluster) == 4
    assert len({each["node"] for each in placed}) == 1
    asked = written(tmp_path, pods[0], name="asked.json")
    assert reported("fit", "-f", written(tmp_path, *base), asked)["fit"]["fits"] == 4


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


def test_explain_counts_the_free_devices_that_suit_a_claim(tmp_path: Path) -> None:
    """One of the two devices of n2 is held, and n1 has none that the claim selects."""
    slices = [*gpus("n1", each=1), gpus("n2", each=2)[1]]
    large = {"attributes": {"large": {"bool": True}}}
    slices[2]["spec"]["devices"] = [{**each, **large} for each in slices[2]["spec"]["devices"]]
    held, wanted = device_claim("ResourceClaim", "held"), device_claim("ResourceClaim", "wanted")
    results = [{"request": "gpu", "driver": "gpu.example.com", "pool": "n2", "device": "gpu-0"}]
    held["status"] = {"allocation": {"devices": {"results": results}}}
    is_large = "device.attributes['gpu.example.com'].?large.orValue(false)"
    (request,) = wanted["spec"]["devices"]["requests"]
    request["exactly"] |= {"count": 2, "selectors": [{"cel": {"expression": is_large}}]}
    waiting = pod("train", resourceClaims=[{"name": "gpu", "resourceClaimName": "wanted"}])
    cluster = written(tmp_path, node("n1"), node("n2"), *slices, held, wanted, waiting)

    text = CliRunner().invoke(command, ["explain", "train", "-f", cluster]).stdout

    assert text.endswith(
        "What would have to change  each line is enough by itself\n"
        "  n1  devices for claim wanted, request gpu: 2 wanted, 0 free\n"
        "  n2  devices for claim wanted, request gpu: 2 wanted, 1 free\n"
    )


def test_a_quota_that_holds_pods_with_claims_of_their_own_is_raised(tmp_path: Path) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "default"}}
    quota |= {"spec": {"hard": {"pods": "0"}}}
    cluster = written(tmp_path, storage_class(), quota, stateful_set(3), *zonal_nodes(n1="a", n2="a"))

    (change,) = reported("pending", "-f", cluster)["changes"]

    assert (change["change"], change["placed"]) == ("ResourceQuota default/few pods 0 -> 3", 3)


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


def test_more_nodes_place_no_more_pods_than_there_are_volumes(tmp_path: Path) -> None:
    """Two volumes for three claims, and room for one pod on each new node."""
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "late"}
    volumes = [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
        for name in ("one", "two")
    ]
    pods = [mounting(f"web-{number}", f"data-{number}") for number in range(3)]
    claims = [volume_claim(f"data-{number}") for number in range(3)]
    no_more = storage_class(provisioner="kubernetes.io/no-provisioner")
    cluster = written(tmp_path, node("a", "1"), pod("old", on="a"), no_more, *volumes, *claims, *pods)

    changes = reported("pending", "-f", cluster)["changes"]

    counts = {each["change"]: each["placed"] for each in changes if each["type"] in ("node", "nodes")}
    assert counts == {"one more node like a": 1, "2 more nodes like a": 2}


def test_a_further_node_has_the_devices_and_the_drivers_of_the_one_that_it_is_like(tmp_path: Path) -> None:
    """Each pod wants a device and a volume; a node has two devices and attaches one volume."""
    template, device = device_claim("ResourceClaimTemplate", "one"), {"name": "gpu", "resourceClaimTemplateName": "one"}
    nodes = zonal_nodes(n1="a", n2="a", n3="a")
    for driver in (each["spec"]["drivers"][0] for each in nodes if each["kind"] == "CSINode"):
        driver["allocatable"] = {"count": 1}
    pods = [
        {**mounting(f"web-{number}", f"data-{number}"), "metadata": {"name": f"web-{number}", "namespace": "default"}}
        for number in range(3)
    ]
    for each in pods:
        each["spec"] |= {"resourceClaims": [device]}
    claims = [volume_claim(f"data-{number}") for number in range(3)]
    # The pool of both nodes has two slices; that of a new node has one.
    slices = gpus("n2", "n3", each=2)
    for each in slices[1:]:
        each["spec"]["pool"] = {"name": "all", "generation": 1, "resourceSliceCount": 2}
    cluster = written(tmp_path, storage_class(), template, *claims, *nodes, *slices, *pods, pod("old", "2", on="n3"))

    answer = reported("pending", "-f", cluster)
    counts = {each["change"]: each["placed"] for each in answer["changes"] if each["type"] in ("node", "nodes")}
    played = reported("nodes", "--add", "2", "--like", "n2", "-f", cluster)

    assert len(answer["placed"]) == 1
    assert counts == {"one more node like n2": 1, "2 more nodes like n2": 2}
    assert played["headline"].startswith(
        "adding plan-node-1, plan-node-2: 0 pods wait for a node at the end, 2 without"
    )
    limited = reported("nodes", "--add", "1", "--like", "n2", "-f", cluster)
    assert limited["headline"].startswith("adding plan-node-1: 1 pod waits for a node at the end, 2 without it")
    assert not any("would refuse" in caveat for caveat in limited["caveats"])


OF_ALL = gpus("all", each=1)[1]
"""A slice whose devices all nodes may use."""
OF_ALL["spec"] = {name: value for name, value in OF_ALL["spec"].items() if name != "nodeName"} | {"allNodes": True}


def waiting_for_devices(number: int) -> list[Raw]:
    """Return a node without devices, a class of them, and pods that want one each."""
    device = {"name": "gpu", "resourceClaimTemplateName": "one"}
    pods = [pod(f"train-{each}", resourceClaims=[device]) for each in range(number)]
    return [node("n1", "2"), gpus(each=0)[0], device_claim("ResourceClaimTemplate", "one"), *pods]


@pytest.mark.parametrize("number", [1, 2])
def test_new_nodes_of_files_have_the_devices_and_drivers_that_the_files_give_them(tmp_path: Path, number: int) -> None:
    cluster = written(tmp_path, *waiting_for_devices(3))
    new = written(tmp_path, *zonal_nodes(big="a"), gpus("big", each=1)[1], name="new.json")

    answer = reported("nodes", new, "--add", str(number), "-f", cluster)

    assert f"{3 - number} pod" in answer["headline"]
    assert not any("would refuse" in caveat for caveat in answer["caveats"])


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ([], "new.json: the CSINode or ResourceSlice of big needs a Node of that name beside it"),
        ([node("big"), pod("a")], "is a Pod, not a Node"),
        ([node("big"), OF_ALL], "the CSINode or ResourceSlice of no node needs a Node of that name beside it"),
    ],
)
def test_files_of_new_nodes_have_nothing_but_nodes_and_what_they_report(
    tmp_path: Path, nodes: list[Raw], problem: str
) -> None:
    cluster = written(tmp_path, node("n1"))
    new = written(tmp_path, *nodes, gpus("big", each=1)[1], name="new.json")

    assert problem in ask("nodes", new, "-f", cluster, code=1).output


def test_an_autoscaler_counts_on_the_devices_of_a_groups_nodes_and_removes_them_with_the_node(tmp_path: Path) -> None:
    """A node reports its devices and drivers when it starts; without them the group helps no pod."""
    group: Raw = {"name": "big", "max": 2, "startUp": "1m", "template": {"status": node("big", "8")["status"]}}
    group["reports"] = [gpus("some", each=3)[1], zonal_nodes(some="a")[1]]
    scale_down = {"unneededTime": "1m", "delayAfterAdd": "1m"}
    spec: Raw = {"autoscaler": {"nodeGroups": [group], "scaleDown": scale_down}, "until": "20m"}
    spec["steps"] = [{"at": "5m", "delete": {"kind": "Pod", "name": f"train-{each}"}} for each in range(3)]
    scenario = {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "spec": spec}
    cluster = written(tmp_path, *waiting_for_devices(3), scenario)

    result = CliRunner().invoke(command, ["simulate", "-f", cluster, "-o", "json"])

    assert result.exit_code == 0, result.output
    events = [(event["reason"], event["node"]) for event in json.loads(result.stdout)["events"]]
    assert events.count(("Scheduled", "big-0")) == 3
    assert [event for event in events if event[0] in ("NodeAdded", "NodeRemoved")] == [
        ("NodeAdded", "big-0"),
        ("NodeRemoved", "big-0"),
    ]


def test_a_report_of_a_node_group_that_belongs_to_no_node_is_refused(tmp_path: Path) -> None:
    group: Raw = {"name": "big", "max": 2, "template": {}, "reports": [pod("a")]}
    spec = {"autoscaler": {"nodeGroups": [group]}, "until": "20m"}
    cluster = written(tmp_path, {"apiVersion": "podium.dev/v1alpha1", "kind": "Scenario", "spec": spec})

    result = CliRunner().invoke(command, ["simulate", "-f", cluster])

    assert result.exit_code == 1
    assert ".spec.autoscaler.nodeGroups[0].reports[0]: is neither a CSINode nor a ResourceSlice" in result.output


def test_the_devices_of_victims_are_free_after_a_preemption(tmp_path: Path) -> None:
    """The preemptor wants CPU alone; its victims held both devices, one by a claim that no other pod names."""
    held = [device_claim("ResourceClaim", name) for name in ("one", "two")]
    victims = [
        pod(name, "2", on="n1", resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])
        for name, claim in (("a", "one"), ("b", "two"))
    ]
    for number, (claim, victim) in enumerate(zip(held, victims, strict=True)):
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": f"gpu-{number}"}
        user = {"resource": "pods", "name": victim["metadata"]["name"], "uid": victim["metadata"]["uid"]}
        claim["status"] = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]}
    template = device_claim("ResourceClaimTemplate", "each")
    asked = pod("new", "500m", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "each"}])
    del asked["metadata"]["uid"]
    preemptor = pod("high", "3", priority=1000)
    cluster = written(tmp_path, template, *held, *gpus("n1", each=2), node("n1", "4"), *victims, preemptor)
    file = written(tmp_path, asked, name="asked.json")

    assert reported("fit", file, "-f", cluster, "--after-pending")["fit"]["fits"] == 2
    assert reported("fit", file, "-f", cluster)["fit"]["fits"] == 0


def kept_claims(*zones: str) -> list[Raw]:
    """Return the bound claims of the StatefulSet's first pods, with volumes in these zones."""
    found: list[Raw] = []
    for number, zone in enumerate(zones):
        claim, term = volume_claim(f"data-db-{number}"), {"key": ZONE, "operator": "In", "values": [zone]}
        claim["metadata"] |= {"uid": f"claim-{number}", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        claim |= {"spec": {**claim["spec"], "volumeName": f"pv-{number}"}, "status": {"phase": "Bound"}}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
        reference = {"namespace": "default", "name": f"data-db-{number}", "uid": f"claim-{number}"}
        spec = {"claimRef": reference, "nodeAffinity": affinity, "csi": {"driver": DRIVER, "volumeHandle": str(number)}}
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{number}"}, "spec": spec}
        found += [claim, volume]
    return found


@pytest.mark.parametrize(("policy", "fits"), [("OrderedReady", 2), ("Parallel", 5)])
def test_pods_of_a_stateful_set_return_to_the_volumes_that_they_had(tmp_path: Path, policy: str, fits: int) -> None:
    """One pod runs; the volumes of the next three are in a zone with room for two pods, in which one more runs."""
    running = pod("db-0", on="n1", owner="db")
    running["metadata"]["ownerReferences"][0] |= {"kind": "StatefulSet", "uid": "uid-db"}
    stateful = stateful_set(1, storageClassName="late")
    stateful["spec"]["podManagementPolicy"] = policy
    asked = written(tmp_path, stateful, name="asked.json")
    known = {**stateful, "metadata": {**stateful["metadata"], "uid": "uid-db"}}
    base = [known, running, storage_class(), *zonal_nodes(n1="a", n2="b", n3="c")]
    cluster = written(tmp_path, *base, *kept_claims("a", "b", "b", "b"))

    found = reported("fit", "-f", cluster, asked)
    six = reported("fit", "-f", cluster, asked, "--replicas", "6", "--save", str(tmp_path / "saved.yaml"))

    assert found["fit"]["fits"] == fits
    assert found["shapes"][0]["like"] == "n2"
    assert six["headline"].startswith(f"{fits} of 6 of StatefulSet default/db get a node; limit: ")
    later = [each["pods"] for each in six["limits"] if each["why"] == "created after the one before them is ready"]
    assert later == ([3] if policy == "OrderedReady" else [])
    assert bound_in_simulation(str(tmp_path / "saved.yaml")) == fits
