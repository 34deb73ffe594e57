"""Invariants of random stories with the real scheduler, after each step and at rest, with and without faults.

Each seed is a story of its own. A run that fails tells its seed, its options and all that happened until then.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from podium.sim.history import SimEvent
from tests.sim.faults import Fault
from tests.sim.preemption_rounds import unjustified_rounds
from tests.sim.random_run import RandomRun
from tests.sim.shortest_story import RecordProperty, play_all

ROOT = Path(__file__).parents[2]
SEEDS, FAULTY_SEEDS = range(10), range(30)
LEAST_FAULTY = 10
REPLAYED = 3
HAPPENS = {"Scheduled", "FailedScheduling", "Preempted", "Nominated", "NominationCleared", "Killing", "Finished"}


def played(seed: int, *, is_faulty: bool) -> RandomRun:
    run = RandomRun(seed, is_faulty)
    run.play()
    return run


def turned_away(run: RandomRun) -> list[SimEvent]:
    """Return the pods that a kubelet would not take, and not those that ended because they were deleted."""
    events = run.simulation.history.events
    deleted = {event.pod for event in events if event.reason == "Killing"}
    failed = [event for event in events if (event.reason, event.by) == ("Failed", "kubelet") and event.message]
    return [event for event in failed if event.pod not in deleted]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_invariants_hold_in_every_story(seed: int) -> None:
    run = played(seed, is_faulty=False)

    # B2: nothing but the scheduler binds, so the kubelets turn nothing away.
    assert not turned_away(run)
    # E8
    assert not unjustified_rounds(run.simulation.history.events)


def test_the_invariants_hold_and_every_fault_occurs() -> None:
    fired, happened = Counter[Fault](), Counter[str]()

    for seed in FAULTY_SEEDS:
        run = played(seed, is_faulty=True)
        fired.update(run.faults.fired)
        events = run.simulation.history.events
        happened.update(event.reason for event in events)
        # B2: what is lost or late does not let two pods have one place. But a scheduler that crashes forgets which
        # bindings are on their way, and an old list shows room that is taken.
        if not run.faults.fired[Fault.CRASH_BEFORE] and not run.faults.fired[Fault.CRASH_AFTER]:
            assert not turned_away(run), seed
        has_all = all(fired[fault] for fault in Fault) and happened.keys() >= HAPPENS
        if has_all and seed + 1 >= LEAST_FAULTY:
            break

    assert all(fired[fault] > 0 for fault in Fault), fired
    assert happened.keys() >= HAPPENS


def digests() -> str:
    return " ".join(played(seed, is_faulty=True).digest for seed in range(REPLAYED))


def test_a_seed_gives_the_same_run_again_in_any_process() -> None:
    """C8. The order of sets and dictionaries differs between the processes."""
    code = "from tests.sim.test_random_runs import digests; print(digests())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}

    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**environment, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()

    assert there == digests()


@pytest.mark.fuzz
def test_the_invariants_hold_in_many_more_stories(record_property: RecordProperty) -> None:
    play_all(RandomRun, lambda seed: seed % 2 == 0, record_property)
