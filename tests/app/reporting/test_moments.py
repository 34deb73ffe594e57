"""The times of events in a pod's life, counted in events."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.app.library import simulate
from podium.app.reporting.run_timeline import BEFORE, moments_of
from tests.docs.blocks import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_moments_follow_the_times_of_the_result_in_order(example: Path) -> None:
    result = simulate([example], until="10m", start_delay="3s")

    found, whose, by_whom = moments_of(result.pods, result.events)

    assert len(found) == len(result.pods)
    for pod, moments in zip(result.pods, found, strict=True):
        pairs = (
            (moments["created"], pod["createdAt"]),
            (moments["scheduled"], pod["scheduledAt"]),
            (moments["started"], pod["startedAt"]),
            (moments["ended"], pod["endedAt"]),
        )
        for moment, time in pairs:
            if moment is not None and moment > BEFORE:
                assert result.events[moment].time == time, pod["pod"]
        known = [moment for moment, _ in pairs if moment is not None]
        assert known == sorted(known), pod["pod"]
        assert (moments["scheduled"] is None) == (pod["node"] is None), pod["pod"]
        assert (moments["ended"] is None) == (pod["state"] not in ("succeeded", "failed", "terminated")), pod["pod"]
    for event, place, by in zip(result.events, whose, by_whom, strict=True):
        assert place < 0 or result.pods[place]["pod"] == event.pod
        assert by < 0 or result.pods[by]["pod"] == event.by
