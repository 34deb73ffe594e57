"""A pod is bound after its claims are observed as bound, and requeued if that never happens."""

from __future__ import annotations

from msgspec.structs import replace

from podium.api.storage import (
    BIND_COMPLETED,
    SELECTED_NODE,
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
)
from podium.controllers.actions import Bind, BindClaim, ReportUnschedulable
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from podium.framework.settings.configuration import Configuration
from tests.builders import configuration, node
from tests.builders import pod as plain_pod
from tests.controllers.driving import CONFLICT, Driver, all_of, the
from tests.plugins.volume_objects import LATE, NAMESPACE, ZONE, claim, mounts, volume

N1 = node("n1", labels={ZONE: "west"})
A = plain_pod("a", namespace=NAMESPACE, spec={"volumes": mounts("data")})
CLAIM = claim("data")
DISK = volume("disk")


def kept(disk: PersistentVolume, uid: str = CLAIM.metadata.uid) -> PersistentVolume:
    """Return the volume as the API shows it when it is kept for the claim."""
    reference = ClaimReference(namespace=NAMESPACE, name="data", uid=uid)
    return replace(disk, spec=replace(disk.spec, claim_ref=reference))


def bound(name: str, found: PersistentVolumeClaim = CLAIM) -> PersistentVolumeClaim:
    """Return the claim as the API shows it when it is bound."""
    metadata = replace(found.metadata, annotations={**found.metadata.annotations, BIND_COMPLETED: "yes"})
    spec: PersistentVolumeClaimSpec = replace(found.spec, volume_name=name)
    return replace(found, metadata=metadata, spec=spec)


def chosen(node_name: str = "n1") -> PersistentVolumeClaim:
    """Return the claim as the API shows it when a volume is to be provisioned for a node."""
    return replace(CLAIM, metadata=replace(CLAIM.metadata, annotations={SELECTED_NODE: node_name}))


def asked(*volumes: PersistentVolume, settings: Configuration | None = None) -> Driver:
    """Return a pod on its way to n1, whose claim's binding was asked for."""
    driver = Driver(N1, LATE, CLAIM, *volumes, settings=settings)
    driver.see(A)
    actions = driver.tick()
    binding = the(BindClaim, actions)
    assert binding.volume == (volumes[0].metadata.name if volumes else "")
    assert not all_of(Bind, driver.answer(binding))
    return driver


def test_a_pod_is_bound_when_its_claim_is_seen_bound_to_its_volume() -> None:
    driver = asked(DISK)

    assert not driver.see(kept(DISK))
    assert the(Bind, driver.see(bound("disk"))).node_name == "n1"


def test_a_pod_is_bound_when_a_volume_was_made_for_its_claim() -> None:
    driver = asked()
    made = kept(volume("made"))

    assert not driver.see(chosen())
    assert not driver.see(bound("made", chosen()))
    assert the(Bind, driver.see(made)).node_name == "n1"


def test_a_claim_that_is_seen_bound_before_the_answer_comes_is_not_waited_for() -> None:
    driver = Driver(N1, LATE, CLAIM, DISK)
    driver.see(A)
    binding = the(BindClaim, driver.tick())
    driver.see(kept(DISK), bound("disk"))

    assert the(Bind, driver.answer(binding)).node_name == "n1"


def test_a_binding_that_is_refused_puts_the_pod_back() -> None:
    driver = Driver(N1, LATE, CLAIM, DISK)
    driver.see(A)

    report = the(ReportUnschedulable, driver.answer(the(BindClaim, driver.tick()), CONFLICT))

    assert report.reason == "SchedulerError"
    assert driver.where(A) is QueuePlace.BACKOFF


def test_a_claim_that_is_not_bound_in_time_puts_the_pod_back() -> None:
    driver = asked(DISK, settings=configuration({"VolumeBinding": {"bindTimeoutSeconds": 7}}))

    driver.wait(6)
    assert not driver.tick()
    driver.wait(1)
    report = the(ReportUnschedulable, driver.tick())

    assert (report.reason, report.message) == ("SchedulerError", "binding volumes: context deadline exceeded")
    assert driver.holds(A) == ""
    assert driver.where(A) is QueuePlace.BACKOFF


def test_volume_binding_waits_ten_minutes_by_default() -> None:
    driver = asked(DISK)

    for _ in range(119):
        driver.wait(5)
        assert not driver.tick()
    driver.wait(5)

    assert the(ReportUnschedulable, driver.tick()).message == "binding volumes: context deadline exceeded"


def test_a_provisioner_that_gives_up_has_the_pod_tried_again_at_once() -> None:
    driver = asked()
    driver.see(chosen())

    report = the(ReportUnschedulable, driver.see(CLAIM))

    assert report.message == 'binding volumes: provisioning failed for PVC "data"'


def test_a_volume_that_loses_its_claim_has_the_pod_tried_again_at_once() -> None:
    driver = asked(DISK)
    driver.see(kept(DISK))

    report = the(ReportUnschedulable, driver.see(kept(DISK, uid="")))

    assert report.message == 'binding volumes: ClaimRef got reset for pv "disk"'


def test_a_claim_that_is_deleted_meanwhile_has_the_pod_tried_again() -> None:
    driver = asked(DISK)
    driver.miss(CLAIM)

    report = the(ReportUnschedulable, driver.see(kept(DISK)))

    assert report.message == f'binding volumes: could not find v1.PersistentVolumeClaim "{NAMESPACE}/data"'


def test_a_volume_that_the_node_does_not_reach_has_the_pod_tried_again() -> None:
    driver = asked()
    driver.see(chosen())
    driver.see(kept(volume("made", zones=("east",))))

    report = the(ReportUnschedulable, driver.see(bound("made", chosen())))

    assert report.message == 'binding volumes: pv "made" node affinity doesn\'t match node "n1"'
