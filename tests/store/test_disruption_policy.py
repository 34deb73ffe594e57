"""The DisruptionPolicy as an object of the API."""

import pytest

from podium.store.store import Store
from tests.store.objects import Raw, disruption_policy
from tests.store.refusals import answer, refusal


def test_a_disruption_policy_is_cluster_scoped_in_its_own_group_and_version() -> None:
    store = Store()
    store.create(disruption_policy(), now=0)

    page = store.page("DisruptionPolicy")

    assert [stored.key for stored in page.items] == ["default"]
    assert page.to_dict()["apiVersion"] == "podium.dev/v1alpha1"
    assert page.selector.resource.qualified == "disruptionpolicies.podium.dev"


def test_a_second_disruption_policy_is_rejected() -> None:
    store = Store()
    other = {**disruption_policy(), "metadata": {"name": "other"}}

    error = refusal(store, lambda: store.create(other, now=0))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "metadata.name"


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"spec": {"capps": []}}, "spec"),
        ({"spec": {"caps": [{"component": "drain", "max": "often"}]}}, "spec.caps[0].max"),
        ({"spec": {"priorities": "a > a"}}, "spec.priorities"),
    ],
)
def test_invalid_policy_updates_are_rejected(patch: Raw, field: str) -> None:
    store = Store()
    store.create(disruption_policy(), now=0)

    error = refusal(store, lambda: store.patch("DisruptionPolicy", "default", patch, "merge"))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == field


def test_its_status_is_strict_too() -> None:
    store = Store()
    store.create(disruption_policy(), now=0)
    patch: Raw = {"status": {"cap": []}}

    error = refusal(store, lambda: store.patch("DisruptionPolicy", "default", patch, "merge", "status"))

    assert answer(error) == (422, "Invalid")
    assert 'there is no field "cap"; did you mean caps?' in error.message
