"""Short stories of a whole cluster, told again for each thing that each component asks for, with a fault at that one.

Whatever goes wrong, and wherever, the invariants hold after each step and at rest, and the story comes to the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from podium.machines.disruption.disruption_controller import DisruptionController
from podium.machines.disruption.drain import Drain
from podium.machines.workloads.workload_controller import WorkloadController
from podium.sim.component import Component
from podium.sim.simulation import Simulation
from tests.proof.failures.bugs import Bug, fails, instead, nothing
from tests.proof.test_every_write import CRASHES, DELIVERIES, FATES, MOST_STEPS, OneFault, settings_of
from tests.sim.fleet_invariants import FleetChecker
from tests.sim.fleet_stories import Feature
from tests.sim.judged_scheduler import JudgedScheduler
from tests.sim.objects import budget, scenario, workload
from tests.sim.played import pods, simulation_of, told
from tests.store.objects import Raw, node, pod

SCHEDULER = "default-scheduler"
SHORT: Raw = {"terminationGracePeriodSeconds": 3}


@dataclass(frozen=True, slots=True)
class Story:
    """What is there, what happens, and what must be true at the end; ``features`` are those of a fleet's story."""

    objects: Sequence[Raw]
    steps: Sequence[Raw]
    end: Callable[[Simulation], bool]
    features: frozenset[Feature] = frozenset()


def template(app: str, **spec: object) -> Raw:
    return {"metadata": {"labels": {"app": app}}, "spec": {**pod("")["spec"], **SHORT, **spec}}


def numbered(name: str, replicas: int) -> Raw:
    """A StatefulSet."""
    raw = workload("StatefulSet", name, replicas, template=template(name))
    raw["spec"]["selector"] = {"matchLabels": {"app": name}}
    return raw


def finite(name: str, completions: int) -> Raw:
    """A Job whose pods run for two seconds."""
    inner = template(name, restartPolicy="Never")
    inner["metadata"]["annotations"] = {"podium.dev/duration": "2s"}
    metadata = {"name": name, "namespace": "default"}
    spec = {"completions": completions, "template": inner}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def where(simulation: Simulation, app: str) -> list[str]:
    """The nodes of the running pods of an app."""
    found = (one for one in pods(simulation).values() if one.metadata.labels.get("app") == app)
    return sorted(one.spec.node_name for one in found if one.status.phase == "Running" and not one.is_terminating)


def is_drained(simulation: Simulation) -> bool:
    """Whether the drain has come to its end. One that crashed after that finds nothing more to do."""
    return [report.state for report in simulation.control_plane.drain_reports()] == ["drained"]


QUICK = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}]

STORIES = {
    "a drain within a budget": Story(
        [
            node("n1"),
            {**node("n2"), "spec": {"unschedulable": True}},
            workload("Deployment", "web", 2, template=template("web")),
            budget("web", maxUnavailable=1),
        ],
        [
            {"at": "5s", "uncordon": {"name": "n2"}},
            {"at": "5s", "drain": {"name": "n1"}},
        ],
        lambda simulation: where(simulation, "web") == ["n2", "n2"] and is_drained(simulation),
    ),
    "a node that fails": Story(
        [
            node("n1"),
            {**node("n2"), "spec": {"unschedulable": True}},
            workload("ReplicaSet", "web", 1, template=template("web", tolerations=QUICK)),
        ],
        [
            {"at": "5s", "uncordon": {"name": "n2"}},
            {"at": "6s", "nodeDown": {"name": "n1"}},
            {"at": "3m", "nodeUp": {"name": "n1"}},
        ],
        lambda simulation: where(simulation, "web") == ["n2"],
        frozenset({Feature.FAILURES}),
    ),
    "a numbered pod and a job": Story(
        [node("n1"), numbered("db", 2), finite("sum", 2)],
        [{"at": "9s", "evict": {"name": "db-0"}}],
        lambda simulation: (
            where(simulation, "db") == ["n1", "n1"]
            and simulation.store.get("Job", "default/sum").raw["status"].get("succeeded") == 2
        ),
    ),
}


def tell(story: Story, fault: OneFault) -> Simulation:
    """Tell a story to its end, with a fault. Raises AssertionError."""
    settings = settings_of(SCHEDULER)
    scheduler = Component(SCHEDULER, lambda: JudgedScheduler(settings), waits=True)
    simulation = simulation_of(*story.objects, scenario(*story.steps), schedulers=[scheduler], faults=fault)
    checker = FleetChecker(simulation, [scheduler], story.features)
    try:
        for _ in range(MOST_STEPS):
            checker.after_step()
            if not simulation.step():
                break
        else:
            raise AssertionError("L4: it never ends")
        checker.at_rest()
        assert story.end(simulation), "the story ends otherwise"
    except Exception as error:
        note = f"{fault.scheduler}, {fault.what}: number {fault.number}"
        error.add_note("\n".join([note, *told(simulation)]))
        raise
    return simulation


def components_of(story: Story) -> list[str]:
    """The components that take part in a story."""
    simulation = tell(story, OneFault("nothing", 0, ""))
    return [component.name for component in simulation.components if component.name != SCHEDULER]


def struck(story: Story, component: str, what: str) -> Iterator[int]:
    """Tell a story until there is nothing left for the fault to strike."""
    number = 0
    while True:
        fault = OneFault(what, number, component)
        tell(story, fault)
        if not fault.has_happened:
            return
        yield number
        number += 1


@pytest.mark.parametrize("what", [*FATES, *CRASHES])
@pytest.mark.parametrize("story", STORIES)
def test_one_fault_wherever_it_strikes_breaks_nothing(story: str, what: str) -> None:
    numbers = {name: len(list(struck(STORIES[story], name, what))) for name in components_of(STORIES[story])}

    assert sum(numbers.values()) >= 10, numbers


@pytest.mark.fuzz
@pytest.mark.parametrize("what", DELIVERIES)
@pytest.mark.parametrize("story", STORIES)
def test_whatever_is_seen_late_or_not_at_all_breaks_nothing(story: str, what: str) -> None:
    for name in components_of(STORIES[story]):
        assert list(struck(STORIES[story], name, what))


@pytest.mark.parametrize(
    ("what", "bug"),
    [
        ("refused", instead(Drain, "_answered", nothing)),
        ("refused", instead(DisruptionController, "_answered", nothing)),
        ("refused", instead(WorkloadController, "_take_answer", nothing)),
    ],
)
def test_a_bug_that_only_a_fault_shows_is_found(what: str, bug: Bug) -> None:
    def stories() -> None:
        for story in STORIES.values():
            for name in components_of(story):
                assert list(struck(story, name, what)) is not None

    fails(stories, bug)
