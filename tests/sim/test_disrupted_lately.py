"""Preemption that prefers workloads without recent disruptions, over time."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

import podium
from podium.api.pod import Pod
from podium.cluster.replacements import WORKLOAD_DISRUPTED_AT
from podium.controllers.actions import PatchObject
from podium.sim.results.result import Result
from tests.builders import configuration
from tests.builders import node as typed_node
from tests.builders import pod as typed_pod
from tests.controllers.driving import SECOND, Driver, all_of
from tests.sim.objects import scenario
from tests.sim.test_victim_cost import preempting
from tests.store.objects import Raw, node, pod, replicated

SPEC = {**pod("", cpu=1)["spec"], "terminationGracePeriodSeconds": 1}
BY_PRIORITY = ["HighestPriority", "LatestStart"]
SPARING = ["HighestPriority", "DisruptedLately", "LatestStart"]


def workload(name: str) -> Raw:
    return replicated("ReplicaSet", name, 2, SPEC)


def played(victim_cost: list[str]) -> Result:
    """Three workloads fill six nodes; six times a pod comes that needs a node, and ends after half a minute."""
    urgent = [
        {"at": f"{minute}m", "apply": [pod(f"urgent-{minute}", cpu=1, priority=9, annotations=SHORT)]}
        for minute in range(1, 7)
    ]
    objects = [*(node(f"n{number}", cpu=1) for number in range(6)), *map(workload, "abc")]
    story = scenario(*urgent, until="8m")
    return podium.simulate([*objects, story], configuration=preempting(victimCost=victim_cost))


SHORT = {"podium.dev/duration": "30s"}


def disrupted(result: Result) -> Counter[str]:
    names = [event.pod or "" for event in result.events if event.reason == "Preempted"]
    return Counter(name.removeprefix("default/").rpartition("-")[0] for name in names)


def test_workloads_without_a_budget_take_turns() -> None:
    one_after_another, always = disrupted(played(SPARING)), disrupted(played(BY_PRIORITY))

    assert one_after_another == {"a": 2, "b": 2, "c": 2}
    assert max(always.values()) > 2


def test_a_restarted_scheduler_infers_disruptions_from_replacement_pods() -> None:
    """The first scheduler writes the time into the first pending pod of the workload; another one reads it there."""
    settings = configuration({"DefaultPreemption": {"victimCost": SPARING}})
    victim = typed_pod("a-0", cpu=1, on="n1", owner="ReplicaSet/a", terminating=True, preempted=True)
    first = Driver(typed_node("n1", cpu=1), victim, settings=settings)
    began_ns = first.scheduler.cluster.disrupted.last_ns("default/ReplicaSet/a", 0, 3600 * SECOND)
    assert began_ns is not None
    first.now = began_ns

    replacements = [typed_pod(f"a-{number}", cpu=1, owner="ReplicaSet/a") for number in (1, 2)]
    (noted,) = all_of(PatchObject, first.see(*replacements))

    text = noted.patch["metadata"]["annotations"][WORKLOAD_DISRUPTED_AT]
    assert (noted.kind, noted.key) == ("Pod", "default/a-1")
    successor = Driver(typed_node("n1", cpu=1), settings=settings)
    successor.see(with_annotation(replacements[0], text))
    assert successor.scheduler.cluster.disrupted.last_ns("default/ReplicaSet/a", began_ns, 3600 * SECOND) == began_ns


def with_annotation(item: Pod, text: str) -> Pod:
    return replace(item, metadata=replace(item.metadata, annotations={WORKLOAD_DISRUPTED_AT: text}))


def test_without_the_criterion_nothing_is_remembered_and_nothing_written() -> None:
    victim = typed_pod("a-0", cpu=1, on="n1", owner="ReplicaSet/a", terminating=True, preempted=True)
    driver = Driver(typed_node("n1", cpu=1), victim)

    assert all_of(PatchObject, driver.see(typed_pod("a-1", cpu=1, owner="ReplicaSet/a"))) == []
    assert not driver.scheduler.cluster.disrupted.counts
