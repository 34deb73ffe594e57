"""Short stories of a whole cluster, repeated with a fault at each action of each component.

Whatever goes wrong, and wherever, the invariants hold after each step and at rest, and the story comes to the same end.
In a normal run half of the faults strike an action, and the other half the next one; in a run marked `fuzz` each fault
strikes each action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from podium.controllers.disruption.disruption_controller import DisruptionController
from podium.controllers.disruption.drain import NodeDrain
from podium.controllers.rescheduling.moves import Moves
from podium.controllers.workloads.claims import ResourceClaims
from podium.controllers.workloads.workload_controller import WorkloadController
from podium.runtime.runtime import Component
from podium.sim.simulation import Simulation
from tests import devices
from tests.proof.failures.bugs import Bug, fails, instead, none_of_it, nothing
from tests.proof.test_every_write import CRASHES, DELIVERIES, FATES, MOST_STEPS, OneFault, settings_of
from tests.sim.device_invariants import claims
from tests.sim.fleet_invariants import FleetChecker
from tests.sim.fleet_stories import LEAVE_BAD, Feature
from tests.sim.judged_scheduler import JudgedScheduler
from tests.sim.objects import budget, job, scenario, workload
from tests.sim.played import pods, reported, simulation_of
from tests.store.objects import Raw, node, pod

SCHEDULER = "default-scheduler"
SHORT: Raw = {"terminationGracePeriodSeconds": 3}

FAULTS = (*FATES, *CRASHES)
EACH = slice(None)


def in_turn(what: str) -> slice:
    """Return the numbers of the places that a fault strikes in a normal run; others strike those between them."""
    return slice(FAULTS.index(what) % 2, None, 2)


@dataclass(frozen=True, slots=True)
class Story:
    """The initial objects, the events, and the checks at the end.

    ``features`` are those of a fleet's story, ``plugins`` what the scheduler needs besides those of all stories,
    ``struck`` the components that faults strike, where they are not to strike all, and ``rescheduler`` the scenario's.
    Faults strike ``least`` times at least.
    """

    objects: Sequence[Raw]
    steps: Sequence[Raw]
    end: Callable[[Simulation], bool]
    features: frozenset[Feature] = frozenset()
    plugins: Sequence[str] = ()
    struck: Sequence[str] = ()
    rescheduler: Raw | None = None
    least: int = 10


def template(app: str, **spec: object) -> Raw:
    return {"metadata": {"labels": {"app": app}}, "spec": {**pod("")["spec"], **SHORT, **spec}}


def numbered(name: str, replicas: int) -> Raw:
    """Return a StatefulSet."""
    raw = workload("StatefulSet", name, replicas, template=template(name))
    raw["spec"]["selector"] = {"matchLabels": {"app": name}}
    return raw


def finite(name: str, completions: int) -> Raw:
    """Return a Job whose pods run for two seconds."""
    inner = template(name, restartPolicy="Never")
    inner["metadata"]["annotations"] = {"podium.dev/duration": "2s"}
    return job(name, template=inner, completions=completions)


def minutely(name: str) -> Raw:
    """Return a CronJob that makes a Job each minute, and keeps the last."""
    spec = {
        "schedule": "* * * * *",
        "successfulJobsHistoryLimit": 1,
        "jobTemplate": {"spec": finite(name, 1)["spec"]},
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def with_device(name: str, **more: object) -> Raw:
    """Return a pod whose claim is made for it."""
    raw = pod(name, spec={**SHORT, **more})
    if more:
        raw["metadata"]["annotations"] = {"podium.dev/duration": "2s"}
    return devices.using(raw, template="gpu")


def where(simulation: Simulation, app: str) -> list[str]:
    """Return the nodes of the running pods of an app."""
    found = (one for one in pods(simulation).values() if one.metadata.labels.get("app") == app)
    return sorted(one.spec.node_name for one in found if one.status.phase == "Running" and not one.is_terminating)


def is_drained(simulation: Simulation) -> bool:
    """Return whether the drain has come to its end. One that crashed after that finds nothing more to do."""
    return [report.state for report in simulation.player.drain_reports()] == ["drained"]


def leaving(guidance: str, steering: str) -> Story:
    """Three pods are moved off a node, one at a time."""
    slow = template("web")
    slow["metadata"]["annotations"] = {"podium.dev/ready-after": "15s"}
    return Story(
        [node("bad"), workload("ReplicaSet", "web", 3, template=slow), budget("web", maxUnavailable=2)],
        [{"at": "5s", "apply": [node("n2")]}],
        lambda simulation: where(simulation, "web") == ["n2"] * 3,
        struck=("rescheduler",),
        least=5,
        rescheduler={
            "aggressiveness": "Bold",
            "policies": [{"name": LEAVE_BAD}],
            "interval": "10s",
            "scope": {"minimumAge": "8s"},
            "limits": {"inFlight": {"total": 1}},
            "moveTimeout": "1m",
            "guidance": guidance,
            "steering": steering,
        },
    )


def gang(name: str, least: int) -> Raw:
    """Return a group of which so many pods are placed together."""
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}


def ganged(name: str, replicas: int, cpu: int, priority: int = 0) -> Raw:
    """Return a ReplicaSet whose pods belong to the group of its name."""
    spec = pod("", cpu=cpu)["spec"] | {"schedulingGroup": {"podGroupName": name}, "priority": priority}
    raw = workload("ReplicaSet", name, replicas, template=template(name, **spec))
    raw["spec"]["selector"] = {"matchLabels": {"app": name}}
    return raw


def is_scheduled(simulation: Simulation, name: str) -> bool:
    """Return whether a group says that it was scheduled."""
    conditions = simulation.store.get("PodGroup", f"default/{name}").raw["status"]["conditions"]
    return [one["status"] for one in conditions if one["type"] == "PodGroupScheduled"] == ["True"]


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
    "pods that leave a node that is marked meanwhile": leaving("Evict", "SoftTaint"),
    "pods that are moved and bound": leaving("Bind", "AvoidList"),
    "a job each minute": Story(
        [node("n1"), minutely("tick")],
        [{"at": "150s", "apply": [{**minutely("tick"), "spec": {**minutely("tick")["spec"], "suspend": True}}]}],
        lambda simulation: (
            [one.raw["status"].get("succeeded") for one in simulation.store.objects("Job")] == [1]
            and simulation.store.get("CronJob", "default/tick").raw["status"]["lastScheduleTime"][11:] == "00:02:00Z"
        ),
        struck=("cronjob-controller", "job-controller"),
    ),
    "two gangs, one after the other": Story(
        [node("n1", cpu=4), node("n2", cpu=4), gang("red", 3), gang("blue", 3)],
        [
            {"at": "5s", "apply": [ganged("red", 3, 2), ganged("blue", 3, 2)]},
            {"at": "30s", "delete": {"kind": "ReplicaSet", "name": "red"}},
        ],
        lambda simulation: len(where(simulation, "blue")) == 3 and is_scheduled(simulation, "blue"),
        frozenset({Feature.GANGS}),
        plugins=("GangScheduling",),
        struck=(SCHEDULER, "replicaset-controller"),
    ),
    "a gang that preempts": Story(
        [
            *(node("n1", cpu=4), node("n2", cpu=4), gang("urgent", 2)),
            workload("ReplicaSet", "web", 2, template=template("web", **pod("", cpu=3)["spec"])),
        ],
        [{"at": "5s", "apply": [ganged("urgent", 2, 3, priority=9)]}],
        lambda simulation: where(simulation, "urgent") == ["n1", "n2"] and is_scheduled(simulation, "urgent"),
        frozenset({Feature.GANGS}),
        plugins=("GangScheduling",),
        struck=(SCHEDULER,),
    ),
    "one device, and then the next pod": Story(
        [
            node("n1"),
            devices.device_class(),
            devices.devices_of("n1", devices.device("g")),
            devices.claim_template("gpu"),
            with_device("a", restartPolicy="Never"),
        ],
        [
            {"at": "1s", "apply": [with_device("b")]},
            {"at": "9s", "delete": {"kind": "Pod", "name": "b"}},
            {"at": "9s", "apply": [with_device("c")]},
        ],
        lambda simulation: (
            pods(simulation)["c"].status.phase == "Running"
            and [one.status.reserved_for[0].name for one in claims(simulation.store).values()] == ["c"]
        ),
        plugins=("DynamicResources",),
    ),
}


def play(story: Story, fault: OneFault) -> Simulation:
    """Tell a story to its end, with a fault. Raises AssertionError."""
    settings = settings_of(SCHEDULER, *story.plugins)
    scheduler = Component(SCHEDULER, lambda: JudgedScheduler(settings), waits=True)
    others = {} if story.rescheduler is None else {"rescheduler": story.rescheduler}
    simulation = simulation_of(*story.objects, scenario(*story.steps, **others), schedulers=[scheduler], faults=fault)
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
        error.add_note("\n".join([note, *reported(simulation)]))
        raise
    return simulation


def places_of(story: Story) -> dict[str, dict[str, int]]:
    """Return, by fault and component, how many places it may strike: all that a story without a fault has."""
    fault = OneFault("nothing", 0, "")
    simulation = play(story, fault)
    others = [component.name for component in simulation.runtime.components if component.name != SCHEDULER]
    counts = {what: fault.deliveries if what in DELIVERIES else fault.actions for what in (*FAULTS, *DELIVERIES)}
    return {what: {name: of[name] for name in story.struck or others} for what, of in counts.items()}


def strike(story: Story, what: str, places: Mapping[str, int], turns: slice = EACH) -> None:
    """Play a story once for each place in turn that the fault may strike."""
    for component, number_of in places.items():
        for number in range(number_of)[turns]:
            fault = OneFault(what, number, component)
            play(story, fault)
            assert fault.has_happened, f"{component}: number {number} of {number_of} does not come"


Counted = tuple[Story, dict[str, dict[str, int]]]


@pytest.fixture(scope="module", params=STORIES)
def counted(request: pytest.FixtureRequest) -> Counted:
    """Return a story and the places that faults may strike, which are counted once for all faults."""
    return STORIES[request.param], places_of(STORIES[request.param])


@pytest.mark.parametrize("what", FAULTS)
def test_one_fault_at_any_place_breaks_nothing(counted: Counted, what: str) -> None:
    story, places = counted
    assert sum(places[what].values()) >= story.least, places

    strike(story, what, places[what], in_turn(what))


@pytest.mark.fuzz
@pytest.mark.parametrize("what", FAULTS)
def test_each_fault_at_each_place_breaks_nothing(counted: Counted, what: str) -> None:
    story, places = counted
    assert any(places[what].values())

    strike(story, what, places[what])


@pytest.mark.fuzz
@pytest.mark.parametrize("what", DELIVERIES)
def test_late_or_missed_observations_break_nothing(counted: Counted, what: str) -> None:
    story, places = counted
    assert all(places[what].values())

    strike(story, what, places[what])


@pytest.mark.parametrize(
    ("what", "story", "bug"),
    [
        ("refused", "a drain within a budget", instead(NodeDrain, "_on_finished", nothing)),
        ("refused", "a drain within a budget", instead(DisruptionController, "_on_finished", none_of_it)),
        ("refused", "a node that fails", instead(WorkloadController, "_on_finished", none_of_it)),
        ("refused", "one device, and then the next pod", instead(ResourceClaims, "_on_finished", none_of_it)),
        ("crash after", "pods that are moved and bound", instead(Moves, "read_avoid_list", nothing)),
    ],
)
def test_a_bug_that_only_a_fault_shows_is_found(what: str, story: str, bug: Bug) -> None:
    def struck() -> None:
        strike(STORIES[story], what, places_of(STORIES[story])[what], in_turn(what))

    fails(struck, bug)
