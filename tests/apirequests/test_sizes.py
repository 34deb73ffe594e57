"""Limits on the length of lists in an object, checked before validation."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.checks import MAX_ENTRIES
from podium.apirequests.context import MOST_ENTRIES, MOST_IN_ALL
from podium.apirequests.request import Response
from tests.apirequests.asking import API
from tests.store.objects import Raw

MAIN: Raw = {"name": "main", "image": "app"}


def created(kind: str = "Pod", *, manager: str = "kubectl", **fields: Any) -> Response:
    raw = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "spec": {"containers": [MAIN]}, **fields}
    return API().ask("create", kind, namespace="default", body=raw, field_validation="Warn", field_manager=manager)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"spec": {"containers": [{}] * (MAX_ENTRIES + 1)}}, "spec.containers"),
        ({"spec": {"containers": [MAIN], "tolerations": [{}] * (MAX_ENTRIES + 1)}}, "spec.tolerations"),
        ({"spec": {"containers": [{**MAIN, "env": [{}] * (MOST_ENTRIES + 1)}]}}, "spec.containers[0].env"),
        ({"spec": {"containers": [MAIN]} | {f"field{n}": 1 for n in range(MOST_ENTRIES)}}, "spec"),
        ({"metadata": {"labels": {f"k{n}": "v" for n in range(MOST_IN_ALL + 1)}}}, "metadata.labels"),
        ({"spec": {"containers": [{"env": [{}] * MOST_ENTRIES}] * (MOST_IN_ALL // MOST_ENTRIES)}}, ""),
    ],
)
def test_oversized_lists_are_rejected_with_the_right_reason(fields: Raw, place: str) -> None:
    response = created(**fields)

    assert response.error is not None
    [cause] = response.error.details["causes"]
    assert (response.code, cause["reason"]) == (422, "FieldValueTooMany")
    assert cause["field"].startswith(place)
    assert "Too many" in response.error.message


def test_a_patch_is_looked_at_as_the_object_is() -> None:
    api = API()
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"containers": [MAIN], "schedulingGates": [{"name": "a/b"}]},
    }
    api.ask("create", "Pod", namespace="default", body=raw)

    def labelled(first: int, count: int) -> int:
        body = {"spec": {"nodeSelector": {f"k{n}": "v" for n in range(first, first + count)}}}
        return api.ask("patch", "Pod", "default/x", body=body, field_manager="kubectl").code

    assert labelled(0, MOST_ENTRIES + 1) == 422
    assert labelled(0, MOST_ENTRIES) == 200
    assert labelled(MOST_ENTRIES, 1) == 422


def test_data_may_be_as_much_as_a_body_holds() -> None:
    data = {f"k{n}": "" for n in range(MOST_ENTRIES + 1)}
    raw = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}

    response = API().ask("create", "ConfigMap", namespace="default", body=raw, field_manager="kubectl")

    assert response.code == 201


def test_ports_of_nodes_are_looked_for_once_for_all_ports_of_a_service() -> None:
    ports = [{"port": number, "name": f"p{number}"} for number in range(1, 4_001)]
    spec = {"type": "NodePort", "ports": ports}
    raw = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": spec}

    found = API().ask("create", "Service", namespace="default", body=raw).to_dict()["spec"]["ports"]

    assert [port.get("nodePort") for port in found] == [
        *range(30_086, 32_768),
        *range(30_000, 30_086),
        *[None] * (4_000 - 2_768),
    ]
