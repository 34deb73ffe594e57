"""What `kubectl top` reads."""

from __future__ import annotations

import msgspec

from podium.api.node import Node
from podium.api.pod import Pod
from podium.server.metrics import node_metrics_list, pod_metrics_list
from tests.store.objects import HOUR, Raw, node, pod

NOW = 500_000 * HOUR


def running(name: str, *containers: Raw, on: str = "n1", phase: str = "Running", **annotations: str) -> Pod:
    raw = pod(name, node=on, annotations=annotations, spec={"containers": list(containers)}, status={"phase": phase})
    return msgspec.convert({**raw, "spec": {**raw["spec"], "nodeName": on}}, Pod)


def container(name: str, cpu: str, memory: str) -> Raw:
    return {"name": name, "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def test_containers_use_what_they_request() -> None:
    found = pod_metrics_list([running("a", container("x", "1", "1Mi"), container("y", "500m", "2Mi"))], NOW)
    assert found["kind"] == "PodMetricsList"
    (item,) = found["items"]
    assert item["metadata"]["name"] == "a"
    assert item["containers"] == [
        {"name": "x", "usage": {"cpu": "1000m", "memory": "1024Ki"}},
        {"name": "y", "usage": {"cpu": "500m", "memory": "2048Ki"}},
    ]


def test_a_pod_that_says_what_it_uses_uses_that() -> None:
    said = running("a", container("x", "1", "1Mi"), container("y", "1", "1Mi"), **{"podium.dev/memory-usage": "5Mi"})
    usages = [one["usage"]["memory"] for one in pod_metrics_list([said], NOW)["items"][0]["containers"]]
    assert usages == ["5120Ki", "0Ki"]


def test_what_does_not_run_uses_nothing() -> None:
    pods = [running("a", phase="Pending"), running("b", on=""), running("c", phase="Succeeded")]
    assert pod_metrics_list(pods, NOW)["items"] == []


def test_a_node_uses_what_its_pods_use() -> None:
    nodes = [msgspec.convert(node(name), Node) for name in ("n1", "n2")]
    pods = [running("a", container("x", "1", "1Mi")), running("b", container("x", "250m", "1Mi"))]
    usages = [one["usage"] for one in node_metrics_list(nodes, pods, NOW)["items"]]
    assert usages == [{"cpu": "1250m", "memory": "2048Ki"}, {"cpu": "0m", "memory": "0Ki"}]
