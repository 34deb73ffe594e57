"""Podium against 200 decisions about dynamic resources that kube-scheduler v1.36.2 itself took.

`dra-cases.jsonl.xz` holds small random clusters with a pending pod that claims devices, in 8 themes: attributes and
capacity, counts, shared and allocated claims (dra), alternatives (draprio), pools and nodes that share them (dratopo),
constraints (dramatch), taints (drataint), shared counters (drapart), extended resources (draext), all of it together
(dramix). `dra-expected.jsonl.xz` holds what kube-scheduler decided: everything that the other cases have, and what the
claims would get on each node that fits (`claims`), and what the PostFilter did (`postFilter`).

An error is told as it is by Podium, and only as one by the cases: that there is one must agree.
"""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podium.api.input.codec import decode
from podium.app.explaining.explainer import Explainer

HERE = Path(__file__).parent
THEMES = {
    "dra": 60,
    "draext": 20,
    "dramatch": 20,
    "dramix": 20,
    "drapart": 20,
    "draprio": 20,
    "drataint": 20,
    "dratopo": 20,
}


@cache
def all_cases() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    with lzma.open(HERE / "dra-cases.jsonl.xz") as cases, lzma.open(HERE / "dra-expected.jsonl.xz") as answers:
        return [(json.loads(case), json.loads(answer)) for case, answer in zip(cases, answers, strict=True)]


def decided(case: dict[str, Any]) -> dict[str, Any]:
    """Podium's decision, without what it says beyond the cases."""
    typed = [one for one in map(decode, case["objects"]) if one is not None]
    found = Explainer(typed).explain(case["pod"]).decision()
    for field in ("outcome", "node", "restsOn"):
        found.pop(field, None)
    if "error" in found:
        found["error"] = "a filter failed"
    return found


def disagreement(case: dict[str, Any], expected: dict[str, Any]) -> str:
    """What differs from kube-scheduler's decision, field by field; "" where nothing does."""
    found, expected = decided(case), {key: value for key, value in expected.items() if key != "name"}
    wrong = [
        f"  {field}: kube-scheduler {expected.get(field)}\n  {' ' * len(field)}  Podium {found.get(field)}"
        for field in sorted(found.keys() | expected.keys())
        if found.get(field) != expected.get(field)
    ]
    return "\n".join([case["name"], *wrong]) if wrong else ""


@pytest.mark.parametrize("theme", THEMES)
def test_every_decision_about_devices_is_kube_schedulers(theme: str) -> None:
    cases = [one for one in all_cases() if one[0]["theme"] == theme]
    wrong = [found for found in (disagreement(*one) for one in cases) if found]

    assert len(cases) == THEMES[theme]
    assert not wrong, f"{len(wrong)} of {len(cases)} cases of {theme} differ:\n" + "\n".join(wrong)


def test_answers_stand_in_the_line_of_their_case() -> None:
    assert all(case["name"] == expected["name"] for case, expected in all_cases())
