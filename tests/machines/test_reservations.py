"""Devices that a pod reserves, when the API does not say what has become of that."""

from typing import Any

from podium.api.input.codec import decode
from podium.api.meta import Kubernetes
from podium.machines.actions import Bind, ReserveClaim
from tests.devices import claim, device, device_class, devices_of, request, using
from tests.machines.driving import CONFLICT, NO_ANSWER, REFUSED, Driver, all_of, the
from tests.store.objects import node, pod


def read(raw: dict[str, Any]) -> Kubernetes:
    found = decode({**raw, "metadata": {"uid": raw["metadata"]["name"], **raw["metadata"]}})
    assert found is not None
    return found


def reserving() -> tuple[Driver, ReserveClaim]:
    """A scheduler that has reserved the only device for a pod, and knows no answer."""
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
