"""Volumes, claims and groups of pods that are in use outlive their deletion."""

from typing import Any

from podium.testing import ControlPlane as Cluster
from tests.store.objects import Raw, node, pod

STORAGE = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "hostPath": {"path": "/data"}}
ASKED = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}


def volume(name: str = "disk", **metadata: Any) -> Raw:
    spec = {**STORAGE, "capacity": {"storage": "1Gi"}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, **metadata}, "spec": spec}


def claim(name: str = "data", **metadata: Any) -> Raw:
    metadata |= {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": ASKED}


def user(name: str, claim_name: str = "data") -> Raw:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, spec={"volumes": volumes, "terminationGracePeriodSeconds": 1})


def finalizers(cluster: Cluster, kind: str, name: str) -> list[str] | None:
    """Return the finalizers of an object, None if it is gone."""
    found = cluster.get(kind, name)
    return None if found is None else found["metadata"].get("finalizers", [])


def test_new_claims_and_volumes_are_protected_at_once() -> None:
    with Cluster(nodes=1) as cluster:
        [made] = cluster.apply(claim(finalizers=["example.com/a"]))
        [disk] = cluster.apply(volume())

        assert made["metadata"]["finalizers"] == ["example.com/a", "kubernetes.io/pvc-protection"]
        assert disk["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


def test_a_deleted_claim_stays_while_a_pod_with_a_node_uses_it() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply([volume(), claim(), user("first"), user("second")])
        cluster.delete("PersistentVolumeClaim", "data")
        cluster.delete("Pod", "first")
        cluster.advance("1m")
        assert finalizers(cluster, "PersistentVolumeClaim", "data") == ["kubernetes.io/pvc-protection"]

        cluster.delete("Pod", "second")
        cluster.advance("1m")

        assert finalizers(cluster, "PersistentVolumeClaim", "data") is None


def test_a_pod_that_has_ended_keeps_no_claim_of_an_ephemeral_volume() -> None:
    volumes = [{"name": "cache", "ephemeral": {"volumeClaimTemplate": {"spec": ASKED}}}]
    spec = {"volumes": volumes, "terminationGracePeriodSeconds": 1}
    with Cluster(nodes=1) as cluster:
        cluster.apply([volume(), pod("a", spec=spec, metadata={"finalizers": ["example.com/kept"]})])
        cluster.advance("1m")
        cluster.delete("PersistentVolumeClaim", "a-cache")
        cluster.advance("1m")
        assert finalizers(cluster, "PersistentVolumeClaim", "a-cache") == ["kubernetes.io/pvc-protection"]

        cluster.delete("Pod", "a")
        cluster.advance("1m")

        assert finalizers(cluster, "PersistentVolumeClaim", "a-cache") is None
        assert finalizers(cluster, "Pod", "a") == ["example.com/kept"]


def test_a_pod_without_a_node_and_one_of_another_claim_do_not_keep_a_claim() -> None:
    with Cluster(nodes=1, without=["scheduler"]) as cluster:
        cluster.apply([claim(), user("waiting"), user("other", "else")])

        cluster.delete("PersistentVolumeClaim", "data")
        cluster.advance("1s")

        assert finalizers(cluster, "PersistentVolumeClaim", "data") is None


def test_a_deleted_volume_stays_while_it_is_bound() -> None:
    with Cluster(nodes=1) as cluster:
        cluster.apply([volume(), claim()])
        assert cluster.objects("PersistentVolume")[0]["status"]["phase"] == "Bound"
        cluster.delete("PersistentVolume", "disk")
        cluster.advance("1m")
        assert finalizers(cluster, "PersistentVolume", "disk") == ["kubernetes.io/pv-protection"]

        cluster.delete("PersistentVolumeClaim", "data")
        cluster.advance("1m")

        assert finalizers(cluster, "PersistentVolume", "disk") is None


def test_objects_from_files_are_protected_too() -> None:
    with Cluster(objects=[node("n1"), claim(), volume()]) as cluster:
        cluster.advance("1s")

        assert finalizers(cluster, "PersistentVolumeClaim", "data") == ["kubernetes.io/pvc-protection"]
        assert finalizers(cluster, "PersistentVolume", "disk") == ["kubernetes.io/pv-protection"]


def test_without_its_controller_the_finalizer_stays() -> None:
    with Cluster(nodes=1, without=["persistentvolumeclaim-protection-controller"]) as cluster:
        cluster.apply(claim())
        cluster.delete("PersistentVolumeClaim", "data")
        cluster.advance("1m")

        assert finalizers(cluster, "PersistentVolumeClaim", "data") == ["kubernetes.io/pvc-protection"]


GROUP: Raw = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "g"}}


def member(name: str, **more: Any) -> Raw:
    spec = {"schedulingGroup": {"podGroupName": "g"}, "terminationGracePeriodSeconds": 1, "restartPolicy": "Never"}
    return pod(name, spec=spec, **more)


def test_a_deleted_group_stays_while_pods_that_have_not_ended_refer_to_it() -> None:
    with Cluster(nodes=1) as cluster:
        [made] = cluster.apply({**GROUP, "spec": {"schedulingPolicy": {"basic": {}}}})
        assert made["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
        cluster.apply([member("stays"), member("ends", metadata={"annotations": {"podium.dev/duration": "5s"}})])
        cluster.delete("PodGroup", "g")
        cluster.advance("1m")
        assert cluster.get("Pod", "ends")["status"]["phase"] == "Succeeded"  # type: ignore[index]
        assert finalizers(cluster, "PodGroup", "g") == made["metadata"]["finalizers"]

        cluster.delete("Pod", "stays")
        cluster.advance("1m")

        assert finalizers(cluster, "PodGroup", "g") is None
