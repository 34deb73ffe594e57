"""The patch from one form of an object to another."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podium.apirequests.status_reports import strategic_diff
from podium.store.strategic_patch import MergeSchema, merge_schema_of, strategic_patch

STATUS = merge_schema_of("Pod").of("status")
SCHEMA = MergeSchema(
    lists={"conditions": "type", "names": ""},
    replaced=frozenset(("whole",)),
    fields={"conditions": MergeSchema(lists={"inner": "name"})},
)

scalars = st.sampled_from(["a", "b", "c", 1, 2, True, ""])
inner = st.lists(st.sampled_from("xyz"), unique=True).flatmap(
    lambda names: st.tuples(
        *(st.fixed_dictionaries({"name": st.just(name)}, optional={"v": scalars}) for name in names)
    )
)
conditions = st.lists(st.sampled_from("pqrs"), unique=True).flatmap(
    lambda types: st.tuples(
        *(
            st.fixed_dictionaries(
                {"type": st.just(type_)}, optional={"status": scalars, "reason": scalars, "inner": inner.map(list)}
            )
            for type_ in types
        )
    )
)
nested = st.dictionaries(st.sampled_from(["k", "l"]), scalars)
objects = st.fixed_dictionaries(
    {},
    optional={
        "phase": scalars,
        "conditions": conditions.map(list),
        "names": st.lists(st.sampled_from("abcd"), unique=True),
        "plain": st.lists(scalars),
        "whole": nested,
        "nested": nested,
    },
)


@given(objects, objects)
def test_the_patch_makes_the_one_of_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert strategic_patch(old, strategic_diff(old, new, SCHEMA), SCHEMA) == new


@given(objects)
def test_equal_objects_have_an_empty_diff(old: dict[str, Any]) -> None:
    assert strategic_diff(old, dict(old), SCHEMA) == {}


def test_a_condition_that_changes_is_patched_by_its_type_in_the_order_of_all() -> None:
    """kube-scheduler sends the changed element, its key, and the order of all elements."""
    ready = {"type": "Ready", "status": "True"}
    before = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}

    patch = strategic_diff(
        {"conditions": [ready, before]}, {"conditions": [ready, {"type": "PodScheduled", "status": "True"}]}, STATUS
    )

    assert patch == {
        "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
        "conditions": [{"type": "PodScheduled", "status": "True", "reason": None}],
    }
