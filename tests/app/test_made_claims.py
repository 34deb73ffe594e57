"""Claims that controllers create for pods of manifests, in explanations and plans."""

from __future__ import annotations

from typing import Any

import podium
from podium.app.explaining.explanation import Explanation
from podium.app.explaining.workload import WorkloadExplanation
from tests.devices import claim, claim_template, device, device_class, devices_of, request, using
from tests.store.objects import Raw, node, pod

DISKS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "disks"},
    "provisioner": "disks",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def gpus(nodes: int, each: int) -> list[Raw]:
    """Nodes with so many devices each, their class, and a template of claims for one."""
    found = [device_class(), claim_template("one")]
    for number in range(nodes):
        devices = (device(f"gpu-{one}") for one in range(each))
        found += [node(f"n{number}"), devices_of(f"n{number}", *devices)]
    return found


def wants(name: str, **metadata: Any) -> Raw:
    raw = using(pod(name), template="one")
    return {**raw, "metadata": {**raw["metadata"], **metadata}}


def mounts(name: str, **metadata: Any) -> Raw:
    """Return a pod with a volume of its own."""
    asked = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disks",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    own = {"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": {**asked, "storageClassName": "disks"}}}}
    raw = pod(name, spec={"volumes": [own]})
    return {**raw, "metadata": {**raw["metadata"], **metadata}}


def deployment(made: Raw, replicas: int = 1) -> Raw:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": made["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def claims_of(explanation: Explanation) -> list[str]:
    """Return the names of the claims that get devices."""
    return [claim.metadata.name for claim, _ in explanation.devices.claims["n0"]]


def test_a_pod_of_a_manifest_has_the_claims_that_its_templates_make() -> None:
    found = podium.explain([*gpus(1, 1), wants("p")], "p")

    assert found.outcome == "schedulable"
    assert claims_of(found) == ["p-gpu-1"]
    ((_, allocation),) = found.devices.claims["n0"]
    assert [one.device for one in allocation.devices.results] == ["gpu-0"]


def test_a_pod_of_a_cluster_has_the_claims_that_are_there() -> None:
    assert podium.explain([*gpus(1, 1), wants("p", uid="1")], "p").outcome == "gated"
    waiting = podium.explain([node("n0"), DISKS, mounts("p", uid="1")], "p")
    assert (waiting.outcome, dict(waiting.nodes)) == ("unschedulable", {})


def test_pods_that_wait_for_their_claims_have_one_cause() -> None:
    waiting = [wants("p", uid="1"), wants("q", uid="2")]

    causes = podium.load([*gpus(1, 1), *waiting]).plan().pending().to_dict()["causes"]

    assert [(each["cause"], each["pods"]) for each in causes] == [("ResourceClaim not created yet", 2)]


def test_without_its_template_a_claim_is_not_made() -> None:
    assert podium.explain([device_class(), node("n0"), wants("p")], "p").outcome == "gated"


def test_a_claim_of_another_pod_keeps_its_name() -> None:
    taken = claim("p-gpu-1", request(count=5))
    found = podium.explain([*gpus(1, 1), taken, wants("p")], "p")

    assert claims_of(found) == ["p-gpu-2"]


def test_a_pod_of_a_manifest_has_the_claims_of_its_own_volumes() -> None:
    assert podium.explain([node("n0"), DISKS, mounts("p")], "p").outcome == "schedulable"


def test_the_next_pod_of_a_workload_has_its_claims() -> None:
    for found in ([*gpus(1, 1), deployment(wants("p"))], [node("n0"), DISKS, deployment(mounts("p"))]):
        answer = podium.load(found).ask("deploy/web")
        assert isinstance(answer, WorkloadExplanation)
        assert answer.explanation.outcome == "schedulable"


def test_claims_go_with_their_pods_from_a_changed_copy() -> None:
    cluster = podium.load([*gpus(8, 1), wants("p"), wants("q")])
    assert cluster.explain("p").outcome == "schedulable"

    other = cluster.with_(wants("p-gpu"), without=["pod/p"])

    found = other.explain("p-gpu")
    assert claims_of(found) == ["p-gpu-gpu-1"]
    again = other.with_(wants("p"), without=["pod/p-gpu"]).explain("p")
    assert claims_of(again) == ["p-gpu-1"]


def test_manifest_claims_without_uid_are_distinguished() -> None:
    claims = [claim("a"), claim("b")]
    for raw in claims:
        del raw["metadata"]["uid"]
    users = [using(pod("pa"), "a"), using(pod("pb"), "b")]

    answer = podium.load([*gpus(1, 2), *claims, *users]).plan().pending()

    assert answer.headline == "all 2 pending pods get a node without a change"


def test_each_pod_that_is_to_fit_has_claims_of_its_own() -> None:
    plan = podium.load(gpus(2, 3)).plan()

    assert plan.fit(wants("p")).headline.startswith("6 of Pod default/p fit, on 2 of 2 nodes")
    assert plan.fit(wants("p"), replicas=7).headline.startswith("6 of 7 of Pod default/p get a node")
    assert plan.fit(deployment(wants("p"), 4)).headline.startswith("6 of Deployment default/web fit")


def test_each_pod_that_is_to_fit_has_volumes_of_its_own() -> None:
    driver = {"name": "disks", "nodeID": "n0", "topologyKeys": [], "allocatable": {"count": 3}}
    limited = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n0"},
        "spec": {"drivers": [driver]},
    }
    plan = podium.load([node("n0"), DISKS, limited]).plan()

    assert plan.fit(mounts("p")).headline.startswith("3 of Pod default/p fit")
