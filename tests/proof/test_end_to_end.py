"""Preemption in a whole cluster, as in Kubernetes' conformance tests: test/e2e/scheduling/preemption.go (row 62)."""

from __future__ import annotations

from collections import Counter

import pytest

import podium
from podium.controllers.scheduling.scheduler import Scheduler
from tests.sim.objects import scenario, workload
from tests.sim.played import played, pods
from tests.store.objects import Raw, node, pod, priority_class

pytestmark = pytest.mark.upstream(62)

CLASSES = [priority_class("low", 1), priority_class("medium", 100), priority_class("high", 1000)]
# Three full nodes; the least important pod is on the second.
FULL = [
    *CLASSES,
    *(node(f"n{number}", cpu=10) for number in range(3)),
    *(
        pod(f"pod-{number}", cpu=10, node=f"n{number}", spec={"priorityClassName": "low" if number == 1 else "medium"})
        for number in range(3)
    ),
]


@pytest.mark.parametrize(("name", "namespace"), [("high", "default"), ("system-cluster-critical", "kube-system")])
def test_the_least_important_pod_makes_way_for_a_more_important_one_and_the_others_run_on(
    name: str, namespace: str
) -> None:
    preemptor = pod("preemptor", cpu=10, namespace=namespace, spec={"priorityClassName": name})

    result = podium.simulate([*FULL, scenario({"at": "1s", "apply": [preemptor]})])

    assert [event.pod for event in result.events if event.reason == "Preempted"] == ["default/pod-1"]
    bound = [(event.pod, event.node) for event in result.events if event.reason == "Scheduled"]
    assert bound == [(f"{namespace}/preemptor", "n1")]


def test_a_victim_that_a_finalizer_keeps_bears_the_mark_of_its_preemption() -> None:
    victim = pod("victim", cpu=10, node="n1", priority=1, metadata={"finalizers": ["example.com/keep"]})
    preemptor = pod("preemptor", cpu=10, priority=100)

    simulation = played(node("n1"), victim, scenario({"at": "1s", "apply": [preemptor]}), schedulers=[Scheduler()])

    left = pods(simulation)["victim"]
    mark = left.status.condition("DisruptionTarget")
    assert mark is not None
    assert (mark.status, mark.reason) == ("True", "PreemptionByScheduler")
    assert mark.message == "default-scheduler: preempting to accommodate a higher priority pod"
    assert left.is_terminating


def replica_set(number: int, cpu: int) -> Raw:
    """Return a set of one pod, whose priority is the set's number."""
    name, labels = f"set-{number}", {"app": f"set-{number}"}
    template = {"metadata": {"labels": labels}, "spec": pod("", cpu=cpu, priority=number)["spec"]}
    made = workload("ReplicaSet", name, 1, template=template)
    made["spec"]["selector"] = {"matchLabels": labels}
    return made


def test_each_set_that_loses_a_pod_makes_one_in_its_place_and_no_more() -> None:
    """Of four sets on one node the fourth needs the room of the first two: their pods are preempted once each."""
    cpus = {1: 200, 2: 300, 3: 450, 4: 500}
    steps = [{"at": f"{number}s", "apply": [replica_set(number, cpu)]} for number, cpu in cpus.items()]

    events = podium.simulate([node("n1", cpu=1000), scenario(*steps, until="20m")]).events

    def counted(reason: str) -> Counter[str]:
        return Counter(
            (event.pod or "").removeprefix("default/").rpartition("-")[0] for event in events if event.reason == reason
        )

    assert counted("Created") == {"set-1": 2, "set-2": 2, "set-3": 1, "set-4": 1}
    assert counted("Preempted") == {"set-1": 1, "set-2": 1}
    assert counted("Scheduled") == {"set-1": 1, "set-2": 1, "set-3": 1, "set-4": 1}
