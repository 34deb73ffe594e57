"""The metrics that `kubectl top` reads."""

from __future__ import annotations

from podium.server.kubernetes_documents import resource_metrics
from tests.server.serving import LocalBackend
from tests.store.objects import Raw, node, pod


def running(name: str, *containers: Raw, on: str = "n1", phase: str = "Running", **annotations: str) -> Raw:
    spec = {"containers": list(containers) or [container("x", "1", "1Mi")]}
    return pod(name, node=on, annotations=annotations, spec=spec, status={"phase": phase})


def container(name: str, cpu: str, memory: str) -> Raw:
    return {"name": name, "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def listed(objects: list[Raw], kind: str = "pods") -> Raw:
    """Return the metrics of pods or nodes; a node that is not given offers enough."""
    found = resource_metrics(LocalBackend(*objects), [kind], [])
    assert found is not None
    return found


def test_containers_use_what_they_request() -> None:
    found = listed([running("a", container("x", "1", "1Mi"), container("y", "500m", "2Mi"))])
    assert found["kind"] == "PodMetricsList"
    (item,) = found["items"]
    assert item["metadata"]["name"] == "a"
    assert item["containers"] == [
        {"name": "x", "usage": {"cpu": "1000m", "memory": "1024Ki"}},
        {"name": "y", "usage": {"cpu": "500m", "memory": "2048Ki"}},
    ]


def test_a_limit_stands_in_for_a_request_that_is_left_open() -> None:
    limited = {"name": "x", "image": "app:1", "resources": {"limits": {"cpu": "1", "memory": "1Mi"}}}
    (item,) = listed([running("a", limited)])["items"]
    assert item["containers"] == [{"name": "x", "usage": {"cpu": "1000m", "memory": "1024Ki"}}]


def test_a_pod_that_says_what_it_uses_uses_that() -> None:
    said = running("a", container("x", "1", "1Mi"), container("y", "1", "1Mi"), **{"podium.dev/memory-usage": "5Mi"})
    usages = [one["usage"]["memory"] for one in listed([said])["items"][0]["containers"]]
    assert usages == ["5120Ki", "0Ki"]


def test_pods_that_do_not_run_have_no_metrics() -> None:
    pods = [running("a", phase="Pending"), running("b", on=""), running("c", phase="Succeeded")]
    assert listed(pods)["items"] == []


def test_a_node_uses_what_its_pods_use() -> None:
    nodes = [node(name) for name in ("n1", "n2")]
    pods = [running("a", container("x", "1", "1Mi")), running("b", container("x", "250m", "1Mi"))]
    usages = [one["usage"] for one in listed([*nodes, *pods], "nodes")["items"]]
    assert usages == [{"cpu": "1250m", "memory": "2048Ki"}, {"cpu": "0m", "memory": "0Ki"}]


def test_cpu_that_a_pod_says_it_uses_its_first_container_does() -> None:
    said = running("a", container("x", "1", "1Mi"), container("y", "1", "1Mi"), **{"podium.dev/cpu-usage": "3"})
    usages = [each["usage"]["cpu"] for each in listed([said])["items"][0]["containers"]]
    assert usages == ["3000m", "0m"]


def test_all_pods_of_a_node_use_no_more_cpu_than_it_offers() -> None:
    raw = node("n1")
    raw["status"]["allocatable"]["cpu"] = "4"
    pods = [
        running("hog", container("x", "1", "1Mi"), **{"podium.dev/cpu-usage": "8"}),
        running("web", container("x", "1", "1Mi"), **{"podium.dev/cpu-usage": "8"}),
        running("small", container("x", "500m", "1Mi"), container("y", "500m", "1Mi")),
    ]
    usages = [[each["usage"]["cpu"] for each in item["containers"]] for item in listed([raw, *pods])["items"]]
    assert usages == [["1500m"], ["500m", "500m"], ["1500m"]]
    assert listed([raw, *pods], "nodes")["items"][0]["usage"]["cpu"] == "4000m"


def test_unreadable_usage_annotations_are_ignored() -> None:
    said = running("a", container("x", "1", "1Mi"), **{"podium.dev/cpu-usage": "lots", "podium.dev/memory-usage": "-1"})
    assert listed([said])["items"][0]["containers"][0]["usage"] == {"cpu": "1000m", "memory": "1024Ki"}
