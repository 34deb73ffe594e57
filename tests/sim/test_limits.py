"""A simulation stays within its limits, and names the limit that it reaches."""

from typing import Any

import pytest

from podium import simulate
from podium.sim.run_options import LimitError, SimulationLimits


def workload(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pod_spec = {"containers": [container], **({"restartPolicy": "Never"} if kind == "Job" else {})}
    selector: dict[str, Any] = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    if kind == "ReplicationController":
        selector = {"selector": labels}
    version = {"Job": "batch/v1", "ReplicationController": "v1"}.get(kind, "apps/v1")
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**spec, **selector, "template": {"metadata": {"labels": labels}, "spec": pod_spec}},
    }


def replica_set(replicas: int, name: str = "web") -> dict[str, Any]:
    return workload("ReplicaSet", name, {"replicas": replicas})


def test_objects_made_in_the_run_are_limited() -> None:
    sets = [replica_set(15, "a"), replica_set(15, "b")]

    with pytest.raises(LimitError) as caught:
        simulate(sets, until="1m", limits=SimulationLimits(objects=20))

    assert str(caught.value).startswith("at +0s ReplicaSet default/b makes Pod default/b-")
    assert "the limit of 20 objects; raise it with --max-objects" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ReplicaSet", {"replicas": 2**31 - 1}),
        ("ReplicationController", {"replicas": 2**31 - 1}),
        ("Deployment", {"replicas": 2**31 - 1}),
        ("StatefulSet", {"replicas": 2**31 - 1}),
        ("Job", {"parallelism": 2**31 - 1}),
        ("Job", {"parallelism": 2**31 - 1, "completions": 2**31 - 1}),
    ],
)
def test_impossible_sizes_are_rejected_before_creation(kind: str, spec: dict[str, Any]) -> None:
    with pytest.raises(LimitError, match=rf"{kind} default/web wants 2,147,483,647 pods.* 500,000 objects"):
        simulate([workload(kind, "web", spec)], until="1m")


def test_scaling_beyond_the_limit_is_refused() -> None:
    scenario = {
        "apiVersion": "podium.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "s"},
        "spec": {"steps": [{"at": "5s", "scale": {"kind": "ReplicaSet", "name": "web", "replicas": 10**6}}]},
    }

    with pytest.raises(LimitError, match=r"at \+5s ReplicaSet default/web wants 1,000,000 pods"):
        simulate([replica_set(1, "web"), scenario])


def test_objects_that_are_there_from_the_start_do_not_count() -> None:
    result = simulate([replica_set(2)], until="1m", limits=SimulationLimits(objects=2))

    assert result.summary["pods"]["total"] == 2


def test_events_are_limited() -> None:
    with pytest.raises(LimitError, match=r"the limit of 10 events; raise it with --max-events"):
        simulate([replica_set(20)], until="1m", limits=SimulationLimits(events=10))


def test_work_is_limited_though_it_would_go_on_for_ever() -> None:
    with pytest.raises(
        LimitError, match=r"at \+.* would be called once more.* limit of 1,000 calls; raise it with --max-calls"
    ):
        simulate([replica_set(1)], until="2562047h", limits=SimulationLimits(calls=1_000))


def test_a_limit_is_one_or_more() -> None:
    with pytest.raises(LimitError, match="the limit of events is 0"):
        SimulationLimits(events=0)
