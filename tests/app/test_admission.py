"""Admission of pods from manifests before their placement is explained."""

from __future__ import annotations

from typing import Any

import pytest

import podium
from podium.api.errors import PodiumError

Raw = dict[str, Any]


def pod(name: str = "p", **spec: Any) -> Raw:
    containers = [{"name": "main", "image": "a"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def node(name: str, **labels: str) -> Raw:
    status = {"allocatable": {"cpu": 2, "memory": "4Gi", "pods": 10}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def reasons(*objects: Raw, key: str = "default/p") -> dict[str, Any]:
    found: dict[str, Any] = podium.explain([*objects], key).to_dict()["nodes"]
    return {name: status.get("reasons", []) for name, status in found.items()}


def test_a_pod_asks_for_what_the_limit_range_of_its_namespace_says() -> None:
    limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": 3}}]}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": limits}

    assert reasons(node("n"), pod()) == {"n": []}
    assert reasons(node("n"), limit_range, pod()) == {"n": ["Insufficient cpu"]}


def test_a_pod_beyond_a_limit_range_is_an_error() -> None:
    limits = {"limits": [{"type": "Pod", "max": {"cpu": 1}}]}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": limits}

    with pytest.raises(PodiumError, match=r"maximum cpu usage per Pod is 1.  No limit is specified"):
        reasons(node("n"), limit_range, pod())


def test_a_pod_takes_and_goes_where_its_runtime_class_says() -> None:
    scheduling = {"nodeSelector": {"kata": "yes"}}
    kata = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}
    kata |= {"overhead": {"podFixed": {"cpu": 3}}, "scheduling": scheduling}

    found = reasons(node("n", kata="yes"), node("m"), kata, pod(runtimeClassName="kata"))

    assert found["n"] == ["Insufficient cpu"]
    assert found["m"] == ["node(s) didn't match Pod's node affinity/selector"]


def test_selectors_with_label_keys_use_labels_of_placed_pods_never_stored_in_a_cluster() -> None:
    apart = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["version"],
        "topologyKey": "host",
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}

    def web(name: str, version: str, **spec: Any) -> Raw:
        raw = pod(name, affinity=affinity, **spec)
        return {**raw, "metadata": {"name": name, "labels": {"app": "web", "version": version}}}

    there = [node("n1", host="n1"), web("old", "1", nodeName="n1")]
    assert reasons(*there, web("p", "2")) == {"n1": []}
    assert reasons(*there, web("p", "1")) == {"n1": ["node(s) didn't match pod anti-affinity rules"]}


def test_a_claim_without_a_class_is_bound_as_the_default_class_says() -> None:
    mounting = pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}])
    made = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": made}
    default = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "disks",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["b"]}]}],
    }
    nodes = [node("n1", zone="a"), node("n2", zone="b")]
    no_volume = ["node(s) didn't find available persistent volumes to bind"]

    cluster = podium.load([*nodes, claim, mounting])
    assert cluster.explain("p").outcome == "unschedulable"
    with_class = cluster.with_(default)
    assert {name: list(found.reasons) for name, found in with_class.explain("p").nodes.items()} == {
        "n1": no_volume,
        "n2": [],
    }
    assert reasons(*nodes, default, claim, mounting) == {"n1": no_volume, "n2": []}


def test_on_the_network_of_the_node_ports_of_containers_are_ports_of_the_node() -> None:
    containers = [{"name": "main", "image": "a", "ports": [{"containerPort": 80}]}]
    placed = pod("placed", hostNetwork=True, containers=containers, nodeName="n")

    assert reasons(node("n"), placed, pod(hostNetwork=True, containers=containers)) == {
        "n": ["node(s) didn't have free ports for the requested pod ports"]
    }
    assert reasons(node("n"), placed, pod(containers=containers)) == {"n": []}


@pytest.mark.parametrize("ask", [lambda raw: podium.explain([node("n"), raw], "p"), lambda raw: podium.simulate([raw])])
def test_a_pod_without_containers_is_not_explained(ask: Any) -> None:
    with pytest.raises(PodiumError, match=r"Pod default/p, .spec.containers: Required value: a pod has at least one"):
        ask(pod(containers=[]))
    dumped = pod(containers=[])
    dumped["metadata"]["uid"] = "1"
    assert ask(dumped)
