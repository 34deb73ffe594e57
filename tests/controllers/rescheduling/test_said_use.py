"""Usage of simulated pods in the rescheduler."""

from typing import Any

import pytest
from msgspec.structs import replace

from podium.api.pod import Pod
from podium.cluster.cluster import Cluster
from podium.controllers.rescheduling.rescheduler_view import ReportedUse
from podium.framework.rescheduling.policy import NodeSignals, PodSignals, Signals
from tests.builders import cluster_of, node, pod

GIB = 1024**3


def saying(name: str, on: str, *, phase: str = "Running", use: dict[str, str], **fields: Any) -> Pod:
    made = pod(name, on=on, **fields)
    annotations = {f"podium.dev/{what}-usage": amount for what, amount in use.items()}
    return replace(
        made,
        metadata=replace(made.metadata, annotations=annotations),
        status=replace(made.status, phase=phase),
    )


def reported(*pods: Pod, signals: Signals = Signals()) -> Signals:  # noqa: B008 - an immutable value
    cluster, use = cluster_of(node("a", cpu="4"), node("b", cpu="4"), *pods), ReportedUse()
    for each in pods:
        use.pod_changed(each)
    return use.with_use(signals, cluster)


def test_without_reported_usage_no_usage_is_measured() -> None:
    signals = Signals()
    assert reported(pod("p", on="a", cpu="1"), signals=signals) is signals


def test_pods_use_what_they_say_and_others_what_they_request() -> None:
    found = reported(
        saying("p", "a", use={"cpu": "3", "memory": "2Gi"}, cpu="1"), pod("q", on="a", cpu="500m", memory="1Gi")
    )
    assert found.of_pod("default/p") == PodSignals(cpu_used_milli=3000, memory_used_bytes=2 * GIB, cpu_pressure=0.0)
    assert found.of_pod("default/q").cpu_used_milli == 500
    assert found.of_node("a") == NodeSignals(cpu_used_milli=3500, memory_used_bytes=3 * GIB)
    assert found.of_node("b") == NodeSignals(cpu_used_milli=0, memory_used_bytes=0)


def test_scarce_cpu_is_shared_and_every_pod_is_under_pressure() -> None:
    found = reported(saying("p", "a", use={"cpu": "8"}, cpu="1"), saying("q", "a", use={"cpu": "2"}, cpu="1"))
    assert found.of_pod("default/p").cpu_used_milli == 2000
    assert found.of_pod("default/p").cpu_pressure == pytest.approx(0.75)
    assert found.of_pod("default/q").cpu_pressure == 0
    assert found.of_node("a").cpu_used_milli == 4000


def test_unmeasured_pods_keep_their_known_usage() -> None:
    known = Signals({"default/p": PodSignals(restarts=3)}, {"a": NodeSignals(maintenance_ns=7)})
    found = reported(saying("p", "a", use={"cpu": "1"}), signals=known)
    assert (found.of_pod("default/p").restarts, found.of_node("a").maintenance_ns) == (3, 7)


@pytest.mark.parametrize(
    "silent", [saying("p", "a", use={"cpu": "1"}, phase="Pending"), saying("p", "", use={"cpu": "1"})]
)
def test_pods_that_do_not_run_use_nothing(silent: Pod) -> None:
    assert reported(silent) == Signals()


def test_unreadable_usage_falls_back_to_requests() -> None:
    assert reported(saying("p", "a", use={"cpu": "lots"}, cpu="1")).of_pod("default/p").cpu_used_milli == 1000


def test_a_pod_that_is_gone_is_forgotten() -> None:
    use, signals = ReportedUse(), Signals()
    hungry = saying("p", "a", use={"cpu": "1"})
    assert use.pod_changed(hungry)
    assert not use.pod_changed(hungry)
    assert use.pod_changed(saying("p", "a", use={"cpu": "2"}))
    use.pod_gone("default/p")
    assert use.with_use(signals, Cluster()) is signals
