"""Limits on moves at a time and per hour."""

from __future__ import annotations

from typing import Any

import pytest

from podium.decide.rescheduling.guards import PastMove
from podium.decide.rescheduling.planner import MoveLimits
from podium.framework.rescheduling.settings import MoveLimitSettings
from tests.decide.rescheduling.planning import HOUR, NOW, SECOND, free_settings

MINUTE = 60 * SECOND


def leaving(node: str = "n", namespace: str = "default", owner: str = "o", *, has_budget: bool = True) -> PastMove:
    return PastMove(namespace, owner, node, NOW, is_in_flight=True, has_budget=has_budget)


def past(*, ago_ns: int = MINUTE, in_flight: bool = True, has_budget: bool = True, **fields: Any) -> PastMove:
    usual = {"namespace": "default", "owner_uid": "o", "source": "n"}
    return PastMove(**{**usual, **fields}, evicted_ns=NOW - ago_ns, is_in_flight=in_flight, has_budget=has_budget)


def limits(*moves: PastMove, **settings: Any) -> MoveLimits:
    return MoveLimits(moves, free_settings(**settings), NOW)


@pytest.mark.parametrize("kind", ["in_flight", "hourly"])
@pytest.mark.parametrize(
    ("limit", "other", "whose"),
    [
        ("total", leaving("m", "shop", "p"), None),
        ("node", leaving("m"), "of node n"),
        ("namespace", leaving(namespace="shop"), "of namespace default"),
        ("owner", leaving(owner="p"), "of its owner"),
    ],
)
def test_moves_count_by_node_namespace_owner_and_in_all(
    kind: str, limit: str, other: PastMove, whose: str | None
) -> None:
    one = limits(**{kind: MoveLimitSettings(**{limit: 2})})

    assert one.why([leaving()]) == ""
    one.take([leaving(), leaving()])

    words = {"in_flight": "under way", "hourly": "within an hour"}[kind]
    of = "" if whose is None else f" {whose}"
    too_many = f"2 moves{of} are {words}, and the limit is 2"
    assert one.why([leaving()]) == too_many
    assert one.why([other]) == (too_many if whose is None else "")
    assert one.used_up == ("" if whose else f"2 moves are {words}, and the limit is 2")


def test_a_group_counts_as_a_whole() -> None:
    one = limits(in_flight=MoveLimitSettings(total=2))

    assert one.why([leaving(), leaving()]) == ""
    assert one.why([leaving(), leaving(), leaving()]) != ""


def test_moves_that_are_not_over_count() -> None:
    assert limits(past(), in_flight=MoveLimitSettings(total=1)).used_up != ""
    assert limits(past(in_flight=False), in_flight=MoveLimitSettings(total=1)).used_up == ""


def test_a_move_that_takes_too_long_counts_no_longer_as_under_way() -> None:
    settings: dict[str, Any] = {"in_flight": MoveLimitSettings(total=1), "move_timeout_ns": MINUTE}

    assert limits(past(ago_ns=MINUTE - 1), **settings).used_up != ""
    assert limits(past(ago_ns=MINUTE), **settings).used_up == ""


def test_moves_count_for_an_hour_though_they_are_over() -> None:
    hourly = MoveLimitSettings(total=1)

    assert limits(past(ago_ns=HOUR - 1, in_flight=False), hourly=hourly).used_up != ""
    assert limits(past(ago_ns=HOUR, in_flight=False), hourly=hourly).used_up == ""


def test_pods_without_a_budget_have_a_limit_of_their_own() -> None:
    one = limits(past(has_budget=False), without_budget=MoveLimitSettings(total=1))

    assert one.why([leaving(has_budget=True)]) == ""
    too_many = "1 move is under way without a budget, and the limit is 1"
    assert one.why([leaving(has_budget=False)]) == too_many
    assert one.used_up == ""


def test_the_owners_that_were_moved_of_late_are_known() -> None:
    one = limits(past(), past(in_flight=False), past(ago_ns=HOUR), past(owner_uid="p"))

    assert [one.last_hour.counts["owner", owner] for owner in "opq"] == [2, 1, 0]
