"""Query parameters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.apirequests.parameters import (
    NO_PARAMETERS,
    Parameters,
    Query,
    check_parameters,
    query_of,
    read_parameters,
)
from podium.apirequests.request import Verb
from podium.store.errors import StoreError
from podium.store.listing import ListOptions

TEXT = st.text(max_size=8)
NUMBER = st.integers(-(2**63), 2**63 - 1)
TRUTH = st.booleans()
OPTIONS = st.builds(
    ListOptions,
    label_selector=TEXT,
    field_selector=TEXT,
    resource_version=TEXT,
    resource_version_match=TEXT,
    limit=NUMBER,
    continue_token=TEXT,
    send_initial_events=st.none() | TRUTH,
)
DELETE = (
    st.none()
    | st.dictionaries(st.sampled_from(("propagationPolicy",)), TEXT, min_size=1)
    | st.fixed_dictionaries({"gracePeriodSeconds": NUMBER, "orphanDependents": TRUTH})
)
PARAMETERS = st.builds(
    Parameters,
    options=OPTIONS,
    watches=TRUTH,
    bookmarks=TRUTH,
    timeout_seconds=NUMBER,
    dry_run=TEXT,
    field_manager=TEXT,
    force=st.none() | TRUTH,
    field_validation=TEXT,
    delete=DELETE,
    timeout=TEXT,
    include_object=st.sampled_from(("", "None", "Metadata", "Object")),
)


@given(PARAMETERS)
def test_a_written_avoid_list_is_read_back(parameters: Parameters) -> None:
    assert read_parameters(query_of(parameters)) == parameters


def test_nothing_says_nothing() -> None:
    assert read_parameters([]) == NO_PARAMETERS == Parameters()
    assert read_parameters([("unknown", "1")]) == NO_PARAMETERS


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("", True), ("x", True), ("False", False), ("0", False)]
)
def test_only_false_and_zero_are_no(text: str, expected: bool) -> None:
    assert read_parameters([("watch", text)]).watches is expected


def test_the_first_of_repeated_parameters_counts() -> None:
    assert read_parameters([("limit", "1"), ("limit", "2")]).options.limit == 1


@pytest.mark.parametrize("text", ["", "x", "1.5", "1_0", "--1", "9223372036854775808", "9" * 5000, "\u0661"])
def test_an_invalid_number_is_a_bad_request(text: str) -> None:
    with pytest.raises(StoreError) as caught:
        read_parameters([("limit", text)])
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("verb", "query", "field"),
    [
        ("create", [("dryRun", "Some")], "dryRun"),
        ("delete", [("dryRun", "All"), ("dryRun", "Some")], "dryRun"),
        ("update", [("fieldValidation", "Maybe")], "fieldValidation"),
        ("create", [("fieldManager", "m" * 129)], "fieldManager"),
        ("create", [("fieldManager", "a\nb")], "fieldManager"),
        ("patch", [("force", "true")], "force"),
        ("delete", [("propagationPolicy", "Sideways")], "propagationPolicy"),
        ("delete", [("propagationPolicy", "Orphan"), ("orphanDependents", "true")], "propagationPolicy"),
        ("deletecollection", [("propagationPolicy", "Sideways")], "propagationPolicy"),
    ],
)
def test_parameters_that_a_verb_does_not_take_are_invalid(verb: Verb, query: Query, field: str) -> None:
    with pytest.raises(StoreError) as caught:
        check_parameters(verb, read_parameters(query))
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert caught.value.details["causes"][0]["field"] == field


def test_an_apply_needs_a_manager() -> None:
    with pytest.raises(StoreError, match="required for apply"):
        check_parameters("patch", NO_PARAMETERS, applies=True)
    check_parameters("patch", read_parameters([("fieldManager", "me"), ("force", "true")]), applies=True)


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
def test_reads_take_what_is_none_of_their_business(verb: Verb) -> None:
    check_parameters(verb, read_parameters([("dryRun", "Some"), ("fieldManager", "m" * 129)]))
