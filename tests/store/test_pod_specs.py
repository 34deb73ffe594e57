"""Specifications that pods share."""

import pytest
from hypothesis import given
from msgspec import convert

from podium.api.pod import PodSpec
from podium.store.pod_specs import shared_spec
from podium.store.store import Store
from tests.store.json_values import OBJECTS
from tests.store.objects import Raw, pod
from tests.store.refusals import refusal


def test_pods_of_one_sort_share_what_was_read_and_what_is_written() -> None:
    store = Store()
    one, other = (store.create(pod(name, cpu="1500m"), now=0) for name in ("a", "b"))

    assert one.raw["spec"] is other.raw["spec"]
    assert one.object.spec is other.object.spec  # type: ignore[attr-defined]
    assert store.create(pod("c", cpu="1501m"), now=0).raw["spec"] != one.raw["spec"]


def test_numbers_truth_and_text_are_told_apart() -> None:
    specs: list[Raw] = [{"x": value} for value in (1, 1.0, True, "1", None, float("inf"))]
    found = [shared_spec(spec) for spec in specs]

    assert [repr(one[0]) for one in found if one is not None] == [repr(spec) for spec in specs]


@pytest.mark.parametrize(
    "spec", [None, [], "x", {"containers": 1}, {"containers": [{"name": 1}]}, {"restartPolicy": "No"}]
)
def test_what_is_wrong_is_not_shared(spec: object) -> None:
    assert shared_spec(spec) is None
    store = Store()

    for _ in range(2):
        refusal(store, lambda: store.create({**pod("a"), "spec": spec}, now=0))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_number_that_cannot_be_packed_is_read_by_itself(number: int) -> None:
    assert shared_spec({"x": number}) is None
    assert Store().create(pod("a", spec={"x": number}), now=0).raw["spec"]["x"] == number


@given(spec=OBJECTS)
def test_what_is_shared_is_equal_to_what_was_given(spec: Raw) -> None:
    found = shared_spec(spec)
    if found is not None:
        assert found[0] == spec
        assert found[1] == convert(spec, PodSpec)


def test_what_is_no_json_stays_as_it_is() -> None:
    spec = {"x": {1, 2}}

    assert shared_spec({"x": [1, 2]}) is not None
    assert shared_spec(spec) is None
