"""The rescheduler beside other components that move pods: what it leaves to them, and what it considers of theirs.

Budgets, rates and limits are looked at after every step, by `tests.examples.rescheduled`.
"""

from __future__ import annotations

from typing import Any

import pytest

from podium.api.avoid_list import PREFER_AVOID_PODS, avoid_list
from podium.api.input.codec import load_files
from podium.controllers.scheduling.scheduler import Scheduler
from podium.runtime.runtime import Component
from podium.sim.run import simulation_of as scenario_of
from podium.sim.run_options import RunOptions
from tests.controllers.rescheduling.policies import BAD
from tests.controllers.rescheduling.policies import PLACE as LEAVE_BAD
from tests.examples.rescheduled import Rescheduled, watched
from tests.examples.stories import EXAMPLES
from tests.proof.failures.test_rescheduling import EAGER, HOSTNAME, node, owner, scenario
from tests.sim.faults import DrawnFaults, Fault
from tests.sim.objects import documents
from tests.sim.played import pods, simulation_of
from tests.sim.random_run import RATES
from tests.store.objects import HOUR, SECOND, Raw

SWAP = "tests.proof.swapping:Swap"


def played(*objects: Raw, steps: list[Raw], policy: str = LEAVE_BAD, further: Raw | None = None, **report: Any) -> Any:
    """Return the result of the run; ``report`` is the rescheduler's configuration, ``further`` the scenario's."""
    found = scenario({**EAGER, "interval": "10s", "policies": [{"name": policy}], **report}, steps=steps)
    found["spec"].update(further or {})
    return watched(scenario_of(documents(*objects, found), RunOptions()))


def apply(at: str, *objects: Raw) -> Raw:
    return {"at": at, "apply": list(objects)}


def with_priority(name: str, priority: int, cpu: int, replicas: int = 1, **spec: Any) -> Raw:
    return owner(name, replicas, cpu, priority=priority, **spec)


def who(found: Rescheduled) -> list[str]:
    return [line.split()[1] for line in found.evictions()]


# Preemption


def test_a_pod_whose_replacement_would_have_to_preempt_is_not_moved() -> None:
    """Second-order effects: a pod stays if its replacement could only run by preempting another pod."""
    full = with_priority("low", 0, 8, nodeSelector={HOSTNAME: "good"})
    steps = [apply("30s", node("good"), full)]
    found = played(node(BAD), with_priority("high", 100, 4), steps=steps)

    assert found.evictions() == []
    assert found.events("Preempted", "Killing") == []
    assert found.after == {BAD: {"high": 1}, "good": {"low": 1}}


def test_a_less_important_pod_does_not_keep_a_place_that_its_like_could_not_hold() -> None:
    """The room that a pending, more important pod will have taken is no room."""
    waiting = with_priority("urgent", 100, 6, nodeSelector={HOSTNAME: "good"})
    steps = [
        apply("30s", node("good"), with_priority("filler", 200, 8, nodeSelector={HOSTNAME: "good"})),
        apply("40s", waiting),
        {"at": "5m", "scale": {"kind": "ReplicaSet", "name": "filler", "replicas": 0}},
    ]
    found = played(node(BAD), with_priority("web", 0, 4), steps=steps)

    assert found.evictions() == []
    assert found.after == {BAD: {"web": 1}, "good": {"urgent": 1}}


def test_a_replacement_that_is_preempted_and_comes_back_costs_one_eviction_and_no_more() -> None:
    """A more important pod takes the room that it was moved to: then its owner's pods are left alone where they are."""
    steps = [
        apply("30s", node("good", cpu=4)),
        apply("90s", with_priority("first", 100, 4, nodeSelector={HOSTNAME: "good"})),
        {"at": "10m", "scale": {"kind": "ReplicaSet", "name": "first", "replicas": 0}},
    ]
    found = played(node(BAD), with_priority("web", 0, 4), steps=steps, further={"until": "50m"})

    assert found.evictions() == ["60 web bad LeaveBad"]
    assert found.events("Preempted") == ["90 Preempted web good"]
    assert found.after == {BAD: {"web": 1}}


# Drains, cordons and the autoscaler


def test_a_draining_node_is_left_to_the_drain_and_is_no_target() -> None:
    steps = [
        apply("30s", node("good"), node("leaving")),
        {"at": "45s", "drain": {"name": BAD}},
    ]
    found = played(node(BAD), owner("web", 3), steps=steps)

    assert found.evictions() == []
    assert BAD not in found.after


def test_a_cordoned_node_receives_no_pods_and_is_not_rebalanced() -> None:
    """Controlled Rescheduling: nodes that are "intentionally under-utilized ... are marked unschedulable, thus the
    first objective will not cause the rescheduler to fight a system that is draining nodes".
    """
    steps = [apply("10m", node("new")), {"at": "10m", "cordon": {"name": "new"}}]
    found = played(node("a"), node("b"), owner("web", 12), steps=steps, policy="MoveToUnderusedNodes")
    assert found.evictions() == []

    cordoned = [{"at": "10m", "cordon": {"name": "a"}}, apply("10m", node("new"))]
    found = played(node("a"), owner("web", 7), steps=cordoned, policy="MoveToUnderusedNodes")
    assert found.evictions() == []


def test_a_node_that_an_autoscaler_empties_is_left_to_it() -> None:
    """No pods move to a node that will be removed, and the autoscaler's own moves are left alone."""
    group: Raw = {"podium.dev/node-group": "pool"}
    pool = node("pool-a", cpu=8)
    pool["metadata"]["labels"].update(group)
    template: Raw = {"status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}
    further: Raw = {
        "autoscaler": {
            "nodeGroups": [{"name": "pool", "max": 3, "template": template}],
            "scaleDown": {"unneededTime": "5m", "delayAfterAdd": "1m"},
        },
        "until": "6h",
    }
    objects = node("base", cpu=8), pool, owner("web", 5)
    found = played(*objects, steps=[], policy="MoveToUnderusedNodes", further=further)

    assert found.events("NodeAdded", "NodeRemoved") == ["315 NodeRemoved  pool-a"]
    assert found.after == {"base": {"web": 5}}
    assert found.evictions() == []


# Schedulers


@pytest.mark.parametrize("steering", ["AvoidList", "ScoresAlone"])
def test_no_pod_is_evicted_when_scheduler_scores_contradict_the_policy(steering: str) -> None:
    """Consolidation wants what a scheduler that spreads does not: it would send the pods to the emptier nodes."""
    objects = node("a"), node("b"), node("empty"), owner("web", 2)
    found = played(*objects, steps=[], policy="Consolidate", steering=steering)

    assert found.evictions() == []
    assert [*found.after.values()] == [{"web": 1}, {"web": 1}]


def test_each_pod_is_judged_by_its_own_scheduler_and_those_of_unknown_ones_by_what_kubelets_enforce() -> None:
    """If the scheduler of a pod is unknown, any node that fits may get the replacement: also the old node."""
    mine, other = owner("mine", 1, schedulerName="a"), owner("other", 1, schedulerName="b")
    two: Raw = {"schedulers": [{"name": "a"}, {"name": "b"}]}
    found = played(node(BAD), mine, other, steps=[apply("30s", node("good"))], further=two)
    assert sorted(who(found)) == ["mine", "other"]
    assert found.after == {"good": {"mine": 1, "other": 1}}

    stranger: Raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "stranger-1",
            "labels": {"app": "stranger"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "stranger", "uid": "s", "controller": True}
            ],
        },
        "spec": {"nodeName": BAD, "schedulerName": "unknown", "containers": [{"name": "main", "image": "x"}]},
    }
    theirs = owner("stranger", 1, schedulerName="unknown")
    theirs["metadata"]["uid"] = "s"
    found = played(node(BAD), theirs, stranger, steps=[apply("30s", node("good"))])
    assert found.evictions() == []


def test_two_go_at_once_where_one_takes_the_room_that_the_other_leaves() -> None:
    """Controlled Rescheduling: the avoid list "prevents B from rescheduling back into the space it vacated before A's
    scheduler has a chance to reschedule A there".
    """
    only = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["a", "b"]}]}]
            }
        }
    }
    objects = node("b", cpu=4), owner("second", 1, cpu=2)
    steps = [
        apply("10s", node("a", cpu=4), owner("first", 1, cpu=4, affinity=only)),
        apply("20s", node("c", cpu=4)),
    ]
    found = played(*objects, steps=steps, policy=SWAP)

    assert found.at(30) == {"a": {"first": 1}, "b": {"second": 1}}
    times = {line.split()[0] for line in found.evictions()}
    assert sorted(who(found)) == ["first", "second"]
    assert len(times) == 1, "both at once"
    assert found.after["b"] == {"first": 1}


def test_pods_without_a_budget_take_turns_and_are_moved_one_of_an_owner_at_a_time() -> None:
    """Controlled Rescheduling: "the system should try to not unduly victimize such pods"."""
    objects = node(BAD, cpu=16), *(owner(name, 3) for name in ("a", "b", "c"))
    settings: Raw = {"aggressiveness": "Cautious", "limits": {"hourly": {"owner": 3}, "withoutBudget": {"total": 1}}}
    found = played(*objects, steps=[apply("30s", node("good", cpu=16))], **settings)

    order = who(found)
    assert len(order) == 9
    assert [sorted(order[turn : turn + 3]) for turn in (0, 3, 6)] == [["a", "b", "c"]] * 3


# Faults


@pytest.mark.parametrize("seed", range(8))
def test_no_room_is_reserved_for_ever_and_no_pod_waits_under_any_failure(seed: int) -> None:
    """Two pods change places while requests are refused, lost and late, and components crash."""
    found = [document.raw for document in load_files([str(EXAMPLES / "rescheduler" / "makes-way.yaml")])]
    faults = DrawnFaults({fault: RATES[fault][-1] / 2 for fault in Fault}, seed)
    scheduler = Component("default-scheduler", Scheduler, waits=True)
    simulation = simulation_of(*found, schedulers=[scheduler], faults=faults, seed=seed, until_ns=2 * HOUR)
    while simulation.step():
        faults.stopped |= simulation.elapsed_ns > 420 * SECOND

    assert faults.fired
    assert all(pod.spec.node_name for pod in pods(simulation).values())
    nodes = [stored.object for stored in simulation.store.objects("Node")]
    lists = [avoid_list(node.metadata.annotations.get(PREFER_AVOID_PODS, "")) for node in nodes]
    assert [entry for found in lists for entry in found.entries if entry.until_replaced] == []
    assert [left for found in lists for left in found.replacements] == []
