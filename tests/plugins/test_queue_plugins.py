"""The plugins that order and gate the queue, and the one that binds."""

from __future__ import annotations

from podium.framework.handle import CycleState
from podium.framework.plugin import PluginContext
from podium.framework.verdicts import SUCCESS, unresolvable
from podium.plugins.registry import DefaultBinder, PrioritySort, SchedulingGates
from tests.builders import cluster_of, pod

CLUSTER = cluster_of()
CONTEXT = PluginContext({}, CLUSTER)


def test_the_highest_priority_goes_first_and_of_equals_the_one_that_waits_longest() -> None:
    sort = PrioritySort(CONTEXT)
    waiting = [("low", -1, 1), ("late", 5, 9), ("early", 5, 2), ("none", None, 1)]

    ordered = sorted(waiting, key=lambda one: sort.sort_key(CLUSTER.read(pod(one[0], priority=one[1])), one[2]))

    assert [name for name, _, _ in ordered] == ["early", "late", "none", "low"]


def test_a_pod_is_held_until_its_last_gate_is_removed() -> None:
    """Row 39 of Kubernetes' tests: TestSchedulingGates."""
    gates = SchedulingGates(CONTEXT)

    assert gates.pre_enqueue(CLUSTER.read(pod("p"))) == SUCCESS
    held = gates.pre_enqueue(CLUSTER.read(pod("p", gates=["quota", "lunch"])))
    assert held == unresolvable("waiting for scheduling gates: [quota lunch]")


def test_the_default_binder_asks_for_the_ordinary_binding() -> None:
    assert DefaultBinder(CONTEXT).bind(CycleState(), CLUSTER.read(pod("p")), "n") == SUCCESS
