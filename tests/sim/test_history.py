"""The history of a run: events, the life of each pod, and totals."""

from typing import Any

from podium.api.clock_inference import DEFAULT_START_NS
from podium.api.pod import PodCondition
from podium.api.times import format_time
from podium.controllers.actions import (
    Action,
    DeleteObject,
    Nominate,
    Record,
    ReportStatus,
    ReportUnschedulable,
)
from podium.controllers.deadlines import NEVER, Deadline
from podium.controllers.observations import Observation, Tick
from podium.controllers.scheduling.scheduler import Scheduler
from podium.sim.history import Backlog, EventHistory
from podium.sim.results.result import result_of
from podium.sim.simulation import Simulation
from tests.sim.first_fit import FirstFit
from tests.sim.objects import scenario
from tests.sim.played import played, reported
from tests.store.objects import SECOND, Raw, node, pod


class Acting(FirstFit):
    """Does the actions of a plan, one a second, to the pods named in them, and binds nothing."""

    def __init__(self, *plan: Action) -> None:
        super().__init__()
        self.plan = list(plan)
        self.next_ns = DEFAULT_START_NS

    def handle(self, observation: Observation, now: int) -> list[Action]:
        if not isinstance(observation, Tick):
            return []
        self.next_ns = now + SECOND
        return [self.plan.pop(0)]

    def deadline(self) -> Deadline:
        return Deadline(self.next_ns, True) if self.plan else NEVER


def at(seconds: int) -> str:
    return format_time(DEFAULT_START_NS + seconds * SECOND)


def story(simulation: Simulation, name: str = "a") -> Raw:
    found: list[Raw] = [one for one in result_of(simulation).pods if one["pod"] == f"default/{name}"]
    (only,) = found
    return only


def times(told_of: Raw) -> tuple[Any, ...]:
    return tuple(told_of[name] for name in ("createdAt", "scheduledAt", "startedAt", "endedAt"))


def test_nomination_and_preemption_steps_name_their_component() -> None:
    uid = "a-uid"
    target = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message="make room")
    actions: list[Action] = [
        ReportUnschedulable("default/a", uid, "Unschedulable", "too full", "n1"),
        ReportUnschedulable("default/a", uid, "Unschedulable", "too full"),
        Nominate("default/a", uid, "n2"),
        Nominate("default/a", uid, "", "default/urgent"),
        ReportStatus("Pod", "default/v", "v-uid", "default/a", (target,)),
        DeleteObject("Pod", "default/v", "v-uid", "default/a"),
        Record("default/v", "v-uid", "Normal", "Preempted", "for a", "n1", "default/a"),
        Record("default/a", uid, "Warning", "FailedScheduling", "too full"),
        Record("default/a", uid, "Normal", "Scheduled", "never so"),
    ]
    objects = [node("n1"), pod("a", metadata={"uid": uid}), pod("v", node="n1", metadata={"uid": "v-uid"})]

    simulation = played(*objects, schedulers=[Acting(*actions)], start_ns=DEFAULT_START_NS, until_ns=9 * SECOND)

    assert reported(simulation) == [
        "0 Nominated default/a on n1 by default-scheduler",
        "2 Nominated default/a on n2 by default-scheduler",
        "3 NominationCleared default/a on n2 by default/urgent",
        "5 Killing default/v on n1 by default/a",
        "6 Preempted default/v on n1 by default/a",
        "7 FailedScheduling default/a by default-scheduler",
    ]
    assert result_of(simulation).summary["preempted"] == 1


def test_clearing_a_nomination_clears_the_annotation_too() -> None:
    annotations = {"scheduler.kubernetes.io/nominated-node-name": "n1", "keep": "me"}
    nominated = pod("a", metadata={"uid": "u"}, annotations=annotations)
    clear = ReportUnschedulable("default/a", "u", "Unschedulable", "", "")

    simulation = played(nominated, schedulers=[Acting(clear)], start_ns=DEFAULT_START_NS)

    assert simulation.store.get("Pod", "default/a").raw["metadata"]["annotations"] == {"keep": "me"}
    assert reported(simulation) == ["0 NominationCleared default/a on n1 by default-scheduler"]


def test_binding_ends_a_nomination_without_a_word() -> None:
    nominated = pod("a", status={"nominatedNodeName": "n1"})

    assert reported(played(node("n1"), nominated)) == [
        "0 Scheduled default/a on n1 by default-scheduler",
        "0 Started default/a on n1 by kubelet",
    ]


def test_the_story_of_a_pod_has_its_times() -> None:
    lasting = pod("a", annotations={"podium.dev/duration": "10s"})

    simulation = played(
        node("n1"), scenario({"at": "3s", "apply": [lasting]}), bind_delay_ns=SECOND, start_delay_ns=SECOND
    )

    told_of = story(simulation)
    assert times(told_of) == (3, 4, 5, 15)
    assert (told_of["phase"], told_of["node"], told_of["nominatedNode"]) == ("Succeeded", "n1", None)


def test_times_before_the_start_are_negative() -> None:
    status = {"phase": "Running", "startTime": at(-40)}
    ran = pod("a", node="n1", metadata={"creationTimestamp": at(-50)}, status=status)

    assert times(story(played(node("n1"), ran, start_ns=DEFAULT_START_NS))) == (-50, -40, -40, None)


def test_a_pod_that_runs_without_saying_since_when_runs_since_the_start() -> None:
    assert times(story(played(node("n1"), pod("a", node="n1")))) == (0, 0, 0, None)


def test_a_pod_that_was_killed_is_terminated_and_one_that_never_ran_too() -> None:
    steps = [{"at": "1s", "delete": {"kind": "Pod", "name": name}} for name in ("a", "b")]
    simulation = played(node("n1", cpu=1), pod("a", node="n1"), pod("b", cpu=9), scenario(*steps))

    assert (story(simulation, "a")["phase"], times(story(simulation, "a"))) == ("Terminated", (0, 0, 0, 31))
    assert (story(simulation, "b")["phase"], times(story(simulation, "b"))) == ("Terminated", (0, None, None, 1))
    assert reported(simulation, "Deleted") == ["1 Deleted default/b by scenario"]


def test_namesakes_have_a_story_each() -> None:
    steps: list[Raw] = [{"at": "1s", "delete": {"kind": "Pod", "name": "a"}}, {"at": "2s", "apply": [pod("a")]}]

    simulation = played(pod("a"), scenario(*steps))

    assert [one["createdAt"] for one in result_of(simulation).pods] == [0, 2]


def test_the_sums_count_pods_waits_and_use() -> None:
    lasting = {"podium.dev/duration": "10s"}
    high = [pod(name, priority=9, annotations=lasting) for name in ("c", "d")]
    low = [pod("a", priority=1, cpu=2), pod("b", priority=1, cpu=3)]

    summary = result_of(played(node("n1", cpu=2), *low, *high, until_ns=20 * SECOND)).summary

    assert summary["end"] == 20
    assert {state: number for state, number in summary["pods"].items() if number} == {
        "total": 4,
        "ready": 1,
        "pending": 1,
        "succeeded": 2,
    }
    assert summary["bindings"] == 3
    assert summary["waiting"] == [
        {"priority": 9, "count": 2, "mean": 0, "p50": 0, "p95": 0, "max": 0},
        {"priority": 1, "count": 1, "mean": 10, "p50": 10, "p95": 10, "max": 10},
    ]
    assert summary["use"]["cpu"] == {"average": 1.0, "final": 1.0}


def test_waiting_times_are_percentiles_by_nearest_rank() -> None:
    arrivals = [{"at": f"{second}s", "apply": [pod(f"p{second:02}")]} for second in range(20)]

    simulation = played(scenario(*arrivals, {"at": "20s", "apply": [node("n1", cpu=20)]}))

    (waiting,) = result_of(simulation).summary["waiting"]
    assert waiting == {"priority": 0, "count": 20, "mean": 10.5, "p50": 10, "p95": 19, "max": 20}


def test_a_wait_before_the_start_does_not_count() -> None:
    old = pod("a", metadata={"creationTimestamp": at(-500)})

    (waiting,) = result_of(played(node("n1"), old, start_ns=DEFAULT_START_NS)).summary["waiting"]

    assert waiting["max"] == 0


def test_attempts_are_bindings_and_failures() -> None:
    simulation = played(node("n1", cpu=1), pod("a"), pod("b"))

    failures = sum(event.count for event in simulation.history.events if event.reason == "FailedScheduling")
    assert failures > 0
    assert result_of(simulation).summary["attempts"] == 1 + failures


def test_repeated_failures_are_counted_until_another_event_of_the_pod() -> None:
    history = EventHistory(0, Backlog())
    for second, reason, message in (
        (0, "FailedScheduling", "full"),
        (1, "FailedScheduling", "full"),
        (2, "FailedScheduling", "tainted"),
        (3, "FailedScheduling", "full"),
        (4, "Nominated", ""),
        (5, "FailedScheduling", "full"),
        (6, "FailedScheduling", "full"),
    ):
        history.add(second * SECOND, reason, "default/a", None, "default-scheduler", message)
        history.add(second * SECOND, "FailedScheduling", "default/b", None, "default-scheduler", "other")
        history.add(second * SECOND, "FailedCreate", None, None, "ReplicaSet default/web", "quota")

    def told_of(subject: str) -> list[tuple[str, str, float, int, float]]:
        return [
            (one.reason, one.message, one.time, one.count, one.last_time)
            for one in history.events
            if subject in (one.pod, one.by)
        ]

    assert told_of("default/a") == [
        ("FailedScheduling", "full", 0, 2, 1),
        ("FailedScheduling", "tainted", 2, 1, 2),
        ("FailedScheduling", "full", 3, 1, 3),
        ("Nominated", "", 4, 1, 4),
        ("FailedScheduling", "full", 5, 2, 6),
    ]
    assert told_of("default/b") == [("FailedScheduling", "other", 0, 7, 6)]
    assert told_of("ReplicaSet default/web") == [("FailedCreate", "quota", 0, 7, 6)]
    assert history.happened == 21


def test_average_use_is_over_time_and_nodes_that_come_and_go() -> None:
    steps: list[Raw] = [
        {"at": "10s", "apply": [node("n2", cpu=6)]},
        {"at": "20s", "delete": {"kind": "Node", "name": "n2"}},
        {"at": "30s", "finish": {"name": "a"}},
    ]

    simulation = played(node("n1", cpu=2), pod("a", node="n1"), scenario(*steps, until="40s"))

    # 1 of 2, 1 of 8, 1 of 2, 0 of 2 cpu, for 10 seconds each.
    assert result_of(simulation).summary["use"]["cpu"] == {"average": round(3 / 14, 6), "final": 0.0}


def test_a_result_is_plain_values() -> None:
    found = result_of(played(node("n1"), pod("a"))).to_dict()

    measured = ["workloads", "budgets", "holds", "series", "usage"]
    assert list(found) == ["schemaVersion", "events", "pods", "summary", "nodes", *measured, "latencies", "caveats"]
    assert found["events"][0] == {
        "time": 0,
        "reason": "Scheduled",
        "pod": "default/a",
        "node": "n1",
        "by": "default-scheduler",
        "message": "Successfully assigned default/a to n1",
        "count": 1,
        "lastTime": 0,
    }
    assert list(found["pods"][0]) == [
        "pod",
        "uid",
        "workload",
        "priority",
        "phase",
        "state",
        "node",
        "nominatedNode",
        "createdAt",
        "scheduledAt",
        "startedAt",
        "endedAt",
        "disruption",
        "evictedBy",
    ]


def test_a_failure_after_something_has_changed_is_an_event_of_its_own() -> None:
    arrivals = [{"at": f"{second}s", "apply": [node(f"n{second}")]} for second in (400, 800)]

    result = result_of(played(pod("a", cpu=99), scenario(*arrivals), schedulers=[Scheduler()], until_ns=1_500 * SECOND))

    failed = [one for one in result.events if one.reason == "FailedScheduling"]
    assert [(one.time, one.message) for one in failed] == sorted({(one.time, one.message) for one in failed})
    assert len([one for one in failed if one.time >= 400]) == 2
    assert sum(one.count for one in failed) == result.summary["attempts"] > len(failed)
