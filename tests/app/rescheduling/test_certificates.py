"""Certificates of plans with limits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from podium.app.rescheduling import certificates
from podium.decide.rescheduling.certificate import Certificate
from podium.decide.rescheduling.guards import PlanInputs
from podium.decide.rescheduling.round_robin import ReschedulingPlan
from podium.framework.rescheduling.settings import MoveLimitSettings, ReschedulerSettings


def certificate(bound: float) -> Certificate:
    return Certificate(9.0, 5.0, bound, 0.1, 1, (), (), ())


@pytest.mark.parametrize(("within", "ever", "stated"), [(2.0, 3.0, 3.0), (4.0, 3.0, 4.0), (2.0, 6.0, 5.0)])
def test_a_bound_for_all_placements_holds_within_limits_too(
    within: float, ever: float, stated: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search for a bound ends early, so that the one with limits may come out lower."""

    def certify(*_: Any, limits: Any) -> Certificate:
        return certificate(within if limits else ever)

    monkeypatch.setattr(certificates, "certify", certify)
    settings = ReschedulerSettings(policies=(), in_flight=MoveLimitSettings(total=1))
    picture: Any = SimpleNamespace(now=0, movable_pods=lambda: ())
    budgets: Any = SimpleNamespace(over=lambda _: ())

    found = certificates.certified(
        ReschedulingPlan((), (), {}, {}, 9, is_cut=False), picture, (), settings, PlanInputs((), budgets)
    )

    assert (found.within_limits.bound, found.ever.bound) == (stated, ever)
