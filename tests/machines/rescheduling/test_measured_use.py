"""What was measured is told beside what else is known."""

from __future__ import annotations

from podium.api.use import Use
from podium.framework.rescheduling.signals import NodeSignals, PodSignals, Signals
from podium.machines.rescheduling.measured_use import MeasuredUse
from tests.builders import cluster_of, node, pod

CLUSTER = cluster_of(node("n1"), node("n2"), pod("a", on="n1"), pod("b", on="n1"))


def test_what_was_measured_comes_on_top_of_what_is_known() -> None:
    known = Signals({"default/a": PodSignals(restarts=3)}, {"n1": NodeSignals(maintenance_ns=5)})
    measured = MeasuredUse({"default/a": Use(250, 1_000), "default/gone": Use(9, 9)}, {"n1": Use(700, 5_000)})

    told = measured.told(known, CLUSTER)

    assert told.of_pod("default/a") == PodSignals(restarts=3, cpu_used_milli=250, memory_used_bytes=1_000)
    assert told.of_pod("default/b").cpu_used_milli is None
    assert told.of_node("n1") == NodeSignals(maintenance_ns=5, cpu_used_milli=700, memory_used_bytes=5_000)
    assert set(told.pods) == {"default/a"}
    assert set(told.nodes) == {"n1"}


def test_where_nothing_was_measured_all_stays_as_it_is() -> None:
    known = Signals({"default/a": PodSignals(cpu_used_milli=7)})
    assert MeasuredUse().told(known, CLUSTER) is known
