"""`podium plan upgrade`: what another Kubernetes version of the control plane changes."""

from __future__ import annotations

from pathlib import Path

import pytest

import podium
from podium.api.errors import InputError
from tests.app.planning.small import Raw, ask, node, pod, reported, written


def small(folder: Path) -> str:
    """Return a pod whose pod-level request is too large for the only node, and one that fits nowhere in any version."""
    large = pod("large", "1", resources={"requests": {"cpu": "9"}})
    return written(folder, node("a"), large, pod("picky", "1", nodeSelector={"disk": "ssd"}))


def test_pods_that_would_wait_are_named_with_the_fields_that_begin_to_count(tmp_path: Path) -> None:
    answer = reported("upgrade", "-f", small(tmp_path), "--to", "1.34", "--kubernetes-version", "1.33")

    assert answer["headline"].startswith("v1.34.9 in place of v1.33.13: 1 pod would wait")
    (waits,) = [each for each in answer["pods"] if each["effect"] == "waits"]
    assert waits["pod"] == "default/large"
    assert "Insufficient cpu" in waits["what"]
    (field,) = answer["fields"]
    assert (field["what"], field["objects"]) == ("Pod spec.resources", ["default/large"])
    assert {"name": "PodLevelResources", "what": "off -> on"} in answer["behaviors"]


def test_a_downgrade_shows_the_same_the_other_way_around(tmp_path: Path) -> None:
    answer = reported("upgrade", "-f", small(tmp_path), "--to", "1.33", "--kubernetes-version", "1.34")

    assert [each["effect"] for each in answer["pods"] if each["pod"] == "default/large"] == ["runs"]
    assert "no longer counts" in answer["fields"][0]["effect"]
    # What the older version does says little without what the newer one does.
    changes = [each["what"] for each in answer["behaviors"] if each["name"] == "scheduling queue"]
    assert changes == [
        "the backoff of a pod doubles with each rejection, or with each error in a row -> it doubles with each attempt"
    ]


def test_the_headline_counts_workloads_that_lose_pods_of_other_names(tmp_path: Path) -> None:
    """Claims that one of the versions makes for pods change the names of later pods."""
    meta = {"name": "gpu", "namespace": "default"}
    claim: Raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta}
    claim["spec"] = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}
    spec = {
        "containers": [{"name": "a", "image": "a"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    owners: list[Raw] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"}}
        for name in ("api", "web")
    ]
    for owner in owners:
        labels = {"app": owner["metadata"]["name"]}
        template = {"metadata": {"labels": labels}, "spec": spec}
        owner["spec"] = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    cluster = written(tmp_path, node("a"), claim, *owners)

    answer = reported("upgrade", "-f", cluster, "--to", "1.34", "--kubernetes-version", "1.33")

    assert answer["pods"] == []
    assert "2 workloads lose (4 ready pods), " in answer["headline"]


def test_a_pod_that_does_not_run_any_more_fails_the_command(tmp_path: Path) -> None:
    question = ("upgrade", "--to", "1.34", "--kubernetes-version", "1.33", "--fail-on", "unschedulable")

    machine: Raw = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    machine["status"] = {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}
    spec = {"resources": {"requests": {"cpu": "3"}}, "containers": [{"name": "a", "image": "a"}]}
    large = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large"}, "spec": spec}

    ask(*question, "-f", written(tmp_path, machine, large), code=2)


def test_gates_that_the_new_version_does_not_know_go_away() -> None:
    objects: list[Raw] = [node("a"), pod("p", "1")]
    cluster = podium.load(objects, kubernetes_version="1.31", feature_gates="PodHostIPs=true")

    answer = cluster.plan().upgrade("1.36")

    assert answer.to_dict()["gates"] == ["PodHostIPs"]


def test_the_version_that_the_cluster_has_is_an_error() -> None:
    with pytest.raises(InputError, match=r"has version v1\.36\.2 already"):
        podium.load([node("a")], kubernetes_version="1.36").plan().upgrade("1.36.2")


@pytest.mark.parametrize(
    ("before", "to", "kind", "api", "names"),
    [
        ("1.31", "1.33", "FlowSchema", "flowcontrol.apiserver.k8s.io/v1beta3", ["FlowSchema"]),
        ("1.36", "1.37", "PodGroup", "scheduling.k8s.io/v1alpha2", ["default/a"]),
    ],
)
def test_api_versions_that_stop_being_served_are_named(
    tmp_path: Path, before: str, to: str, kind: str, api: str, names: list[str]
) -> None:
    old: Raw = {"apiVersion": api, "kind": kind, "metadata": {"name": "a"}}
    if kind == "PodGroup":
        old["spec"] = {"schedulingPolicy": {"basic": {}}}

    answer = reported("upgrade", "-f", written(tmp_path, node("a"), old), "--to", to, "--kubernetes-version", before)

    assert answer["fields"] == [{"what": api, "effect": "is not served: 1 object", "objects": names}]
    assert "1 API in use is served in one version only" in answer["headline"]


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1", "v1beta2"])
def test_older_versions_of_claims_are_named_as_they_were_written(tmp_path: Path, version: str) -> None:
    old: Raw = {"apiVersion": f"resource.k8s.io/{version}", "kind": "DeviceClass", "metadata": {"name": "a"}}

    answer = reported(
        "upgrade", "-f", written(tmp_path, node("a"), old), "--to", "1.34", "--kubernetes-version", "1.33"
    )

    gone = {"what": f"resource.k8s.io/{version}", "effect": "is not served: 1 object", "objects": ["a"]}
    assert gone in answer["fields"]


def test_fields_and_kinds_of_devices_begin_to_count(tmp_path: Path) -> None:
    claim: Raw = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    user = pod("user", "1", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    file = written(tmp_path, node("a"), claim | {"spec": {}}, user)

    answer = reported("upgrade", "-f", file, "--to", "1.34", "--kubernetes-version", "1.33")

    assert {(each["what"], each["effect"]) for each in answer["fields"]} == {
        ("ResourceClaim", "is served: 1 object"),
        ("Pod spec.resourceClaims", "begins to count: 1 object"),
    }


def test_a_status_that_another_version_writes_otherwise_is_no_field_in_use(tmp_path: Path) -> None:
    running = pod("a", "1", on="a") | {"status": {"phase": "Running", "observedGeneration": 1}}
    machine = node("a")
    machine["status"] |= {"declaredFeatures": ["GuaranteedQoSPodCPUResize"]}

    answer = reported(
        "upgrade", "-f", written(tmp_path, machine, running), "--to", "1.33", "--kubernetes-version", "1.36"
    )

    assert [each["what"] for each in answer["fields"]] == ["Node status.declaredFeatures"]


def test_the_picture_shows_both_versions_and_names_what_differs(tmp_path: Path) -> None:
    arguments = ("upgrade", "-f", small(tmp_path), "--to", "1.34", "--kubernetes-version", "1.33")

    page = ask(*arguments, "-o", "html").stdout

    assert "v1.33.13" in page
    assert "1 pod would wait" in page
    assert "Pod spec.resources" in page


def test_messages_that_alerts_match_on_are_shown_before_and_after(tmp_path: Path) -> None:
    answer = reported("upgrade", "-f", small(tmp_path), "--to", "1.34", "--kubernetes-version", "1.33")

    (message,) = [each["what"] for each in answer["pods"] if each["effect"] == "message"]
    before, _, after = message.partition(" -> ")
    assert "didn't match Pod's node affinity/selector. preemption" in before
    assert "no new claims to deallocate" in after
