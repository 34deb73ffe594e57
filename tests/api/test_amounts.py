"""Quantities become text, whatever their type in the input."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.schemas.schema import Object, write_out_amounts
from tests.store.objects import node, pod


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        *((1, "1"), (0, "0"), (-2, "-2"), (0.5, "500m"), (1.0, "1"), (0.000_001, "1u"), ("1", "1"), ("1.50", "1500m")),
        *(("1000m", "1"), (1_000, "1k"), ("1024Mi", "1Gi"), ("0.5Gi", "512Mi"), ("100Mi", "100Mi"), ("x", "x")),
        *((True, True), (None, None), ([], []), (10**70, 10**70)),
    ],
)
def test_an_amount_becomes_canonical_text(written: Any, expected: Any) -> None:
    raw = pod("a")
    resources = raw["spec"]["containers"][0]["resources"]
    resources["requests"]["cpu"] = written
    write_out_amounts(raw, Object("Pod"))
    assert resources["requests"]["cpu"] == expected


def test_other_numbers_stay() -> None:
    raw = pod("a", priority=7, spec={"terminationGracePeriodSeconds": 30})
    write_out_amounts(raw, Object("Pod"))
    assert (raw["spec"]["priority"], raw["spec"]["terminationGracePeriodSeconds"]) == (7, 30)


def test_amounts_are_found_however_deep() -> None:
    raw: Any = {"kind": "Deployment", "spec": {"replicas": 2, "template": {"spec": pod("a", cpu=3)["spec"]}}}
    write_out_amounts(raw, Object("Deployment"))
    assert raw["spec"]["replicas"] == 2
    assert raw["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3"}
    machine = node("n", cpu=8)
    write_out_amounts(machine, Object("Node"))
    assert machine["status"]["allocatable"] == {"cpu": "8", "memory": "1Ti", "pods": "110"}


@pytest.mark.parametrize(
    "raw", [None, [], "text", {"spec": 1}, {"spec": {"containers": {}}}, {"spec": {"containers": [1]}}]
)
def test_values_of_another_shape_are_kept(raw: Any) -> None:
    before = repr(raw)
    write_out_amounts(raw, Object("Pod"))
    assert repr(raw) == before
