"""Invariants of every run, judged by plain loops over raw objects; each judge detects a planted bug."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from podium.api.disruption_policy import Rate
from podium.app.console.command import podium
from podium.cluster.pods import PodRecord
from podium.store.verbs import deletion as disruptions
from tests.app.processes import run
from tests.fuzzing import FUZZ_RUNS, FUZZ_SEED
from tests.sim.fleet_run import FleetRun
from tests.sim.fleet_stories import Feature, FleetStory
from tests.sim.judges import Judges, check_rate, kinds_of
from tests.store.objects import Raw

EVERYTHING = frozenset(Feature) - {Feature.PRESSURE, Feature.CRASHING, Feature.SECOND_SCHEDULER}
"""Gangs, claims, budgets with rates, caps, the rescheduler and all else that may disrupt, in one story."""
SEEDS, MANY_SEEDS = (904, 917), range(900, 930)
# A protected pod is soon preempted in this story.
UNPROTECTED_SEED = 905
JUDGED = {
    "a preemption",
    "a pod that is not preemptible",
    "a device that is given",
    "a node more than half full",
    "an eviction within a budget",
    "an eviction within a rate",
    "an eviction within a cap",
}


def judged(seed: int, *, is_faulty: bool = False) -> dict[str, int]:
    """Return what the judges had to judge in a story that has everything."""
    run = FleetRun(seed, is_faulty, features=EVERYTHING)
    run.play()
    return run.checker.court.judges.found


def test_the_judges_have_nothing_to_say_against_stories_with_everything_in_them() -> None:
    found = kinds_of(judged(seed) for seed in SEEDS)

    assert not JUDGED - found.keys(), found


def test_node_capacity_holds_with_failing_requests_and_scheduler_crashes() -> None:
    assert kinds_of(judged(seed, is_faulty=True) for seed in SEEDS)


@pytest.mark.fuzz
def test_the_judges_have_nothing_to_say_against_many_more_stories() -> None:
    for number in range(FUZZ_RUNS):
        judged(FUZZ_SEED * 100_000 + number, is_faulty=number % 4 != 0)


# That they can tell: with the product spoilt, they object.


def objections(seeds: Iterable[int]) -> Iterator[str]:
    """Yield the objection to each story that a judge rejects."""
    for seed in seeds:
        try:
            judged(seed)
        except AssertionError as error:
            yield str(error)


def test_judges_detect_a_preempted_protected_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PodRecord, "is_preemptible", property(lambda self: True))

    assert any("and is preempted" in each for each in objections((UNPROTECTED_SEED, *MANY_SEEDS)))


def test_judges_detect_a_violated_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disruptions, "check_allowed", lambda *_, **__: None)

    assert any("allows no disruption" in each for each in objections(MANY_SEEDS))


def test_judges_detect_a_violated_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rate, "tokens", lambda self, full_ns, now: 1)
    monkeypatch.setattr(Rate, "next_ns", lambda self, full_ns, now: now)

    assert any("disruptions within" in each for each in objections(MANY_SEEDS))


def pod(name: str, cpu: str, **status: object) -> Raw:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"phase": "Running", **status},
    }


NODE: Raw = {
    "kind": "Node",
    "metadata": {"name": "n1"},
    "spec": {},
    "status": {"allocatable": {"cpu": "2", "pods": "3"}},
}


def shown(*objects: Raw, counts_bound: bool = True) -> Judges:
    judges = Judges(counts_bound=counts_bound)
    for raw in objects:
        judges.written(raw, is_gone=False)
    return judges


def test_judges_detect_an_overfull_node() -> None:
    judges = shown(NODE, pod("a", "1500m"), pod("b", "500m"))

    with pytest.raises(AssertionError, match="node n1 holds 21/10 cpu"):
        judges.written(pod("c", "100m"), is_gone=False)
    judges.written(pod("c", "100m", phase="Succeeded"), is_gone=False)
    judges.written(pod("c", "0", phase="Pending"), is_gone=False)
    with pytest.raises(AssertionError, match="node n1 holds 4 pods"):
        judges.written(pod("d", "0", phase="Pending"), is_gone=False)
    shown(NODE, pod("a", "2"), counts_bound=False).written(pod("d", "1", phase="Pending"), is_gone=False)


def test_judges_detect_a_device_allocated_twice() -> None:
    def claim(name: str, device: str, **more: object) -> Raw:
        result = {"driver": "gpu", "pool": "n1", "device": device, **more}
        allocation = {"devices": {"results": [result]}}
        metadata = {"name": name, "namespace": "default"}
        return {"kind": "ResourceClaim", "metadata": metadata, "spec": {}, "status": {"allocation": allocation}}

    judges = shown(
        claim("a", "g0"), claim("b", "g1"), claim("c", "g0", shareID="s"), claim("d", "g0", adminAccess=True)
    )
    with pytest.raises(AssertionError, match="is given to default/a and to default/e"):
        judges.written(claim("e", "g0"), is_gone=False)


def test_judges_detect_a_window_with_too_many_disruptions() -> None:
    times = [Fraction(0), Fraction(0), Fraction(30), Fraction(60)]
    check_rate(times, "2/1m", "budget a")

    with pytest.raises(AssertionError, match="budget a: 3 disruptions within 29 s"):
        check_rate([Fraction(0), Fraction(0), Fraction(29)], "2/1m", "budget a")


# The same again


@pytest.mark.parametrize("seed", SEEDS)
def test_a_story_and_a_seed_give_the_same_bytes_for_every_hash_seed(seed: int, tmp_path: Path) -> None:
    story = tmp_path / "story.json"
    items = FleetStory(seed, EVERYTHING).files
    story.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    command = ("simulate", "-f", str(story), "--seed", "7", "-o", "json")

    here = CliRunner().invoke(podium, command)
    there = run(*command, PYTHONHASHSEED="1")

    assert len(json.loads(here.stdout)["events"]) > 50
    assert there.stdout == here.stdout
