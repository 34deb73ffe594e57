"""The termination times of pods in a recording."""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.errors import InputError
from podium.api.input.codec import load_text
from podium.api.objects import read_object
from podium.api.pod import Pod
from podium.sim.recording.recorder import Terminations
from podium.sim.recording.tape import recordings_of
from tests.store.objects import pod

SECOND = 10**9


def ended(grace: int = 30, **metadata: Any) -> Pod:
    raw = pod("web", metadata={"deletionGracePeriodSeconds": grace, **metadata})
    found = read_object(raw, "ignore").object
    assert isinstance(found, Pod)
    return found


def usual(*seconds: float, **how: Any) -> float | None:
    counted = Terminations()
    for took in seconds:
        counted.count(ended(**how), round(took * SECOND))
    found = counted.usual_ns
    return None if found is None else found / SECOND


def test_half_of_the_pods_took_no_longer() -> None:
    assert usual(1.003) == 1.0
    assert usual(5, 1, 2) == 2.0
    assert usual(1, 2, 3, 4) == 2.0
    assert usual(0.04) == 0.0


def test_full_grace_periods_and_missing_ends_give_no_estimate() -> None:
    assert usual() is None
    assert usual(30.2, 30, 1) is None
    assert usual(1, 1, 30.1) == 1.0


@pytest.mark.parametrize(
    "how", [{"grace": 0}, {"annotations": {"podium.dev/termination": "2s"}}, {"finalizers": ["example.com/a"]}]
)
def test_pods_of_which_it_is_known_otherwise_do_not_count(how: dict[str, Any]) -> None:
    assert usual(1, **how) is None


def test_recorded_terminations_are_bounded() -> None:
    counted = Terminations()
    for number in range(40_000):
        counted.count(ended(grace=10**7), number * SECOND // 5)

    assert len(counted._took) <= 36_001


@pytest.mark.parametrize(
    ("given", "problem"), [("soon", "is not a duration"), ("-1s", "is negative"), (7, "is not text"), ("7s", None)]
)
def test_a_recording_without_duration_is_rejected(given: Any, problem: str | None) -> None:
    text = '{"apiVersion": "podium.dev/v1alpha1", "kind": "Recording", "metadata": {"name": "a"}, "termination": '
    documents = load_text((text + (f'"{given}"' if isinstance(given, str) else str(given)) + "}").encode(), "a")

    if problem is None:
        assert [each.termination_ns for each, _ in recordings_of(documents)] == [7 * SECOND]
    else:
        with pytest.raises(InputError, match=problem):
            list(recordings_of(documents))
