"""Podium against 200 decisions about dynamic resources of kube-scheduler v1.36.2.

The cases are small random clusters with a pending pod that claims devices, in 8 themes: attributes and capacity,
counts, shared and allocated claims (dra), alternatives (draprio), pools and nodes that share them (dratopo),
constraints (dramatch), taints (drataint), shared counters (drapart), extended resources (draext), all of it together
(dramix). The answers have everything that the other cases have, and what the claims would get on each node that fits
(`claims`), and what the PostFilter did (`postFilter`).
"""

from __future__ import annotations

import pytest

from tests.conformance.measured import DEVICES, all_cases, disagreement, explained

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


@pytest.mark.parametrize("theme", THEMES)
def test_every_decision_about_devices_is_kube_schedulers(theme: str) -> None:
    cases = [case for case in all_cases(DEVICES) if case.theme == theme]
    wrong = [found for found in (disagreement(case, explained(case)) for case in cases) if found]

    assert len(cases) == THEMES[theme]
    assert not wrong, f"{len(wrong)} of {len(cases)} cases of {theme} differ:\n" + "\n".join(wrong)
