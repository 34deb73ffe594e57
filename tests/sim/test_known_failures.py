"""Known failures of a class: the results equal those of attempting each pod."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec
import pytest

from podium.api.input.codec import Reader
from podium.api.pod import Pod
from podium.cluster.pods import PodRecord
from podium.controllers.scheduling.attempts import SchedulingAttempts
from podium.controllers.scheduling.known_failures import DerivedFailures, KnownFailure, KnownFailures
from podium.framework.runner import Runner
from podium.framework.settings.configuration import Configuration
from podium.sim.run import play_on, simulation_of
from podium.sim.run_options import run_options
from tests.builders import ZONE, configuration
from tests.conformance.stories import all_stories
from tests.controllers.driving import clearing
from tests.sim.objects import budget, scenario
from tests.sim.simulating import simulate
from tests.store.objects import Raw, node, pod

SEEDS = {"default": range(10), "exchanges": range(20, 23), "unfit": range(30, 34)}
SETTINGS = {
    "default": configuration(),
    "exchanges": configuration({"DefaultPreemption": {"equalPriorityPreemption": True}}),
    "unfit": clearing("Unfit"),
}


def crowd(random: Random, name: str) -> list[Raw]:
    """Return some pods of one class, or of two that differ in their priority alone."""
    labels = {"app": random.choice(["web", "db"])}
    spec: Raw = {"terminationGracePeriodSeconds": random.choice([0, 1, 5])}
    key = random.choice(["kubernetes.io/hostname", ZONE])
    same = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    odd = random.random()
    if odd < 0.15:
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [same]}}
    elif odd < 0.3:
        spec["topologySpreadConstraints"] = [{**same, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    elif odd < 0.4:
        spec["preemptionPolicy"] = "Never"
    priorities = random.choice([[0], [0], [5], [0, 9]])
    lasts = random.choice([None, "3s", "7s", "20s"])
    annotations = {} if lasts is None else {"podium.dev/duration": lasts}
    cpu = random.choice([1, 1, 2, 3])
    return [
        pod(
            f"{name}-{number}",
            cpu=cpu,
            priority=random.choice(priorities),
            labels=labels,
            annotations=annotations,
            spec=dict(spec),
        )
        for number in range(random.randint(2, 9))
    ]


def drawn(seed: int) -> list[Raw]:
    """Return a cluster that is too small for what comes."""
    random = Random(f"known failures {seed}")
    nodes = [node(f"n{number}", cpu=random.randint(2, 5)) for number in range(3)]
    for one in nodes:
        zone = random.choice(["a", "b"])
        one["metadata"]["labels"] = {"kubernetes.io/hostname": one["metadata"]["name"], ZONE: zone}
    steps: list[Raw] = []
    for number in range(random.randint(2, 5)):
        steps.append({"at": f"{random.choice([0, 1, 1.5, 4, 4, 9])}s", "apply": crowd(random, f"c{number}")})
    if random.random() < 0.5:
        steps.append({"at": "6s", "cordon": {"name": "n0"}})
    if random.random() < 0.5:
        steps.append({"at": "8s", "apply": [node("n9", cpu=2)]})
    if random.random() < 0.5:
        steps.append({"at": "10s", "delete": {"kind": "Pod", "name": "c0-0", "outright": True}})
    if random.random() < 0.4:
        steps.append({"at": "12s", "nodeDown": {"name": "n1"}})
    budgets = [budget("some", minAvailable=1)] if random.random() < 0.3 else []
    return [*nodes, *budgets, scenario(*sorted(steps, key=lambda one: float(one["at"][:-1])), until="400s")]


class Counting:
    """The numbers of known failures that were used, and of failures that were derived."""

    def __init__(self) -> None:
        self.hits = 0
        self.derived = 0

    def finder(self) -> Callable[[KnownFailures, PodRecord, int], KnownFailure | None]:
        """Return what stands in for `KnownFailures.find`."""

        def find(failures: KnownFailures, pod: PodRecord, now: int) -> KnownFailure | None:
            found = FIND(failures, pod, now)
            self.hits += found is not None
            return found

        return find

    def deriver(self) -> Callable[[DerivedFailures, Runner, PodRecord], KnownFailure | None]:
        """Return what stands in for `DerivedFailures.derive`."""

        def derive(failures: DerivedFailures, runner: Runner, pod: PodRecord) -> KnownFailure | None:
            found = DERIVE(failures, runner, pod)
            self.derived += found is not None
            return found

        return derive


FIND = KnownFailures.find
DERIVE = DerivedFailures.derive


def decided_each(objects: list[Raw], settings: Configuration | None = None, **options: Any) -> dict[str, Any]:
    """Return the outcome where every attempt is made."""
    known = patch.object(KnownFailures, "find", lambda *_: None)
    with known, patch.object(DerivedFailures, "derive", lambda *_: None):
        return simulate(objects, configuration=settings, **options).to_dict()


@pytest.mark.parametrize("settings", SETTINGS)
def test_crowds_are_decided_like_each_pod_alone(settings: str) -> None:
    counting = Counting()
    for seed in SEEDS[settings]:
        objects = drawn(seed)
        counted = patch.object(DerivedFailures, "derive", counting.deriver())
        with patch.object(KnownFailures, "find", counting.finder()), counted:
            found = simulate(objects, configuration=SETTINGS[settings], seed=seed).to_dict()

        assert found == decided_each(objects, SETTINGS[settings], seed=seed), seed

    assert (counting.hits > 30 and counting.derived > 10) or settings == "exchanges"


def test_recorded_story_pods_fail_alike_with_cached_failures() -> None:
    for story in all_stories()[::16]:
        assert simulate(story.documents(), seed=1).to_dict() == decided_each(story.documents(), seed=1), story.name


def test_the_last_message_of_a_pod_that_waits_is_written_at_the_end() -> None:
    waits = pod("waits", cpu=2, spec={"nodeSelector": {"disk": "ssd"}})
    steps = [{"at": "20s", "apply": [node("n1", cpu=1, disk="ssd")]}]
    objects = [node("n0", cpu=1), waits, scenario(*steps, until="60s")]
    with Reader() as reader:
        reader.read_text(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}), "objects")
        simulation = simulation_of(reader.input().documents, run_options())

    play_on(simulation)

    reported = [event.message for event in simulation.history.events if event.reason == "FailedScheduling"]
    waiting = simulation.store.get("Pod", "default/waits").object
    assert isinstance(waiting, Pod)
    condition = waiting.status.condition("PodScheduled")
    assert condition is not None
    assert condition.message == reported[-1]
    assert reported[-1].startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match")


def test_a_thousand_pods_that_wait_for_one_room_cost_few_decisions() -> None:
    runs = pod("runs", cpu=1, priority=9, annotations={"podium.dev/duration": "5s"})
    waiting = [pod(f"w{number}", cpu=1, annotations={"podium.dev/duration": "1h"}) for number in range(1000)]
    decisions = 0
    attempt = SchedulingAttempts.attempt

    def counted(*args: Any) -> Any:
        nonlocal decisions
        decisions += 1
        return attempt(*args)

    with patch.object(SchedulingAttempts, "attempt", counted):
        result = simulate([node("n1", cpu=1), runs, *waiting], until=9)

    # For the first of all, for the first that waits, for the one that gets the room, and for the next.
    assert decisions <= 6
    assert result.summary["attempts"] > 2000
    assert sum(event.reason == "Scheduled" for event in result.events) == 2
