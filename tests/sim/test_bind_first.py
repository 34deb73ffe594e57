"""Binding a preemptor before its victims have ended, compared with nomination."""

from __future__ import annotations

import random
from typing import Any

import podium
from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.sim.results.result import Result
from tests.sim.objects import scenario
from tests.sim.played import instantly
from tests.store.objects import Raw, node, pod

HOLDING = {"kubelets": {"waitForVictims": True}}


def binding(first: bool) -> Configuration:
    profile = {"pluginConfig": [{"name": "DefaultPreemption", "args": {"bindFirst": first}}]}
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "test")


def played(*objects: Raw, first: bool = True, **story: Any) -> Result:
    steps = story.pop("steps", [{"at": "10s", "apply": [pod("urgent", cpu=1, priority=9)]}])
    made = scenario(*steps, until="5m", **{**HOLDING, **story})
    return instantly([*objects, made], configuration=binding(first))


def reported(result: Result, *reasons: str) -> list[str]:
    return [f"{event.time:g} {event.reason} {event.pod}" for event in result.events if event.reason in reasons]


SLOW = {"terminationGracePeriodSeconds": 60}
LOW = pod("low", cpu=1, spec=SLOW)


def test_with_bind_first_a_pod_is_bound_when_its_victim_terminates_and_starts_later() -> None:
    result = played(node("n1", cpu=1), LOW)

    assert reported(result, "Preempted", "Scheduled", "Started")[2:] == [
        "10 Preempted default/low",
        "10 Scheduled default/urgent",
        "70 Started default/urgent",
    ]


def test_with_nomination_a_pod_is_bound_and_starts_when_its_victim_is_gone() -> None:
    result = played(node("n1", cpu=1), LOW, first=False)

    assert reported(result, "Scheduled", "Started")[2:] == ["70 Scheduled default/urgent", "70 Started default/urgent"]


def test_room_that_opens_elsewhere_meanwhile_is_taken_by_nomination_alone() -> None:
    """The cost of binding first: the node is final."""
    steps = [
        {"at": "10s", "apply": [pod("urgent", cpu=1, priority=9)]},
        {"at": "20s", "apply": [node("n2", cpu=1)]},
    ]

    started = {
        first: reported(played(node("n1", cpu=1), LOW, first=first, steps=steps), "Started")[1:]
        for first in (True, False)
    }

    assert started == {True: ["70 Started default/urgent"], False: ["20 Started default/urgent"]}


def test_the_kubelet_rejects_pods_bound_past_all_schedulers() -> None:
    """Each way runs with the kubelets that it is made for: Kubernetes' kubelets do not wait for victims."""
    thief = pod("thief", cpu=1, priority=5, node="n1")
    steps = [{"at": "10s", "apply": [pod("urgent", cpu=1, priority=9)]}, {"at": "69s", "apply": [thief]}]

    for first in (True, False):
        ran = played(node("n1", cpu=1), LOW, first=first, steps=steps, kubelets={"waitForVictims": first})

        assert reported(ran, "Started", "Failed")[1:] == ["69 Failed default/thief", "70 Started default/urgent"]


def test_a_waiting_kubelet_gives_the_room_of_a_nominated_pod_to_the_first_bound() -> None:
    """So that waiting kubelets go with binding first alone."""
    thief = pod("thief", cpu=1, priority=5, node="n1")
    steps = [{"at": "10s", "apply": [pod("urgent", cpu=1, priority=9)]}, {"at": "69s", "apply": [thief]}]

    ran = played(node("n1", cpu=1), LOW, first=False, steps=steps)

    assert reported(ran, "Started")[1:] == ["70 Started default/thief", "100 Started default/urgent"]


def of_two_schedulers(*, first: bool, own_delay: str, others_delay: str) -> Result:
    """Scheduler a preempts for `urgent`; b knows nothing of that, and has `small`, which is less important."""
    arguments = [{"name": "DefaultPreemption", "args": {"bindFirst": first}}]
    profiles = [{"schedulerName": name, "pluginConfig": arguments} for name in ("a", "b")]
    configuration = read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": profiles}, "test")
    small = pod("small", cpu=1, priority=5, spec={"schedulerName": "b", "preemptionPolicy": "Never"})
    made = scenario(
        {"at": "10s", "apply": [pod("urgent", cpu=1, priority=9, spec={"schedulerName": "a"})]},
        {"at": "20s", "apply": [small]},
        until="5m",
        kubelets={"waitForVictims": first},
        schedulers=[{"name": "a", "bindDelay": own_delay}, {"name": "b", "bindDelay": others_delay}],
    )
    objects = [node("n1", cpu=1), pod("low", cpu=1, node="n1", spec=SLOW), made]
    return instantly(objects, configuration=configuration)


def test_room_is_kept_from_schedulers_that_know_nothing_of_nominations() -> None:
    """The benefit of binding first: every scheduler counts a bound pod."""
    slower = {
        first: reported(of_two_schedulers(first=first, own_delay="200ms", others_delay="100ms"), "Started", "Failed")
        for first in (True, False)
    }

    assert slower == {
        True: ["70 Started default/urgent"],
        False: ["70.1 Started default/small", "70.2 Failed default/urgent"],
    }


def test_the_time_that_a_binding_takes_is_over_before_the_victim_is_gone() -> None:
    quicker = {
        first: reported(of_two_schedulers(first=first, own_delay="100ms", others_delay="200ms"), "Started")
        for first in (True, False)
    }

    assert quicker == {True: ["70 Started default/urgent"], False: ["70.1 Started default/urgent"]}


def in_a_fleet(seed: int, *, first: bool) -> tuple[float, int]:
    """Return how long eight preemptors wait on average while half of 24 others end by themselves, and who went in
    vain.
    """
    chance = random.Random(seed)
    low = [pod(f"low{number}", cpu=1, node=f"n{number // 4}", spec=SLOW) for number in range(24)]
    came = {f"urgent{number}": chance.randrange(10, 300) for number in range(8)}
    steps: list[Raw] = [{"at": f"{at_s}s", "apply": [pod(name, cpu=1, priority=9)]} for name, at_s in came.items()]
    for number in chance.sample(range(24), 12):
        steps.append({"at": f"{chance.randrange(10, 300)}s", "finish": {"kind": "Pod", "name": f"low{number}"}})
    steps.sort(key=lambda step: int(step["at"][:-1]))
    made = scenario(*steps, until="10m", kubelets={"waitForVictims": first})
    ran = instantly([*(node(f"n{number}", cpu=4) for number in range(6)), *low, made], configuration=binding(first))
    started = {event.pod: event.time for event in ran.events if event.reason == "Started" and event.pod is not None}
    waits = [started[f"default/{name}"] - at_s for name, at_s in came.items()]
    return sum(waits) / len(waits), sum(bool(record.in_vain) for record in ran.ledger)


def test_bind_first_waits_longer_than_nomination_and_wastes_no_victims() -> None:
    """Nominated pods take what becomes free elsewhere meanwhile: they wait less, and their victims went for nothing."""
    waits, in_vain = {}, {}
    for first in (True, False):
        found = [in_a_fleet(seed, first=first) for seed in range(20)]
        waits[first] = round(sum(wait for wait, _ in found) / len(found), 1)
        in_vain[first] = sum(number for _, number in found)

    assert waits == {True: 8.7, False: 6.0}
    assert in_vain == {True: 0, False: 22}


def test_a_kubelet_that_does_not_wait_turns_it_away() -> None:
    result = played(node("n1", cpu=1), LOW, kubelets={"waitForVictims": False})

    (urgent,) = (one for one in result.pods if one["pod"] == "default/urgent")
    assert urgent["phase"] == "Failed"


def test_room_that_is_promised_to_one_is_not_given_to_another() -> None:
    pods = [pod(name, cpu=1, spec=SLOW) for name in ("a", "b")]
    steps = [
        {"at": "10s", "apply": [pod("first", cpu=2, priority=9)]},
        {"at": "20s", "apply": [pod("second", cpu=1, priority=8)]},
    ]

    result = played(node("n1", cpu=2), *pods, steps=steps)

    assert reported(result, "Scheduled")[2:] == ["10 Scheduled default/first"]
    assert result.summary["preempted"] == 2


LEAVING = {"at": "5s", "delete": {"kind": "Pod", "name": "low"}}
ARRIVING = {"at": "10s", "apply": [pod("urgent", cpu=1, priority=9)]}


def test_with_bind_first_a_pod_is_bound_at_once_if_its_victims_terminate_already() -> None:
    result = played(node("n1", cpu=1), LOW, steps=[LEAVING, ARRIVING])

    assert reported(result, "Scheduled", "Started")[2:] == ["10 Scheduled default/urgent", "65 Started default/urgent"]
    assert reported(result, "Preempted", "Nominated") == []


def test_explain_says_that_it_is_bound_at_once_if_its_victims_terminate_already() -> None:
    deleted = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 60}}
    objects = [node("n1", cpu=1), pod("low", node="n1", metadata=deleted["metadata"]), pod("urgent", cpu=1, priority=9)]

    first, nominated = (podium.explain(objects, "urgent", binding(is_first)) for is_first in (True, False))

    assert first.headline == "default/urgent is bound to n1 at once: its kubelet waits for pods that terminate there"
    assert (first.outcome, first.to_dict()["isBoundEarly"]) == ("preempts", True)
    assert nominated.headline == "default/urgent preempts on n1: victim default/low"
