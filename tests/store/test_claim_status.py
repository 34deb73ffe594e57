"""The statuses of claims that the server accepts."""

import pytest

from podium.store.store import Store
from tests.devices import DRIVER, allocated, claim
from tests.store.objects import Raw
from tests.store.refusals import answer, refusal

CLAIM = "default/c"
USER: Raw = {"resource": "pods", "name": "a", "uid": "uid-a"}


def reported(device: str, **more: str) -> Raw:
    return {"driver": DRIVER, "pool": "n1", "device": device, **more}


def a_store(status: Raw | None = None) -> Store:
    store = Store()
    store.create(claim("c", status=status), now=0)
    return store


def test_a_claim_without_an_allocation_is_not_reserved() -> None:
    store = a_store()

    error = refusal(
        store, lambda: store.patch("ResourceClaim", CLAIM, {"status": {"reservedFor": [USER]}}, "merge", "status")
    )

    assert answer(error) == (422, "Invalid")
    (cause,) = error.details["causes"]
    assert (cause["field"], cause["reason"]) == ("status.reservedFor", "FieldValueForbidden")


@pytest.mark.parametrize("status", [None, allocated("n1", "gpu")])
def test_a_claim_reports_only_about_its_devices(status: Raw | None) -> None:
    store = a_store(status)
    wrong = {"status": {"devices": [reported("other")]}}

    error = refusal(store, lambda: store.patch("ResourceClaim", CLAIM, wrong, "merge", "status"))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "status.devices[0]"


def test_a_device_of_another_pool_is_another_device_and_the_error_names_its_entry() -> None:
    store = a_store(allocated("n1", "gpu"))
    wrong = {"status": {"devices": [reported("gpu"), {**reported("gpu"), "pool": "n2"}]}}

    error = refusal(store, lambda: store.patch("ResourceClaim", CLAIM, wrong, "merge", "status"))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "status.devices[1]"


def test_a_share_of_a_device_is_another_device() -> None:
    store = a_store(allocated("n1", "gpu", shareID="s"))
    right, wrong = ({"status": {"devices": [reported("gpu", **more)]}} for more in ({"shareID": "s"}, {}))

    assert answer(refusal(store, lambda: store.patch("ResourceClaim", CLAIM, wrong, "merge", "status"))) == (
        422,
        "Invalid",
    )
    assert store.patch("ResourceClaim", CLAIM, right, "merge", "status").raw["status"]["devices"]


def test_an_allocated_claim_is_reserved_and_reports_about_its_devices() -> None:
    store = a_store()
    status = {**allocated("n1", "gpu", to=["a"]), "devices": [reported("gpu")]}

    patched = store.patch("ResourceClaim", CLAIM, {"status": status}, "merge", "status")

    assert patched.raw["status"] == status


def test_an_allocation_ends_together_with_its_reservations() -> None:
    store = a_store(allocated("n1", "gpu", to=["a"]))
    alone: Raw = {"status": {"allocation": None}}

    error = refusal(store, lambda: store.patch("ResourceClaim", CLAIM, alone, "merge", "status"))

    assert answer(error) == (422, "Invalid")
    both: Raw = {"status": {"allocation": None, "reservedFor": None}}
    assert not store.patch("ResourceClaim", CLAIM, both, "merge", "status").raw["status"].get("allocation")
