"""Measured usage of pods and nodes in the rescheduler."""

from podium.api.use import Use
from podium.controllers.observations import Measured
from podium.controllers.rescheduling.rescheduler_view import MeasuredUse
from podium.framework.rescheduling.policy import NodeSignals, PodSignals, Signals
from tests.builders import cluster_of, node, pod

SECOND = 10**9
KNOWN = Signals({"default/p": PodSignals(restarts=3)}, {"a": NodeSignals(maintenance_ns=7)})
MEASURED = Measured(
    {"default/p": Use(1500, 2048), "default/gone": Use(1, 1)}, {"a": Use(1800, 4096), "other": Use(1, 1)}
)


def test_measurements_of_existing_pods_are_reported() -> None:
    cluster, use = cluster_of(node("a"), pod("p", on="a"), pod("q", on="a")), MeasuredUse()
    assert use.with_use(KNOWN, cluster, 0) is KNOWN
    use.take(MEASURED, 10 * SECOND)

    found = use.with_use(KNOWN, cluster, 20 * SECOND)
    assert found.pods == {"default/p": PodSignals(restarts=3, cpu_used_milli=1500, memory_used_bytes=2048)}
    assert found.nodes == {"a": NodeSignals(maintenance_ns=7, cpu_used_milli=1800, memory_used_bytes=4096)}


def test_stale_measurements_are_ignored() -> None:
    cluster, use = cluster_of(node("a"), pod("p", on="a")), MeasuredUse()
    use.take(MEASURED, 10 * SECOND)
    assert use.with_use(KNOWN, cluster, 310 * SECOND) is not KNOWN
    assert use.with_use(KNOWN, cluster, 311 * SECOND) is KNOWN
