"""The priority classes that a DisruptionPolicy creates."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.policy import PriorityClass
from podium.store.errors import StoreError
from podium.store.store import Store
from tests.store.objects import SECOND, disruption_policy, pod, priority_class
from tests.store.refusals import answer, refusal


def cluster(**values: int) -> Store:
    store = Store()
    for name, value in values.items():
        store.create(priority_class(name, value), now=0)
    return store


def values(store: Store) -> dict[str, int]:
    found = (one.object for one in store.objects("PriorityClass"))
    return {one.metadata.name: one.value for one in found if isinstance(one, PriorityClass)}


def apply(store: Store, priorities: Any) -> None:
    found = store.find("DisruptionPolicy", "default")
    if found is None:
        store.create(disruption_policy(priorities=priorities), now=5 * SECOND)
    else:
        store.update(disruption_policy(priorities=priorities))


def test_levels_without_classes_get_them_with_room_in_between() -> None:
    store = cluster()

    apply(store, "Critical > Normal > Preemptible")

    assert values(store) == {"critical": 750_000_000, "normal": 500_000_000, "preemptible": 250_000_000}


def test_the_policy_and_its_classes_become_known_together_or_not_at_all() -> None:
    store = cluster()

    apply(store, "high > low")
    assert [(event.version, event.stored.key) for event in store.events_since(0)] == [
        (1, "default"),
        (2, "high"),
        (3, "low"),
    ]

    with store.transaction(dry_run=True):
        apply(store, "high > middle > low")
        assert "middle" in values(store)
    assert store.version == 3


def test_the_classes_are_as_old_as_the_policy() -> None:
    store = cluster()
    apply(store, "high > low")
    apply(store, "high > middle > low")

    assert store.get("PriorityClass", "middle").raw["metadata"]["creationTimestamp"] == "1970-01-01T00:00:05Z"


def test_a_new_level_is_halfway_between_its_neighbours() -> None:
    store = cluster()
    apply(store, "high > low")
    before = values(store)

    apply(store, "high > middle > low")

    assert values(store) == {**before, "middle": (before["high"] + before["low"] + 1) // 2}


def test_classes_that_exist_keep_their_values() -> None:
    store = cluster(normal=1_000, low=-50)

    apply(store, ["high", "normal", "lower", "low", "lowest"])

    found = values(store)
    assert (found["normal"], found["low"]) == (1_000, -50)
    assert 1_000 < found["high"] < 1_000_000_000
    assert -1_000_000_000 < found["lowest"] < -50 < found["lower"] < 1_000


def test_the_classes_of_the_system_exist_in_every_cluster() -> None:
    store = cluster()

    apply(store, "system-node-critical > system-cluster-critical > normal")

    assert values(store) == {"normal": 500_000_000}


@pytest.mark.parametrize("name", ["system-mine", "system-"])
def test_other_names_of_the_system_are_refused(name: str) -> None:
    store = cluster()

    error = refusal(store, lambda: apply(store, [name]))

    assert answer(error) == (422, "Invalid")


def test_values_in_another_order_are_refused_with_both_classes() -> None:
    store = cluster(a=1_000, b=2_000)

    error = refusal(store, lambda: apply(store, "a > new > b"))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "spec.priorities"
    assert "a (1000) stands above b (2000), whose value is not less" in error.message


def test_two_levels_of_one_value_are_refused() -> None:
    store = cluster(a=1_000, b=1_000)

    assert "a (1000) stands above b (1000)" in refusal(store, lambda: apply(store, "a > b")).message


def test_two_levels_without_room_in_between_are_refused_with_both() -> None:
    store = cluster(a=12, b=10)
    apply(store, "a > b")

    error = refusal(store, lambda: apply(store, "a > x > y > b"))

    assert answer(error) == (422, "Invalid")
    assert "no room for x, y between a (12) and b (10)" in error.message
    apply(store, "a > x > b")
    assert values(store)["x"] == 11


def test_there_may_be_no_room_at_the_top() -> None:
    store = cluster(top=1_000_000_000)

    error = refusal(store, lambda: apply(store, "new > top"))

    assert "no room for new between the highest value (1000000000) and top (1000000000)" in error.message


def test_below_a_class_of_no_priority_there_is_room_for_more() -> None:
    store = cluster(zero=0)

    apply(store, "zero > less")

    assert values(store)["less"] == -500_000_000


def test_a_level_that_is_left_out_keeps_its_class() -> None:
    store = cluster()
    apply(store, "high > low")
    before = values(store)

    apply(store, "high")

    assert values(store) == before


def test_pods_are_admitted_with_the_levels() -> None:
    store = cluster()
    apply(store, "Critical > Normal")

    stored = store.create(pod("web", spec={"priorityClassName": "critical"}), now=0)

    assert stored.raw["spec"]["priority"] == values(store)["critical"]


NAMES = tuple("abcdefgh")


def problem_of(store: Store, order: list[str]) -> StoreError | None:
    try:
        apply(store, order)
    except StoreError as error:
        return error
    return None


@given(
    existing=st.dictionaries(st.sampled_from(NAMES), st.integers(-20, 20) | st.integers(-(10**9), 10**9)),
    orders=st.lists(st.lists(st.sampled_from(NAMES), unique=True, min_size=1), min_size=1, max_size=4),
)
def test_levels_are_either_in_order_or_refused(existing: dict[str, int], orders: list[list[str]]) -> None:
    store = cluster(**existing)
    for order in orders:
        before, version = values(store), store.version
        problem = problem_of(store, order)
        known = [before[name] for name in order if name in before]
        is_ordered = known == sorted(set(known), reverse=True)
        if problem is not None:
            assert answer(problem) == (422, "Invalid")
            assert (values(store), store.version) == (before, version)
            assert ("no room" in problem.message) == is_ordered
            continue
        found = values(store)
        assert is_ordered
        assert {**found, **before} == found
        levels = [found[name] for name in order]
        assert levels == sorted(set(levels), reverse=True)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12))
def test_new_names_fit_in_for_long(places: list[int]) -> None:
    store = cluster()
    order = ["first", "last"]
    apply(store, [*order])
    for number, place in enumerate(places):
        order.insert(min(place, len(order)), f"level-{number}")
        apply(store, [*order])

    assert sorted(order, key=values(store).__getitem__, reverse=True) == order
