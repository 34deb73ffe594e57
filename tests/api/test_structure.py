from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.api.quantity import PLAIN_QUANTITY, parse_quantity
from podium.api.schemas.schema import findings

Raw = dict[str, Any]


def pod(**fields: Any) -> Raw:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, **fields}


def reported(raw: Raw) -> list[tuple[str, str, bool]]:
    return [(one.path, one.message, one.is_unknown) for one in findings(raw)]


def test_a_valid_object_has_no_structural_findings() -> None:
    containers = [{"name": "main", "image": "web", "env": [{"name": "A", "value": "b"}], "stdin": True}]

    assert reported(pod(spec={"containers": containers, "overhead": {"cpu": 1}}, status={"phase": "Running"})) == []


def test_unknown_fields_are_reported_with_suggestions() -> None:
    raw = pod(spec={"nodeSelectors": {}, "containers": [{"name": "a", "hostIp": "x"}], "qwertz": 1})

    assert reported(raw) == [
        (".spec.nodeSelectors", "there is no such field; did you mean nodeSelector?", True),
        (".spec.containers[0].hostIp", "there is no such field", True),
        (".spec.qwertz", "there is no such field", True),
    ]


def test_a_field_in_other_letters_is_known() -> None:
    assert reported(pod(spec={"hostnetwork": True})) == [
        (".spec.hostnetwork", "there is no such field; did you mean hostNetwork?", True)
    ]


@pytest.mark.parametrize(
    ("fields", "path", "message"),
    [
        ({"status": {"conditions": [5]}}, ".status.conditions[0]", "5 is not an object"),
        ({"status": {"conditions": {}}}, ".status.conditions", "an object is not a list"),
        ({"status": []}, ".status", "a list is not an object"),
        ({"status": {"containerStatuses": [None]}}, ".status.containerStatuses[0]", "null is not an object"),
        ({"spec": {"containers": [{"args": [1]}]}}, ".spec.containers[0].args[0]", "1 is not text; put it in quotes"),
        (
            {"spec": {"activeDeadlineSeconds": 2**63}},
            ".spec.activeDeadlineSeconds",
            "9223372036854775808 is not a whole",
        ),
        ({"metadata": {"labels": {"a b": 1}}}, '.metadata.labels["a b"]', "1 is not text; put it in quotes"),
        (
            {"status": {"conditions": [{"type": "Ready", "lastTransitionTime": "2300-01-01T00:00:00Z"}]}},
            ".status.conditions[0].lastTransitionTime",
            '"2300-01-01T00:00:00Z" is out of range; times are up to 2262',
        ),
        ({"status": {"startTime": "today"}}, ".status.startTime", '"today" is not a time'),
    ],
)
def test_a_misplaced_value_is_reported(fields: Raw, path: str, message: str) -> None:
    ((found_path, found_message, is_unknown),) = reported(pod(**fields))

    assert (found_path, is_unknown) == (path, False)
    assert found_message.startswith(message)


@pytest.mark.parametrize(
    "time", ["2024-02-29T00:00:00Z", "1970-01-01T00:00:00Z", "2026-01-31T23:59:59.999+05:30", "2262-04-11T00:00:00Z"]
)
def test_every_documented_time_format_is_accepted(time: str) -> None:
    assert reported(pod(status={"startTime": time})) == []


@pytest.mark.parametrize("amount", ["1", "1.5Gi", 2, 0.5, "1e3", " 1 ", "+1", ".5", 10**40])
def test_every_amount_that_there_is_may_stand_for_one(amount: Any) -> None:
    assert reported({"apiVersion": "v1", "kind": "Node", "status": {"capacity": {"cpu": amount}}}) == []


@pytest.mark.parametrize("amount", ["", "1 Gi", "5/1h", True, [], "1" * 65, 1e300])
def test_invalid_quantities_are_reported_in_every_quantity_field(amount: Any) -> None:
    limits = [{"type": "Container", "default": {"cpu": amount}}]

    ((path, _, _),) = reported({"apiVersion": "v1", "kind": "LimitRange", "spec": {"limits": limits}})

    assert path == ".spec.limits[0].default.cpu"


@given(st.from_regex(PLAIN_QUANTITY))
def test_a_plain_quantity_is_a_quantity(text: str) -> None:
    assert parse_quantity(text) >= 0


def test_an_object_of_another_version_may_have_other_fields_and_no_other_types() -> None:
    raw = {"apiVersion": "apps/v1beta2", "kind": "Deployment", "foo": 1, "status": {"conditions": [5]}}

    assert reported(raw) == [(".status.conditions[0]", "5 is not an object", False)]


def test_unknown_kinds_have_no_structural_findings() -> None:
    assert reported({"apiVersion": "example.com/v1", "kind": "Gadget", "foo": 1}) == []
