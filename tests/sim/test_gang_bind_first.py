"""Binding the members of a gang before their victims have ended."""

from __future__ import annotations

from typing import Any

from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.sim.results.result import Result
from tests.sim.objects import scenario
from tests.sim.played import instantly
from tests.store.objects import Raw, node, pod

SLOW = {"terminationGracePeriodSeconds": 60}
QUICK = {"terminationGracePeriodSeconds": 30}


def gang(number: int) -> Raw:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "work"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": number}}},
    }


def worker(name: str, **spec: Any) -> Raw:
    return pod(name, cpu=1, priority=9, spec={"schedulingGroup": {"podGroupName": "work"}, **spec})


def binding(*, first: bool) -> Configuration:
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}},
        "pluginConfig": [{"name": "DefaultPreemption", "args": {"bindFirst": first}}],
    }
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "test")


def played(*objects: Raw, first: bool = True, number: int = 2, workers: list[Raw] | None = None) -> list[str]:
    """Return the events of pods from second 10 on, when the gang arrives."""
    come = workers or [worker(f"worker-{place}") for place in range(number)]
    made = scenario({"at": "10s", "apply": come}, until="5m", kubelets={"waitForVictims": first})
    return reported(instantly([gang(number), *objects, made], configuration=binding(first=first)))


def reported(result: Result) -> list[str]:
    reasons = ("Preempted", "Scheduled", "Started", "Failed")
    found = [event for event in result.events if event.reason in reasons and event.time >= 10]
    return [f"{event.time:g} {event.reason} {(event.pod or '').partition('/')[2]}" for event in found]


def full(**low: Any) -> list[Raw]:
    return [node("n1", cpu=1), node("n2", cpu=1), *(pod(name, cpu=1, **one) for name, one in low.items())]


def test_gang_members_are_bound_when_victims_terminate_and_each_starts_after_its_own() -> None:
    low = full(slow={"node": "n1", "spec": SLOW}, quick={"node": "n2", "spec": QUICK})

    found = played(*low)
    assert sorted(line for line in found if line.startswith("10 ")) == [
        "10 Preempted quick",
        "10 Preempted slow",
        "10 Scheduled worker-0",
        "10 Scheduled worker-1",
    ]
    assert [line.split()[:2] for line in found if "Started" in line] == [["40", "Started"], ["70", "Started"]]


def test_with_nomination_a_gang_is_bound_when_its_last_victim_is_gone() -> None:
    found = played(*full(slow={"node": "n1", "spec": SLOW}, quick={"node": "n2", "spec": QUICK}), first=False)

    assert sorted(found)[2:] == [
        "70 Scheduled worker-0",
        "70 Scheduled worker-1",
        "70 Started worker-0",
        "70 Started worker-1",
    ]


def test_a_member_that_needs_no_victim_is_bound_with_the_others() -> None:
    found = played(node("n1", cpu=1), node("n2", cpu=1), pod("slow", cpu=1, node="n1", spec=SLOW))

    assert sorted(line for line in found if "Scheduled" in line) == ["10 Scheduled worker-0", "10 Scheduled worker-1"]
    assert sorted(line.split()[0] for line in found if "Started" in line) == ["10", "70"]


def test_two_members_on_one_node_wait_for_all_victims_there() -> None:
    objects = [
        node("n1", cpu=2),
        pod("slow", cpu=1, node="n1", spec=SLOW),
        pod("quick", cpu=1, node="n1", spec=QUICK),
    ]

    found = played(*objects)

    assert sorted(line for line in found if "Scheduled" in line) == ["10 Scheduled worker-0", "10 Scheduled worker-1"]
    assert not any("Failed" in line for line in found)


def test_members_are_nominated_when_a_victim_is_on_a_node_without_a_member() -> None:
    """A kubelet waits for pods on its own node alone."""
    near = {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "rival"}}}
                ]
            }
        }
    }
    rival = pod("rival", cpu=1, node="n3", labels={"app": "rival"}, spec=SLOW)
    objects = [node("n1", cpu=2, zone="a"), node("n3", cpu=1, zone="a"), rival]

    found = played(*objects, workers=[worker(f"worker-{place}", **near) for place in range(2)])

    assert "10 Preempted rival" in found
    assert sorted(line for line in found if "Scheduled" in line) == ["70 Scheduled worker-0", "70 Scheduled worker-1"]
