"""Owners of pods of equal priority share a full cluster, until the cluster is at rest."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.sim.results.result import Result
from tests.sim.objects import scenario
from tests.sim.played import instantly
from tests.store.objects import Raw, node, replicated


def fair(name: str = "default-scheduler") -> Configuration:
    args = {"equalPriorityPreemption": True}
    profile = {"schedulerName": name, "pluginConfig": [{"name": "DefaultPreemption", "args": args}]}
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "test")


def replica_set(name: str, replicas: int, *, grace: int = 10) -> Raw:
    """Return a ReplicaSet of pods of one cpu."""
    requests = {"requests": {"cpu": "1"}}
    spec = {
        "terminationGracePeriodSeconds": grace,
        "containers": [{"name": "main", "image": "registry.example/main:1", "resources": requests}],
    }
    return replicated("ReplicaSet", name, replicas, spec)


def nodes(count: int, cpu: int) -> list[Raw]:
    return [node(f"n{n}", cpu=str(cpu)) for n in range(count)]


def played(*objects: Raw, **options: Any) -> Result:
    return instantly(objects, configuration=fair(), **options)


def running(result: Result) -> dict[str, int]:
    """Return how many pods of each ReplicaSet run at the end."""
    of = (pod["pod"].removeprefix("default/").rpartition("-")[0] for pod in result.pods if pod["phase"] == "Running")
    return dict(Counter(of))


def last_deletion(result: Result) -> float:
    return max((event.time for event in result.events if event.reason == "Killing"), default=0)


@pytest.mark.parametrize(("count", "cpu"), [(1, 6), (6, 1)])
def test_two_owners_on_a_full_cluster_come_to_halves_and_stop(count: int, cpu: int) -> None:
    arrival = scenario({"at": "10s", "apply": [replica_set("b", 6)]}, until="2h")

    result = played(*nodes(count, cpu), replica_set("a", 6), arrival)

    assert running(result) == {"a": 3, "b": 3}
    assert result.summary["preempted"] == 3
    assert last_deletion(result) == 10


def test_indivisible_shares_stay_with_their_holders() -> None:
    arrival = scenario({"at": "10s", "apply": [replica_set("b", 5)]}, until="2h")

    result = played(*nodes(1, 5), replica_set("a", 5), arrival)

    assert running(result) == {"a": 3, "b": 2}
    assert result.summary["preempted"] == 2


def test_a_third_owner_takes_from_both() -> None:
    arrivals = [{"at": f"{10 * n}m", "apply": [replica_set(name, 6)]} for n, name in enumerate("bc", 1)]

    result = played(*nodes(3, 2), replica_set("a", 6), scenario(*arrivals, until="1h"))

    assert running(result) == {"a": 2, "b": 2, "c": 2}
    assert result.summary["preempted"] == 3 + 2
    assert last_deletion(result) == 1200


def test_bindings_that_take_long_and_victims_that_do_change_nothing_about_it() -> None:
    arrival = scenario({"at": "10s", "apply": [replica_set("b", 6, grace=90)]}, until="2h")

    result = played(*nodes(6, 1), replica_set("a", 6, grace=90), arrival, bind_delay="20s")

    assert running(result) == {"a": 3, "b": 3}
    assert result.summary["preempted"] == 3


def test_without_the_argument_earlier_pods_keep_everything() -> None:
    arrival = scenario({"at": "10s", "apply": [replica_set("b", 6)]}, until="2h")

    result = instantly([*nodes(1, 6), replica_set("a", 6), arrival])

    assert running(result) == {"a": 6}


def test_a_simulation_without_an_end_ends_with_the_last_exchange() -> None:
    result = played(*nodes(1, 4), replica_set("a", 4), scenario({"at": "10s", "apply": [replica_set("b", 4)]}))

    assert running(result) == {"a": 2, "b": 2}
    assert result.summary["end"] == 20
