"""Devices that a pod has reserved while the result of the write is unknown."""

from typing import Any

import pytest

from podium.api.input.codec import decode
from podium.api.meta import Kubernetes
from podium.controllers.actions import Action, Bind, ReleaseClaim, ReserveClaim
from podium.controllers.observations import ActionFinished, Problem
from podium.controllers.scheduling.queue.queued_pod import QueuePlace
from tests.controllers.driving import CONFLICT, NO_ANSWER, REFUSED, Driver, all_of, the
from tests.devices import claim, device, device_class, devices_of, request, using
from tests.store.objects import node, pod


def read(raw: dict[str, Any]) -> Kubernetes:
    found = decode({**raw, "metadata": {"uid": raw["metadata"]["name"], **raw["metadata"]}})
    assert found is not None
    return found


def reserving() -> tuple[Driver, ReserveClaim]:
    """Return a scheduler that has reserved the only device for a pod, and knows no answer."""
    objects = (node("n1"), devices_of("n1", device("g")), device_class(), claim("c", request()), claim("d", request()))
    driver = Driver(*map(read, objects), read(using(pod("a"), "c")))
    return driver, the(ReserveClaim, driver.tick())


def test_a_reservation_without_an_answer_is_asked_for_again_and_its_devices_are_taken() -> None:
    driver, reserve = reserving()

    driver.answer(reserve, NO_ANSWER)
    driver.see(read(using(pod("b"), "d")))

    assert not all_of(ReserveClaim, driver.tick())
    driver.wait(1)
    assert the(ReserveClaim, driver.tick()) == reserve


def test_a_refusal_that_passes_says_nothing_of_the_request_before_it_that_had_no_answer() -> None:
    driver, reserve = reserving()
    driver.answer(reserve, NO_ANSWER)
    driver.wait(1)
    again = the(ReserveClaim, driver.tick())

    driver.answer(again, REFUSED)
    driver.see(read(using(pod("b"), "d")))

    assert not all_of(ReserveClaim, driver.tick())
    driver.wait(1)
    assert the(ReserveClaim, driver.tick()) == reserve


def test_a_conflict_does_not_settle_an_earlier_unanswered_request_on_an_unchanged_claim() -> None:
    """The claim may have been written by that request: the binding waits, and the devices count as taken."""
    driver, reserve = reserving()
    driver.answer(reserve, NO_ANSWER)
    driver.wait(1)
    again = the(ReserveClaim, driver.tick())

    assert driver.answer(again, CONFLICT) == []

    assert driver.scheduler.cluster.placed[reserve.pod_uid].node_name == "n1"
    driver.see(read(using(pod("b"), "d")))
    assert not all_of(ReserveClaim, driver.tick())
    driver.wait(1)
    assert the(ReserveClaim, driver.tick()) == reserve


def test_a_reading_from_before_a_claim_was_let_go_does_not_spare_its_reservation() -> None:
    driver, reserve = reserving()
    driver.answer(reserve, CONFLICT)
    assert reserve.allocation is not None
    user = {"resource": "pods", "name": "a", "uid": reserve.pod_uid}
    reserved = {"allocation": dict(reserve.allocation), "reservedFor": [user]}

    driver.see(read({**claim("c", request()), "status": reserved}))
    driver.wait(2)
    again = the(ReserveClaim, driver.tick())

    assert (again.claim, again.allocation) == ("default/c", None)
    assert the(Bind, driver.answer(again)).pod == "default/a"


def written(reserve: ReserveClaim, version: int, *, has_devices: bool = True) -> dict[str, Any]:
    """Return the claim as the API server answers that it is once it is reserved, or released again."""
    raw = claim("c", request())
    user = {"resource": "pods", "name": "a", "uid": reserve.pod_uid}
    status = {"allocation": dict(reserve.allocation or {}), "reservedFor": [user]} if has_devices else {}
    return {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(version)}, "status": status}


def at(version: int) -> Kubernetes:
    """Return the claim without devices, as the API shows it at a version."""
    raw = claim("c", request())
    return read({**raw, "metadata": {**raw["metadata"], "resourceVersion": str(version)}})


def is_free(driver: Driver) -> bool:
    """Return whether another pod would get the only device."""
    driver.see(read(using(pod("b"), "d")))
    return bool(all_of(ReserveClaim, driver.tick()))


def reported(driver: Driver, action: ReserveClaim | ReleaseClaim, raw: dict[str, Any] | None) -> list[Action]:
    return driver.deliver(ActionFinished(action, None, raw))


def test_a_late_sight_of_an_older_version_does_not_end_what_was_written() -> None:
    driver, reserve = reserving()
    reported(driver, reserve, written(reserve, 9))

    driver.see(at(7), at(8))

    assert not is_free(driver)


def test_a_reservation_write_ends_when_its_version_is_seen() -> None:
    driver, reserve = reserving()
    bind = the(Bind, reported(driver, reserve, written(reserve, 9)))
    driver.answer(bind, REFUSED)

    driver.see(at(10))

    assert is_free(driver)


def test_an_answer_without_version_leaves_the_claim_to_observations() -> None:
    driver, reserve = reserving()
    reported(driver, reserve, None)

    driver.see(at(8))

    assert not is_free(driver)


@pytest.mark.parametrize("problem", [None, NO_ANSWER], ids=["on its way", "unanswered"])
def test_devices_that_a_pod_may_have_got_count_after_it_is_gone_until_that_is_known(problem: Problem | None) -> None:
    driver, reserve = reserving()
    if problem is not None:
        driver.answer(reserve, problem)
    release = the(ReleaseClaim, driver.miss(read(using(pod("a"), "c"))))
    assert not is_free(driver)

    driver.answer(release, NO_ANSWER)
    driver.wait(1)
    assert the(ReleaseClaim, driver.tick()) == release
    reported(driver, release, written(reserve, 9, has_devices=False))

    assert the(ReserveClaim, driver.tick()).pod == "default/b"


def test_devices_that_a_pod_turns_out_to_have_got_stay_its_claim_s() -> None:
    driver, reserve = reserving()
    release = the(ReleaseClaim, driver.miss(read(using(pod("a"), "c"))))
    reported(driver, release, written(reserve, 9))

    driver.see(at(8))
    assert not is_free(driver)
    driver.see(at(10))

    assert the(ReserveClaim, driver.tick()).pod == "default/b"


def test_a_refusal_ends_what_was_in_flight() -> None:
    driver, reserve = reserving()

    release = the(ReleaseClaim, driver.answer(reserve, CONFLICT))

    assert driver.answer(release, NO_ANSWER) == []
    assert is_free(driver)


def test_an_answer_to_an_earlier_release_does_not_affect_a_later_reservation() -> None:
    driver, reserve = reserving()
    earlier = the(ReleaseClaim, driver.answer(reserve, CONFLICT))
    driver.wait(2)
    again = the(ReserveClaim, driver.tick())
    assert again.pod == "default/a"
    later = the(ReleaseClaim, driver.miss(read(using(pod("a"), "c"))))

    reported(driver, earlier, None)
    assert not is_free(driver)
    reported(driver, later, written(again, 9, has_devices=False))

    assert the(ReserveClaim, driver.tick()).pod == "default/b"


@pytest.mark.parametrize(
    ("problem", "place"),
    [
        (CONFLICT, QueuePlace.BACKOFF),
        (NO_ANSWER, QueuePlace.BACKOFF),
        (Problem(403, "Forbidden", "nobody may"), QueuePlace.UNSCHEDULABLE),
    ],
)
def test_a_pod_whose_claim_could_not_be_taken_its_devices_is_tried_again(problem: Problem, place: QueuePlace) -> None:
    _, elsewhere = reserving()
    allocated = {**claim("c", request()), "status": {"allocation": dict(elsewhere.allocation or {})}}
    cordoned = {**node("n1"), "spec": {"unschedulable": True}}
    nodes = cordoned, node("n2"), devices_of("n1", device("g")), devices_of("n2", device("g"))
    waiting = read(using(pod("a"), "c"))
    driver = Driver(*map(read, (*nodes, device_class(), allocated)), waiting)
    release = the(ReleaseClaim, driver.tick())

    driver.answer(release, problem)

    assert release.deallocate
    assert driver.scheduler.queue.where(waiting.metadata.uid) is place
