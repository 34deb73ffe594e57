"""The phases of volumes without a claim: available, released or deleted."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import pytest

from podium.api.times import format_time
from podium.apirequests.observations import first_seen
from podium.controllers.actions import DeleteObject, PatchObject
from podium.controllers.observations import Tick
from podium.controllers.volumes import PersistentVolumes
from tests.controllers.store_rig import CONFLICT, NO_ANSWER, UNAVAILABLE, Rig
from tests.controllers.test_persistent_volumes import Volumes, claim, storage_class, volume
from tests.store.objects import Raw, node


class Reporting(Volumes):
    """The same where the controller reports all that people look for."""

    def __init__(self, *objects: Raw) -> None:
        Rig.__init__(self, partial(PersistentVolumes, reports_all=True), *objects)

    def change(self, patch: Raw, subresource: Literal["", "status"] = "") -> None:
        """Let a client change the claim."""
        self.store.patch("PersistentVolumeClaim", "default/data", patch, "merge", subresource)
        self.settle()

    def phase(self, name: str = "disk") -> str:
        return str(self.volume(name).raw["status"]["phase"])


def phased(phase: str, **spec: Any) -> Raw:
    return {**volume(**spec), "status": {"phase": phase}}


def test_an_unclaimed_volume_is_available() -> None:
    rig = Reporting(phased("Pending"))

    rig.settle()

    assert rig.phase() == "Available"


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
def test_with_its_claim_a_volume_is_released_and_its_policy_says_what_becomes_of_it(policy: str) -> None:
    rig = Reporting(claim(), volume(persistentVolumeReclaimPolicy=policy))
    rig.bind("disk")
    assert rig.phase() == "Bound"

    rig.delete("PersistentVolumeClaim", "data")
    rig.settle()

    if policy == "Delete":
        assert rig.names("PersistentVolume") == []
    else:
        assert rig.phase() == "Released"
        assert rig.volume("disk").raw["spec"]["claimRef"]["name"] == "data"


def test_a_released_volume_is_available_once_a_user_removes_its_claim() -> None:
    rig = Reporting(claim(), volume())
    rig.bind("disk")
    rig.delete("PersistentVolumeClaim", "data")
    rig.settle()

    raw = rig.volume("disk").raw
    rig.store.update({**raw, "spec": {name: value for name, value in raw["spec"].items() if name != "claimRef"}})
    rig.settle()

    assert rig.phase() == "Available"


@pytest.mark.parametrize(("reclaims", "left"), [({}, []), ({"reclaimPolicy": "Retain"}, ["Released"])])
def test_a_volume_that_was_made_for_a_claim_has_the_policy_of_its_class(reclaims: Raw, left: list[str]) -> None:
    rig = Reporting(claim(), {**storage_class(), **reclaims}, node("n1"))
    rig.bind("")

    rig.delete("PersistentVolumeClaim", "data")
    rig.settle()

    assert [rig.phase(name) for name in rig.names("PersistentVolume")] == left


def test_a_claim_of_the_same_name_is_another_claim() -> None:
    rig = Reporting(claim(), volume())
    rig.bind("disk")

    rig.delete("PersistentVolumeClaim", "data")
    rig.put(claim())
    rig.settle()

    assert rig.phase() == "Released"


def test_an_unseen_claim_may_still_appear() -> None:
    """After a restart volumes may be shown before their claims."""
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u"}
    bound = phased("Bound", claimRef=reference, persistentVolumeReclaimPolicy="Delete")
    rig = Reporting(bound)
    rig.settle()
    rig.wait(14)
    assert rig.phase() == "Bound"

    shown = claim()
    rig.put({**shown, "metadata": {**shown["metadata"], "uid": "u"}})
    rig.settle()
    rig.wait(60)
    assert rig.phase() == "Bound"


def test_a_claim_that_is_seen_only_as_a_namesake_is_gone() -> None:
    """Watches may merge a deletion with the creation after it."""
    rig = Reporting(claim(), volume())
    seen = rig.bind("disk")
    machine = PersistentVolumes(reports_all=True)
    for stored in (rig.volume("disk"), seen):
        machine.handle(first_seen(stored), rig.now)
    rig.delete("PersistentVolumeClaim", "data")
    rig.put(claim())

    machine.handle(first_seen(rig.claim()), rig.now)

    patches = [one for one in machine.handle(Tick(), rig.now) if isinstance(one, PatchObject)]
    assert [one.patch["status"]["phase"] for one in patches if one.key == "disk"] == ["Released"]


def test_a_volume_that_is_being_deleted_is_deleted_once() -> None:
    raw = volume(persistentVolumeReclaimPolicy="Delete")
    rig = Reporting(claim(), {**raw, "metadata": {**raw["metadata"], "finalizers": ["example.com/kept"]}})
    rig.bind("disk")
    rig.delete("PersistentVolumeClaim", "data")

    rig.settle()
    rig.wait(60)

    assert rig.names("PersistentVolume") == ["disk"]
    assert sum(isinstance(action, DeleteObject) for action, _ in rig.writes) == 1


def test_a_volume_without_its_claim_is_available_at_once_whatever_failed_before() -> None:
    rig = Reporting(claim(), volume())
    rig.bind("disk")
    rig.delete("PersistentVolumeClaim", "data")
    rig.problems = [UNAVAILABLE] * 6
    rig.wait(10)
    assert rig.phase() == "Bound"

    raw = rig.volume("disk").raw
    unclaimed = {name: value for name, value in raw["spec"].items() if name != "claimRef"}
    rig.problems.clear()
    rig.store.update({**raw, "spec": unclaimed})
    rig.settle()

    assert rig.phase() == "Available"


def test_an_unlisted_claim_counts_as_deleted() -> None:
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u"}
    rig = Reporting(phased("Bound", claimRef=reference, persistentVolumeReclaimPolicy="Delete"))

    rig.settle()
    rig.wait(16)

    assert rig.names("PersistentVolume") == []


@pytest.mark.parametrize("problem", [UNAVAILABLE, CONFLICT, NO_ANSWER])
def test_failed_phase_writes_are_retried(problem: Any) -> None:
    rig = Reporting(claim(), volume(persistentVolumeReclaimPolicy="Delete"))
    rig.bind("disk")
    rig.delete("PersistentVolumeClaim", "data")

    for _ in range(2):
        rig.problems.append(problem)
        rig.settle()
        rig.wait(10)

    assert rig.names("PersistentVolume") == []
    assert sum(isinstance(action, DeleteObject) for action, _ in rig.writes) >= 1


def test_deleted_objects_leave_no_counts() -> None:
    rig = Reporting(claim(), volume())
    rig.bind("disk")
    rig.delete("PersistentVolumeClaim", "data")
    rig.settle()
    rig.store.delete("PersistentVolume", "disk", now=rig.now)
    rig.settle()

    assert isinstance(rig.controller, PersistentVolumes)
    machine = rig.controller
    kept = (
        machine._volumes,
        machine._claims,
        machine._key_by_uid,
        machine._reserved,
        machine._gone_from,
        machine._requested,
    )
    assert not any((*kept, machine._pending, machine._overdue))


# Claims that no scheduler binds


def bound_to(rig: Reporting, name: str = "data") -> tuple[str, str]:
    """Return a claim's volume and phase."""
    raw = rig.claim(name).raw
    return raw["spec"].get("volumeName", ""), raw.get("status", {}).get("phase", "Pending")


def static(name: str, size: str, **spec: Any) -> Raw:
    return volume(name, **{"storageClassName": "", "capacity": {"storage": size}, **spec})


def test_a_claim_without_class_gets_the_smallest_volume_that_suits_it() -> None:
    rig = Reporting(
        static("large", "9Gi"), static("small", "1Mi"), static("fitting", "6Gi"), claim(storageClassName="")
    )

    rig.settle()

    assert bound_to(rig) == ("fitting", "Bound")
    reference = rig.volume("fitting").raw["spec"]["claimRef"]
    assert (reference["name"], reference["uid"]) == ("data", rig.claim().uid)
    assert rig.phase("fitting") == "Bound"


def test_a_claim_waits_for_a_volume_and_two_claims_get_different_ones() -> None:
    rig = Reporting(claim("a", storageClassName=""), claim("b", storageClassName=""))
    rig.settle()
    assert bound_to(rig, "a") == ("", "Pending")

    rig.sync(static("one", "6Gi"), static("two", "6Gi"))
    rig.wait(5)

    assert {bound_to(rig, name)[0] for name in ("a", "b")} == {"one", "two"}


def test_a_volume_that_is_being_reserved_is_not_reserved_for_another_claim() -> None:
    rig = Reporting(claim("a", storageClassName=""), claim("b", storageClassName=""))
    rig.put(static("one", "6Gi"), static("two", "6Gi"))
    machine = PersistentVolumes(reports_all=True)
    for resource in rig.store.resources.all():
        for stored in rig.store.objects(resource.name):
            machine.handle(first_seen(stored), rig.now)

    asked = [*machine.handle(Tick(), rig.now), *machine.handle(Tick(), rig.now)]

    assert sorted(one.key for one in asked if isinstance(one, PatchObject) and "spec" in one.patch) == ["one", "two"]


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_no_volume_is_made_for_a_claim_that_is_being_deleted(mode: str) -> None:
    raw = claim()
    selected = {"volume.kubernetes.io/selected-node": "n1"}
    metadata = {**raw["metadata"], "finalizers": ["example.com/kept"], "annotations": selected}
    rig = Reporting({**raw, "metadata": metadata}, node("n1"))
    rig.delete("PersistentVolumeClaim", "data")

    rig.sync({**storage_class(), "volumeBindingMode": mode})

    assert rig.names("PersistentVolume") == []


def test_a_second_volume_that_a_user_reserved_for_a_claim_stays_reserved() -> None:
    rig = Reporting(claim(), volume())
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": rig.bind("disk").uid}

    rig.sync(volume("other", claimRef=reference))

    assert rig.volume("other").raw["spec"]["claimRef"] == reference
    assert bound_to(rig) == ("disk", "Bound")


def test_a_claim_that_names_a_volume_gets_that_one_unless_it_is_anothers() -> None:
    other = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "other"}
    rig = Reporting(
        static("mine", "9Gi"),
        static("kept", "9Gi", claimRef=other),
        claim("a", storageClassName="", volumeName="mine"),
        claim("b", storageClassName="", volumeName="kept"),
    )

    rig.settle()

    assert bound_to(rig, "a") == ("mine", "Bound")
    assert bound_to(rig, "b")[1] == "Pending"


def test_a_volume_that_names_a_claim_is_kept_for_it() -> None:
    named = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "b"}
    rig = Reporting(claim("a", storageClassName=""), static("disk", "6Gi", claimRef=named))
    rig.settle()
    assert bound_to(rig, "a") == ("", "Pending")

    rig.sync(claim("b", storageClassName=""))

    assert bound_to(rig, "b") == ("disk", "Bound")


@pytest.mark.parametrize(("mode", "phase"), [("Immediate", "Bound"), ("WaitForFirstConsumer", "Pending")])
def test_a_claim_of_an_immediate_class_is_provisioned_at_once(mode: str, phase: str) -> None:
    rig = Reporting(claim())
    rig.settle()
    assert bound_to(rig)[1] == "Pending"

    rig.sync({**storage_class(), "volumeBindingMode": mode})

    assert bound_to(rig)[1] == phase


def test_simulations_leave_such_claims_alone() -> None:
    rig = Volumes(static("disk", "9Gi"), claim(storageClassName=""))

    rig.settle()

    assert "volumeName" not in rig.claim().raw["spec"]


def test_a_reservation_that_failed_is_repeated() -> None:
    rig = Reporting(static("disk", "9Gi"), claim(storageClassName=""))
    rig.settle()
    rig.problems = [CONFLICT, NO_ANSWER, UNAVAILABLE]
    rig.sync(claim("b", storageClassName=""), static("next", "9Gi"))
    rig.wait(60)

    assert bound_to(rig, "b") == ("next", "Bound")


def test_each_phase_has_the_time_at_which_it_began() -> None:
    rig = Reporting(phased("Pending"))
    rig.wait(5)

    rig.settle()

    assert rig.volume("disk").raw["status"] == {
        "phase": "Available",
        "lastPhaseTransitionTime": format_time(rig.now - 5 * 10**9),
    }


def test_a_claim_without_a_class_gets_the_default_class_that_comes_later() -> None:
    raw = claim()
    del raw["spec"]["storageClassName"]
    rig = Reporting(raw, claim("named", storageClassName="other"))
    rig.settle()

    marked = storage_class()
    marked["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    rig.put(marked)
    rig.settle()

    assert rig.claim().raw["spec"]["storageClassName"] == "fast"
    assert rig.claim("named").raw["spec"]["storageClassName"] == "other"


def test_a_claim_of_a_class_that_allows_expansion_grows_with_its_volume_in_three_steps() -> None:
    rig = Reporting({**storage_class(), "allowVolumeExpansion": True}, claim(), node("n1"))
    rig.bind("")
    [name] = rig.names("PersistentVolume")
    version = rig.store.version

    rig.change({"spec": {"resources": {"requests": {"storage": "8Gi"}}}})

    steps = [event.stored.raw for event in rig.store.events_since(version)][1:]
    assert [raw["kind"] for raw in steps] == ["PersistentVolumeClaim", "PersistentVolume", "PersistentVolumeClaim"]
    begun, grown, ended = steps
    assert [(one["type"], one["status"]) for one in begun["status"]["conditions"]] == [("Resizing", "True")]
    assert begun["status"]["allocatedResources"] == {"storage": "8Gi"}
    assert begun["status"]["allocatedResourceStatuses"] == {"storage": "ControllerResizeInProgress"}
    assert begun["status"]["capacity"] == {"storage": "5Gi"}
    assert (grown["metadata"]["name"], grown["spec"]["capacity"]) == (name, {"storage": "8Gi"})
    assert ended["status"]["capacity"] == ended["status"]["allocatedResources"] == {"storage": "8Gi"}
    assert not ended["status"].get("conditions")
    assert "allocatedResourceStatuses" not in ended["status"]


def test_a_claim_that_got_more_than_it_requested_keeps_its_volume_when_it_requests_that() -> None:
    rig = Reporting({**storage_class(), "allowVolumeExpansion": True}, claim(), volume())
    rig.bind("disk")

    rig.change({"spec": {"resources": {"requests": {"storage": "9Gi"}}}})

    assert rig.volume("disk").raw["spec"]["capacity"] == {"storage": "10Gi"}
    assert rig.claim().raw["status"]["capacity"] == {"storage": "10Gi"}
    assert "allocatedResources" not in rig.claim().raw["status"]


def test_a_claim_whose_size_a_cluster_left_pending_is_finished() -> None:
    pending = {"type": "FileSystemResizePending", "status": "True"}
    rig = Reporting({**storage_class(), "allowVolumeExpansion": True}, claim(), volume())
    rig.bind("disk")
    status = {"capacity": {"storage": "3Gi"}, "allocatedResources": {"storage": "5Gi"}, "conditions": [pending]}
    status["allocatedResourceStatuses"] = {"storage": "NodeResizePending"}

    rig.change({"status": status}, "status")

    assert rig.claim().raw["status"]["capacity"] == {"storage": "5Gi"}
    assert not rig.claim().raw["status"].get("conditions")
