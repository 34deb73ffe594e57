"""Pods of a served cluster wait for the objects that they name: Secrets, ConfigMaps and claims."""

from typing import Any

import pytest

from podium.testing import ControlPlane as Cluster
from tests.store.objects import Raw, pod

NODE = "node-1"


def placed(name: str, *, container: Raw | None = None, **spec: Any) -> Raw:
    """Return a pod on the node that no scheduler has placed."""
    raw = pod(name)
    raw["spec"] |= {"nodeName": NODE, "terminationGracePeriodSeconds": 1, **spec}
    raw["spec"]["containers"][0] |= container or {}
    return raw


def named(kind: str, name: str, **fields: Any) -> Raw:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **fields}


def volume(**source: Any) -> Raw:
    return {"volumes": [{"name": "v", **source}]}


def state(cluster: Cluster, name: str = "a") -> tuple[str, Raw]:
    """Return the phase of a pod, and what its container waits for; nothing if it runs."""
    status = (cluster.get("Pod", name) or {})["status"]
    [container] = status["containerStatuses"]
    return status["phase"], container["state"].get("waiting", {})


def warnings(cluster: Cluster) -> list[tuple[str, str]]:
    return [(raw["reason"], raw["message"]) for raw in cluster.objects("Event") if raw["type"] == "Warning"]


PROJECTED = {"projected": {"sources": [{"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}}]}}
IN_VOLUME = [
    (volume(secret={"secretName": "s"}), 'secret "s" not found'),
    (volume(configMap={"name": "s"}), 'configmap "s" not found'),
    (volume(**PROJECTED), 'secret "s" not found'),
]
SECRET, CONFIG = named("Secret", "s", data={"k": "eA=="}), named("ConfigMap", "s", data={"k": "x"})


@pytest.mark.parametrize(("spec", "problem"), IN_VOLUME)
def test_a_pod_waits_until_the_content_of_its_volume_exists(spec: Raw, problem: str) -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(placed("a", **spec))

        assert state(cluster) == ("Pending", {"reason": "ContainerCreating"})
        assert warnings(cluster) == [("FailedMount", f'MountVolume.SetUp failed for volume "v" : {problem}')]

        cluster.apply(CONFIG if "configmap" in problem else SECRET)

        assert state(cluster) == ("Running", {})


VARIABLES = [
    ({"envFrom": [{"configMapRef": {"name": "s"}}]}, 'configmap "s" not found', CONFIG),
    (
        {"env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
        'secret "s" not found',
        SECRET,
    ),
]


@pytest.mark.parametrize(("container", "problem", "content"), VARIABLES)
def test_a_container_waits_until_the_source_of_a_variable_exists(container: Raw, problem: str, content: Raw) -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(placed("a", container=container))

        assert state(cluster) == ("Pending", {"reason": "CreateContainerConfigError", "message": problem})
        assert warnings(cluster) == [("Failed", f"Error: {problem}")]

        cluster.apply(content)

        assert state(cluster) == ("Running", {})


def test_a_missing_key_is_named_until_it_is_added() -> None:
    variable = {"name": "V", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "other"}}}
    items = volume(configMap={"name": "s", "items": [{"key": "other", "path": "p"}]})
    with Cluster(nodes=1) as cluster:
        cluster.apply([CONFIG, placed("a", container={"env": [variable]}), placed("b", **items)])

        assert state(cluster)[1]["message"] == "couldn't find key other in ConfigMap default/s"
        assert state(cluster, "b") == ("Pending", {"reason": "ContainerCreating"})
        mount = 'MountVolume.SetUp failed for volume "v" : references non-existent config key: other'
        assert ("FailedMount", mount) in warnings(cluster)

        cluster.patch("ConfigMap", "s", {"data": {"other": "y"}})

        assert state(cluster) == state(cluster, "b") == ("Running", {})


def test_optional_references_are_not_waited_for() -> None:
    optional = {"name": "s", "optional": True}
    container = {"envFrom": [{"secretRef": optional}]}
    with Cluster(nodes=1) as cluster:
        cluster.apply([placed("a", container=container), placed("b", **volume(configMap=optional))])

        assert state(cluster) == state(cluster, "b") == ("Running", {})


def test_a_restarted_container_waits_for_variables_and_keeps_its_volumes() -> None:
    container = {"envFrom": [{"configMapRef": {"name": "s"}}]}
    crashing = placed("a", container=container, **volume(secret={"secretName": "s"}))
    crashing["metadata"]["annotations"] = {"podium.dev/crash-after": "10s"}
    with Cluster(nodes=1) as cluster:
        cluster.apply([SECRET, CONFIG, crashing])
        cluster.delete("Secret", "s")
        cluster.advance("15s")
        assert state(cluster) == ("Running", {})

        cluster.delete("ConfigMap", "s")
        cluster.advance("30s")

        phase, waiting = state(cluster)
        assert (phase, waiting["reason"]) == ("Running", "CreateContainerConfigError")


def test_a_waiting_pod_is_started_from_its_acceptance_on_and_ends_by_its_deadline() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(placed("a", activeDeadlineSeconds=60, **volume(secret={"secretName": "s"})))
        started = (cluster.get("Pod", "a") or {})["status"]["startTime"]
        assert started

        cluster.advance("61s")

        status = (cluster.get("Pod", "a") or {})["status"]
        assert (status["reason"], status["startTime"]) == ("DeadlineExceeded", started)


def test_a_waiting_pod_can_be_deleted_and_made_again() -> None:
    raw = placed("a", **volume(secret={"secretName": "s"}))
    with Cluster(nodes=1) as cluster:
        cluster.apply(raw)
        cluster.delete("Pod", "a")
        assert cluster.get("Pod", "a") is None

        cluster.apply(raw)
        cluster.apply(SECRET)

        assert state(cluster) == ("Running", {})


CLAIM = named(
    "PersistentVolumeClaim",
    "c",
    spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""},
)
VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "pv"},
    "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}},
}


def test_a_pod_that_bypasses_the_scheduler_waits_until_its_volume_claim_is_bound() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(placed("a", **volume(persistentVolumeClaim={"claimName": "c"})))
        assert 'persistentvolumeclaims "c" not found' in warnings(cluster)[-1][1]

        cluster.apply(CLAIM)
        assert state(cluster) == ("Pending", {"reason": "ContainerCreating"})
        assert warnings(cluster)[-1][1].endswith("error processing PVC default/c: PVC is not bound")

        cluster.apply(VOLUME)
        assert state(cluster) == ("Running", {})


DEVICE_CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}
RESULT = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}


def test_a_pod_that_bypasses_the_scheduler_waits_until_its_device_claim_is_reserved_for_it() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply(placed("a", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]))
        cluster.apply(DEVICE_CLAIM)
        assert state(cluster) == ("Pending", {"reason": "ContainerCreating"})
        reason, message = warnings(cluster)[-1]
        assert reason == "FailedPrepareDynamicResources"
        assert message.endswith("prepare dynamic resources: ResourceClaim gpu: claim not allocated")

        cluster.patch("ResourceClaim", "gpu", {"status": {"allocation": ALLOCATION}}, subresource="status")

        # The claim controller reserves it for a pod that has a node.
        uid = cluster.pods()[0]["metadata"]["uid"]
        reserved = (cluster.get("ResourceClaim", "gpu") or {})["status"]["reservedFor"]
        assert reserved == [{"resource": "pods", "name": "a", "uid": uid}]
        assert state(cluster) == ("Running", {})


def test_in_a_cluster_that_is_known_in_part_nothing_counts_as_missing() -> None:
    running = placed("old", **volume(secret={"secretName": "s"}))
    running["metadata"]["uid"], running["status"] = "1", {"phase": "Running"}
    with Cluster(nodes=1, objects=[running]) as cluster:
        cluster.apply(placed("a", **volume(secret={"secretName": "s"})))

        assert state(cluster) == ("Running", {})
