"""State that plugins keep during one attempt."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from podium.framework.handle import CycleState


@dataclass(slots=True)
class Count:
    number: int

    def clone(self) -> Count:
        return Count(self.number)


def test_values_are_found_under_their_keys() -> None:
    state = CycleState()
    state["Mine"] = 1

    assert ("Mine" in state, state["Mine"], state.get("Other", 7)) == (True, 1, 7)
    with pytest.raises(KeyError):
        state["Other"]


def test_a_clone_has_its_own_cloneable_values_and_shares_the_others() -> None:
    state, shared = CycleState(), [1]
    state["count"], state["list"] = Count(1), shared

    clone = state.clone()
    clone["count"].number = 2
    clone["new"] = True

    assert state["count"] == Count(1)
    assert clone["list"] is shared
    assert "new" not in state


def test_a_clone_skips_what_the_state_skips() -> None:
    state = CycleState()
    state.skip_filter = frozenset({"A"})
    state.skip_score = frozenset({"B"})

    clone = state.clone()

    assert (clone.skip_filter, clone.skip_score) == (frozenset({"A"}), frozenset({"B"}))
