"""Admission of PriorityClasses, and their immutable fields."""

import pytest

from podium.store.store import Store
from tests.store.objects import Raw, priority_class
from tests.store.refusals import answer, refusal


def test_a_value_above_that_of_users_is_refused() -> None:
    store = Store()
    store.create(priority_class("highest", 1_000_000_000), now=0)

    error = refusal(store, lambda: store.create(priority_class("higher", 1_000_000_001), now=0))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == "value"


@pytest.mark.parametrize(
    "raw",
    [
        priority_class("system-mine", 5),
        priority_class("system-node-critical", 5),
        priority_class("system-node-critical", 2_000_001_000, globalDefault=True),
    ],
)
def test_the_names_of_the_system_are_reserved(raw: Raw) -> None:
    store = Store()

    error = refusal(store, lambda: store.create(raw, now=0))

    assert answer(error) == (422, "Invalid")
    assert "reserved for system use" in error.message


def test_the_classes_of_the_system_can_be_written_down() -> None:
    store = Store()

    assert store.create(priority_class("system-node-critical", 2_000_001_000), now=0).version == 1


def test_only_one_class_is_the_default() -> None:
    store = Store()
    store.create(priority_class("usual", 5, globalDefault=True), now=0)
    other = store.create(priority_class("other", 3), now=0)

    created = refusal(store, lambda: store.create(priority_class("second", 1, globalDefault=True), now=0))
    updated = refusal(store, lambda: store.update({**other.raw, "globalDefault": True}))

    assert answer(created) == answer(updated) == (403, "Forbidden")
    assert "usual is the default already" in created.message


def test_the_default_class_itself_can_be_updated() -> None:
    store = Store()
    stored = store.create(priority_class("usual", 5, globalDefault=True), now=0)

    assert store.update({**stored.raw, "description": "for all"}).raw["description"] == "for all"


@pytest.mark.parametrize("change", [{"value": 6}, {"preemptionPolicy": "Never"}])
def test_value_and_preemption_policy_never_change(change: Raw) -> None:
    store = Store()
    stored = store.create(priority_class("high", 5), now=0)

    error = refusal(store, lambda: store.update({**stored.raw, **change}))

    assert answer(error) == (422, "Invalid")
    assert error.details["causes"][0]["field"] == next(iter(change))


def test_writing_out_the_usual_preemption_policy_changes_nothing() -> None:
    store = Store()
    stored = store.create(priority_class("high", 5), now=0)

    assert store.update({**stored.raw, "preemptionPolicy": "PreemptLowerPriority"}).version == 2
