"""Binding claims to volumes."""

from typing import Any

import pytest

from podium.machines.actions import BindClaim
from podium.sim.volumes import bind_claim
from podium.store.errors import StoreError
from podium.store.store import Store
from podium.store.stored import Stored
from tests.store.objects import Raw, node

DRIVER = "csi.example.com"


def claim(name: str = "data", **spec: Any) -> Raw:
    requests = {"resources": {"requests": {"storage": "5Gi"}}, "accessModes": ["ReadWriteOnce"]}
    metadata = {"name": name, "namespace": "default"}
    chosen = {"storageClassName": "fast", **requests, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": chosen}


def volume(**spec: Any) -> Raw:
    chosen = {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": chosen}


def storage_class() -> Raw:
    metadata = {"name": "fast"}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": DRIVER}


def csi_node(*topology_keys: str) -> Raw:
    drivers = [{"name": DRIVER, "nodeID": "x", "topologyKeys": list(topology_keys)}]
    metadata = {"name": "n1"}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def store_of(*objects: Raw) -> Store:
    store = Store()
    for raw in objects:
        store.create(raw, now=0)
    return store


def bound(store: Store, to: str, name: str = "data") -> Stored:
    """The claim after it was bound to a volume, "" for one to be provisioned, for a pod on n1."""
    uid = store.get("PersistentVolumeClaim", f"default/{name}").uid
    bind_claim(store, BindClaim(f"default/{name}", uid, to, "n1", "pod-uid"), now=0)
    return store.get("PersistentVolumeClaim", f"default/{name}")


def test_a_claim_and_its_volume_point_at_each_other() -> None:
    store = store_of(claim(), volume())

    found = bound(store, "disk")

    disk = store.get("PersistentVolume", "disk")
    assert found.raw["spec"]["volumeName"] == "disk"
    assert disk.raw["spec"]["claimRef"]["uid"] == found.uid
    assert found.raw["status"]["phase"] == disk.raw["status"]["phase"] == "Bound"


def test_a_volume_that_is_another_claims_is_refused() -> None:
    store = store_of(claim(), claim("other"), volume())
    bound(store, "disk", "other")

    with pytest.raises(StoreError) as caught:
        bound(store, "disk")

    assert caught.value.code == 409


def test_a_claim_that_was_replaced_by_a_namesake_is_refused() -> None:
    store = store_of(claim(), volume())

    with pytest.raises(StoreError) as caught:
        bind_claim(store, BindClaim("default/data", "someone-else", "disk", "n1", "pod-uid"), now=0)

    assert caught.value.code == 409
    assert "claimRef" not in store.get("PersistentVolume", "disk").raw["spec"]


def test_a_volume_is_provisioned_as_the_claim_wants_it_where_the_node_is() -> None:
    store = store_of(claim(), storage_class(), node("n1", zone="a", other="x"), csi_node("zone", "absent"))

    name = bound(store, "").raw["spec"]["volumeName"]

    spec = store.get("PersistentVolume", name).raw["spec"]
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "zone", "operator": "In", "values": ["a"]}]
    assert (spec["capacity"], spec["storageClassName"]) == ({"storage": "5Gi"}, "fast")
    assert spec["csi"]["driver"] == DRIVER


def test_a_driver_without_topology_provisions_for_every_node() -> None:
    store = store_of(claim(), storage_class(), node("n1", zone="a"), csi_node())

    name = bound(store, "").raw["spec"]["volumeName"]

    assert "nodeAffinity" not in store.get("PersistentVolume", name).raw["spec"]


def test_a_bound_claim_is_marked_so_that_schedulers_take_it_for_bound() -> None:
    """A pod whose own binding failed after that is scheduled again."""
    found = bound(store_of(claim(), volume()), "disk")

    assert found.object.metadata.annotations == {"pv.kubernetes.io/bind-completed": "yes"}


def test_a_bound_claim_is_not_bound_to_another_volume() -> None:
    other = {**volume(), "metadata": {"name": "other"}}
    store = store_of(claim(), volume(), other)
    bound(store, "disk")

    with pytest.raises(StoreError, match="is bound to volume disk"):
        bound(store, "other")

    assert bound(store, "disk").raw["spec"]["volumeName"] == "disk"
