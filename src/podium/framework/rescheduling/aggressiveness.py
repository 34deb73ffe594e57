"""How eagerly a rescheduler works, in words, and the numbers that each of them stands for.

Source: controlled-rescheduling.md, Rescheduler: "aggressive means it will use a relatively low threshold for triggering
an eviction and may consume a lot of disruption budget, while non-aggressive means it will use a relatively high
threshold for triggering an eviction and will try to leave plenty of buffer in disruption budgets".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from podium.framework.rescheduling.settings import Limits, ReschedulerSettings

_SECOND = 10**9


class Aggressiveness(Enum):
    """How eagerly pods are moved; each word is a full set of numbers, any of which may be set otherwise."""

    CAUTIOUS = "Cautious"
    MODERATE = "Moderate"
    BOLD = "Bold"


_CAUTIOUS = ReschedulerSettings(policies=())

SETTINGS_OF: Mapping[Aggressiveness, ReschedulerSettings] = {
    Aggressiveness.CAUTIOUS: _CAUTIOUS,
    Aggressiveness.MODERATE: replace(
        _CAUTIOUS,
        interval_ns=30 * _SECOND,
        threshold=0.25,
        in_flight=Limits(total=20, node=3, namespace=8, owner=2),
        hourly=Limits(total=240, node=40, namespace=80, owner=12),
        without_budget=Limits(total=8, namespace=3, owner=1),
        budget_reserve=1,
        budget_reserve_share=0.25,
        max_trials=500,
    ),
    Aggressiveness.BOLD: replace(
        _CAUTIOUS,
        interval_ns=10 * _SECOND,
        threshold=0.1,
        in_flight=Limits(total=100, node=10, namespace=40, owner=10),
        hourly=Limits(total=2_000, node=200, namespace=800, owner=100),
        without_budget=Limits(total=40, namespace=15, owner=4),
        budget_reserve=0,
        budget_reserve_share=0.0,
        max_trials=2_000,
    ),
}
"""The numbers of each word, without policies. Cautious is what holds where nothing is said."""
