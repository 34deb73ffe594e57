"""The effort of property tests: short by default, long if fuzzing was asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

FUZZ_RUNS = int(os.environ.get("PODIUM_FUZZ_RUNS", "500"))
FUZZ_SEED = int(os.environ.get("PODIUM_FUZZ_SEED", "0"))

_LONG, _SHARE = "PODIUM_FUZZ_RUNS" in os.environ, 3

FAULT_HOURS = "simulated hours under faults"
"""What tests record, and the end of a run of pytest sums up."""


def usual(examples: int) -> int:
    """Return how many examples to try: so many if fuzzing was asked for, a third of them otherwise."""
    return examples if _LONG else -(-examples // _SHARE)


@dataclass(frozen=True, slots=True)
class Effort:
    """So many examples, drawn from a seed or as the profile of hypothesis says. Decorates what `given` made."""

    examples: int
    seed: int | None = None

    def __call__(self, check: Callable[..., Any]) -> Callable[..., Any]:
        limited: Callable[..., Any] = settings(max_examples=self.examples)(check)
        return limited if self.seed is None else seed(self.seed)(limited)


def efforts(examples: int) -> pytest.MarkDecorator:
    """Run a test twice: with so many examples, and, where fuzzing was asked for, with as many as were asked for."""
    long = pytest.param(Effort(FUZZ_RUNS, FUZZ_SEED), marks=pytest.mark.fuzz, id="fuzz")
    return pytest.mark.parametrize("effort", [pytest.param(Effort(examples), id="quick"), long])


def long_runs(machine: type[RuleBasedStateMachine]) -> None:
    """Run a state machine as often as fuzzing was asked for, from the seed asked for."""
    chosen = seed(FUZZ_SEED)(type(machine.__name__, (machine,), {}))
    run_state_machine_as_test(chosen, settings=settings(max_examples=FUZZ_RUNS, stateful_step_count=50))
