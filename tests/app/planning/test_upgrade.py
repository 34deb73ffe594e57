"""`podium plan upgrade`: what another Kubernetes version of the control plane changes."""

from __future__ import annotations

from pathlib import Path

import pytest

import podium
from podium.api.errors import InputError
from tests.app.planning.small import Raw, ask, node, pod, told, written


def small(folder: Path) -> str:
    """A pod whose pod-level request is too large for the only node, and one that fits nowhere in any version."""
    large = pod("large", "1", resources={"requests": {"cpu": "9"}})
    return written(folder, node("a"), large, pod("picky", "1", nodeSelector={"disk": "ssd"}))


def test_pods_that_would_wait_are_named_with_the_fields_that_begin_to_count(tmp_path: Path) -> None:
    answer = told("-f", small(tmp_path), "upgrade", "--to", "1.34", "--kubernetes-version", "1.33")

    assert answer["headline"].startswith("v1.34.9 in place of v1.33.13: 1 pod would wait")
    (waits,) = [each for each in answer["pods"] if each["effect"] == "waits"]
    assert waits["pod"] == "default/large"
    assert "Insufficient cpu" in waits["what"]
    (field,) = answer["fields"]
    assert (field["what"], field["objects"]) == ("pods' spec.resources", ["default/large"])
    assert {"name": "PodLevelResources", "what": "off -> on"} in answer["behaviors"]


def test_a_downgrade_shows_the_same_the_other_way_around(tmp_path: Path) -> None:
    answer = told("-f", small(tmp_path), "upgrade", "--to", "1.33", "--kubernetes-version", "1.34")

    assert [each["effect"] for each in answer["pods"] if each["pod"] == "default/large"] == ["runs"]
    assert "no longer counts" in answer["fields"][0]["effect"]


def test_a_pod_that_does_not_run_any_more_fails_the_command(tmp_path: Path) -> None:
    question = ("upgrade", "--to", "1.34", "--kubernetes-version", "1.33", "--fail-on", "unschedulable")

    machine: Raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    machine["status"] = {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}
    spec = {"resources": {"requests": {"cpu": "3"}}, "containers": [{"name": "a", "image": "a"}]}
    large = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large"}, "spec": spec}

    ask("-f", written(tmp_path, machine, large), *question, code=2)


def test_gates_that_the_new_version_does_not_know_go_away() -> None:
    objects: list[Raw] = [node("a"), pod("p", "1")]
    cluster = podium.load(objects, kubernetes_version="1.31", feature_gates="PodHostIPs=true")

    answer = cluster.plan().upgrade("1.36")

    assert answer.to_dict()["gates"] == ["PodHostIPs"]


def test_the_version_that_the_cluster_has_is_an_error() -> None:
    with pytest.raises(InputError, match=r"has version v1\.36\.2 already"):
        podium.load([node("a")], kubernetes_version="1.36").plan().upgrade("1.36.2")
