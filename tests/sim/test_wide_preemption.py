"""A preemption with victims on several nodes, from its start to the binding."""

from __future__ import annotations

from typing import Any

import pytest

from podium.framework.settings.configuration import API_VERSION, KIND, Configuration, read_configuration
from podium.sim.results.result import Result
from tests.sim.objects import scenario
from tests.sim.played import instantly
from tests.store.objects import Raw, node, replicated


def settings(**args: Any) -> Configuration:
    profile = {"pluginConfig": [{"name": "DefaultPreemption", "args": {"acrossNodes": True, **args}}]}
    return read_configuration({"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}, "test")


def pod(name: str, *, on: str = "", priority: int = 0, cpu: str = "1", grace: int = 30, **spec: Any) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name.partition("-")[0]}},
        "spec": {
            "nodeName": on,
            "priority": priority,
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu}}}],
            **spec,
        },
    }


def apart(app: str) -> Raw:
    """Return required anti-affinity to an app over racks."""
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def rack(*names: str, cpu: str = "4") -> list[Raw]:
    return [node(name, cpu=cpu, rack=name[0]) for name in names]


def events(result: Result, *reasons: str) -> list[str]:
    return [
        f"{event.time:g} {event.reason} {(event.pod or '').removeprefix('default/')}"
        for event in result.events
        if event.reason in reasons
    ]


TOLD = ("Nominated", "Killing", "Terminated", "Scheduled", "FailedScheduling")


@pytest.mark.parametrize(("here", "there"), [(10, 40), (40, 10), (20, 20)])
def test_the_preemptor_is_bound_when_its_last_victim_on_any_node_has_ended(here: int, there: int) -> None:
    batch = pod("batch-1", on="a1", cpu="3", grace=here)
    web = pod("web-1", on="a2", grace=there)
    urgent = pod("urgent", priority=10, cpu="3", affinity=apart("web"))

    result = instantly(
        [*rack("a1"), *rack("a2", cpu="2"), batch, web, scenario({"at": "5s", "apply": [urgent]}, until="2m")],
        configuration=settings(),
    )

    assert events(result, "Scheduled") == [f"{5 + max(here, there)} Scheduled urgent"]
    assert sorted(events(result, "Killing")) == ["5 Killing batch-1", "5 Killing web-1"]
    assert result.summary["preempted"] == 2


def test_no_further_pod_is_evicted_while_the_preemptor_waits() -> None:
    web = [pod(f"web-{name}", on=name, grace=60) for name in ("a1", "a2", "b1", "b2")]
    urgent = pod("urgent", priority=10, affinity=apart("web"))
    later = [pod(f"later-{number}", priority=1, cpu="100m") for number in range(3)]
    steps: list[Raw] = [
        {"at": "5s", "apply": [urgent]},
        {"at": "15s", "apply": later},
        {"at": "20s", "delete": {"kind": "Pod", "namespace": "default", "name": "later-1"}},
    ]

    result = instantly([*rack("a1", "a2", "b1", "b2"), *web, scenario(*steps, until="3m")], configuration=settings())

    assert result.summary["preempted"] == 2
    assert "65 Scheduled urgent" in events(result, "Scheduled")


def test_a_replacement_of_a_victim_does_not_take_the_rack_again() -> None:
    replica_set = replicated("ReplicaSet", "web", 2, pod("web")["spec"] | {"nodeName": ""})
    urgent = pod("urgent", priority=10, affinity=apart("web"))

    result = instantly(
        [*rack("a1", "a2"), replica_set, scenario({"at": "5s", "apply": [urgent]}, until="10m")],
        configuration=settings(),
    )

    # There is no other rack: they wait.
    assert events(result, "Scheduled")[-1] == "35 Scheduled urgent"
    assert result.summary["preempted"] == 2
    assert [shown["phase"] for shown in result.pods].count("Pending") == 2


def test_two_preemptors_that_keep_one_another_off_do_not_share_a_rack() -> None:
    web = [pod(f"web-{name}", on=name) for name in ("a1", "a2", "b1", "b2")]
    both = [pod(f"urgent-{number}", priority=10, affinity=apart("web")) for number in (1, 2)]
    for one in both:
        one["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] += apart("urgent")[
            "podAntiAffinity"
        ]["requiredDuringSchedulingIgnoredDuringExecution"]

    result = instantly(
        [*rack("a1", "a2", "b1", "b2"), *web, scenario({"at": "5s", "apply": both}, until="3m")],
        configuration=settings(),
    )

    assert sorted(events(result, "Scheduled")) == ["35 Scheduled urgent-1", "35 Scheduled urgent-2"]
    racks = {shown["pod"]: shown["node"][0] for shown in result.pods if "urgent" in shown["pod"]}
    assert sorted(racks.values()) == ["a", "b"]
    assert result.summary["preempted"] == 4
