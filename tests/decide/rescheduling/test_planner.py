"""Which proposals become moves."""

from __future__ import annotations

from tests.builders import node
from tests.decide.rescheduling.planning import KeepOff, given, moves, places, plan, planned, web


def test_a_pod_that_would_be_better_elsewhere_is_moved() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1))

    made = plan(here, KeepOff(("a",)))

    assert moves(made) == {"w": "b"}
    assert made.planned[0].reason == "a is to be left"
    assert made.planned[0].gain == 1
    assert (made.before, made.after) == ({"KeepOff": 1}, {"KeepOff": 0})
    assert made.planned[0].moves[0].source == "a"
    assert made.planned[0].moves[0].is_sure


def test_what_is_planned_is_taken_back_when_the_scratch_ends() -> None:
    here = given(node("a"), node("b"), web("w", "a", cpu=1))

    with planned(here, KeepOff(("a",))):
        assert places(here.cluster) == {"w": "b"}

    assert places(here.cluster) == {"w": "a"}
