"""The persistent volume controller completes the bindings that schedulers begin."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.storage import PersistentVolume
from podium.apirequests.actions import carry_out
from podium.apirequests.observations import first_seen
from podium.apirequests.router import Router
from podium.controllers.actions import BindClaim, CreateObject, PatchObject
from podium.controllers.observations import ActionFinished, Problem, Tick
from podium.controllers.volumes import PersistentVolumes
from podium.store.stored import Stored
from tests.controllers.store_rig import CONFLICT, NO_ANSWER, UNAVAILABLE, Rig
from tests.store.objects import Raw, node

DRIVER = "csi.example.com"


def claim(name: str = "data", **spec: Any) -> Raw:
    requests = {"resources": {"requests": {"storage": "5Gi"}}, "accessModes": ["ReadWriteOnce"]}
    metadata = {"name": name, "namespace": "default"}
    chosen = {"storageClassName": "fast", **requests, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": chosen}


def volume(name: str = "disk", **spec: Any) -> Raw:
    chosen = {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": chosen}


def storage_class(provisioner: str = DRIVER) -> Raw:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    return {**kind, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}


def csi_node(*topology_keys: str) -> Raw:
    drivers = [{"name": DRIVER, "nodeID": "x", "topologyKeys": list(topology_keys)}]
    metadata = {"name": "n1"}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


class Volumes(Rig):
    """A cluster with the controller; a scheduler's part is played by the test."""

    def __init__(self, *objects: Raw) -> None:
        super().__init__(PersistentVolumes, *objects)

    def ask(self, to: str, name: str = "data", *, uid: str = "") -> Problem | None:
        """Let a scheduler bind the claim to a volume, or ("") request one for n1."""
        uid = uid or self.claim(name).uid
        action = BindClaim(f"default/{name}", uid, to, "n1", "pod-uid")
        return carry_out(Router(self.store).answer, action, self.now).problem

    def bind(self, to: str, name: str = "data") -> Stored:
        """Return the claim after all that."""
        assert self.ask(to, name) is None
        self.settle()
        return self.claim(name)

    def claim(self, name: str = "data") -> Stored:
        return self.store.get("PersistentVolumeClaim", f"default/{name}")

    def volume(self, name: str) -> Stored:
        return self.store.get("PersistentVolume", name)


def test_a_scheduler_names_the_claim_in_the_volume_and_no_more() -> None:
    rig = Volumes(claim(), volume())

    assert rig.ask("disk") is None

    disk = rig.volume("disk").raw
    assert disk["spec"]["claimRef"]["uid"] == rig.claim().uid
    assert disk["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert "volumeName" not in rig.claim().raw["spec"]


def test_a_scheduler_names_the_node_in_a_claim_without_a_volume() -> None:
    rig = Volumes(claim())

    assert rig.ask("") is None

    assert rig.claim().object.metadata.annotations == {"volume.kubernetes.io/selected-node": "n1"}


def test_a_claim_and_its_volume_point_at_each_other() -> None:
    rig = Volumes(claim(), volume())

    found = rig.bind("disk")

    disk = rig.volume("disk")
    assert found.raw["spec"]["volumeName"] == "disk"
    assert disk.raw["spec"]["claimRef"]["uid"] == found.uid
    assert found.raw["status"]["phase"] == disk.raw["status"]["phase"] == "Bound"
    assert found.raw["status"]["capacity"] == {"storage": "10Gi"}


def test_a_bound_claim_has_the_attributes_class_of_its_volume() -> None:
    found = Volumes(claim(), volume(volumeAttributesClassName="gold")).bind("disk")
    assert found.raw["status"]["currentVolumeAttributesClassName"] == "gold"


def test_a_bound_claim_is_marked_so_that_schedulers_take_it_for_bound() -> None:
    found = Volumes(claim(), volume()).bind("disk")

    assert found.object.metadata.annotations == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }


def test_a_bound_claim_is_left_alone() -> None:
    rig = Volumes(claim(), volume())
    rig.bind("disk")
    version = rig.store.version

    rig.restart()
    rig.settle()

    assert rig.store.version == version


@pytest.mark.parametrize("to", ["disk", ""])
def test_the_same_is_asked_for_twice_without_effect(to: str) -> None:
    rig = Volumes(claim(), volume())
    rig.ask(to)
    version = rig.store.version

    assert rig.ask(to) is None
    assert rig.store.version == version


def test_a_volume_that_is_another_claims_is_refused() -> None:
    rig = Volumes(claim(), claim("other"), volume())
    rig.ask("disk", "other")

    problem = rig.ask("disk")

    assert problem is not None
    assert problem.code == 409


def test_a_volume_reserved_by_a_user_for_a_claim_name_is_bound_to_it() -> None:
    rig = Volumes(claim(), claim("other"), volume(claimRef={"namespace": "default", "name": "data"}))

    problem = rig.ask("disk", "other")
    found = rig.bind("disk")

    assert problem is not None
    assert found.raw["spec"]["volumeName"] == "disk"
    assert "annotations" not in rig.volume("disk").raw["metadata"]


def test_a_claim_that_was_replaced_by_a_namesake_is_refused() -> None:
    rig = Volumes(claim(), volume())

    problem = rig.ask("disk", uid="someone-else")

    assert problem is not None
    assert problem.code == 409
    assert "claimRef" not in rig.volume("disk").raw["spec"]


def test_a_bound_claim_is_not_bound_to_another_volume() -> None:
    rig = Volumes(claim(), volume(), volume("other"))
    rig.bind("disk")

    problem = rig.ask("other")

    assert problem is not None
    assert "is bound to volume disk" in problem.message
    assert rig.bind("disk").raw["spec"]["volumeName"] == "disk"


def test_a_volume_is_provisioned_as_the_claim_wants_it_where_the_node_is() -> None:
    rig = Volumes(claim(), storage_class(), node("n1", zone="a", other="x"), csi_node("zone", "absent"))

    name = rig.bind("").raw["spec"]["volumeName"]

    spec = rig.volume(name).raw["spec"]
    (term,) = spec["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "zone", "operator": "In", "values": ["a"]}]
    assert (spec["capacity"], spec["storageClassName"]) == ({"storage": "5Gi"}, "fast")
    assert spec["csi"]["driver"] == DRIVER
    assert rig.volume(name).raw["status"]["phase"] == "Bound"


def test_a_provisioned_volume_has_what_its_claim_and_its_class_say_about_it() -> None:
    wanted = {"volumeMode": "Block", "volumeAttributesClassName": "gold"}
    rig = Volumes(claim(**wanted), {**storage_class(), "mountOptions": ["ro"]}, node("n1"))

    name = rig.bind("").raw["spec"]["volumeName"]

    assert (wanted | {"mountOptions": ["ro"]}).items() <= rig.volume(name).raw["spec"].items()
    assert rig.claim().raw["status"]["currentVolumeAttributesClassName"] == "gold"


def test_a_driver_without_topology_provisions_for_every_node() -> None:
    rig = Volumes(claim(), storage_class(), node("n1", zone="a"), csi_node())

    name = rig.bind("").raw["spec"]["volumeName"]

    assert "nodeAffinity" not in rig.volume(name).raw["spec"]


@pytest.mark.parametrize("missing", ["StorageClass", "Node"])
def test_a_volume_is_made_once_its_class_and_its_node_are_seen(missing: str) -> None:
    late = {"StorageClass": storage_class(), "Node": node("n1")}
    rig = Volumes(claim(), *(raw for kind, raw in late.items() if kind != missing))
    assert "volumeName" not in rig.bind("").raw["spec"]

    rig.sync(late[missing])

    assert rig.claim().raw["spec"]["volumeName"] == f"pvc-{rig.claim().uid}"


def test_volumes_are_not_provisioned_for_a_class_without_provisioner() -> None:
    rig = Volumes(claim(), storage_class("kubernetes.io/no-provisioner"), node("n1"))

    assert "volumeName" not in rig.bind("").raw["spec"]
    assert rig.controller.deadline().time_ns is None


def test_a_claim_that_no_scheduler_has_looked_at_is_left_alone() -> None:
    rig = Volumes(claim(), volume(), storage_class(), node("n1"))

    rig.settle()

    assert rig.writes == []


def test_a_second_volume_that_was_kept_for_a_claim_is_free_again() -> None:
    rig = Volumes(claim(), volume(), volume("other"))
    rig.ask("disk")
    rig.ask("other")

    rig.settle()

    other = rig.volume("other")
    assert rig.claim().raw["spec"]["volumeName"] == "disk"
    assert "claimRef" not in other.raw["spec"]
    assert isinstance(other.object, PersistentVolume)
    assert other.object.status.phase == "Available"


@pytest.mark.parametrize("to", ["disk", ""])
@pytest.mark.parametrize("problem", [CONFLICT, NO_ANSWER, UNAVAILABLE])
@pytest.mark.parametrize("number", range(3))
def test_binding_is_retried_under_any_failure_until_the_claim_is_bound(to: str, problem: Problem, number: int) -> None:
    rig = Volumes(claim(), storage_class(), node("n1"), *([volume()] if to else []))
    rig.problems = [None] * number + [problem]
    rig.ask(to)

    rig.wait(10)

    found = rig.claim()
    assert found.raw["status"]["phase"] == "Bound"
    assert rig.volume(found.raw["spec"]["volumeName"]).raw["spec"]["claimRef"]["uid"] == found.uid


def test_nothing_is_asked_for_a_claim_while_an_answer_is_awaited() -> None:
    rig = Volumes(claim(), storage_class(), node("n1"))
    rig.ask("")
    machine = PersistentVolumes()
    for resource in rig.store.resources.all():
        for one in rig.store.objects(resource.name):
            machine.handle(first_seen(one), rig.now)

    (create,) = machine.handle(Tick(), rig.now)
    machine.handle(first_seen(rig.claim()), rig.now)

    assert isinstance(create, CreateObject)
    assert machine.handle(Tick(), rig.now) == []
    machine.handle(ActionFinished(create, UNAVAILABLE), rig.now)
    assert not any(isinstance(one, PatchObject) for one in machine.handle(Tick(), rig.now + 10**9))
