"""What policies keep from question to question: it is as if they were asked for the first time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.plugins.rescheduling.registry import IN_TREE
from tests.builders import cluster_of
from tests.fuzzing import Effort, efforts
from tests.generators import EVERYTHING, Objects, clusters
from tests.plugins.rescheduling.pictures import ARGS, again, carry_out, picture_of, policy, shake


@efforts(25)
@pytest.mark.parametrize("name", sorted(IN_TREE))
def test_an_objective_depends_on_the_picture_alone(effort: Effort, name: str) -> None:
    @effort
    @given(clusters(EVERYTHING), st.randoms(use_true_random=False))
    def check(objects: Objects, chance: Any) -> None:
        seen = picture_of(cluster_of(*objects.surroundings), is_movable=lambda pod: True)
        asked = policy(name, **ARGS.get(name, {}))
        for _ in range(4):
            assert asked.objective(seen) == policy(name, **ARGS.get(name, {})).objective(again(seen))
            shake(seen, chance, 3)

    check()


@efforts(25)
@pytest.mark.parametrize("name", sorted(IN_TREE))
def test_moves_that_are_worth_it_come_to_an_end(effort: Effort, name: str) -> None:
    @effort
    @given(clusters(EVERYTHING))
    def check(objects: Objects) -> None:
        seen = picture_of(cluster_of(*objects.surroundings), is_movable=lambda pod: True)
        asked = policy(name, **ARGS.get(name, {}))
        first = asked.objective(seen)
        assert first >= 0
        for _ in range(100):
            before = asked.objective(seen)
            moved = carry_out(asked, seen)
            assert asked.objective(seen) <= before - 0.5 * len(moved) + 1e-6
            if not moved:
                return
        raise AssertionError("the moves do not come to an end")

    check()
